/* state.h: what a node keeps in memory, and who may touch it. Private to cluster/. */
#ifndef PAWL_CLUSTER_STATE_H
#define PAWL_CLUSTER_STATE_H

#include "check.h"
#include "core.h"
#include "pawl/error.h"
#include "list.h"
#include "map.h"
#include "membership_state.h"
#include "observers.h"
#include "prng.h"
#include "tombstones.h"
#include "replication_state.h"
#include "wheel.h"

/* ---- timers: all on one wheel over CLOCK_BOOTTIME; they wake, the two clocks decide ---- */
enum timer_kind { TIMER_KEY, TIMER_OP, TIMER_NODE, TIMER_FEED, TIMER_FOLLOW, TIMER_HOLDER };
struct timer {
	struct wheel_timer wheel; /* its kind: enum timer_kind */
};

/* ---- the key table (section 1) ---- */
struct record { /* a held record; its bytes (its terms where they say more than of and bond; owner, identity, label, value) follow it */
	struct record *next; /* several that exclude one another: the key is contested (section 4) */
	struct id128 lock_id;
	uint64_t token, noted;
	struct ballot wrote;    /* of the write that made the value */
	struct ballot prepared; /* the highest one noted; never below `wrote` */
	struct instant end;  /* with the lock delay */
	int64_t since; /* when it was acquired, as far as known here; only shown, so that one clock (boot) is enough */
	uint64_t attempt; /* all that was accepted for it was of this one, or of name_before() of this one (section 11); 0: of several, or it is not known */
	uint64_t digest; /* what it adds to its leaf's (digest.c) */
	uint32_t value_size;
	uint32_t sources; /* merging: bit set of the tries that brought it; 0: nothing is left to be done about them */
	uint32_t binding; /* of its terms */
	uint16_t of;   /* the same */
	uint16_t accepted; /* core->tick when anything was accepted for it last */
	uint16_t owner_size, label_size;
	uint8_t identity_size;
	uint8_t terms_size; /* 0: nothing but of and bond is in its terms */
	bool barred : 1; /* by a break: no more extensions */
	bool uneven : 1; /* merging: not all sources had the same permits */
	bool freed : 1; /* a source had it bound to no node: it does not end with one before that says so again */
	bool unwritten : 1; /* a newer write was refused here (unwritten.c) */
	bool vouched : 1; /* it came with a commit: its value counts, whatever ballot that brought */
	uint8_t bytes[];
};
_Static_assert(sizeof(struct record) <= 144, "one for each lease");

static inline struct terms record_terms(const struct record *r) {
	struct terms t = { .of = SHARE_EXCLUSIVE };
	if (r->terms_size) {
		memcpy(&t, r->bytes, sizeof t);
	}
	t.of = r->of;
	t.binding = r->binding;
	return t;
}

static inline struct permits record_set(const struct record *r) {
	return record_terms(r).set;
}

static inline span_ns record_delay(const struct record *r) {
	return record_terms(r).delay;
}

static inline span_ns record_age(const struct record *r, struct instant now) {
	return now.boot > r->since ? clock_saturating_add(now.boot, -r->since) : 0;
}

struct promise { /* an exclusive, short lease against other promises */
	struct list by_peer; /* promises end with the link to their coordinator */
	struct key *key;
	struct id128 lock_id;
	uint64_t attempt, noted;
	struct ballot first; /* the highest one of a first value that was named with it (first.c) */
	struct instant end;
	uint32_t peer;
	bool turn; /* the request has one; its ticket: what it named with it */
	struct ticket ticket;
	struct terms terms; /* what the request wants */
};

struct place { /* of an entry, or of a kept request, in the order in which they are served (section 10, Order) */
	int32_t priority;
	struct ticket ticket;
	uint32_t peer; /* that drew it */
};

#include "queued.h"

enum { DIGEST_GROUPS = 128, DIGEST_GROUP = 128, DIGEST_LEAVES = DIGEST_GROUPS * DIGEST_GROUP };
struct leaf { /* of the digests that masters compare (digest.c) */
	uint64_t digest;
	struct key *first;
};

struct table {
	struct map keys;
	uint8_t tries; /* bits of `sources` that were handed out for its records */
	struct instant latest; /* no record that others told of here ends later */
	uint64_t group_digests[DIGEST_GROUPS];
	struct leaf *leaves[DIGEST_GROUPS]; /* DIGEST_GROUP each, made with the first key */
	uint64_t held_count;
};

enum staging_use {
	STAGING_FREE,     /* empty; whoever wants to build in it takes it */
	STAGING_BUILDING, /* from snapshots; whoever took it ends that by a swap or by dropping it */
	STAGING_EMPTYING  /* in pieces, so that nobody waits for it */
};

struct key {
	struct map_node node;
	struct timer timer; /* at or before the first end of what is below */
	struct record *held;
	struct promise *promise; /* of a lock_id without a record here, and that no record excludes */
	struct key_more *more;
	struct key *leaf_next, **leaf_link; /* the keys of its leaf */
	uint16_t size, leaf;
	uint8_t table; /* which of core->tables it stands in */
	uint8_t name[];
};
_Static_assert(sizeof(struct key) <= 88, "one for each lease");

#define PREPARING_MAX 32
struct preparing { /* an update whose ballot was noted here, and whose write has not come (preparing.c) */
	struct id128 lock_id;
	struct ballot ballot;
	uint64_t op; /* of its coordinator, at `peer`; 0: free */
	uint32_t peer;
	struct instant until;
};

#include "operation_state.h"

#include "peer_state.h"

enum table_default { TOMBSTONES_DEFAULT = 1 << 14, UNFINISHED_DEFAULT = 1 << 14, ROUNDS_DEFAULT = 1 << 16 };

struct core {
	struct allocator alloc; /* counts and limits */
	struct allocator outer;
	uint64_t memory_used;
	struct siphash_key hash_key;
	struct prng prng;
	struct core_limits limits;
	struct core_out *out; /* of the step under way */
	const struct operation *const *operations; /* by enum core_op (coordinator/operation.h) */
	const struct observers *observers; /* who hears of what happens in a room below theirs (node/events.c) */
	struct instant now, last_step;
	uint16_t tick; /* counts spans that are longer than a round may last, so that a record needs only two bytes to tell an old acceptance */
	struct instant tick_at; /* the next one */
	struct instant links_at; /* no link whose end is yet to be told had been given up by this node then: it may stand still in between */
	bool stepped;

	/* identity and configuration */
	char name[NODE_NAME_MAX + 1];
	char address[ADDRESS_MAX + 1]; /* where it is reached, as its options say; may be empty */
	char named[MASTERS_MAX][NODE_NAME_MAX + 1]; /* the initial masters that its file names; an empty name ends them */
	uint32_t self, peer_count, masters, quorum;
	struct config config; /* of the epoch, or to be born with */
	uint64_t config_hash; /* 0 while unborn */
	enum core_state state;
	uint64_t clock;
	/* The greatest clock that was taken from others at that time; one more each nanosecond since (section 9). */
	uint64_t clock_limit;
	struct instant clock_limit_at;
	struct instant behind_at; /* when it last found itself behind a quorum; 0: not since its start */
	span_ns lease_allowed; /* the longest max_lease of the configurations that this node has been in since its start */

	/* durable state */
	struct durable durable; /* as wanted */
	uint64_t persist_seq;   /* of `durable` */
	uint64_t persist_done;
	struct persisting taken[4];
	uint64_t ceiling_on_disk, boot_on_disk;
	uint64_t vote_clock; /* the clock when this node last stopped voting: its votes of before rest on it; 0: none since its start */
	bool pledged_on_disk, voted_on_disk;

	/* configuration: one that is being adopted takes effect when it is on disk */
	bool adopting;
	uint64_t adopt_seq;
	bool remembers; /* voted in epoch - 1 when it adopted this one, and has kept its memory since: a source (section 6) */
	bool complete;  /* all masters of this epoch are known to have voted in it */
	bool conflict;  /* another configuration has this epoch's number: it does not vote */
	bool peers_changed; /* for the driver */
	bool auto_replace;
	bool forced;    /* the configuration being adopted starts the cluster over */
	bool isolated;    /* not linked with a quorum: it dials everybody it knows */
	struct instant near_at;   /* when it last was */
	struct instant voters_at; /* when a quorum was last known to vote */
	bool unproven, unproven_noted; /* it is told of a later configuration that it cannot believe (proof.c): since when, and when last */
	struct instant unproven_since, unproven_at;
	struct announced announced;
	uint64_t ballot_drawn; /* of decrees that were proposed here, since the start */
	struct peer_table_room *peer_table_room; /* to build the table of peers in */
	struct instant finish_at; /* when a decree that was accepted here is finished in its proposer's place */
	struct instant adopted_at, forget_at; /* forget_at: when a source need not remember any more */
	struct list suspended;
	struct list in_line; /* operations that want more than a little of the masters' reports */
	struct list asking;  /* operations that go on with this node's own report in the next turn */
	struct list leaving; /* struct client: gone, and not all that it waited for has been given up */
	struct core_reply nobody; /* what is answered to those */
	struct pieces left; /* of this turn of the loop */
	bool turn_over;     /* since the last step: another one begins */
	uint32_t reporting, reports_begun; /* those that may; of them, those that began in this step */
	struct list groups; /* that something has been answered to: looked at within the same step */
	struct instant background_at; /* when the next piece of long work may be done */
	struct state_transfer state_transfer;
	struct finishing finish;
	struct change change;
	span_ns replication_interval;
	struct instant persist_retry;
	bool persist_again;

	/* recovery */
	struct instant rejoin_at, vote_at, vote_began;
	bool birth_stopped, homes_stale;
	uint32_t homes; /* operations that are to look for their home anew have another number (home.c) */
	uint64_t failed; /* bit set of peers, the node itself among them, for which a message could not be queued in this step */
	bool self_lost; /* a message to itself could not be queued; until the next beat */

	/* timers */
	struct wheel wheel;
	struct timer beat;

	/* tables: the one that is voted and read from, and one beside it: being built from snapshots, being emptied, or empty */
	struct table tables[2];
	struct table *live, *staging;
	enum staging_use staging_use;
	size_t empty_bucket; /* EMPTYING: from the last bucket down */
	uint64_t promise_count, waiter_count;
	struct queues queues;
	struct tombstone *tombstones;
	uint32_t tombstones_size, tombstones_next;
	struct map tombstones_map;
	struct instant lacked[LACKED_PLACES]; /* when a record ended here last */
	struct lost { struct ballot noted; struct instant at; } lost[LACKED_PLACES]; /* of those that were not released (first.c) */
	uint64_t clock_began; /* the clock when it began to vote */
	uint64_t first_drawn; /* the clock of the last ballot that it drew for a first value */

	struct preparing preparing[PREPARING_MAX];
	uint32_t preparing_next;
	struct unwritten unwritten[UNWRITTEN_MAX];
	struct extended extended[EXTENDED_MAX];
	uint32_t extended_next;
	uint32_t unwritten_next;

	/* replication */
	struct log log;
	struct timer feed_timer;
	uint32_t feeds;        /* active ones */
	uint64_t feed_full_at; /* the log's number with which a batch is full */
	struct follow follow;
	struct timer follow_timer;

	/* operations */
	struct map ops_by_id, ops_by_lock, clients, granted_leases, bound_locks;
	struct list ops, unfinished, waiting, lists;
	struct list *ops_next; /* of a walk over `ops` that is under way */
	struct list op_pool;
	struct list holders; /* nodes that have bound records of this one to themselves */
	uint32_t holder_count;
	uint64_t op_next, ticket_next;
	uint32_t op_count, catch_up_count, waiting_count, pool_count, binding_count;
	uint64_t caller_count;
	uint64_t granted_count;
	size_t granted_bucket; /* where the sweep is */
	struct peer peers[NODES_MAX];

	/* drain */
	struct message *drain_messages;
	bool drain_failed;
	bool drain_whole; /* an end has been written, or restored */
	size_t drain_bucket;
	uint32_t drain_tombstones, drain_written; /* of the bucket's records */
	uint64_t drain_clock;
	uint32_t snapshots; /* being sent */

	/* anti-entropy (sync.c) */
	struct sync *sync; /* NULL until a difference is met */
	uint64_t sync_round;
	uint32_t sync_beats; /* since the exchange began */
	bool sync_judged, sync_hurry;
	uint16_t sync_tick; /* core->tick when the exchange began: what others list in it they have later than that */

	/* news (watch_event.c, unseen.c) */
	struct map unseen;
	struct list unseen_all;
	size_t unseen_bytes;
	struct told *told;
	uint64_t told_before;
	struct told_once { uint64_t lock, token; } told_lately[64]; /* what was told of without having been here: the lock_id's first word */
	uint32_t told_lately_next;
	uint64_t commits_begun; /* by this node, since its start (counted.c) */
	uint32_t counted_beats, says_heard;
	bool left_out, missed_under_way;
	struct instant missed_over; /* what was under way when something had been missed has ended by then */
	bool watch_event_wanted;
	uint32_t watch_event_feeds; /* active ones whose followers want news */
	uint32_t (*count_watchers)(void *ctx, struct slice key);
	void *count_watchers_ctx;

	uint64_t counts[COUNT_TOTAL];
};

#define COUNT(core, name) ((core)->counts[COUNT_##name]++)

/* A time from the wire: whatever a peer says, it saturates. */
static inline span_ns span_from_us(uint64_t us) {
	return us > (uint64_t)(SPAN_MAX / SPAN_US) ? SPAN_MAX : (span_ns)us * SPAN_US;
}

/* lock_ids look random, but clients choose them: a keyed hash, so that nobody can choose a chain, of two words (the folded
 * multiplication of wyhash), because every message looks one up more than once. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_lock_id(const struct core *core, struct id128 lock_id) {
	uint64_t w[2];
	memcpy(w, lock_id.b, sizeof w);
	return hash_fold(hash_fold(w[0] ^ core->hash_key.k0, w[1] ^ core->hash_key.k1) ^ core->hash_key.k1, UINT64_C(0x9e3779b97f4a7c15));
}

static inline uint64_t table_hash(const struct core *core, struct slice name) {
	return siphash_short(core->hash_key, name.data, name.size);
}

/* It is part of a cluster: epoch 1 or a later one has been written. Not before, whatever became of it since. */
static inline bool core_born(const struct core *core) {
	return core->config_hash != 0;
}

static inline struct table *key_table(struct core *core, const struct key *key) {
	return &core->tables[key->table];
}

static inline bool core_votes(const struct core *core) {
	return core->state == CORE_VOTING;
}

#include "numbers.h"

#endif
