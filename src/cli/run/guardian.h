/* guardian.h: the process between pawl run and CMD, which keeps pawl run's word when pawl run
 * cannot.
 *
 *     pawl run  --(socket, shared deadline)--  guardian  --  CMD
 *
 * CMD belongs to the shell's job where there is a terminal: it is in the process group of pawl run,
 * so that it may read the terminal, however the rest is redirected, and the terminal's signals,
 * stops and continues reach it as they reach pawl run. Without a terminal it has a process group of
 * its own. The guardian is not in the job while CMD runs, so that a stop of the job does not stop
 * it.
 *
 * The guardian ends CMD and everything that CMD started in these cases:
 *   - The deadline, which pawl run moves as it renews the lease, comes near. The guardian sends
 *     SIGTERM `grace` + `margin` before the deadline, and SIGKILL `margin` before it. It needs no
 *     word from pawl run for that, which may be stopped, swapped out or cut off.
 *   - pawl run is gone (the socket closes), at whatever time and by whatever signal.
 *   - CMD itself has ended: what it left running does not outlive the lock.
 *
 * The other way round, pawl run ends all of them if the guardian is gone or late
 * (guardian_replace). If only the guardian dies, the kernel kills CMD (PR_SET_PDEATHSIG). There are
 * limits: those of reaper.h; if both are stopped at once (a frozen container or machine), nobody is
 * there to act; and if both are killed at once, the kernel kills CMD, but nobody kills what CMD
 * started. Only fencing tokens help then. */
#ifndef PAWL_CLI_GUARDIAN_H
#define PAWL_CLI_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pawl/request.h"
#include "trust.h"

/* The memory that both processes see. Everything but `trust` is set before GUARDIAN_START. The
 * texts are for CMD's environment. */
struct guardian_shared {
	struct trust trust;
	/* The times between SIGTERM and SIGKILL, and between SIGKILL and the deadline, in
	 * nanoseconds. */
	int64_t grace_ns, margin_ns;
	/* `slots` has the permit numbers of a semaphore, such as "0,3"; otherwise "". `tokens` has
	 * those of all locks, such as "17,5"; for an election "". */
	char lock_id[33], token[24], slots[512], tokens[24 * PAWL_KEYS_MAX];
};

enum guardian_word {
	/* The words below go to the guardian. */

	/* Run CMD; the deadline is set. */
	GUARDIAN_START = 1,
	/* Pass signal `value` on to CMD, and to what it has started in its process group. */
	GUARDIAN_SIGNAL,
	/* Keep the descriptor that comes with this open for as long as anything of CMD is left. */
	GUARDIAN_TIE,
	/* End CMD: SIGTERM now, and SIGKILL when the grace or the trust is over. If `value` is not
	 * 0, do it at once, also while an earlier grace runs. */
	GUARDIAN_END,
	/* The words below come from the guardian. */

	/* CMD is there, and `value` is its process id. */
	GUARDIAN_STARTED,
	/* The deadline is near, so CMD is being ended. */
	GUARDIAN_LATE,
	/* Nothing is left of CMD. `value` is its status as waitpid gives it. */
	GUARDIAN_GONE
};

struct guardian_message {
	enum guardian_word word;
	int value;
};

struct guardian {
	pid_t pid;

	/* It is readable when the guardian has something to say, or is gone. It is non-blocking and
	 * close-on-exec. */
	int fd;
	struct guardian_shared *shared;

	/* The process id of CMD, once it is known. */
	pid_t command;
};

struct guardian_options {
	/* PAWL_KEY for CMD. */
	const char *key;

	/* CMD and its arguments; NULL ends the list. */
	char **command;

	/* CMD stays in the process group of the caller, and so in the job of a shell. */
	bool in_job;

	/* The memory of the process's arguments, which ps shows. The guardian writes there what it
	 * is. */
	char *title;
	size_t title_size;
};

/* Starts the guardian. Call this before anything is opened that CMD should not inherit, and before
 * signals are handled. Returns 0 or an errno value. */
int guardian_start(struct guardian *g, const struct guardian_options *options);
void guardian_send(struct guardian *g, enum guardian_word word, int value);
/* Makes the guardian keep this connection open, too, so that what ends with the connection lasts
 * until CMD is gone. */
void guardian_keep_connection(struct guardian *g, int fd);
/* Returns 1 and a message, 0 if there is none now, or -1 if the guardian is gone. */
int guardian_receive(struct guardian *g, struct guardian_message *out);
/* Continues a guardian that somebody has stopped. Call this when a child has changed its state
 * (SIGCHLD). */
void guardian_continue(const struct guardian *g);
/* The guardian is gone or late: kills it, CMD and everything that CMD started, and returns when
 * nothing is left. */
void guardian_replace(struct guardian *g);
void guardian_done(struct guardian *g);

/* The life of the guardian itself (guard.c). It does not return. */
_Noreturn void guard_main(const struct guardian *g, const struct guardian_options *options);

#endif
