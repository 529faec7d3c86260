/* clients.h: everybody who asks the cluster for something: clients with one lock, clients with
 * several at once, clients that use the lock_ids of others, crowds, and operators. */
#ifndef PAWL_SIM_CLIENTS_H
#define PAWL_SIM_CLIENTS_H

#include "checker.h"
#include "profile.h"

struct run;

/* What clients tell each other about a lock_id. */
struct lock_info {
	/* A value that somebody was shown; CHECKER_NO_VALUE: none. */
	uint32_t seen_value;
	/* A write that somebody was shown, and the value that it wrote. */
	struct ballot seq;
	uint32_t seq_value;
	/* The value that its acquires write. */
	uint32_t first_value;
	/* The identity that it belongs to. */
	uint32_t identity;
	/* The terms under which it is asked for. */
	struct terms terms;
	/* The lock ends with the connection of its client. */
	bool bound_locks;
	/* Another identity asked for it while nobody believed in it, and may have it. */
	bool stolen;
	/* It is used by a client that draws its habits (struct caller). */
	bool known;
	/* Its client tells nobody of it, and may shorten its lease; the order that it names, which
	 * is how often it has. */
	bool own;
	uint32_t order;
	/* It is asked for together with others. */
	bool grouped;
	/* The number of the client that made it. */
	uint32_t owner;
	/* The greatest session binding that anybody named for it. */
	uint32_t binding_top;
};

#define CALLER_PENDING 6
/* A request of a caller that has no answer yet. */
struct pending {
	/* The id of the request; 0: this entry is free. */
	uint64_t id;
	enum core_op op;
	uint32_t lock, value;
	struct instant sent;
	/* EXTEND: the caller keeps its own deadline. */
	bool deadline_kept;
	/* ACQUIRE: the request names an identity that is not the one of the lock_id. */
	bool stolen;
	/* RELEASE: it expects a value, and is not repeated. */
	bool compares;
	/* It was sent over the connection that the caller has left open behind it. */
	bool second;
	/* TRANSFER: until when the caller believed in the lock, with which token and permit
	 * numbers. */
	struct instant deadline;
	uint64_t token;
	struct permits numbers;
	/* The number of the connection that the request went over, if its lock ends with a
	 * connection; otherwise the order that it named. */
	uint32_t binding;
};

enum caller_state { CALLER_IDLE, CALLER_ACQUIRING, CALLER_HOLDING };

/* A client that wants one lock at a time, and draws what it does next from the habits of the
 * run. */
struct caller {
	struct run *run;
	struct sim_actor actor;
	uint32_t number, node, identity;
	struct sim_session *session;
	/* An older connection over which a request is still under way; NULL: none. */
	struct sim_session *second;
	enum caller_state state;
	uint32_t lock;
	struct instant deadline;
	uint64_t token;
	/* The permit numbers of a semaphore that it believes in. */
	struct permits numbers;
	span_ns lease, wait;
	/* An acquire of this lock failed in such a way that the lock has to be released. */
	bool refused_badly;
	/* The number of the timer that counts; older timers do nothing. */
	uint64_t patience;
	/* How many connections it has made so far. */
	uint32_t connections;
	/* The connection that the lock ends with, as far as an answer has said so. */
	uint32_t named;
	/* The number of the connection `second`. */
	uint32_t second_number;
	/* The lock that its process had when it died, and still knows when it starts again;
	 * TRACE_NONE: none. */
	uint32_t died_with;
	struct pending pending[CALLER_PENDING];
};

/* A change, by the indexes of nodes, so that it can be asked for again. */
struct wanted_change {
	enum change_kind kind;
	/* TRACE_NONE: none. */
	uint32_t name, other;
	/* SET_NODES: bit sets of nodes. */
	uint32_t masters, replicas;
	span_ns max_lease, request_timeout, promise_timeout;
	bool anyway;
};

/* The same change as the core wants it, with room for the texts that it points to. */
struct core_form {
	struct core_change change;
	struct core_change_node nodes[SIM_NODES_MAX];
	char addresses[SIM_NODES_MAX][24];
};

struct operator {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	struct wanted_change wanted;
	uint32_t node;
	/* The request that has no answer yet; 0: none. */
	uint64_t pending;
	/* The number of the timer that counts. */
	uint64_t turn;
	bool repeats;
	/* progress/ decides what it does. */
	bool driven;
	bool answered;
	/* The error of the answer. */
	int error;
};
#define OPERATORS_MAX 3

#define GROUPERS_MAX 3
enum grouper_state { GROUPER_IDLE, GROUPER_ASKING, GROUPER_HOLDING };

/* A client that wants several keys at once. */
struct grouper {
	struct run *run;
	struct sim_actor actor;
	uint32_t number;
	struct sim_session *session;
	/* An older connection over which the same request is still under way; NULL: none. */
	struct sim_session *second;
	enum grouper_state state;
	uint32_t locks[CHECKER_MEMBERS], count;
	span_ns lease, wait;
	/* All its locks end with the connection. */
	bool bound_locks;
	uint32_t connections;
	/* Requests that have no answer yet; 0: free. */
	uint64_t pending[4];
	/* The number of the timer that counts. */
	uint64_t turn;
	/* The request went over `second`. */
	bool behind[4];
	/* The number of the set of locks that is wanted now, and of the one that a request
	 * wants. */
	uint64_t set, sets[4];
	struct instant sent[4];
	/* The session bindings that the requests named, and the greatest one under which an answer
	 * counted. */
	uint32_t bindings[4], named;
};

#define LATECOMERS_MAX 4
/* A client that uses the lock_ids of others. */
struct latecomer {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t lock, binding;
	/* The request that has no answer yet; 0: none. */
	uint64_t pending;
	/* The number of the timer that counts. */
	uint64_t turn;
	enum core_op op;
	bool deadline_kept, holds;
	struct instant sent, deadline;
};

#define CROWDS_MAX 2
#define CROWD_MAX 64
/* Many who hold one key together, and who read it. */
struct crowd {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	/* The lock_ids of its members, in a ring. */
	uint32_t locks[CROWD_MAX], next;
};

/* ---- caller.c: the life of a client ---- */
void caller_start(struct run *run, uint32_t number);
void caller_free(struct caller *c);
/* For the time of healing: it holds nothing and waits for nothing. */
bool caller_done(const struct caller *c);
bool caller_send(struct caller *c, const struct core_request *request, struct pending pending,
	const struct checker_op *op);
void caller_release(struct caller *c, uint32_t lock);
/* Releases the lock, which may be another client's, if it has a value that this one knows of. From
 * now on nobody believes in it. */
void caller_release_by_value(struct caller *c, uint32_t lock);
void caller_connect(struct caller *c, bool leave_open);
/* Nobody waits for the answer any more, so its outcome is unknown. */
void caller_forget(struct caller *c, struct pending *p);
/* The pointer is good until the next lock_id is made. */
struct lock_info *caller_info(struct run *run, uint32_t lock);

/* ---- caller_ops.c: its requests ---- */
void caller_acquire_new(struct caller *c);
/* Asks for c->lock, for the first time or again. */
void caller_acquire_send(struct caller *c);
void caller_extend(struct caller *c, uint32_t lock, bool deadline_kept);
void caller_update(struct caller *c, uint32_t lock);
void caller_habit(struct caller *c, enum client_habit habit);

/* ---- caller_switch.c: leaving a silent node ---- */
/* The request with this id was sent: if it is not answered soon, the client leaves the node. */
void caller_mind_silence(struct caller *c, uint64_t id);

/* ---- caller_answers.c: what answers mean to it ---- */
void caller_reply(void *ctx, const struct sim_reply *reply);
void caller_closed(void *ctx);
struct pending *caller_pending(struct caller *c, uint64_t id);
bool caller_awaits(const struct caller *c, enum core_op op, uint32_t lock);
void caller_lost(struct caller *c, uint32_t lock, bool before_deadline);

/* ---- caller_terms.c: several holders of a key, and which waiter is next ---- */
/* Whether the lock that it holds ends with its connection. */
bool caller_bound(const struct caller *c);
void caller_before_closing(struct caller *c, bool leave_open);
void caller_move(struct caller *c, bool leave_open);
bool caller_dies(struct caller *c);
void caller_draw_terms(struct run *run, struct terms *terms);
void caller_transfer(struct caller *c);
void caller_transferred(struct caller *c, const struct pending *p, int error);
void caller_downgrade(struct caller *c);
void caller_downgraded(struct caller *c, const struct pending *p, int error);
void caller_ask(struct caller *c, uint32_t key);

/* ---- groupers.c ---- */
void grouper_start(struct run *run, uint32_t number);
bool grouper_done(const struct grouper *g);

/* ---- latecomers.c ---- */
void latecomer_start(struct run *run, uint32_t number);
bool latecomer_done(const struct latecomer *l);
/* Whether a latecomer other than `but` (NULL: any of them) uses the lock_id. */
bool latecomers_use(const struct run *run, uint32_t lock, const struct latecomer *but);

/* ---- crowd.c ---- */
void crowd_start(struct run *run, uint32_t number);

/* ---- operator.c ---- */
void operator_start(struct run *run, uint32_t number);
/* For an operator that is driven. */
void operator_init(struct operator *op, struct run *run, uint32_t number);
/* Asks the node for op->wanted. */
void operator_ask(struct operator *op, uint32_t node);

#endif
