/* guardian.h: the process between pawl run and CMD, which keeps pawl run's word when pawl run cannot.
 *
 *     pawl run  --(socket, shared deadline)--  guardian  --  CMD, in a process group of its own
 *
 * The guardian stands in a process group of its own, so that a stop of the shell's job does not stop it, and ends CMD and
 * everything that CMD started when
 *   - the deadline, which pawl run moves as it renews the lease, comes near: SIGTERM `grace` + `margin` before it, SIGKILL
 *     `margin` before it. It needs no word from pawl run for that, which may be stopped, swapped out or cut off;
 *   - pawl run is gone (the socket closes), at whatever time and by whatever signal;
 *   - CMD itself has ended: what it left running does not outlive the lock.
 * The other way round, pawl run ends all of them when the guardian is gone (guardian_replace), or late; and when only the
 * guardian dies, the kernel kills CMD (PR_SET_PDEATHSIG). The limits: see reaper.h; where both are stopped at once (a
 * frozen container or machine) nobody is there to act; and where both are killed at once the kernel kills CMD, and nobody
 * what CMD started. Only fencing tokens help then.
 */
#ifndef PAWL_CLI_GUARDIAN_H
#define PAWL_CLI_GUARDIAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trust.h"

struct guardian_shared { /* one page that both processes see */
	struct trust trust;
	char key_file[4096]; /* a TLS key that the environment named PAWL_KEY, which CMD finds to be the lock's key; or "" */
	char lock_id[33], token[24], slots[512]; /* slots: of a semaphore, "0,3", else ""; for CMD's environment; set before GUARDIAN_START */
};

enum guardian_word {
	/* to the guardian */
	GUARDIAN_START = 1, /* run CMD: the deadline is set */
	GUARDIAN_SIGNAL,    /* pass signal `value` on to CMD's group */
	GUARDIAN_RESUME,    /* give the terminal to CMD's group and continue it */
	GUARDIAN_TIE,       /* with a descriptor, to be kept open as long as anything of CMD is left */
	GUARDIAN_END,       /* end CMD: SIGTERM now, SIGKILL when the grace or the trust is over; `value` not 0: at once */
	/* from the guardian */
	GUARDIAN_STARTED,   /* `value`: CMD's process group */
	GUARDIAN_SUSPENDED, /* the terminal stopped CMD */
	GUARDIAN_LATE,      /* the deadline came near: CMD is being ended */
	GUARDIAN_GONE       /* nothing is left of CMD; `value`: its status as waitpid gives it */
};

struct guardian_message {
	enum guardian_word word;
	int value;
};

struct guardian {
	pid_t pid;
	int fd; /* readable when the guardian has something to say, or is gone; non-blocking, close-on-exec */
	struct guardian_shared *shared;
	int terminal; /* that CMD is given, or -1 */
	pid_t group;  /* CMD's, once known */
};

struct guardian_options {
	const char *key; /* PAWL_KEY for CMD */
	char **command;  /* ends with NULL */
	char *title;     /* memory of the process's arguments, which ps shows: the guardian writes what it is there */
	size_t title_size;
	int64_t grace_ns, margin_ns;
};

/* Starts the guardian: before anything that CMD should not inherit, and before signals are handled. 0 or an errno. */
int guardian_start(struct guardian *g, const struct guardian_options *options);
void guardian_send(struct guardian *g, enum guardian_word word, int value);
/* The guardian keeps this connection open, too: what ends with it lasts until CMD is gone. */
void guardian_tie(struct guardian *g, int fd);
/* 1: a message; 0: none now; -1: the guardian is gone. */
int guardian_receive(struct guardian *g, struct guardian_message *out);
/* Continues a guardian that somebody has stopped; to be called when a child changed its state (SIGCHLD). */
void guardian_continue(const struct guardian *g);
/* The guardian is gone or late: kills it, CMD and all that CMD started, and returns when nothing is left. */
void guardian_replace(struct guardian *g);
/* Takes the terminal back from CMD; then, with `give`, hands it to CMD again. */
void guardian_terminal(const struct guardian *g, bool give);
void guardian_done(struct guardian *g);

/* The guardian's own life (guard.c). Does not return. */
_Noreturn void guard_main(const struct guardian *g, const struct guardian_options *options);

#endif
