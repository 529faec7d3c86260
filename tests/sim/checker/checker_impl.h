/* checker_impl.h: what the files of the checker share. */
#ifndef PAWL_SIM_CHECKER_IMPL_H
#define PAWL_SIM_CHECKER_IMPL_H

#include "checker.h"

struct best { /* the highest numbers of two different locks */
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
	int64_t since; /* true time */
	uint64_t token;
	bool over;     /* given up; else over when the actor's clocks say so */
	struct permits set; /* of a semaphore: the numbers that it believes in */
};

struct best_class { /* of what was believed under the same terms */
	struct best_class *next;
	uint16_t of;
	struct permits set;
	struct best best;
};

struct grant { /* an acquire was answered */
	int64_t at;
	uint64_t token;
	uint32_t lock;
	struct terms terms;
};

struct ghost { /* a belief that ended without a release: the key stays closed for the lock delay */
	struct ghost *next;
	const struct sim_actor *actor;
	uint32_t lock;
	struct instant deadline;
	span_ns delay;
};

struct key_state {
	struct granted *granted_leases;
	struct ghost *ghosts;
	struct best_class *believed;
	struct grant *grants; /* every answer of an acquire */
	size_t grant_count, grant_capacity;
	int64_t turn_passed_at; /* the last time that an acquire was answered, or a wait was over without one */
	int64_t named_at;   /* a transfer was asked for, and nothing granted since */
	uint32_t commit_lock; /* + 1: whose commit was sent last */
	int64_t raced_at;     /* when one was sent while that of another, which had not been given up, was on its way or held; or two updates crossed */
	struct grant *begun;  /* every token that was believed; `at`: since when */
	size_t begun_count, begun_capacity;
};

#define VALUE_OPS_MAX 24
struct value_op {
	uint64_t id; /* of the request */
	int64_t invoked, returned; /* INT64_MAX: no answer yet, or one that says nothing about whether it took effect */
	bool required; /* took effect for certain */
	bool repeat;   /* an acquire; idle: the lock has been held since before it was asked, so that it may not write */
	bool idle, open; /* open: not answered yet */
	bool reads;    /* shows `value`, and that it is not `expect`; otherwise writes it, if `expect` is there */
	uint32_t expect, value;
};

struct lock_state {
	struct id128 id;
	uint32_t key, value;
	bool ended, gone; /* gone: ended without a release */
	bool unjudged;    /* more operations on its value than the search can take */
	bool spent;      /* its release was answered */
	bool unclear;    /* an acquire failed so that it may have left something behind */
	bool granted, asked;
	uint32_t ended_by; /* the node that was to end it with its connection, + 1; 0: none; with its incarnation */
	uint64_t ended_by_incarnation;
	/* Bonds: the greatest that anybody named (and who did), with which somebody took it for held, and whose connection was closed, or that anybody
	 * had named when it was gone. */
	uint32_t binding_named, binding_by, binding_held, binding_gone;
	uint32_t asking, extending; /* acquires and extensions without an answer */
	int64_t may_last; /* no record of it lasts longer */
	bool leaving;    /* may have been handed over */
	uint32_t ends;   /* requests that release it, or hand it over */
	bool barred;     /* by a break: masters that lack it do not get it */
	bool downgraded; /* its holder takes it only for a shared one */
	struct terms terms, wanted; /* wanted: as it asks for them, whatever becomes of it */
	struct permits given; /* by the answer at that time */
	int64_t given_at;
	bool given_only; /* by an extension: from then on these and no others */
	uint32_t told;   /* bit set of nodes that have told of it, and not of its end */
	uint32_t unsure; /* ... of which that is not known, because they said that something was missed */
	uint32_t seen;   /* bit set of nodes whose watchers were told that it was acquired */
	int64_t shown_at, granted_at;  /* the first acquire of it that was answered as held: from when on a quorum read finds it, and the answer */
	uint64_t shown_token;
	int64_t unseen_at[SIM_NODES_MAX]; /* when that node's watchers were told of its end, and of which token */
	uint64_t unseen_token[SIM_NODES_MAX];
	int64_t displaced_at;          /* a lease that came back took its turn from it */
	uint64_t answered; /* highest token of an acquire's answer */
	int64_t held_since, held_until; /* some node's answer has held all the time between them */
	struct permits held_numbers;    /* of a semaphore: those that were held all the time */
	uint64_t released[SIM_NODES_MAX]; /* tenure of that master that handled a release of it; 0: none */
	int64_t tombstone_at[SIM_NODES_MAX];
	uint32_t release_node;          /* whose answer to the release the client has; with that node's incarnation */
	uint64_t release_incarnation, release_epoch;
	uint64_t accepted[SIM_NODES_MAX]; /* highest token with which that master was seen to have it: */
	uint64_t accepted_tenure[SIM_NODES_MAX];
	int64_t accepted_at[SIM_NODES_MAX], accepted_until[SIM_NODES_MAX]; /* since when; it lasts until then at least, ... */
	int64_t lengthened_at[SIM_NODES_MAX]; /* ... as was accepted then */
	uint64_t rolled_back[SIM_NODES_MAX];   /* highest token that it had when it gave it back, or heard of that */
	int64_t gone_at[SIM_NODES_MAX];       /* when it was told last to drop it, but not for good: it may have learned it again */
	struct value_op ops[VALUE_OPS_MAX];
	uint32_t op_count;
};

struct op_state {
	struct checker_op op;
	int64_t invoked;
	uint32_t believed_lock;             /* read: lock believed when it was asked, by whom, and until when */
	const struct sim_actor *believer;
	struct instant believed_until;
	int64_t asked_at;                   /* when the node handled it, ... */
	uint64_t asked_epoch;               /* ... and the epoch it was in */
	uint64_t passed_by, passed_token;   /* acquire that waits: the id + 1 of one that asked later and was answered before, and its token */
	bool known, answered, returned;     /* answered: the answer left the node */
	bool again; /* acquire: some master had the record of its lock_id when it was asked */
	bool clean; /* read of a value: no write was under way when it was asked */
	bool ends_first; /* release, hand-over: nothing else had been asked that ends a lock that is held */
};

struct token_entry {
	uint64_t token;
	uint32_t key, lock;
	struct terms terms;
};

struct seen_config {
	struct config config;
	uint64_t hash;
	uint32_t by; /* the node that had it first */
};

struct told { /* a piece of news, as a digest */
	uint64_t digest; /* 0: a gap */
	int64_t at;
	bool no_room; /* a gap for those who watch there alone: for other news it had no room, but they are in its log */
};

struct told_key {
	struct told *told; /* as a master */
	uint32_t count, capacity;
	bool unsure;         /* as a replica: a gap was told, and nothing since */
	uint32_t master, from, at; /* what it told since is that master's from..at-1, or the same elsewhere among them: what comes next is `at` */
	uint64_t excused; /* pieces that may have been among those for which the master had no room */
};

struct told_by { /* a node's news, by key */
	struct told_key *keys;
	uint32_t count;
	bool alone; /* as a replica: it has had no master to repeat since it last told a gap of all keys */
	uint64_t no_room, no_room_seen; /* so many pieces had no room; seen: what the core counts of them, since it was born */
};

#define WATCHED_PRESENT 64
struct watched_lock {
	uint32_t lock;
	uint16_t of;
};

struct watched_key { /* what a watcher knows of a key, since it was told last that something is missing */
	int64_t gap_at, ran_out_at; /* ran_out_at: a lease */
	uint64_t any, exclusive; /* highest tokens */
	uint32_t present_count;
	struct watched_lock present[WATCHED_PRESENT];
};

struct watched { /* by a watcher of all keys at a node */
	uint64_t incarnation;
	int64_t since, gap_at; /* in true time */
	struct watched_key *keys;
	uint32_t count;
};

struct written { /* the line of the history that was written last */
	bool open, answered, believed; /* answered: as held */
	uint32_t client;
	int64_t at;
};

struct node_view {
	uint64_t incarnation, epoch;
	uint64_t tenure; /* changes when it starts, and when it is no master any more: what it must not forget before */
	struct id128 id, cluster;
	bool born, looked, master;
	bool member; /* what it knows is on its disk: who is outside may forget it */
};

struct liar_view { /* a master lies */
	bool lies, parted;
	int64_t honest_since;
	uint64_t *accepted; /* the hashes of what others have accepted in a decree, on their disks */
	size_t accepted_count;
};

struct checker {
	struct checker_options options;
	struct sim *sim;
	struct key_state *keys;
	size_t key_count;
	struct lock_state *locks;
	size_t lock_count, lock_capacity;
	struct op_state *ops; /* by request id */
	size_t op_capacity;
	uint64_t releases[SIM_NODES_MAX], releases_before[SIM_NODES_MAX]; /* that a node took, by its last step and by the one before */
	/* The master whose table the replica shows, and one more; 0: none. It may follow another one, whose table is still arriving.
	 * The same before its last step. */
	uint32_t shows[SIM_NODES_MAX], showed[SIM_NODES_MAX];
	uint64_t stood_still[SIM_NODES_MAX], stood_still_before[SIM_NODES_MAX]; /* how often it found that it had, likewise */
	struct token_entry *tokens; /* open addressing */
	size_t token_count, token_capacity;
	uint64_t operations;
	int64_t calm_since; /* 0: there may be faults */
	struct seen_config *configs;
	size_t config_count;
	struct node_view views[SIM_NODES_MAX];
	uint64_t told_by[SIM_NODES_MAX]; /* whose news: the node's incarnation */
	struct told_by told[SIM_NODES_MAX];
	struct watched watched[SIM_NODES_MAX];
	struct written written;
	struct liar_view liar;
};

struct key_state *checker_key(struct checker *c, uint32_t key);
struct op_state *checker_op_of(struct checker *c, uint64_t id);
/* The operation was answered, with this token if it is an acquire or an extension (section 8.2). */
/* An extension that keeps no deadline was answered as held: nobody else had it since. */
void checker_extended(struct checker *c, const struct op_state *op, const struct core_reply *reply);
void checker_begun(struct checker *c, uint32_t lock, uint64_t token);
void checker_answered(struct checker *c, const struct op_state *op, uint64_t token, const struct terms *terms);
bool belief_live(const struct checker *c, const struct granted *b);
const struct granted *checker_find_believed(const struct checker *c, uint32_t key);

/* checker_terms.c */
bool terms_exclusive(const struct terms *a, const struct terms *b); /* of two lock_ids: they exclude each other */
uint64_t checker_believed_before(const struct key_state *key, const struct terms *terms, uint32_t lock);
void checker_believed_add(struct key_state *key, const struct terms *terms, uint32_t lock, uint64_t token);
void checker_ghost(struct checker *c, struct key_state *key, const struct granted *b);
void checker_ghosts_look(struct checker *c, struct key_state *key, uint32_t lock);
void checker_terms_answered(struct checker *c, uint32_t lock, const struct terms *got, bool only);
void checker_terms_believed(struct checker *c, const struct sim_actor *actor, uint32_t lock, struct permits *set);

/* checker_values.c */
void checker_value_invoked(struct checker *c, uint64_t id, struct op_state *op);
void checker_value_returned(struct checker *c, uint64_t id, const struct op_state *op, int error, uint32_t value);
void checker_value_held(struct checker *c, uint32_t lock); /* believed from now on, and not until now */
bool checker_value_quiet(const struct lock_state *lock); /* no write under way or in doubt */

/* checker_configs.c */
void checker_configs_look(struct checker *c, uint32_t node);
bool checker_quorum_accepted(const struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply);

/* checker_lies.c */
static inline bool checker_unjudged(const struct checker *c, const struct op_state *op) { /* it was asked for while a master lied */
	return c->liar.lies || op->invoked < c->liar.honest_since;
}
void checker_lies_step(struct checker *c, uint32_t node);
bool checker_lies_adopted(struct checker *c, uint32_t node, const struct config *config, uint64_t hash); /* false: it is not looked at */
void checker_lies_conflict(struct checker *c);

/* checker_replicas.c */
void checker_shows(struct checker *c, uint32_t node); /* after a step */
void checker_aged_read(struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply);

/* checker_told.c */
void checker_told(struct checker *c, uint32_t node, const struct core_watch_event *watch_event);
void checker_told_settled(struct checker *c);
void checker_told_free(struct checker *c);

/* checker_watched.c */
void checker_watched_step(struct checker *c, uint32_t node);
void checker_watched(struct checker *c, uint32_t node, const struct core_watch_event *watch_event);
void checker_watched_commit(struct checker *c, uint32_t lock); /* is sent */
void checker_watched_crossed(struct checker *c, uint64_t round); /* a write is refused because of another update's ballot */
void checker_watched_granted(struct checker *c, uint32_t lock, const struct core_reply *reply);
void checker_watched_free(struct checker *c);

/* What may be left of a lock_id at masters; checker_tables.c. */
void checker_spent_invoked(struct checker *c, const struct op_state *op);
void checker_ending(struct checker *c, struct op_state *op); /* it is asked for */
void checker_spent_returned(struct checker *c, const struct op_state *op, int error);

/* checker_calm.c */
void checker_held(struct checker *c, const struct op_state *op, uint32_t lock, span_ns valid, struct permits numbers); /* answered so */
void checker_refused(struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply); /* with no_quorum */
void checker_renewed(struct checker *c, uint32_t node, const struct op_state *op, int error);
void checker_end_answered(struct checker *c, uint32_t node, const struct op_state *op, const struct core_reply *reply);

/* history.c */
void checker_history_begin(struct checker *c);
void checker_history_end(struct checker *c);
void checker_history(struct checker *c, uint64_t id, const struct op_state *op, const struct sim_reply *reply, uint32_t value); /* NULL: no answer */
void checker_history_believed(struct checker *c, uint32_t client); /* what it was answered just now */
void checker_history_forgot(struct checker *c, uint32_t client, uint32_t lock);
void checker_history_closed(struct checker *c, uint32_t client, uint32_t connection);

#endif
