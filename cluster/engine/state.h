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
	uint8_t table; /* which of core->store.tables it stands in */
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

#include "room_state.h"

struct core {
	/* Memory: `alloc` counts and limits what `outer` gives. */
	struct allocator alloc;
	struct allocator outer;
	uint64_t memory_used;
	struct siphash_key hash_key;
	struct prng prng;
	struct core_limits limits;
	/* Of the step under way. */
	struct core_out *out;
	/* By enum core_op (coordinator/operation.h). */
	const struct operation *const *operations;
	/* Who hears of what happens in a room below theirs (node/events.c). */
	const struct observers *observers;
	struct instant now;
	/* Counts spans that are longer than a round may last, so that a record needs only two bytes to tell
	 * an old acceptance. */
	uint16_t tick;
	/* This node had given up no link then whose end is yet to be told: it may stand still in between. */
	struct instant links_at;

	/* Its name; the address where it is reached, as its options say (may be empty); and the initial
	 * masters that its file names (an empty name ends them). */
	char name[NODE_NAME_MAX + 1];
	char address[ADDRESS_MAX + 1];
	char named[MASTERS_MAX][NODE_NAME_MAX + 1];

	/* The configuration of the epoch, or the one to be born with; its hash, 0 while unborn. */
	struct config config;
	uint64_t config_hash;
	uint32_t self, peer_count, masters, quorum;
	enum core_state state;
	uint64_t clock;
	/* As wanted on disk. */
	struct durable durable;

	/* A configuration is being adopted: it takes effect when it is on disk. */
	bool adopting;
	/* It voted in epoch - 1 when it adopted this one, and has kept its memory since: a source (section 6). */
	bool remembers;
	/* All masters of this epoch are known to have voted in it. */
	bool complete;
	/* Another configuration has this epoch's number: it does not vote. */
	bool conflict;
	/* When it adopted its epoch, and when a source need not remember any more. */
	struct instant adopted_at, forget_at;
	/* The longest max_lease of the configurations that this node has been in since its start. */
	span_ns lease_allowed;
	/* Snapshots that are being sent, and what is received of a master that this node follows. */
	uint32_t snapshots;
	struct follow follow;
	struct peer peers[NODES_MAX];

	/* What one room alone keeps. A room touches its own and what the rooms below it keep; node/ sets
	 * all of it up (scripts/style checks both). */
	struct engine_state engine;
	struct peering_state peering;
	struct store_state store;
	struct changes_state changes;
	struct master_state master;
	struct coordinator_state coordinator;
	struct replication_state replication;
	struct repair_state repair;
	struct recovery_state recovery;
	struct membership_state membership;
	struct node_state node;

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
	return &core->store.tables[key->table];
}

static inline bool core_votes(const struct core *core) {
	return core->state == CORE_VOTING;
}

#include "numbers.h"

#endif
