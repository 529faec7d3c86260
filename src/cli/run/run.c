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
#include <unistd.h>

#include "cli.h"
#include "guardian.h"
#include "output.h"
#include "run.h"
#include "waiting.h"

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
				r->late_loss ? "the lock was lost while the command ran"
					: "the lock was lost while the command ran; the "
					  "command was ended"));
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

/* Waits for at most so long until what was held, or wanted, is given back. */
static void be_patient(struct run *r, int64_t ms) {
	const struct timeval patience = { ms / 1000, ms % 1000 * 1000 };
	r->releases = true;
	waiting_over();
	if (event_base_once(r->base, -1, EV_TIMEOUT, on_release_late, r, &patience) != 0) {
		run_end(r, r->exit_status);
	}
}

/* Releases what is still held, and ends. Nothing may run under the lock any more. */
static void release_and_end(struct run *r, int exit_status) {
	/* After this time there is nothing to release. */
	int64_t left_ms = hold_valid_ms(r);
	if (r->cause == PAWL_ELOST || left_ms == 0) {
		hold_forget(r);
		run_end(r, exit_status);
		return;
	}
	be_patient(r, left_ms < RELEASE_MS ? left_ms : RELEASE_MS);
	if (!hold_release(r, exit_status)) {
		run_end(r, exit_status);
	}
}

/* Nothing is left of CMD, so others may have the lock. */
static void command_gone(struct run *r) {
	r->gone = true;
	event_del(r->guardian_event);
	event_del(r->backup);
	r->again = r->wanted.elect && !r->wanted.once && (r->yields || r->cause);
	release_and_end(r, command_exit_status(r));
}

static void replace_guardian(struct run *r, const char *why) {
	if (!r->started) {
		output_line(stderr, "pawl %s: the guardian process %s before %s was started",
			run_name(r), why, r->wanted.guarding.command[0]);
		event_del(r->guardian_event);
		r->gone = true;
		release_and_end(r, cli_own_status(r->line, CLI_REFUSED));
		return;
	}
	output_line(stderr, "pawl %s: the guardian process %s: ending %s", run_name(r), why,
		r->wanted.guarding.command[0]);
	/* This is how waitpid tells of a process that was killed by SIGKILL. */
	r->status = SIGKILL;
	guardian_replace(&r->guardian);
	command_gone(r);
}

static void lose(struct run *r, int cause, const char *why) {
	if (r->gone) {
		return;
	}
	if (!r->started) {
		output_line(stderr, "pawl %s: lost '%s' before %s was started: %s", run_name(r),
			r->wanted.key, r->wanted.guarding.command[0], why);
		r->again = r->wanted.elect && !r->wanted.once;
		run_end(r, cli_own_status(r->line, CLI_REFUSED));
		return;
	}
	if (!r->cause) {
		r->cause = cause;
		output_line(stderr, "pawl %s: cannot keep '%s' (%s): ending %s", run_name(r),
			r->wanted.key, why, r->wanted.guarding.command[0]);
	}
	/* If the lock is lost already, somebody else may have it. */
	guardian_send(&r->guardian, GUARDIAN_END, cause == PAWL_ELOST);
}

/* The lock cannot be kept. CMD gets the time that is left. */
void run_lost(struct run *r, int cause) {
	lose(r, cause, hold_cause(cause));
}

/* The guardian has seen that the deadline is near. This process gives a lock up a moment earlier if
 * it can, so it was late. */
static void run_late(struct run *r) {
	if (trust_left(&r->guardian.shared->trust) <= 0) {
		lose(r, PAWL_ELOST, "this process stood still until the lease was over");
	} else {
		lose(r, PAWL_ETIMEOUT, "no node answered in time, or this process stood still");
	}
}

void run_was_lost(struct run *r) {
	if (!r->started || r->cause) {
		return;
	}
	r->cause = PAWL_ELOST;
	r->late_loss = true;
	r->exit_status = command_exit_status(r);
	output_line(stderr,
		"pawl %s: '%s' was lost while %s ran: an administrator broke it, or it was "
		"released by its lock_id; somebody else may have had it",
		run_name(r), r->wanted.key, r->wanted.guarding.command[0]);
}

void run_interrupted(struct run *r, int exit_status) {
	if (r->releases) {
		/* A second signal does not keep the first one from giving the lock back. */
		return;
	}
	r->exit_status = exit_status;
	if (hold_any(r)) {
		release_and_end(r, exit_status);
		return;
	}
	be_patient(r, RELEASE_MS);
	if (!hold_withdraw(r)) {
		run_end(r, exit_status);
	}
}

/* Somebody has asked for the lock, so CMD ends first. The command of a candidate gets --grace for
 * that, as when leadership is lost: a command that ignores SIGTERM, or is stopped, must not lead
 * for ever. */
void run_asked(struct run *r) {
	if (r->gone || r->yields || r->cause || !r->started) {
		return;
	}
	r->yields = true;
	output_line(stderr, "pawl %s: somebody asked for '%s': ending %s", run_name(r),
		r->wanted.key, r->wanted.guarding.command[0]);
	guardian_send(&r->guardian, r->wanted.elect ? GUARDIAN_END : GUARDIAN_SIGNAL,
		r->wanted.elect ? 0 : SIGTERM);
}

/* ---- what the guardian says ---- */

static void hear_guardian(struct run *r) {
	struct guardian_message m;
	int got;
	while (!r->gone && (got = guardian_receive(&r->guardian, &m)) != 0) {
		if (got < 0) {
			replace_guardian(r, "was killed");
		} else if (m.word == GUARDIAN_GONE) {
			r->status = m.value;
			command_gone(r);
		} else if (m.word == GUARDIAN_LATE) {
			run_late(r);
		} else if (m.word == GUARDIAN_STARTED) {
			signals_command_joined(r);
		}
	}
}

static void on_guardian(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	hear_guardian(arg);
}

static void on_backup(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	struct run *r = arg;
	/* If it was this process that stood still, the guardian has done its work and said so. */
	hear_guardian(r);
	if (r->gone) {
		return;
	}
	if (trust_left(&r->guardian.shared->trust) > r->wanted.margin_ns / 2) {
		/* This timer follows one clock, and the deadline two. */
		backup_arm(r);
		return;
	}
	r->cause = r->cause ? r->cause : PAWL_ETIMEOUT;
	replace_guardian(r, "is late");
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
	waiting_over();
	deadline_move(r);
	start_when_ready(r);
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
		&& evsignal_add(r->guardian_stopped, NULL) == 0 && signals_watch(r);
}

static void tear_down(struct run *r) {
	waiting_over();
	hold_done(r);
	pawl_free(r->client);
	struct event *others[] = { r->guardian_event, r->guardian_stopped, r->backup,
		r->signal_event };
	for (size_t i = 0; i < COUNT(others); i++) {
		if (others[i]) {
			event_free(others[i]);
		}
	}
	if (r->base) {
		event_base_free(r->base);
	}
	guardian_done(&r->guardian);
	if (r->signal_fd >= 0) {
		close(r->signal_fd);
	}
}

static int run_wanted(struct run *r) {
	r->signal_fd = -1;
	r->wanted.guarding.in_job = signals_have_terminal();
	int error = guardian_start(&r->guardian, &r->wanted.guarding);
	if (error) {
		output_line(stderr, "pawl %s: cannot start a process: %s", run_name(r),
			strerror(error));
		return cli_own_status(r->line, CLI_REFUSED);
	}
	if (!set_up(r)) {
		output_line(stderr, "pawl %s: out of memory", run_name(r));
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
		output_line(stderr, "pawl %s: %s", run_name(r), pawl_error_message(error));
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
static int start_over(const struct run *r) {
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
		/* A signal that came too late for this term ends the program here. */
		sigprocmask(SIG_SETMASK, &r->mask, NULL);
		execv("/proc/self/exe", words);
	}
	output_line(stderr, "pawl elect: cannot start over as a candidate: %s",
		whole ? strerror(errno) : "the command line is too long");
	return cli_own_status(r->line, CLI_LOST);
}

static int elect_run(struct cli_command_line *line) {
	line->runner = true;
	struct run r = { .line = line, .exit_status = cli_own_status(line, CLI_REFUSED),
		.connection = -1 };
	elect_read_line(line, &r.wanted);
	int status = run_wanted(&r);
	return r.again && !r.ends ? start_over(&r) : status;
}

const struct cli_command cli_elect = { "elect",
	"take part in an election, and run a command while leading",
	elect_help, elect_run };
