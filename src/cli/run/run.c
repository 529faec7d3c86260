/* run.c: pawl run and pawl elect: a command runs while a lock is held, or while an election is won.
 *
 *   acquiring --granted--> starting --time left for a start--> running --nothing left of CMD-->
 *   releasing --> exit
 *
 * A candidate whose leadership is over starts over by executing itself, so that nothing of the
 * previous leadership is left.
 *
 * This process talks to the cluster and moves the deadline; the guardian (guardian.h) acts on it.
 * If the guardian itself is late, this process does its work, a moment before the deadline. */
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
/* How long to try to give the lock back before leaving it to its lease. */
#define RELEASE_MS 2000

void run_end(struct run *r, int exit_status) {
	r->exit_status = exit_status;
	event_base_loopbreak(r->base);
}

/* ---- the deadline ---- */

/* Sets this side's own look at the deadline. It comes at half of the margin, when the guardian
 * should long have done its work. */
static void backup_arm(struct run *r) {
	int64_t left = trust_left(&r->guardian.shared->trust) - r->wanted.margin_ns / 2;
	left = left < 0 ? 0 : left;
	struct timeval t = { left / 1000000000, left % 1000000000 / 1000 };
	evtimer_add(r->backup, &t);
}

static void deadline_move(struct run *r) {
	int64_t boot, raw;
	hold_deadline(r, &boot, &raw);
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
		output_json_set(error, "message",
			json_string(
				"the lock was lost while the command ran; the command was ended"));
		output_json_set(object, "error", error);
	}
	output_json(object);
}

static int command_exit_status(const struct run *r) {
	if (r->cause) {
		return cli_own_status(r->line, CLI_LOST);
	}
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
}

static void on_release_late(evutil_socket_t fd, short what, void *arg) {
	struct run *r = arg;
	(void)fd, (void)what;
	/* The lease runs out by itself. */
	run_end(r, r->exit_status);
}

/* Releases what is still held, and ends. Nothing may run under the lock any more. */
static void release_and_end(struct run *r, int exit_status) {
	/* After this time there is nothing to release. */
	int64_t left_ms = hold_valid_ms(r);
	int64_t patience_ms = left_ms < RELEASE_MS ? left_ms : RELEASE_MS;
	const struct timeval patience = { patience_ms / 1000, patience_ms % 1000 * 1000 };
	r->exit_status = exit_status;
	if (r->cause == PAWL_ELOST || left_ms == 0) {
		hold_forget(r);
		run_end(r, exit_status);
	} else if (event_base_once(r->base, -1, EV_TIMEOUT, on_release_late, r, &patience) != 0
		|| !hold_release(r, exit_status)) {
		run_end(r, exit_status);
	}
}

/* Nothing is left of CMD, so others may have the lock. */
static void command_gone(struct run *r) {
	r->gone = true;
	event_del(r->guardian_event);
	event_del(r->backup);
	guardian_terminal(&r->guardian, false);
	r->again = r->wanted.elect && !r->wanted.once && (r->yields || r->cause);
	release_and_end(r, command_exit_status(r));
}

static void replace_guardian(struct run *r, const char *why) {
	if (!r->started) {
		fprintf(stderr, "pawl %s: the guardian process %s before %s was started\n",
			run_name(r), why, r->wanted.guarding.command[0]);
		event_del(r->guardian_event);
		r->gone = true;
		release_and_end(r, cli_own_status(r->line, CLI_REFUSED));
		return;
	}
	fprintf(stderr, "pawl %s: the guardian process %s: ending %s\n", run_name(r), why,
		r->wanted.guarding.command[0]);
	/* This is how waitpid tells of a process that was killed by SIGKILL. */
	r->status = SIGKILL;
	guardian_replace(&r->guardian);
	command_gone(r);
}

static void on_backup(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	struct run *r = arg;
	if (trust_left(&r->guardian.shared->trust) > r->wanted.margin_ns / 2) {
		/* This timer follows one clock, and the deadline two. */
		backup_arm(r);
		return;
	}
	r->cause = r->cause ? r->cause : PAWL_ETIMEOUT;
	replace_guardian(r, "is late");
}

/* The lock cannot be kept. CMD gets the time that is left. */
void run_lost(struct run *r, int cause) {
	if (r->gone) {
		return;
	}
	if (!r->started) {
		fprintf(stderr, "pawl %s: lost '%s' before %s was started: %s\n", run_name(r),
			r->wanted.key, r->wanted.guarding.command[0], pawl_error_message(cause));
		r->again = r->wanted.elect && !r->wanted.once;
		run_end(r, cli_own_status(r->line, CLI_REFUSED));
		return;
	}
	if (!r->cause) {
		r->cause = cause;
		fprintf(stderr, "pawl %s: cannot keep '%s' (%s): ending %s\n", run_name(r),
			r->wanted.key, hold_cause(cause), r->wanted.guarding.command[0]);
	}
	/* If the lock is lost already, somebody else may have it. */
	guardian_send(&r->guardian, GUARDIAN_END, cause == PAWL_ELOST);
}

/* Somebody has asked for the lock, so CMD ends first. The command of a candidate gets --grace for
 * that, as when leadership is lost: a command that ignores SIGTERM, or is stopped, must not lead
 * for ever. */
void run_asked(struct run *r) {
	if (r->gone || r->yields || r->cause || !r->started) {
		return;
	}
	r->yields = true;
	fprintf(stderr, "pawl %s: somebody asked for '%s': ending %s\n", run_name(r), r->wanted.key,
		r->wanted.guarding.command[0]);
	guardian_send(&r->guardian, r->wanted.elect ? GUARDIAN_END : GUARDIAN_SIGNAL,
		r->wanted.elect ? 0 : SIGTERM);
}

/* ---- what the guardian says ---- */

/* The terminal has stopped CMD, so this process steps aside for the shell, as a job does. The lease
 * is not renewed meanwhile; when it is over, the guardian, which is not stopped, ends CMD. */
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
			run_lost(r, PAWL_ETIMEOUT);
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

/* Says that this candidate leads, for pawl elect without CMD. Something that only sleeps stands for
 * CMD then. */
static void announce(const struct run *r) {
	if (r->line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "key", pawl_str(r->wanted.key));
		output_json_id(object, "lock_id", &r->lock_id);
		output_json_set(object, "token", json_integer((json_int_t)r->token));
		output_json_set(object, "leading", json_true());
		output_json(object);
	} else {
		printf("leads ");
		output_bytes(stdout, pawl_str(r->wanted.key), 0);
		printf(", token %" PRIu64 "\n", r->token);
	}
	fflush(stdout);
}

/* Starts CMD once the lease leaves it more than the time that is needed to end it. After a long
 * wait the lease is renewed first. */
static void start_when_ready(struct run *r) {
	int64_t needed = (int64_t)r->wanted.lock.warn_ms * NS_PER_MS;
	if (r->started || trust_left(&r->guardian.shared->trust) <= needed) {
		return;
	}
	r->started = true;
	r->token = hold_token(r);
	r->lock_id = hold_lock_id(r);
	struct guardian_shared *s = r->guardian.shared;
	s->grace_ns = r->wanted.grace_ns;
	s->margin_ns = r->wanted.margin_ns;
	pawl_id_format(&r->lock_id, s->lock_id);
	snprintf(s->token, sizeof s->token, "%" PRIu64, r->token);
	hold_slots(r, s->slots, sizeof s->slots);
	hold_tokens(r, s->tokens, sizeof s->tokens);
	if (r->connection >= 0) {
		guardian_keep_connection(&r->guardian, r->connection);
	}
	guardian_send(&r->guardian, GUARDIAN_START, 0);
	if (r->wanted.announces) {
		announce(r);
	}
}

/* A lock that ends with this connection must not end before CMD. So the guardian gets the
 * connection as well, and still has it if this process is killed. */
static void on_connected(int fd, void *arg) {
	struct run *r = arg;
	r->connection = fd;
	if (r->started && !r->gone) {
		guardian_keep_connection(&r->guardian, fd);
	}
}

void run_granted(struct run *r) {
	deadline_move(r);
	start_when_ready(r);
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t number, short what, void *arg) {
	struct run *r = arg;
	(void)what;
	/* CMD may have a use for the other signals. */
	r->ends |= number == SIGTERM || number == SIGINT || number == SIGQUIT;
	if (r->started) {
		guardian_send(&r->guardian, GUARDIAN_SIGNAL, (int)number);
	} else if (number == SIGUSR1 || number == SIGUSR2) {
		/* The signal is meant for CMD, which does not run yet. */
		return;
	} else if (hold_any(r)) {
		release_and_end(r, 128 + (int)number);
	} else {
		run_end(r, 128 + (int)number);
	}
}

/* Signals that were ignored when pawl started (nohup, a shell's background job) stay ignored, here
 * and in CMD. */
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

static bool set_up(struct run *r) {
	r->base = event_base_new();
	if (!r->base) {
		return false;
	}
	r->guardian_event = event_new(r->base, r->guardian.fd, EV_READ | EV_PERSIST, on_guardian,
		r);
	r->guardian_stopped = evsignal_new(r->base, SIGCHLD, on_guardian_stopped, r);
	r->backup = evtimer_new(r->base, on_backup, r);
	return r->guardian_event && r->guardian_stopped && r->backup
		&& event_add(r->guardian_event, NULL) == 0
		&& evsignal_add(r->guardian_stopped, NULL) == 0 && watch_signals(r);
}

static void tear_down(struct run *r) {
	hold_done(r);
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

static int run_wanted(struct run *r) {
	int error = guardian_start(&r->guardian, &r->wanted.guarding);
	if (error) {
		fprintf(stderr, "pawl %s: cannot start a process: %s\n", run_name(r),
			strerror(error));
		return cli_own_status(r->line, CLI_REFUSED);
	}
	if (!set_up(r)) {
		fprintf(stderr, "pawl %s: out of memory\n", run_name(r));
		tear_down(r);
		return cli_own_status(r->line, CLI_REFUSED);
	}
	/* The guardian may have been stopped before this process could hear of it. */
	guardian_continue(&r->guardian);
	r->client = cli_connect_on(r->line, r->base);
	if (r->wanted.lock.terms.release_on_disconnect) {
		pawl_on_connected(r->client, on_connected, r);
	}
	error = hold_begin(r);
	if (error) {
		fprintf(stderr, "pawl %s: %s\n", run_name(r), pawl_error_message(error));
		tear_down(r);
		return cli_own_status(r->line, error == PAWL_EINVAL ? CLI_USAGE : CLI_REFUSED);
	}
	event_base_dispatch(r->base);
	if (r->line->json && r->gone) {
		report_json(r, r->exit_status);
	}
	tear_down(r);
	return r->exit_status;
}

const char *run_name(const struct run *r) {
	return r->wanted.elect ? "elect" : "run";
}

static int run_run(struct cli_command_line *line) {
	line->runner = true;
	struct run r = { .line = line, .exit_status = cli_own_status(line, CLI_REFUSED),
		.connection = -1 };
	run_read_line(line, &r.wanted);
	return run_wanted(&r);
}

const struct cli_command cli_run = { "run", "hold a lock while a command runs", run_help, run_run };

/* Becomes a candidate again: executes this program from its beginning, with the arguments that it
 * was given. */
static int start_over(const struct cli_command_line *line) {
	/* The kernel allows no argument that is longer than this. */
	static char bytes[1 << 17];
	static char *words[4096];
	FILE *given = fopen("/proc/self/cmdline", "r");
	size_t size = given ? fread(bytes, 1, sizeof bytes - 1, given) : 0, count = 0;
	bool whole = given && feof(given);
	for (size_t at = 0; at < size && count + 1 < COUNT(words); at += strlen(bytes + at) + 1) {
		words[count++] = bytes + at;
	}
	if (given) {
		fclose(given);
	}
	if (whole && count > 0) {
		fflush(NULL);
		cli_restore_signals();
		execv("/proc/self/exe", words);
	}
	fprintf(stderr, "pawl elect: cannot start over as a candidate: %s\n",
		whole ? strerror(errno) : "the command line is too long");
	return cli_own_status(line, CLI_LOST);
}

static int elect_run(struct cli_command_line *line) {
	line->runner = true;
	struct run r = { .line = line, .exit_status = cli_own_status(line, CLI_REFUSED),
		.connection = -1 };
	elect_read_line(line, &r.wanted);
	int status = run_wanted(&r);
	return r.again && !r.ends ? start_over(line) : status;
}

const struct cli_command cli_elect = { "elect",
	"take part in an election, and run a command while leading",
	elect_help, elect_run };
