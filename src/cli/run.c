/* pawl run: holds a lock while a command runs.
 *
 *   acquiring --granted--> starting --time left for a start--> running --nothing left of CMD--> releasing --> exit
 *
 * This process talks to the cluster and moves the deadline; the guardian (guardian.h) acts on it. Should the guardian be
 * late itself, this one does its work a moment before the deadline.
 */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli.h"
#include "guardian.h"
#include "output.h"
#include "run.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NS_PER_MS 1000000
#define RELEASE_MS 2000 /* how long to try to give the lock back before leaving it to its lease */

struct run {
	struct cli_command_line *line;
	struct run_wanted wanted;
	struct guardian guardian;
	struct event_base *base;
	struct pawl *client;
	struct pawl_call *call;
	struct pawl_lock *lock;
	struct event *guardian_event, *guardian_stopped, *backup, *signals[8];
	size_t signal_count;
	struct pawl_id lock_id;
	uint64_t token;
	bool started; /* the guardian was told to start CMD */
	bool gone;    /* nothing is left of CMD */
	int cause;    /* why the lock was lost; 0: it was not */
	int status;   /* of CMD, as waitpid gives it */
	int exit_status;
};

static void end_loop(struct run *r, int exit_status) {
	r->exit_status = exit_status;
	event_base_loopbreak(r->base);
}

/* ---- the deadline ---- */

/* This side's own look at it: at half of the margin, when the guardian should long have done its work. */
static void backup_arm(struct run *r) {
	int64_t left = trust_left(&r->guardian.shared->trust) - r->wanted.guarding.margin_ns / 2;
	left = left < 0 ? 0 : left;
	struct timeval t = { left / 1000000000, left % 1000000000 / 1000 };
	evtimer_add(r->backup, &t);
}

static void deadline_move(struct run *r) {
	int64_t boot, raw;
	pawl_lock_deadline(r->lock, &boot, &raw);
	trust_extend(&r->guardian.shared->trust, boot, raw);
	backup_arm(r);
}

/* ---- the end ---- */

static void report_json(const struct run *r, int exit_status) {
	json_t *object = json_object();
	output_json_bytes(object, "key", pawl_str(r->wanted.key));
	output_json_id(object, "lock_id", &r->lock_id);
	output_json_set(object, "token", json_integer((json_int_t)r->token));
	output_json_set(object, "exit_status", json_integer(exit_status));
	if (r->cause) {
		json_t *error = json_object();
		output_json_set(error, "code", json_string("lost"));
		output_json_set(error, "cause", json_string(pawl_error_code(r->cause)));
		output_json_set(error, "message", json_string("the lock was lost while the command ran; the command was ended"));
		output_json_set(object, "error", error);
	}
	output_json(object);
}

static int command_exit_status(const struct run *r) {
	if (r->cause) {
		return CLI_LOST;
	}
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static void on_released(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	pawl_result_free(take_result);
	end_loop(r, r->exit_status);
}

static void on_release_late(evutil_socket_t fd, short what, void *arg) {
	struct run *r = arg;
	(void)fd, (void)what;
	end_loop(r, r->exit_status); /* the lease runs out by itself */
}

/* Gives the lock back, as far as there is still something to give, and ends. Nothing may run under it any more. */
static void release_and_end(struct run *r, int exit_status) {
	struct pawl_lock *lock = r->lock;
	int64_t left_ms = lock ? pawl_lock_valid_ms(lock) : 0; /* later there is nothing to give back */
	int64_t patience_ms = left_ms < RELEASE_MS ? left_ms : RELEASE_MS;
	const struct timeval patience = { patience_ms / 1000, patience_ms % 1000 * 1000 };
	r->lock = NULL;
	r->exit_status = exit_status;
	if (!lock || r->cause == PAWL_ELOST || left_ms == 0) {
		pawl_lock_free(lock);
		end_loop(r, exit_status);
	} else if (pawl_lock_release_start(lock, on_released, r) != 0 ||
		event_base_once(r->base, -1, EV_TIMEOUT, on_release_late, r, &patience) != 0) {
		end_loop(r, exit_status);
	}
}

/* Nothing is left of CMD: others may have the lock. */
static void command_gone(struct run *r) {
	r->gone = true;
	event_del(r->guardian_event);
	event_del(r->backup);
	guardian_terminal(&r->guardian, false);
	release_and_end(r, command_exit_status(r));
}

static void replace_guardian(struct run *r, const char *why) {
	if (!r->started) {
		fprintf(stderr, "pawl run: the guardian %s before %s was started\n", why, r->wanted.guarding.command[0]);
		event_del(r->guardian_event);
		r->gone = true;
		release_and_end(r, CLI_REFUSED);
		return;
	}
	fprintf(stderr, "pawl run: the guardian %s: ending %s\n", why, r->wanted.guarding.command[0]);
	r->status = SIGKILL; /* as waitpid tells of a process that it killed */
	guardian_replace(&r->guardian);
	command_gone(r);
}

static void on_backup(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	struct run *r = arg;
	if (trust_left(&r->guardian.shared->trust) > r->wanted.guarding.margin_ns / 2) {
		backup_arm(r); /* this timer follows one clock, the deadline two */
		return;
	}
	r->cause = r->cause ? r->cause : PAWL_ETIMEOUT;
	replace_guardian(r, "is late");
}

/* Of an extension a timeout is no wait that was asked for. */
static const char *cause_text(int cause) {
	return cause == PAWL_ETIMEOUT ? "no node answers" : pawl_error_message(cause);
}

/* The lock cannot be kept: CMD has the time that is left. */
static void lock_lost(struct run *r, int cause) {
	if (!r->cause) {
		r->cause = cause;
		fprintf(stderr, "pawl run: cannot keep '%s' any more (%s): ending %s\n", r->wanted.key, cause_text(cause),
			r->wanted.guarding.command[0]);
	}
	guardian_send(&r->guardian, GUARDIAN_END, cause == PAWL_ELOST); /* then somebody else may have it already */
}

/* ---- what the guardian says ---- */

/* The terminal stopped CMD: step aside for the shell, as a job does. The lease is not renewed meanwhile, and when it is
 * over the guardian, which is not stopped, ends CMD. */
static void step_aside(struct run *r) {
	guardian_terminal(&r->guardian, false);
	raise(SIGSTOP);
	guardian_send(&r->guardian, GUARDIAN_RESUME, 0);
}

static void on_guardian(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	struct run *r = arg;
	struct guardian_message m;
	int got;
	while (!r->gone && (got = guardian_receive(&r->guardian, &m)) != 0) {
		if (got < 0) {
			replace_guardian(r, "was killed");
		} else if (m.word == GUARDIAN_GONE) {
			r->status = m.value;
			command_gone(r);
		} else if (m.word == GUARDIAN_LATE) {
			lock_lost(r, PAWL_ETIMEOUT);
		} else if (m.word == GUARDIAN_SUSPENDED) {
			step_aside(r);
		}
	}
}

static void on_guardian_stopped(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	guardian_continue(&((struct run *)arg)->guardian);
}

/* ---- the lock ---- */

/* CMD starts once the lease leaves it more than the time to end it; after a long wait it is renewed first. */
static void start_when_ready(struct run *r) {
	int64_t needed = (int64_t)r->wanted.lock.warn_ms * NS_PER_MS;
	if (r->started || trust_left(&r->guardian.shared->trust) <= needed) {
		return;
	}
	r->started = true;
	r->token = pawl_lock_token(r->lock);
	r->lock_id = pawl_lock_id(r->lock);
	struct guardian_shared *s = r->guardian.shared;
	pawl_id_format(&r->lock_id, s->lock_id);
	snprintf(s->token, sizeof s->token, "%" PRIu64, r->token);
	guardian_send(&r->guardian, GUARDIAN_START, 0);
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	struct run *r = arg;
	(void)lock;
	if (r->lock) {
		deadline_move(r);
		start_when_ready(r);
	}
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct run *r = arg;
	(void)lock;
	if (r->started) {
		lock_lost(r, cause);
	} else {
		fprintf(stderr, "pawl run: lost '%s' before %s was started: %s\n", r->wanted.key, r->wanted.guarding.command[0],
			pawl_error_message(cause));
		end_loop(r, CLI_REFUSED);
	}
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	r->call = NULL;
	if (take_result->error) {
		end_loop(r, cli_fail(r->line, take_result, "run", r->wanted.key));
	} else {
		r->lock = take_lock;
		deadline_move(r);
		start_when_ready(r);
	}
	pawl_result_free(take_result);
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t number, short what, void *arg) {
	struct run *r = arg;
	(void)what;
	if (r->started) {
		guardian_send(&r->guardian, GUARDIAN_SIGNAL, (int)number);
	} else if (number == SIGUSR1 || number == SIGUSR2) {
		return; /* meant for CMD, which does not run yet */
	} else if (r->lock) {
		release_and_end(r, 128 + (int)number);
	} else {
		end_loop(r, 128 + (int)number);
	}
}

/* What was ignored when pawl started (nohup, a shell's background job) stays ignored, here and in CMD. */
static bool watch_signals(struct run *r) {
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct sigaction now;
		sigaction(numbers[i], NULL, &now);
		if (now.sa_handler == SIG_IGN) {
			continue;
		}
		struct event *e = evsignal_new(r->base, numbers[i], on_signal, r);
		if (!e) {
			return false;
		}
		r->signals[r->signal_count++] = e;
		evsignal_add(e, NULL);
	}
	return true;
}

/* ---- the command ---- */

/* PAWL_KEY is about to mean the lock's key: a pawl that CMD runs finds the file under another name. */
static void keep_key_file(const struct run *r) {
	const char *named = getenv("PAWL_KEY"), *used = r->line->key_file;
	char *to = r->guardian.shared->key_file;
	if (named && used && strcmp(named, used) == 0 && strlen(used) < sizeof r->guardian.shared->key_file) {
		memcpy(to, used, strlen(used) + 1);
	}
}

static bool set_up(struct run *r) {
	r->base = event_base_new();
	if (!r->base) {
		return false;
	}
	r->guardian_event = event_new(r->base, r->guardian.fd, EV_READ | EV_PERSIST, on_guardian, r);
	r->guardian_stopped = evsignal_new(r->base, SIGCHLD, on_guardian_stopped, r);
	r->backup = evtimer_new(r->base, on_backup, r);
	return r->guardian_event && r->guardian_stopped && r->backup && event_add(r->guardian_event, NULL) == 0 &&
		evsignal_add(r->guardian_stopped, NULL) == 0 && watch_signals(r);
}

static void tear_down(struct run *r) {
	if (r->call) {
		pawl_cancel(r->call);
	}
	pawl_lock_free(r->lock);
	pawl_free(r->client);
	for (size_t i = 0; i < r->signal_count; i++) {
		event_free(r->signals[i]);
	}
	struct event *others[] = { r->guardian_event, r->guardian_stopped, r->backup };
	for (size_t i = 0; i < COUNT(others); i++) {
		if (others[i]) {
			event_free(others[i]);
		}
	}
	if (r->base) {
		event_base_free(r->base);
	}
	guardian_done(&r->guardian);
}

static int run_run(struct cli_command_line *line) {
	struct run r = { .line = line, .exit_status = CLI_REFUSED };
	run_read_line(line, &r.wanted);
	r.wanted.lock.on_lost = on_lost;
	r.wanted.lock.on_renewed = on_renewed;
	r.wanted.lock.arg = &r;
	int error = guardian_start(&r.guardian, &r.wanted.guarding);
	if (error) {
		fprintf(stderr, "pawl run: cannot start a process: %s\n", strerror(error));
		return CLI_REFUSED;
	}
	keep_key_file(&r);
	if (!set_up(&r)) {
		fprintf(stderr, "pawl run: out of memory\n");
		tear_down(&r);
		return CLI_REFUSED;
	}
	r.client = cli_connect_on(line, r.base);
	error = pawl_lock_start(r.client, &r.wanted.lock, on_locked, &r, &r.call);
	if (error) {
		fprintf(stderr, "pawl run: %s\n", pawl_error_message(error));
		tear_down(&r);
		return error == PAWL_EINVAL ? CLI_USAGE : CLI_REFUSED;
	}
	event_base_dispatch(r.base);
	if (line->json && r.gone) {
		report_json(&r, r.exit_status);
	}
	tear_down(&r);
	return r.exit_status;
}

const struct cli_command cli_run = { "run", "hold a lock while a command runs", run_help, run_run };
