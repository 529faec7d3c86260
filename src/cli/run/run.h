/* run.h: pawl run and pawl elect: a command runs while a lock is held, or while an election is won.
 *
 *   run.c       the command: the guardian, the deadline, signals, the end
 *   run_hold.c  what is held: one lock, several, or a leadership
 *   run_line.c  the command lines
 *   run_signal.c  signals, and the terminal that some of them come from
 */
#ifndef PAWL_CLI_RUN_H
#define PAWL_CLI_RUN_H

#include <signal.h>

#include "cli.h"
#include "guardian.h"
#include "pawl/election.h"

extern const struct cli_command cli_run, cli_elect;

/* No exit status: this is larger than any. */
#define RUN_NO_STATUS UINT64_MAX

/* What to do when somebody asks for the lock. */
enum run_ask { RUN_ASK_IGNORE, RUN_ASK_TERM };

struct run_wanted {
	/* For elect the name of the election; of several keys the first. */
	const char *key;

	/* The options without the callbacks. An election also uses key, owner, value, label, lease,
	 * warn and terms. */
	struct pawl_lock_options lock;

	/* The keys if there are more than one; otherwise NULL. */
	struct pawl_key_item *keys;
	size_t key_count;
	struct guardian_options guarding;

	/* What --grace says, in ms; 0: nothing. */
	uint32_t grace_wanted_ms;

	/* CMD's time after SIGTERM, and the kernel's time to carry out SIGKILL, in nanoseconds. */
	int64_t grace_ns, margin_ns;
	enum run_ask on_ask;

	/* The exit status if somebody else holds the lock, or RUN_NO_STATUS. */
	uint64_t conflict_status;
	bool elect, takeover, once;

	/* No lease was given: it is 30 s, or what the cluster allows if that is less. */
	bool lease_open;

	/* For elect without CMD: say that this leads. */
	bool announces;
};

extern const char run_help[], elect_help[];

/* These end the program with CLI_USAGE if the command line makes no sense. */
void run_read_line(struct cli_command_line *line, struct run_wanted *out_wanted);
void elect_read_line(struct cli_command_line *line, struct run_wanted *out_wanted);
/* Divides the lease w->lock.lease_ms. Ends the program with CLI_USAGE if --grace does not fit into
 * it. */
void run_set_times(struct cli_command_line *line, struct run_wanted *w);

struct event;
struct event_base;

struct run_held {
	/* The acquire under way. */
	struct pawl_call *call;
	struct pawl_lock *locks[PAWL_KEYS_MAX];
	size_t count, releasing;
	struct pawl_election *election;

	/* The election cannot go on, and the user was told. */
	bool failed;

	/* The candidate that gets the leadership in the end; NULL means whoever is next. */
	char *yield_to;
};

struct run {
	struct cli_command_line *line;
	struct run_wanted wanted;
	struct guardian guardian;
	struct event_base *base;
	struct pawl *client;
	struct run_held held;
	struct event *guardian_event, *guardian_stopped, *backup, *signal_event;
	int signal_fd;

	/* The signals that were blocked when this process began. */
	sigset_t mask;
	struct pawl_id lock_id;
	uint64_t token;

	/* With release_on_disconnect the latest connection; -1 means that there was none yet. */
	int connection;

	/* The guardian was told to start CMD. */
	bool started;

	/* The signals that the terminal sends reach CMD, too. */
	bool in_job;

	/* Nothing is left of CMD. */
	bool gone;

	/* What is held is being given back. */
	bool releases;

	/* CMD is being ended because somebody asked for what is held. */
	bool yields;

	/* This process was told to end. */
	bool ends;

	/* For elect: become a candidate again. */
	bool again;

	/* Why the lock was lost; 0 means that it was not. */
	int cause;

	/* That was found only when CMD had ended. */
	bool late_loss;

	/* The status of CMD as waitpid gives it. */
	int status;
	int exit_status;
};

/* ---- run.c ---- */

/* Leaves the loop. */
void run_end(struct run *r, int exit_status);
/* The lock is held, or its deadline is later now. */
void run_granted(struct run *r);
/* The lock cannot be kept. */
void run_lost(struct run *r, int cause);
/* CMD has ended, and it turns out that the lock was lost before. */
void run_was_lost(struct run *r);
/* CMD must end, because of held.yield_to or a higher priority. */
void run_asked(struct run *r);
/* This process was told to end, and CMD does not run. */
void run_interrupted(struct run *r, int exit_status);
/* Returns "run" or "elect". */
const char *run_name(const struct run *r);

/* ---- run_signal.c ---- */

/* Returns whether this process belongs to a terminal. */
bool signals_have_terminal(void);
/* From now on signals are events. Returns false if that cannot be. */
bool signals_watch(struct run *r);
/* CMD is in the job from now on. */
void signals_command_joined(struct run *r);

/* ---- run_hold.c ---- */

/* Returns 0 or a PAWL_E... value. */
int hold_begin(struct run *r);
/* Returns whether something is held, as far as this side knows. */
bool hold_any(const struct run *r);
/* Returns why the lock was lost, for people. */
const char *hold_cause(int cause);
int64_t hold_valid_ms(const struct run *r);
void hold_deadline(const struct run *r, int64_t *out_boottime_ns, int64_t *out_monotonic_raw_ns);
uint64_t hold_token(const struct run *r);
struct pawl_id hold_lock_id(const struct run *r);
/* Writes the permit numbers of the semaphore that are held, such as "0,3"; "" for other locks. */
void hold_slots(const struct run *r, char *out, size_t size);
/* Writes the tokens of the locks in the order of their keys, such as "17,5"; for an election "". */
void hold_tokens(const struct run *r, char *out, size_t size);
/* Gives everything back, and calls run_end with the exit status once that is done. Returns false if
 * there was nothing to wait for. */
bool hold_release(struct run *r, int exit_status);
/* Gives up what is wanted and not held yet, and calls run_end with r->exit_status once the node has
 * heard so. Returns false if there is nothing to wait for. */
bool hold_withdraw(struct run *r);
/* Frees everything without giving it back. */
void hold_forget(struct run *r);
void hold_done(struct run *r);

#endif
