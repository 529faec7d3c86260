/* state.h: what a node keeps in memory, and who may touch it. Private to cluster/. */
#ifndef PAWL_CLUSTER_STATE_H
#define PAWL_CLUSTER_STATE_H

#include "check.h"
#include "core.h"
#include "error.h"
#include "list.h"
#include "map.h"
#include "prng.h"
#include "wheel.h"

/* ---- timers: all on one wheel over CLOCK_BOOTTIME; they wake, the two clocks decide ---- */
enum timer_kind { TIMER_KEY, TIMER_OP, TIMER_BELIEF, TIMER_NODE };
struct timer {
	struct wheel_timer wheel;
	enum timer_kind kind;
};

/* ---- the key table (section 1) ---- */
struct record { /* a held record; its bytes (owner, identity, value) follow it */
	struct record *next; /* more than one: the key is contested (section 4) */
	struct id128 lock_id;
	uint64_t token, noted;
	struct ballot wrote;    /* of the write that made the value */
	struct ballot prepared; /* the highest one noted; never below `wrote` */
	struct instant end;
	uint32_t value_size;
	uint16_t owner_size;
	uint16_t sources; /* merging: bit set of the sources that had it */
	uint8_t identity_size;
	bool barred; /* by a break: no more extensions */
	uint8_t bytes[];
};

struct promise { /* an exclusive, short lease against other promises */
	struct list by_peer; /* promises end with the link to their coordinator */
	struct key *key;
	struct id128 lock_id;
	uint64_t attempt, noted;
	struct instant end;
	uint32_t peer;
};

struct kept { /* a request that has a turn, kept behind a held record (section 5) */
	struct list link, by_peer;
	struct key *key;
	struct id128 lock_id;
	uint64_t attempt, round;
	uint32_t peer;
};

struct waiter { /* an entry of the queue of which this node is the home (section 5) */
	struct list link, by_peer;
	struct key *key;
	struct id128 lock_id;
	uint64_t attempt, round;
	struct ticket ticket;
	struct instant since;
	uint32_t peer;
	bool turn, waits; /* waits: has a wait time; otherwise a try-lock in a tie */
	uint8_t identity_size;
	uint16_t owner_size;
	uint8_t bytes[]; /* owner, identity */
};

struct key_more { /* what few keys have */
	struct list queue; /* struct waiter, by ticket */
	struct list kept;  /* struct kept, in order of arrival */
	struct list waits; /* struct op: local waits for a change */
	uint32_t waiters;
	uint32_t kept_count;
};

struct key {
	struct map_node node;
	struct timer timer; /* at or before the first end of what is below */
	struct record *held;
	struct promise *promise; /* never together with a held record */
	struct key_more *more;
	uint16_t size;
	uint8_t name[];
};

/* ---- the released lock_ids of late (R3), and those barred by a break ---- */
struct released {
	struct map_node node;
	struct id128 lock_id;
	bool barred_only;
	bool used;
};

/* ---- the coordinator's operations ---- */
enum vote_state {
	VOTE_NONE,     /* not asked */
	VOTE_ASKED,    /* no answer yet */
	VOTE_GONE,     /* silent: not linked, does not vote, or out of time */
	VOTE_OK,       /* promised, accepted */
	VOTE_SELF,     /* promise: held by yourself */
	VOTE_KEPT,     /* promise with a turn: kept */
	VOTE_HAD,      /* extension: accepted, and it had it */
	VOTE_NEED,     /* wants the record */
	VOTE_LEARNING, /* was sent the record */
	VOTE_HELD,     /* refused: held by another, or contested */
	VOTE_RIVAL,    /* refused: promised to another */
	VOTE_QUEUED,   /* refused: somebody waits ahead */
	VOTE_STALE,    /* refused: R2 */
	VOTE_BALLOT,   /* refused: a higher ballot */
	VOTE_ABSENT,   /* does not have the lock_id */
	VOTE_REFUSED   /* refused for another reason, in `status` */
};

struct vote {
	enum vote_state state;
	enum status status;
	bool fresh; /* answered since the last renewal of a turn */
	bool counts; /* read: its value counts as in Prepare */
	uint64_t token, noted;
	struct ballot wrote;
	uint64_t boot; /* of the peer when it was asked */
};

enum op_state {
	OP_ASKING,     /* acquire: promises asked */
	OP_QUEUED,     /* acquire: in the home's queue, or without a home */
	OP_TURN,       /* acquire: has a turn, promises asked or kept */
	OP_PAUSED,     /* acquire, update: refused by a rival, tries again when the timer fires */
	OP_COMMITTING, /* acquire: second phase */
	OP_ROUND,      /* others: the one round, or update's and break's first */
	OP_SECOND,     /* update: write; break: the break itself */
	OP_LOCAL,      /* wait and list: no messages */
	OP_LINGERING   /* answered; teaching, or sending a release again */
};

struct caller { /* who gets the answer; a repeated request joins the attempt */
	struct list link, by_client;
	struct op *op;
	uint64_t id, client;
	struct instant arrived;
	bool admin;
};

struct client {
	struct map_node node;
	uint64_t id;
	struct list callers;
	uint32_t waiters;
};

struct op {
	struct list link;         /* core->ops or core->lingering */
	struct list waiting;      /* core->waiting: acquires before their commit; key_more.waits: waits */
	struct map_node by_id, by_lock;
	struct timer timer;
	struct list callers;
	enum core_op kind;
	enum op_state state;
	uint64_t id, round;       /* round = id << 16 | count: names the present round and attempt */
	struct instant sent;      /* of the present round */
	struct instant arrived;
	struct instant until;     /* wait end; teaching: end of belief; release: when the lease would be over */
	struct vote votes[MASTERS_MAX];
	struct id128 lock_id;
	span_ns lease, wait;
	uint64_t token;           /* acquire: chosen; extend, break: the caller's */
	uint64_t best_token;      /* the highest token reported */
	bool try_lock, had_quorum, answered, blind, quorum_read, now_flag, for_free, had_any, again, half_done, contested_seen;
	int error;                /* update: what to answer after the write back */
	/* acquire */
	struct ticket ticket;
	uint64_t queue_round;     /* under which the home knows the entry */
	uint64_t attempt;         /* round under which promises were asked */
	int home;                 /* slot, or -1 */
	uint32_t pauses;
	/* extend */
	int fetch_from;           /* slot the record was asked of, or -1 */
	/* update */
	struct ballot ballot, expected_seq, best_wrote;
	bool expect_value, expect_seq;
	/* read */
	struct record *reads[MASTERS_MAX * 2];
	uint8_t read_from[MASTERS_MAX * 2];
	uint8_t parts_left[MASTERS_MAX];
	uint32_t read_count;
	/* list */
	uint32_t limit;
	size_t bucket;
	struct key_names *found;
	/* bytes: one block holds key, owner, identity, value, expected */
	uint8_t *block;
	size_t block_size;
	struct slice key, owner, identity, value, expected;
	struct record *record;    /* extend, update: a copy to teach from; acquire: who held the key */
};

struct belief { /* a lock this node has answered, believed until the deadline */
	struct map_node node;
	struct timer timer;
	struct id128 lock_id;
	struct instant deadline;
	uint64_t token;
};

/* ---- peers ---- */
struct snapshot_out { /* a snapshot being sent to a peer (section 4) */
	bool active;
	uint64_t round;
	size_t bucket;
	uint32_t ring_left, ring_at;
	uint32_t part;
};

struct snapshot_in {
	bool asked, done;
	uint64_t round;
	uint64_t clock_end;
	struct instant progress; /* of the last thing that came */
};

struct peer {
	bool up;      /* a link is up */
	bool linked;  /* ... to the identity of the configuration */
	bool voting;  /* says so in its frames, under this epoch and hash */
	bool ping_out, far_ahead, pledge_equal, wrong_noted;
	struct id128 id;
	uint64_t boot, clock, ping_round;
	struct instant ping_sent;
	span_ns round_trip;
	struct list promises, kept, waiters; /* what it coordinates here */
	struct snapshot_out send;
	struct snapshot_in take;
};

struct persisting { /* a state that the driver took to write */
	uint64_t seq, ceiling, boot;
	bool pledged, voted;
};

enum ring_default { RELEASED_DEFAULT = 1 << 16, LINGERING_DEFAULT = 1 << 14, ROUNDS_DEFAULT = 1 << 16 };

struct core {
	struct allocator alloc; /* counts and limits */
	struct allocator outer;
	uint64_t memory_used;
	struct siphash_key hash_key;
	struct prng prng;
	struct core_limits limits;
	struct core_out *out; /* of the step under way */
	struct instant now, last_step;
	bool stepped;

	/* identity and configuration */
	char name[NODE_NAME_MAX + 1];
	uint32_t self, peer_count, masters, quorum;
	struct config config; /* of the epoch, or to be born with */
	uint64_t config_hash; /* 0 while unborn */
	enum core_state state;
	uint64_t clock;

	/* durable state */
	struct durable durable; /* as wanted */
	uint64_t persist_seq;   /* of `durable` */
	uint64_t persist_taken, persist_done;
	struct persisting taken[4];
	uint64_t ceiling_on_disk, boot_on_disk;
	bool pledged_on_disk, voted_on_disk;
	struct instant persist_retry;
	bool persist_again;

	/* recovery */
	struct instant started, rejoin_at, vote_at, vote_began;
	bool rejoining, birth_stopped, homes_stale;

	/* timers */
	struct wheel wheel;
	struct timer beat;

	/* table */
	struct map keys;
	uint64_t held_count, promise_count, waiter_count;
	struct released *ring;
	uint32_t ring_size, ring_next;
	struct map ring_map;

	/* operations */
	struct map ops_by_id, ops_by_lock, clients, beliefs;
	struct list ops, lingering, waiting, lists;
	struct list op_pool;
	uint64_t op_next, ticket_next;
	uint32_t op_count, linger_count, waiting_count, pool_count;
	uint64_t caller_count;
	uint64_t belief_count;
	struct peer peers[NODES_MAX];

	/* drain */
	bool drain_walk, drain_done;
	size_t drain_bucket;
	uint32_t drain_ring;

	uint64_t counts[COUNT_TOTAL];
};

#define COUNT(core, name) ((core)->counts[COUNT_##name]++)

static inline bool core_votes(const struct core *core) {
	return core->state == CORE_VOTING;
}

/* ---- timer.c ---- */
void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at);
void timer_stop(struct core *core, struct timer *t);

/* ---- table.c: keys and records ---- */
struct slice key_name(const struct key *key);
/* The key with what is past its end removed; NULL when nothing of it is left. */
struct key *table_find(struct core *core, struct slice name);
struct key *table_make(struct core *core, struct slice name); /* NULL: limit or memory */
void table_settle(struct core *core, struct key *key);         /* re-arms the timer; frees the key if nothing is left */
struct key_more *table_more(struct core *core, struct key *key); /* NULL: no memory */
/* Ends what is past; returns false when the key was freed. */
bool table_expire(struct core *core, struct key *key);
struct record *key_record(const struct key *key, struct id128 lock_id);
struct record *key_other(const struct key *key, struct id128 lock_id); /* a held record of another lock_id, or NULL */
bool key_contested(const struct key *key);
struct slice record_owner(const struct record *r);
struct slice record_identity(const struct record *r);
struct slice record_value(const struct record *r);
size_t record_size(const struct record *r);
struct record *record_new(struct core *core, struct slice owner, struct slice identity, struct slice value);
void record_free(struct core *core, struct record *r);
/* A new value in place of the old one; false: no memory. The record may move: *at is the pointer to it. */
bool record_set_value(struct core *core, struct record **at, struct slice value);
/* Adds to the key, drops a promise of the same lock_id; the caller settles. */
void key_add_record(struct core *core, struct key *key, struct record *r);
void key_drop_record(struct core *core, struct key *key, struct record *r);
void key_drop_promise(struct core *core, struct key *key);
void record_describe(const struct core *core, const struct record *r, struct message *m); /* token, left, bytes, ballots */

/* ---- released.c ---- */
int released_init(struct core *core);
void released_done(struct core *core);
void released_add(struct core *core, struct id128 lock_id, bool barred_only);
bool released_has(const struct core *core, struct id128 lock_id);
bool released_barred(const struct core *core, struct id128 lock_id); /* barred or released */

/* ---- rules.c: R1 to R5 as pure decisions ---- */
enum status rule_votes(const struct core *core);
enum status rule_promise(const struct core *core, const struct key *key, const struct message *m, uint32_t peer);
enum status rule_commit(const struct core *core, const struct key *key, const struct message *m);
enum status rule_extend(const struct core *core, const struct key *key, struct id128 lock_id, uint64_t lease_us);
bool rule_had(const struct record *r, uint64_t caller_token);
bool rule_token_bound(const struct core *core, uint64_t token);
bool rule_value_counts(const struct record *r);

/* ---- master.c, master_value.c: what a master does with messages ---- */
void master_handle(struct core *core, uint32_t from, const struct message *m);
void master_prepare(struct core *core, uint32_t from, const struct message *m);
void master_write(struct core *core, uint32_t from, const struct message *m);
void master_read(struct core *core, uint32_t from, const struct message *m);
void master_break(struct core *core, uint32_t from, const struct message *m);
void master_blocker(const struct core *core, const struct key *key, struct id128 lock_id, struct message *answer);
void master_raise_clock(struct core *core, uint64_t clock);
/* Promises (creating or renewing) for a request that rule_promise let through; fills the answer. */
void master_grant(struct core *core, struct key *key, const struct message *m, uint32_t peer, struct message *answer);

/* ---- queue.c: the home's queue, turns, and kept requests ---- */
void queue_enqueue(struct core *core, uint32_t from, const struct message *m);
void queue_withdraw(struct core *core, uint32_t from, const struct message *m);
void queue_list(struct core *core, uint32_t from, const struct message *m);
bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m);
void queue_drop_kept(struct core *core, struct key *key, uint32_t from, struct id128 lock_id);
void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, uint64_t seq);
void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id); /* a release */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by); /* by: whose commit it was */
void queue_record_ended(struct core *core, struct key *key);
void queue_give_turn(struct core *core, struct key *key);
bool queue_ahead(const struct key *key, struct id128 lock_id); /* somebody waits who is not this lock_id */
void queue_peer_lost(struct core *core, uint32_t peer);
void queue_forget_all(struct core *core);
void queue_free_all(struct core *core, struct key *key); /* at the end of the node */

/* ---- outbox.c ---- */
void out_send(struct core *core, uint32_t peer, const struct message *m); /* copies the bytes; to itself: later in the step */
bool out_take_local(struct core *core, struct message *m);
void out_local_done(struct core *core);
bool out_reserve_reply(struct core *core);
struct core_reply *out_reply(struct core *core); /* zeroed; space was reserved */
bool out_copy(struct core *core, struct slice from, struct slice *to);
void *out_room(struct core *core, size_t size);
void out_note(struct core *core, enum core_note_kind kind, uint32_t peer, uint64_t value, const char *text, struct slice key);
void out_reset(struct core *core, uint32_t peer);
void out_persist(struct core *core);
void out_drop_peer(struct core *core, uint32_t peer);

/* ---- persist.c: the durable state and the ceiling ---- */
void persist_start(struct core *core);
void persist_changed(struct core *core);
void persist_done(struct core *core, uint64_t seq, bool ok);
void persist_beat(struct core *core);
void ceiling_raise(struct core *core);
bool persist_may_leave(const struct core *core);
void persist_take(struct core *core, struct durable *state, uint64_t *seq);

/* ---- peers.c ---- */
void peers_init(struct core *core);
void peer_up(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
void peer_down(struct core *core, uint32_t peer);
void peer_frame(struct core *core, uint32_t peer, const struct frame *frame);
void peer_pong(struct core *core, uint32_t peer, const struct message *m);
void peers_beat(struct core *core);
void peers_reset_all(struct core *core);
void peers_tell(struct core *core); /* a ping to everybody at once: the voting flag has changed */
bool peer_reachable(const struct core *core, uint32_t slot); /* linked, or this node itself */
bool peer_votes(const struct core *core, uint32_t slot);
span_ns peers_round_trip(const struct core *core);
void step_message(struct core *core, uint32_t from, const struct message *m);

/* ---- op.c: operations in common ---- */
struct op *op_new(struct core *core, const struct core_request *r);
void op_free(struct core *core, struct op *op);
void op_free_all(struct core *core);
struct op *op_find(struct core *core, uint64_t round);
struct op *op_find_lock(struct core *core, struct slice key, struct id128 lock_id);
struct caller *op_join(struct core *core, struct op *op, const struct core_request *r);
uint64_t op_next_round(struct core *core, struct op *op); /* new number, sent := now, all votes none */
void op_ask(struct core *core, struct op *op, uint32_t slot, struct message *m); /* vote asked, or gone when not linked */
void op_ask_all(struct core *core, struct op *op, struct message *m);
uint32_t op_votes(const struct core *core, const struct op *op, uint32_t states); /* bit set of states */
bool op_late(const struct core *core, const struct op *op); /* request_timeout has passed since the round was sent */
void op_peer_lost(struct core *core, uint32_t peer);
void op_peer_changed(struct core *core, uint32_t peer);
void op_timer(struct core *core, struct op *op);
void op_answer(struct core *core, uint32_t from, const struct message *m);
void op_client_gone(struct core *core, uint64_t client);
struct core_reply *op_reply(struct core *core, struct caller *c, int error); /* one caller's reply; the caller is gone */
void op_reply_all(struct core *core, struct op *op, int error);
uint64_t op_silent(const struct core *core, const struct op *op);
void op_linger(struct core *core, struct op *op);
void op_lock_released(struct core *core, struct slice key, struct id128 lock_id);
uint32_t op_client_waiters(struct core *core, uint64_t client);
struct message op_message(const struct op *op, enum message_kind kind);
#define VOTE_BIT(s) (1u << (s))

/* ---- one file per operation ---- */
void attempt_start(struct core *core, struct op *op);
void attempt_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void attempt_timer(struct core *core, struct op *op);
void attempt_peer_lost(struct core *core, struct op *op, uint32_t peer);
void attempt_rehome_all(struct core *core);
void attempt_rehome_beat(struct core *core); /* those that found no home */
void attempt_displaced(struct core *core, uint32_t from, const struct message *m);
void attempt_give_up(struct core *core, struct op *op); /* withdraws everywhere */
int attempt_home(const struct core *core, struct slice key);
void attempt_enqueue(struct core *core, struct op *op);
void attempt_judge(struct core *core, struct op *op);
void commit_start(struct core *core, struct op *op);
void commit_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void commit_judge(struct core *core, struct op *op, bool over);
void attempt_fail(struct core *core, struct op *op, int error);
void attempt_note_holder(struct core *core, struct op *op, const struct message *m);
void linger_teach(struct core *core, struct op *op, uint32_t slot);
void linger_settle(struct core *core, struct op *op); /* may free it */
void linger_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void linger_peer_changed(struct core *core, struct op *op, uint32_t peer);
void extend_start(struct core *core, struct op *op);
void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m);
void extend_judge(struct core *core, struct op *op, bool over);
void release_start(struct core *core, struct op *op);
void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void release_judge(struct core *core, struct op *op, bool over);
void update_start(struct core *core, struct op *op);
void update_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void update_judge(struct core *core, struct op *op, bool over);
void read_start(struct core *core, struct op *op);
void read_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void read_judge(struct core *core, struct op *op, bool over);
void break_start(struct core *core, struct op *op);
void break_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void break_judge(struct core *core, struct op *op, bool over);
void waiters_start(struct core *core, struct op *op);
void waiters_answer(struct core *core, struct op *op, uint32_t from, const struct message *m);
void waiters_judge(struct core *core, struct op *op, bool over);
void local_get(struct core *core, struct op *op);
void local_wait(struct core *core, struct op *op);
void local_wait_check(struct core *core, struct key *key); /* the key has changed */
void local_forget(struct core *core, struct op *op); /* its last caller is gone */
void local_timer(struct core *core, struct op *op);
void local_list(struct core *core, struct op *op);
void local_list_go_on(struct core *core);
void local_entry(struct core *core, const struct caller *c, struct slice identity, const struct key *key, const struct record *r, struct core_entry *entry);
void local_list_free(struct core *core, struct op *op);
void read_free(struct core *core, struct op *op);
void request_handle(struct core *core, const struct core_request *r);

/* ---- belief.c ---- */
void belief_set(struct core *core, struct id128 lock_id, struct instant deadline, uint64_t token);
struct belief *belief_find(struct core *core, struct id128 lock_id); /* only while it is believed */
void belief_drop(struct core *core, struct id128 lock_id);
void belief_timer(struct core *core, struct belief *b);
void belief_done(struct core *core);

/* ---- snapshot.c, merge.c, recovery.c, birth.c ---- */
void snapshot_asked(struct core *core, uint32_t from, const struct message *m);
void snapshot_go_on(struct core *core, uint32_t from, const struct message *m);
void snapshot_changed(struct core *core, const struct key *key, const struct record *r);
void snapshot_released(struct core *core, struct slice key, struct id128 lock_id, bool barred_only);
void snapshot_stop(struct core *core, uint32_t peer);
void snapshot_record_message(const struct core *core, const struct key *key, const struct record *r, struct message *m);
void merge_record(struct core *core, uint32_t source, const struct message *m);
void merge_released(struct core *core, const struct message *m);
void merge_finish(struct core *core);
void recovery_start(struct core *core, bool restored);
void recovery_again(struct core *core); /* stops voting and rejoins */
void recovery_beat(struct core *core);
void recovery_message(struct core *core, uint32_t from, const struct message *m);
void recovery_peer_lost(struct core *core, uint32_t peer);
void recovery_vote(struct core *core, const char *how);
void drain_start(struct core *core);
void drain_restore(struct core *core, const struct frame *frame);
void birth_peer_up(struct core *core, uint32_t peer);
void birth_go_on(struct core *core);
void birth_persisted(struct core *core);
void birth_pledge(struct core *core, uint32_t from, const struct message *m);

#endif
