/* run.h: one run: a cluster, its checker, its clients and its faults, all drawn from one seed. */
#ifndef PAWL_SIM_RUN_H
#define PAWL_SIM_RUN_H

#include "checker.h"
#include "profile.h"

/* What happened at the clients; the core cannot count it. */
enum run_count { RUN_LOST_BEFORE_DEADLINE, RUN_LATE_EXTENSION, RUN_LATE_ACQUIRE, RUN_REPEATED_SAME, RUN_REPEATED_OTHER, RUN_UNSURE_REPEATED,
	RUN_SHARED, RUN_HOLD_TOGETHER, RUN_TRANSFERRED, RUN_NOT_TRANSFERRED, RUN_DOWNGRADED, RUN_GROUP_HELD, RUN_GROUP_REFUSED, RUN_GROUP_REPEATED,
	RUN_GROUP_TWICE, RUN_BOND_MOVED, RUN_BOND_DROPPED, RUN_BOND_REVIVED, RUN_CHANGE_DONE, RUN_CHANGE_REFUSED, RUN_CHANGE_CUT_OFF, RUN_CHANGE_REPEATED,
	RUN_FILES_LOST, RUN_LATE_COMER_EXTENDS, RUN_LATE_COMER_REPEATS, RUN_LATE_COMER_HELD, RUN_CALM_RENEWED,
	RUN_CALM_CONTENDED, RUN_CALM_BESIDE, RUN_EPISODES, RUN_CROWD_JOINED, RUN_CROWD_LOOKED, RUN_LIED, RUN_TAMPERED, RUN_LIAR_REMOVED, RUN_PARTED, RUN_TAKEN,
	RUN_COUNTS };
const char *run_count_name(enum run_count count);

struct lock_info { /* what clients tell each other about a lock_id */
	uint32_t seen_value; /* a value that somebody saw; CHECKER_NO_VALUE */
	struct ballot seq;   /* a write that somebody saw, and its value */
	uint32_t seq_value;
	uint32_t first_value; /* what its acquires write */
	uint32_t identity;    /* whose it is */
	struct terms terms;   /* that it is asked for under */
	bool bound_locks;          /* it ends with the connection */
	bool stolen;          /* another identity asked for it while nobody believed in it, and may have it */
	bool known, grouped;  /* asked for by a client that draws its habits; with others at once */
	uint32_t owner;
	uint32_t binding_top;    /* the greatest bond that anybody named */
};

#define CALLER_PENDING 6
struct pending {
	uint64_t id; /* 0: free */
	enum core_op op;
	uint32_t lock, value;
	struct instant sent;
	bool kept;   /* EXTEND: with deadline_kept */
	bool stolen; /* ACQUIRE: under an identity that is not the lock_id's */
	bool second; /* over the session that was left open behind */
	struct instant deadline; /* TRANSFER: until when it was believed, under which token, in which numbers */
	uint64_t token;
	struct permits numbers;
	uint32_t binding; /* that was named */
};

enum caller_state { CALLER_IDLE, CALLER_ACQUIRING, CALLER_HOLDING };

struct caller {
	struct run *run;
	struct sim_actor actor;
	uint32_t number, node, identity;
	struct sim_session *session, *second; /* second: where a request was left under way */
	enum caller_state state;
	uint32_t lock;
	struct instant deadline;
	uint64_t token;
	struct permits numbers; /* of a semaphore: those that it believes in */
	span_ns lease, wait;
	bool refused_badly;  /* an acquire of this lock failed so that it has to be released */
	uint64_t patience;   /* number of the timer that counts */
	uint32_t connections, named; /* how many there were; the one that the lock ends with, as far as was answered */
	uint32_t second_number;      /* which of them `second` is */
	uint32_t died_with;          /* the lock that its process had, and knows of when it starts again; TRACE_NONE */
	struct pending pending[CALLER_PENDING];
};

struct order { /* a change, by the indexes of nodes: it can be asked for again */
	enum change_kind kind;
	uint32_t name, other;       /* TRACE_NONE: none */
	uint32_t masters, replicas; /* SET_NODES: bit sets */
	span_ns max_lease, request_timeout, promise_timeout;
	bool anyway;
};
struct spelled { /* the same in the words of the core */
	struct core_change change;
	struct core_change_node nodes[SIM_NODES_MAX];
	char addresses[SIM_NODES_MAX][24];
};
struct operator {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	struct order order;
	uint32_t node;
	uint64_t pending, turn; /* request without an answer; number of the timer that counts */
	bool repeats;
	bool driven;            /* by progress.c, not by itself */
	bool answered;
	int error;              /* the answer */
};
#define OPERATORS_MAX 3

#define GROUPERS_MAX 3
enum grouper_state { GROUPER_IDLE, GROUPER_ASKING, GROUPER_HOLDING };
struct grouper { /* a client that wants several keys at once */
	struct run *run;
	struct sim_actor actor;
	uint32_t number;
	struct sim_session *session, *second; /* second: where the same request was left under way */
	enum grouper_state state;
	uint32_t locks[CHECKER_MEMBERS], count;
	span_ns lease, wait;
	bool bound_locks; /* all of them end with the connection */
	uint32_t connections;
	uint64_t pending[4], turn; /* requests without an answer; number of the timer that counts */
	bool behind[4];            /* ... over `second` */
	uint64_t set, sets[4];     /* the number of what is wanted now; of what a request wants */
	struct instant sent[4];
	uint32_t bindings[4]; /* that it named */
};

#define LATECOMERS_MAX 4
struct latecomer { /* a client that uses lock_ids of others */
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t lock, binding;
	uint64_t pending, turn; /* the request without an answer, 0: none; number of the timer that counts */
	enum core_op op;
	bool kept, holds;
	struct instant sent, deadline;
};

#define CROWDS_MAX 2
#define CROWD_MAX 64
struct crowd { /* many who hold one key together, and who look at it */
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t locks[CROWD_MAX], next; /* its locks in a ring */
};

#define PUBLIC_LOCKS 8
#define CALLERS_MAX 16
struct vain { /* who waits for what nobody has: the request, and since when */
	uint64_t request[CALLERS_MAX];
	int64_t since[CALLERS_MAX], next;
};
struct run {
	struct sim *sim;
	struct checker *checker;
	struct profile profile;
	struct prng prng, late; /* late: of what came later, so that the rest of a seed stays what it is */
	bool healing, renewing; /* renewing: those who hold go on meanwhile */
	struct caller callers[CALLERS_MAX];
	struct operator operators[OPERATORS_MAX];
	struct grouper groupers[GROUPERS_MAX];
	struct latecomer latecomers[LATECOMERS_MAX];
	struct crowd crowds[CROWDS_MAX];
	struct sim_options born; /* profile.sim as it was drawn: the profile follows set-timing once all is quiet */
	uint32_t destroyed; /* bit set of nodes that are gone for good */
	uint32_t survivor;  /* from which the operator starts over; TRACE_NONE: nothing was destroyed */
	struct id128 old_cluster;
	uint64_t epoch_seen; /* by faults.c */
	struct lying *lying; /* a master that lies; NULL: none does */
	bool too_few;       /* ... and was one of so few that it is a majority, or enough to hand over from */
	uint64_t lost_in; /* the last epoch in which a node lost its files */
	struct lock_info *locks;
	size_t lock_capacity;
	uint32_t public_locks[PUBLIC_LOCKS]; /* of late, for others to join in */
	uint32_t values;
	uint64_t counts[RUN_COUNTS];
	uint32_t rolling; /* the node that comes next */
	struct prng shortage_prng;
	struct vain vain;
};

struct run_options {
	uint64_t seed;
	uint32_t check_every;
	enum profile_theme theme; /* THEMES: drawn */
	FILE *history, *live;
	const char *program;
};
struct run_totals {
	uint64_t runs, operations, frames, steps;
	int64_t virtual_ns;
	uint64_t counts[COUNT_TOTAL], run_counts[RUN_COUNTS];
};
/* Runs one seed; a violation ends the program. */
void run_seed(const struct run_options *options, struct run_totals *totals);

/* coverage.c: names what has to happen sometimes and never did. */
bool coverage_missing(const struct run_totals *totals);
void coverage_print(void);

/* caller.c: what clients do */
void caller_start(struct run *run, uint32_t number);
void caller_free(struct caller *c);
bool caller_done(const struct caller *c); /* while healing: holds nothing and waits for nothing */
bool caller_send(struct caller *c, const struct core_request *request, struct pending pending, const struct checker_op *op);
void caller_release(struct caller *c, uint32_t lock);
void caller_connect(struct caller *c, bool leave_open);
struct lock_info *caller_info(struct run *run, uint32_t lock);
span_ns run_scale(struct run *run, span_ns low, span_ns high);

/* groupers.c */
void grouper_start(struct run *run, uint32_t number);
bool grouper_done(const struct grouper *g);

/* latecomers.c */
void latecomer_start(struct run *run, uint32_t number);
bool latecomer_done(const struct latecomer *l);
bool latecomers_use(const struct run *run, uint32_t lock, const struct latecomer *but); /* one of them, but that one; but: may be NULL */

/* caller_terms.c: what comes with more than one holder, and with who is next */
bool caller_bonded(const struct caller *c); /* what it holds ends with its connection */
void caller_before_closing(struct caller *c, bool leave_open);
void caller_move(struct caller *c, bool leave_open);
bool caller_dies(struct caller *c);
void caller_draw_terms(struct run *run, struct terms *terms);
void caller_transfer(struct caller *c);
void caller_transferred(struct caller *c, const struct pending *p, int error);
void caller_downgrade(struct caller *c);
void caller_downgraded(struct caller *c, const struct pending *p, int error);
void caller_ask(struct caller *c, uint32_t key);
void caller_lost(struct caller *c, uint32_t lock, bool before_deadline); /* caller_answers.c */

/* progress_calm.c */
void calm_demand(struct run *run);
span_ns calm_settles(const struct run *run);
void calm_contend(struct run *run, uint32_t key, const struct terms *terms);

/* progress_episodes.c */
void episodes_demand(struct run *run);

/* crowd.c */
void crowd_start(struct run *run, uint32_t number);

/* liar.c */
void liar_start(struct run *run);
uint32_t liars(const struct run *run); /* bit set of nodes that must not become masters */

/* liar_master.c */
void liar_master_start(struct run *run);
void liar_master_ends(struct run *run); /* the node is gone for good */
bool liar_master_over(struct run *run); /* it is taken out of the set; false: nothing is promised any more */
void liar_master_remove(struct run *run); /* out of the set, if it is in it */
bool liar_master_outvoted(const struct run *run); /* those who do not lie are enough in the newest configuration, and always were */
void liar_master_free(struct run *run);
uint32_t liar_master(const struct run *run); /* the node; TRACE_NONE: none */

/* progress_terms.c */
void terms_demand(struct run *run);

/* caller_ops.c: requests */
void caller_acquire_new(struct caller *c);
void caller_acquire_send(struct caller *c); /* for c->lock: first time or repeated */
void caller_extend(struct caller *c, uint32_t lock, bool kept);
void caller_update(struct caller *c, uint32_t lock);
void caller_habit(struct caller *c, enum client_habit habit);

/* caller_answers.c: what the answers mean to a client */
void caller_reply(void *ctx, const struct sim_reply *reply);
void caller_closed(void *ctx);
struct pending *caller_pending(struct caller *c, uint64_t id);
bool caller_awaits(const struct caller *c, enum core_op op, uint32_t lock);

/* operator.c */
void operator_start(struct run *run, uint32_t number);
void operator_init(struct operator *op, struct run *run, uint32_t number); /* for one that is driven */
void operator_ask(struct operator *op, uint32_t node); /* op->order of the node */

/* faults.c */
void faults_start(struct run *run);
bool faults_worse_than_tcp(const struct sim_adversary *adversary);
void faults_heal(struct run *run); /* everything goes on and is linked again */
span_ns faults_last_write(const struct run *run); /* how long after the heal one may end that had begun before; until then its node may be mute */

/* shortage.c */
void shortage_start(struct run *run);
void shortage_heal(struct run *run);
void shortage_look(struct run *run); /* after the heal, as often as one likes */

/* disaster.c */
void disaster_start(struct run *run);
bool disaster_over(void *run); /* nothing was lost for good, or it was started over */

/* progress.c */
void progress_demand(struct run *run); /* after the heal */
span_ns progress_hop(const struct run *run); /* at most: one message between nodes, with what it waits for at both */

/* progress_members.c */
void members_demand(struct run *run);  /* all agree, every master votes, every replica follows */
void members_demand_change(struct run *run);
void members_remove(struct run *run, uint32_t node);
bool members_node(struct run *run, uint32_t at, uint32_t *out_node); /* the at-th node of the newest configuration */
uint32_t members_any(struct run *run);

/* progress_pulse.c: one acquire after the other, of a client that lives as long as the run */
struct pulse {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t node, key, lock;
	int64_t asked;
	span_ns worst; /* from asking to the answer */
	bool under_way, over;
};
void pulse_start(struct pulse *p, struct run *run, uint32_t node);
void pulse_end(struct pulse *p, span_ns most); /* at most so long may one have taken */

/* progress_replicas.c */
void replicas_demand(struct run *run);
void watch_event_demand(struct run *run);
void masters_demand(struct run *run);

#endif
