/* checker_impl.h: what the files of the checker share. */
#ifndef PAWL_SIM_CHECKER_IMPL_H
#define PAWL_SIM_CHECKER_IMPL_H

#include "checker.h"

/* The highest numbers of two different locks. */
struct best {
	uint64_t first, second;
	uint32_t first_lock, second_lock;
};
static inline uint64_t best_of_others(const struct best *b, uint32_t lock) {
	return b->first_lock == lock ? b->second : b->first;
}
static inline void best_add(struct best *b, uint32_t lock, uint64_t token) {
	if (b->first_lock == lock) {
		b->first = token > b->first ? token : b->first;
	} else if (token > b->first) {
		b->second = b->first;
		b->second_lock = b->first_lock;
		b->first = token;
		b->first_lock = lock;
	} else if (token > b->second) {
		b->second = token;
		b->second_lock = lock;
	}
}

struct granted {
	struct granted *next;
	const struct sim_actor *actor;
	uint32_t lock;
	struct instant deadline;
	/* In true time. */
	int64_t since;
	uint64_t token;
	/* It was given up. Otherwise it is over when the actor's clocks say so. */
	bool over;
	/* The permit numbers of a semaphore that it believes in. */
	struct permits set;
};

/* The highest tokens that were believed under the same terms. */
struct best_class {
	struct best_class *next;
	uint16_t of;
	struct permits set;
	struct best best;
};

/* An acquire was answered. */
struct grant {
	int64_t at;
	uint64_t token;
	uint32_t lock;
	struct terms terms;
};

/* A belief that ended without a release: the key stays closed for the lock delay. */
struct ghost {
	struct ghost *next;
	const struct sim_actor *actor;
	uint32_t lock;
	struct instant deadline;
	span_ns delay;
};

/* A release was answered that keeps the key closed, and was asked for at that time. */
struct closing { struct closing *next; uint32_t lock; int64_t asked; span_ns closes; };

struct key_state {
	struct granted *granted_leases;
	struct ghost *ghosts;
	struct closing *closings;
	/* Somebody has asked for such a release; and for a break of a lock of the key. */
	bool may_be_closed, broken;
	struct best_class *believed;
	/* Every answer of an acquire. */
	struct grant *grants;
	size_t grant_count, grant_capacity;
	/* The last time that an acquire was answered, or that a wait was over without one. */
	int64_t turn_passed_at;
	/* When a transfer was asked for after which nothing has been granted yet; 0: none. */
	int64_t named_at;
	/* The lock whose commit was sent last, + 1. */
	uint32_t commit_lock;
	/* When a commit was sent while another lock's, which had not been given up, was on its way
	 * or held; or when two updates crossed. */
	int64_t raced_at;
	/* Every token that was believed, and since when (`at`). */
	struct grant *begun;
	size_t begun_count, begun_capacity;
};

#define VALUE_OPS_MAX 24
struct value_op {
	/* The id of the request. */
	uint64_t id;
	/* `returned` is INT64_MAX while there is no answer, or when the answer does not say whether
	 * the operation took effect. */
	int64_t invoked, returned;
	/* It took effect for certain. */
	bool required;
	/* It is an acquire. */
	bool repeat;
	/* `idle`: the acquire may not write, because the lock has been held since before it was
	 * asked for. `open`: it is not answered yet. */
	bool idle, open;
	/* The operation shows `value`, and that it is not `expect`. Otherwise it writes `value`, if
	 * `expect` is there. */
	bool reads;
	uint32_t expect, value;
};

struct lock_state {
	struct id128 id;
	uint32_t key, value;
	/* `gone`: it ended without a release. `ended_at`: when it ended. */
	bool ended, gone;
	int64_t ended_at;
	/* Only releases that expect a value have ended it. */
	bool ended_by_value;
	/* There were more operations on its value than the search can take. */
	bool unjudged;
	/* Its release was answered. */
	bool spent;
	/* An acquire failed in such a way that it may have left something behind. */
	bool unclear;
	bool granted, asked;
	/* The node that was to end it with its connection, + 1 (0: none); and that node's
	 * incarnation. */
	uint32_t ended_by;
	uint64_t ended_by_incarnation;
	/* Session bindings: the greatest that anybody named, and which client named it; the
	 * greatest under which a client took the lock for held; and the greatest whose connection
	 * was closed, or that anybody had named when the lock was gone. */
	uint32_t binding_named, binding_by, binding_held, binding_gone;
	/* How many acquires and extensions have no answer yet; how often it was shortened. */
	uint32_t asking, extending, order;
	/* No record of it lasts longer than this. */
	int64_t may_last;
	/* It may have been handed over. */
	bool leaving;
	/* Requests that were to end it; the shortest time for which one keeps its key closed. */
	uint32_t ends;
	span_ns closes;
	/* It was broken: masters that lack it do not get it. */
	bool barred;
	/* Its holder takes it only for a shared lock. */
	bool downgraded;
	/* `wanted`: the terms that it asks for, whatever the outcome is. */
	struct terms terms, wanted;
	/* The permits that it was answered with, and when. */
	struct permits given;
	int64_t given_at;
	/* They were given by an extension: from then on it has these and no others. */
	bool given_only;
	/* The bit set of nodes that have told of it, and not of its end. */
	uint32_t told;
	/* The bit set of nodes for which that is not known, because they said that something was
	 * missed. */
	uint32_t unsure;
	/* The bit set of nodes whose watchers were told that it was acquired. */
	uint32_t seen;
	/* The bit set of nodes that lacked it when somebody began to watch there, although it was
	 * believed. */
	uint32_t lacked;
	/* The first acquire of it that was answered as held: from when on a quorum read finds the
	 * lock, and when the answer came. */
	int64_t shown_at, granted_at;
	uint64_t shown_token;
	/* When that node's watchers were told of its end, and of which token. */
	int64_t unseen_at[SIM_NODES_MAX];
	uint64_t unseen_token[SIM_NODES_MAX];
	/* When a lease that came back took its turn from it. */
	int64_t displaced_at;
	/* When its request was given its turn; 0: not yet. The node and the round with which the
	 * request entered a queue last. */
	int64_t turn_at;
	uint64_t queue_round;
	uint32_t queue_node;
	/* The highest token of an acquire's answer. */
	uint64_t answered;
	/* Some node's answer held all the time between these two. */
	int64_t held_since, held_until;
	/* The permit numbers of a semaphore that were held all that time. */
	struct permits held_numbers;
	/* The tenure of that master which handled a release of it; 0: none. */
	uint64_t released[SIM_NODES_MAX];
	int64_t tombstone_at[SIM_NODES_MAX];
	/* The node whose answer to the release the client has, and that node's incarnation. */
	uint32_t release_node;
	uint64_t release_incarnation, release_epoch;
	/* For each master: the highest token with which it was seen to have the lock, and in which
	 * tenure. */
	uint64_t accepted[SIM_NODES_MAX];
	uint64_t accepted_tenure[SIM_NODES_MAX];
	/* Since when the master has it, and until when it lasts there at least. */
	int64_t accepted_at[SIM_NODES_MAX], accepted_until[SIM_NODES_MAX];
	/* Since when a reader finds it at the master; a planned stop in between, after which the
	 * master still has it, does not count. 0: a reader does not find it. */
	int64_t found_since[SIM_NODES_MAX];
	/* When the lengthening to accepted_until was accepted. */
	int64_t lengthened_at[SIM_NODES_MAX];
	/* The highest token that the master had when it rolled the lock back, or heard of that. */
	uint64_t rolled_back[SIM_NODES_MAX];
	/* When the master was last told to drop it, though not for good: it may have learned it
	 * again since. */
	int64_t gone_at[SIM_NODES_MAX];
	struct value_op ops[VALUE_OPS_MAX];
	uint32_t op_count;
};

struct op_state {
	struct checker_op op;
	int64_t invoked;
	/* Of a read: the lock that was believed when it was asked, by whom, and until when. */
	uint32_t believed_lock;
	const struct sim_actor *believer;
	struct instant believed_until;
	/* When the node handled it. */
	int64_t asked_at;
	/* The epoch that the node was in then. */
	uint64_t asked_epoch;
	/* Of an acquire that waits: the id + 1 of one that asked later and was answered before, and
	 * its token. */
	uint64_t passed_by, passed_token;
	int64_t passed_at;
	/* `answered`: the answer left the node. */
	bool known, answered, returned;
	/* Of an acquire: some master had the record of its lock_id when it was asked. */
	bool again;
	/* Of a read of a value: no write was under way when it was asked. */
	bool clean;
	/* Of a release or a hand-over: nothing else had been asked that ends the lock, which is
	 * held. */
	bool ends_first;
};

struct token_entry {
	uint64_t token;
	uint32_t key, lock;
	struct terms terms;
};

struct seen_config {
	struct config config;
	uint64_t hash;
	/* The node that adopted it first. */
	uint32_t by;
};

/* A watch event, as a digest. */
struct told {
	/* 0: events were missed. */
	uint64_t digest;
	int64_t at;
	/* Events were missed only by those who watch at that node: there was no room for them, but
	 * they are in its log. */
	bool no_room;
};

struct told_key {
	/* The events that it told as a master. */
	struct told *told;
	uint32_t count, capacity;
	/* As a replica: it has told that events were missed, and nothing since. */
	bool unsure;
	/* As a replica: what it has told since is the master's from .. at - 1, or an equal part
	 * elsewhere among them. The event at `at` is the next. */
	uint32_t master, from, at;
	/* How many of its events may have been among those for which the master had no room. */
	uint64_t excused;
};

/* The watch events that a node told, by key. */
struct told_by {
	struct told_key *keys;
	uint32_t count;
	/* As a replica: it has had no master to repeat since it last told that events of all keys
	 * were missed. */
	bool alone;
	/* For how many events there was no room; `no_room_seen`: how many of them the core has
	 * counted since it was born. */
	uint64_t no_room, no_room_seen;
};

#define WATCHED_PRESENT 64
struct watched_lock {
	uint32_t lock;
	uint16_t of;
};

/* What a watcher knows of a key, since it was last told that something is missing. */
struct watched_key {
	/* When it was told that something is missing, and that a lease ran out. */
	int64_t missed_at, ran_out_at;
	/* The highest tokens. */
	uint64_t any, exclusive;
	/* Something of the key has been told since it was last told that something is missing. */
	bool sure;
	uint32_t present_count;
	struct watched_lock present[WATCHED_PRESENT];
};

/* What a watcher of all keys at a node knows. */
struct watched {
	uint64_t incarnation;
	/* In true time. */
	int64_t since, missed_at;
	struct watched_key *keys;
	uint32_t count;
};

/* The line of the history that was written last. */
struct written {
	/* `answered`: as held. */
	bool open, answered, believed;
	uint32_t client;
	int64_t at;
};

struct node_view {
	uint64_t incarnation, epoch;
	/* Changes when the node starts, and when it stops being a master. What it is told within
	 * one tenure it must not forget before the next. */
	uint64_t tenure;
	struct id128 id, cluster;
	bool born, looked, master;
	/* What it knows is on its disk. A node outside the cluster may forget it. */
	bool member;
};

/* What is kept while a master lies. */
struct liar_view {
	bool lies, parted;
	int64_t honest_since;
	/* The hashes of the configurations that others have accepted in a decree, on their
	 * disks. */
	uint64_t *accepted;
	size_t accepted_count;
};

struct checker {
	struct checker_options options;
	/* How often a key had two holders, where that does not end the run. */
	uint64_t twice;
	struct sim *sim;
	struct key_state *keys;
	struct lock_state *locks;
	size_t key_count, lock_count, lock_capacity;
	/* By the id of the request. */
	struct op_state *ops;
	size_t op_capacity;
	/* How many releases the node had taken after its last step, and after the previous one. */
	uint64_t releases[SIM_NODES_MAX], releases_before[SIM_NODES_MAX];
	/* The master, + 1, whose table the replica shows (0: none), after its last step and before
	 * it. The replica may already follow another master, whose table is still arriving. */
	uint32_t shows[SIM_NODES_MAX], showed[SIM_NODES_MAX];
	/* How often the node had stood still, or reset a link, after its last step and before. */
	uint64_t unread[SIM_NODES_MAX], unread_before[SIM_NODES_MAX];
	/* A hash table with open addressing. */
	struct token_entry *tokens;
	size_t token_count, token_capacity;
	uint64_t operations;
	/* Since when nothing is wrong; 0: there may be faults. */
	int64_t calm_since;
	struct seen_config *configs;
	size_t config_count;
	struct node_view views[SIM_NODES_MAX];
	/* The incarnation of the node whose events these are. */
	uint64_t told_by[SIM_NODES_MAX];
	struct told_by told[SIM_NODES_MAX];
	struct watched watched[SIM_NODES_MAX];
	struct written written;
	struct liar_view liar;
};

struct key_state *checker_key(struct checker *c, uint32_t key);
struct op_state *checker_op_of(struct checker *c, uint64_t id);
/* An extension that keeps no deadline was answered as held: nobody else may have had the lock
 * since. */
void checker_extended(struct checker *c, const struct op_state *op, const struct core_reply *reply);
void checker_begun(struct checker *c, uint32_t lock, uint64_t token);
/* The operation was answered, with this token if it is an acquire or an extension (section 8.2). */
void checker_answered(struct checker *c, const struct op_state *op, uint64_t token,
	const struct terms *terms);
bool belief_live(const struct checker *c, const struct granted *b);
const struct granted *checker_find_believed(const struct checker *c, uint32_t key);

/* ---- checker_terms.c ---- */
/* Whether locks with these terms exclude each other, if they are of two lock_ids. */
bool terms_exclusive(const struct terms *a, const struct terms *b);
uint64_t checker_believed_before(const struct key_state *key, const struct terms *terms,
	uint32_t lock);
void checker_believed_add(struct key_state *key, const struct terms *terms, uint32_t lock,
	uint64_t token);
void checker_ghost(struct checker *c, struct key_state *key, const struct granted *b);
void checker_ghosts_look(struct checker *c, struct key_state *key, uint32_t lock);
/* Notes a release that was answered, and keeps the key closed. */
void checker_closing(struct checker *c, const struct op_state *op);
/* Looks whether a belief in this lock_id begins too early for one. */
void checker_closings_look(struct checker *c, struct key_state *key, uint32_t lock);
void checker_closings_forget(struct key_state *key);
void checker_terms_answered(struct checker *c, uint32_t lock, const struct terms *got, bool only);
void checker_terms_believed(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct permits *set);

/* ---- checker_order.c ---- */
/* Call it for each message that is sent. */
void checker_turn_seen(struct checker *c, uint32_t node, uint32_t to, const struct message *m);
/* An acquire is answered: whether another one that was made later was answered before it. */
void checker_passed(struct checker *c, const struct op_state *w, const struct core_reply *reply);
/* An acquire is granted: whether it passes another one that waits. */
void checker_order(struct checker *c, const struct op_state *granted,
	const struct core_reply *reply);

/* ---- checker_values.c ---- */
void checker_value_invoked(struct checker *c, uint64_t id, struct op_state *op);
void checker_value_returned(struct checker *c, uint64_t id, const struct op_state *op, int error,
	uint32_t value);
/* It is believed from now on, and was not until now. */
void checker_value_held(struct checker *c, uint32_t lock);
/* No write is under way or in doubt. */
bool checker_value_quiet(const struct lock_state *lock);
/* Tells whether the operation is one on the value of its lock. */
bool checker_on_value(const struct checker_op *op);

/* ---- checker_configs.c ---- */
void checker_configs_look(struct checker *c, uint32_t node);
bool checker_quorum_accepted(const struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply);

/* ---- checker_lies.c ---- */
/* It was asked for while a master lied. */
static inline bool checker_unjudged(const struct checker *c, const struct op_state *op) {
	return c->liar.lies || op->invoked < c->liar.honest_since;
}
void checker_lies_step(struct checker *c, uint32_t node);
/* False: the configuration is not judged. */
bool checker_lies_adopted(struct checker *c, uint32_t node, const struct config *config,
	uint64_t hash);
void checker_lies_conflict(struct checker *c);

/* ---- checker_replicas.c ---- */
/* Call it after each step. */
void checker_shows(struct checker *c, uint32_t node);
void checker_aged_read(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply);

/* ---- checker_told.c ---- */
void checker_told(struct checker *c, uint32_t node, const struct core_watch_event *watch_event);
void checker_told_settled(struct checker *c);
void checker_told_free(struct checker *c);

/* ---- checker_events.c ---- */
void checker_events_look_again(struct checker *c, uint32_t node);

/* ---- checker_watched.c ---- */
void checker_watched_step(struct checker *c, uint32_t node);
void checker_watched(struct checker *c, uint32_t node, const struct core_watch_event *watch_event);
/* A commit of the lock is sent. */
void checker_watched_commit(struct checker *c, uint32_t lock);
/* A write is refused because of another update's ballot. */
void checker_watched_crossed(struct checker *c, uint64_t round);
void checker_watched_granted(struct checker *c, uint32_t lock, const struct core_reply *reply);
void checker_watched_free(struct checker *c);

/* ---- checker_tables.c: what may be left of a lock_id at masters ---- */
void checker_spent_invoked(struct checker *c, const struct op_state *op);
/* The end of the lock is asked for. */
void checker_ending(struct checker *c, struct op_state *op);
void checker_spent_returned(struct checker *c, const struct op_state *op, int error);

/* ---- checker_calm.c ---- */
/* It was answered as held. */
void checker_held(struct checker *c, const struct op_state *op, uint32_t lock, span_ns valid,
	struct permits numbers);
/* It was answered with no_quorum. */
void checker_refused(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply);
void checker_renewed(struct checker *c, uint32_t node, const struct op_state *op, int error);
void checker_end_answered(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply);

/* ---- history.c ---- */
void checker_history_begin(struct checker *c);
void checker_history_end(struct checker *c);
/* `reply` is NULL: there was no answer. */
void checker_history(struct checker *c, uint64_t id, const struct op_state *op,
	const struct sim_reply *reply, uint32_t value);
/* The client believes what it was answered just now. */
void checker_history_believed(struct checker *c, uint32_t client);
void checker_history_forgot(struct checker *c, uint32_t client, uint32_t lock);
void checker_history_closed(struct checker *c, uint32_t client, uint32_t connection);

/* A key has two holders, or their tokens are wrong. Tells whether the run goes on nevertheless. */
bool checker_bears(struct checker *c);

#endif
