/* run.h: pawl run and pawl elect: a command runs while a lock is held, or an election is won.
 *
 *   run.c       the command: the guardian, the deadline, signals, the end
 *   run_hold.c  what is held: one lock, several, or a leadership
 *   run_line.c  the command lines
 */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include "cli.h"
#include "guardian.h"
#include "pawl/election.h"

extern const struct cli_command cli_run, cli_elect;

enum run_ask { RUN_ASK_IGNORE, RUN_ASK_TERM }; /* when somebody asks for the lock */

struct run_wanted {
	const char *key; /* elect: the election's name; of several keys the first */
	struct pawl_lock_options lock; /* without its callbacks; key, owner, value, label, lease, warn, terms also of an election */
	struct pawl_key_item *keys;    /* more than one, else NULL */
	size_t key_count;
	struct guardian_options guarding;
	enum run_ask on_ask;
	bool elect, takeover, once;
	bool announces; /* elect without CMD: it says that it leads */
};

extern const char run_help[], elect_help[];

/* End with CLI_USAGE when the command line makes no sense. */
void run_read_line(struct cli_command_line *line, struct run_wanted *out_wanted);
void elect_read_line(struct cli_command_line *line, struct run_wanted *out_wanted);

struct event;
struct event_base;

struct run_held {
	struct pawl_call *call; /* under way */
	struct pawl_lock *locks[PAWL_KEYS_MAX];
	size_t count, releasing;
	struct pawl_election *election;
	bool failed; /* the election cannot go on, and somebody was told */
	char *yield_to; /* a candidate that gets the leadership at the end; NULL: whoever is next */
};

struct run {
	struct cli_command_line *line;
	struct run_wanted wanted;
	struct guardian guardian;
	struct event_base *base;
	struct pawl *client;
	struct run_held held;
	struct event *guardian_event, *guardian_stopped, *backup, *signals[8];
	size_t signal_count;
	struct pawl_id lock_id;
	uint64_t token;
	int connection; /* the latest one, with release_on_disconnect; -1: none yet */
	bool started; /* the guardian was told to start CMD */
	bool gone;    /* nothing is left of CMD */
	bool yields;  /* CMD is ended because somebody asked for what is held */
	bool ends;    /* it was told to end */
	bool again;   /* elect: to be a candidate again */
	int cause;    /* why the lock was lost; 0: it was not */
	int status;   /* of CMD, as waitpid gives it */
	int exit_status;
};

/* ---- run.c ---- */
void run_end(struct run *r, int exit_status);    /* leaves the loop */
void run_granted(struct run *r);                 /* it is held, or its deadline is later now */
void run_lost(struct run *r, int cause);         /* it cannot be kept */
void run_asked(struct run *r);                   /* CMD is to end, because of held.yield_to or a greater priority */
const char *run_name(const struct run *r);       /* "run", "elect" */

/* ---- run_hold.c ---- */
int hold_begin(struct run *r); /* 0 or a PAWL_E... */
bool hold_any(const struct run *r); /* something is held, as far as this side knows */
const char *hold_cause(int cause); /* why it was lost, for people */
int64_t hold_valid_ms(const struct run *r);
void hold_deadline(const struct run *r, int64_t *out_boottime_ns, int64_t *out_monotonic_raw_ns);
uint64_t hold_token(const struct run *r);
struct pawl_id hold_lock_id(const struct run *r);
/* The permits of a semaphore that are held, "0,3"; "" for other locks. */
void hold_slots(const struct run *r, char *out, size_t size);
/* Gives everything back, and calls run_end with the exit status once that is done; false: there was nothing to wait for. */
bool hold_release(struct run *r, int exit_status);
void hold_forget(struct run *r); /* without giving back */
void hold_done(struct run *r);

#endif
