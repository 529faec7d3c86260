/* state.h: what a node keeps in memory: the common state (struct core), keys and records. The
 * headers that it includes have the state of each part. Private to cluster/. */
#ifndef PAWL_CLUSTER_STATE_H
#define PAWL_CLUSTER_STATE_H

#include "check.h"
#include "core.h"
#include "pawl/error.h"
#include "flat.h"
#include "list.h"
#include "map.h"
#include "observers.h"
#include "pending.h"
#include "prng.h"
#include "replication_state.h"
#include "wheel.h"

/* ---- timers ---- */

/* All timers are on one wheel over CLOCK_BOOTTIME. A timer only wakes; both clocks decide whether
 * the time has come. */
enum timer_kind {
	TIMER_KEY, TIMER_OP, TIMER_NODE, TIMER_FEED, TIMER_FOLLOW, TIMER_HOLDER, TIMER_SILENCE,
	TIMER_MOVED, TIMER_OBSERVE
};
struct timer {
	/* wheel.kind is an enum timer_kind. */
	struct wheel_timer wheel;
};

/* ---- the key table (section 1) ---- */

/* record.sources has a bit for each try to copy from a source, and the bit MERGE_STAYS, which
 * stands for no source: such a record stays, whatever the sources say. */
enum { MERGE_TRIES = 30 };
#define MERGE_STAYS (UINT32_C(1) << MERGE_TRIES)

/* A held record: what a master, or a replica, keeps of a lease. Its bytes follow it in the same
 * block of memory. */
struct record {
	/* The next record of the same key. Where two of them exclude each other, the key is
	 * contested (section 4). */
	struct record *next;
	/* The acquisition that holds the key. */
	struct id128 lock_id;
	/* The fencing token; and the clock of this master when it promised the lock_id, or when it
	 * made the record. */
	uint64_t token, noted;
	/* The clock of the ballot of the write that made the value (record_wrote). `origin` below
	 * says who drew it (store/record.c). */
	uint64_t wrote_clock;
	/* When the record ends, lock delay included. */
	struct instant end;
	union {
		/* The name that the record rests on: everything that was accepted for it had this
		 * name, or name_before() of it (section 11). 0 means that several had, or that it
		 * is not known. */
		uint64_t rests_on;
		/* In a report that a coordinator keeps: how much was left until `end` by the
		 * master's own word. In the verdict of a quorum read: how much of the lease is left
		 * for certain, from reports.asked on. */
		span_ns left;
	};
	/* In a merge: a bit set of the tries to copy that brought the record (MERGE_TRIES). 0 means
	 * that the record is finished. */
	uint32_t sources : MERGE_TRIES + 1;
	/* The record is part of the digest of its leaf (digest.c). */
	uint32_t digested : 1;
	/* When the lock was acquired, as far as it is known here: the low 32 bits of units of
	 * CLOCK_BOOTTIME (record_age), of which since_high has 8 more. It is only shown. */
	uint32_t since_low;
	/* The sizes of these parts in bytes, in bits that are enough for their limits. That of the
	 * terms is in words of 8 bytes (record_terms_size), and is 0 if the terms have nothing but
	 * `of` and a binding. */
	uint32_t value_size : 21, terms_words : 5;
	/* There is room for a ballot behind the value; and that ballot is the highest one that this
	 * master has noted for the record, which is above record_wrote (record_prepared). */
	bool ballot_room : 1;
	bool prepared : 1;
	/* A break forbids any extension. */
	bool barred : 1;
	/* In a merge: not all sources had the same permit numbers. In the verdict of a quorum read:
	 * fewer than q masters have the greatest order, which is in `noted`. */
	bool uneven : 1;
	/* In a report or an explanation that a coordinator keeps: the value was left out. */
	bool value_left_out : 1;
	/* A source had the record bound to no node. So it does not end with a node that had bound
	 * it here before, until that node says again that it is bound. */
	bool freed : 1;
	uint32_t owner_size : 9, label_size : 9, identity_size : 8;
	/* The record came with a commit, so its value counts, whatever ballot the commit brought
	 * (section 2, Update). */
	bool vouched : 1;
	/* The holder is gone, and only the lock delay runs. */
	bool closed : 1;
	/* The record was made by a commit or a repair that the rules let through, and not by a
	 * merge; and a commit has made it, or was accepted for it (grants/). */
	bool by_rules : 1, by_commit : 1;
	/* There is room for terms.binding behind all else (record_binding). */
	bool bindable : 1;
	/* terms.of; and the number of who drew the ballot of `wrote_clock`. */
	uint16_t of, origin;
	/* core->tick when something was last accepted for the record. */
	uint16_t accepted;
	/* The highest 8 bits that go with since_low. */
	uint8_t since_high;
	/* The terms (with struct lapsing and struct older of a semaphore), owner, identity, label
	 * and value, and room for a ballot and a binding, one behind the other. */
	uint8_t bytes[];
};
_Static_assert(offsetof(struct record, bytes) <= 95, "one for each lease");
_Static_assert(VALUE_MAX_HARD < 1 << 21 && OWNER_MAX < 1 << 9 && LABEL_MAX < 1 << 9 &&
	IDENTITY_MAX < 1 << 8, "the bits are enough");

/* Returns how many bytes of terms a record has. */
static inline size_t record_terms_size(const struct record *r) {
	return 8 * (size_t)r->terms_words;
}

/* Returns the lock terms of a record but its binding, put together from its fields and bytes. */
static inline struct terms record_plain_terms(const struct record *r) {
	struct terms t = { .of = MODE_EXCLUSIVE };
	if (r->terms_words > 0) {
		memcpy(&t, r->bytes, sizeof t);
	}
	t.of = r->of;
	return t;
}

/* Returns the permit numbers of a semaphore's record; of any other record, none. */
static inline struct permits record_set(const struct record *r) {
	struct permits set = { { 0, 0 } };
	if (r->terms_words > 0) {
		memcpy(&set, r->bytes + offsetof(struct terms, set), sizeof set);
	}
	return set;
}

/* Returns the lock delay of a record, in nanoseconds. */
static inline span_ns record_delay(const struct record *r) {
	span_ns delay = 0;
	if (r->terms_words > 0) {
		memcpy(&delay, r->bytes + offsetof(struct terms, delay), sizeof delay);
	}
	return delay;
}

/* Tells whether the record's lease is over, and only its lock delay runs. */
static inline bool record_closing(const struct record *r, struct instant now) {
	return record_delay(r) > 0 && instant_expired(now, instant_add(r->end, -record_delay(r)));
}

/* Tells whether nobody holds the record, which keeps a key closed after a release (section 10,
 * Closing). It alone has a value that nobody has written. */
static inline bool record_keeps_closed(const struct record *r) {
	return r->barred && r->wrote_clock == 0;
}

/* record.since_low and since_high count units of 2^16 ns, which are 66 us. They go round once in
 * 2.2 years, and no record seems to be older than that. */
#define SINCE_UNIT_BITS 16
#define SINCE_BITS 40

/* Returns the time since the lock was acquired, in nanoseconds, rounded up by two units at most. */
static inline span_ns record_age(const struct record *r, struct instant now) {
	const uint64_t since = (uint64_t)r->since_high << 32 | r->since_low,
		units = (((uint64_t)now.boot >> SINCE_UNIT_BITS) - since) &
		((UINT64_C(1) << SINCE_BITS) - 1);
	return (span_ns)(units > 0 ? units + 1 : 0) << SINCE_UNIT_BITS;
}

/* A promise is an exclusive, short lease against other promises. */
struct promise {
	/* The key's next promise. */
	struct promise *next;
	/* The promise's link in peer.promises of its coordinator: promises end with the link to
	 * that node. */
	struct list by_peer;
	/* The key that is promised. */
	struct key *key;
	/* The acquisition that the key is promised to. */
	struct id128 lock_id;
	/* The attempt that asked last; and this master's clock when it first promised the
	 * lock_id. */
	uint64_t attempt, noted;
	/* The permit numbers that records have got here since then, but before the coordinator was
	 * last told what is noted; and the clock of that moment, which is noted for these. */
	struct permits again;
	uint64_t noted_again;
	/* The permit numbers that records have got here since that moment. */
	struct permits touched;
	/* The highest ballot of a first value that was named with the promise (lacked.c). */
	struct ballot first;
	/* When the promise ends. */
	struct instant end;
	/* The peer index of the coordinator. */
	uint32_t peer;
	/* The request has a turn. Permits: this master was asked as the key's home, and has
	 * reserved permit numbers for the request; and the request's coordinator wants to be told
	 * again when a record of the key ends. And this master has refused a commit of that
	 * coordinator for the lock_id, which others may have accepted. */
	bool turn, reserves, tell, committed;
	/* The request's ticket, as the request named it. */
	struct ticket ticket;
	/* The lock terms that the request wants. Permits: the set has the numbers that are reserved
	 * for it, which are free here, and which no other promise of the key has. */
	struct terms terms;
};

/* The place of a queue entry, or of a parked request, in the order of serving (section 10,
 * Order). */
struct place {
	/* A request with a greater priority is served first; of those with the same one, that with
	 * the earlier ticket. */
	int32_t priority;
	struct ticket ticket;
	/* The peer index of the node that drew the ticket. */
	uint32_t peer;
};

#include "queued.h"

/* The digests that masters compare are of leaves, which are in groups (section 7, Anti-entropy). */
enum { DIGEST_GROUPS = 128, DIGEST_GROUP = 128, DIGEST_LEAVES = DIGEST_GROUPS * DIGEST_GROUP };
struct leaf {
	/* The exclusive or of what the held records of the leaf add (digest.c). */
	uint64_t digest;
	/* The keys of the leaf, without an order: how many there are; and pieces of LEAF_PIECE
	 * elements, the low 32 bits of the hash of each name, with room for so many pieces. An
	 * element needs a quarter of what two links would take. */
	uint32_t count, room;
	uint32_t **pieces;
};
enum { LEAF_PIECE = 16 };

struct table {
	/* struct key, by its name. */
	struct map keys;
	/* How many bits of record.sources have been handed out for the records of this table. */
	uint8_t tries;
	/* No record here that others have told of ends later. */
	struct instant latest;
	/* The exclusive or of the digests of the leaves of each group. */
	uint64_t group_digests[DIGEST_GROUPS];
	/* DIGEST_GROUP leaves each. The array of a group is made with its first key. */
	struct leaf *leaves[DIGEST_GROUPS];
	/* How many held records the table has; and how many of each mode, and of each group of
	 * keys. */
	uint64_t held_count, held_modes[FIGURE_MODES], held_groups[KEY_GROUPS_MAX];
	/* How many keys are contested. */
	uint64_t contested_count;
};

enum staging_use {
	/* The staging table is empty, and whoever wants to build in it takes it. */
	STAGING_FREE,
	/* It is built from snapshots. Whoever took it ends that by a swap, or by dropping what was
	 * built. */
	STAGING_BUILDING,
	/* It is emptied in pieces, so that nobody waits for it. */
	STAGING_EMPTYING
};

struct key {
	/* The key's element in table.keys; node.own is its index in its leaf. */
	struct map_node node;
	/* Fires at or before the first end of a record or of a promise. */
	struct timer timer;
	/* The held records, linked by record.next. */
	struct record *held;
	/* What is on few keys, or for a short time: key_promises and key_more. */
	uintptr_t rare;
	/* The size of the name in bytes; and the index of the group of keys that the key belongs
	 * to, or KEY_GROUPS_MAX. */
	uint16_t size : 10, group : 6;
	/* The bytes of the name. */
	uint8_t name[];
};
_Static_assert(offsetof(struct key, name) <= 58, "one for each lease");
_Static_assert(KEY_MAX < 1 << 10 && KEY_GROUPS_MAX < 1 << 6, "the bits are enough");

/* `rare` is the key's first promise or, with this bit, its struct key_more, which then keeps the
 * first promise. So a key takes one word for both. */
#define KEY_HAS_MORE ((uintptr_t)1)

/* Returns what few keys have; NULL: this one has none of it. */
static inline struct key_more *key_more(const struct key *key) {
	return key->rare & KEY_HAS_MORE ? (struct key_more *)(key->rare & ~KEY_HAS_MORE) : NULL;
}

/* Returns the first promise of the key; promise.next leads on. NULL: it has none. Promises are to
 * lock_ids that have no record here and that no record excludes. Several of them do not exclude one
 * another. */
static inline struct promise *key_promises(const struct key *key) {
	const struct key_more *more = key_more(key);
	return more ? more->promises : (struct promise *)key->rare;
}

/* A key keeps the number of its leaf, and the index in core->store.tables of the table that has it,
 * in what its timer leaves to its owner. */
_Static_assert(DIGEST_LEAVES == 1 << 14, "the other bits are the table's");
static inline uint16_t key_leaf(const struct key *key) {
	return key->timer.wheel.own & (DIGEST_LEAVES - 1);
}
static inline uint32_t key_table_index(const struct key *key) {
	return key->timer.wheel.own / DIGEST_LEAVES;
}

#define PREPARING_MAX 32
/* An update whose ballot was noted here and whose write has not come yet (preparing.c). */
struct preparing {
	/* The record that is updated, and the ballot of the update. */
	struct id128 lock_id;
	struct ballot ballot;
	/* The number of the operation at its coordinator; 0 means that the place is free. */
	uint64_t op;
	/* The peer index of the coordinator. */
	uint32_t peer;
	/* Until then other updates are refused. */
	struct instant until;
};

#include "peer_state.h"

/* Defaults of struct core_limits. */
enum table_default {
	TOMBSTONES_DEFAULT = 1 << 14, CATCHING_UP_DEFAULT = 1 << 14, ROUNDS_DEFAULT = 1 << 16
};

#include "room_state.h"

struct core {
	/* Takes memory from `outer`, and counts and limits it. */
	struct allocator alloc;
	/* The allocator of core_options. */
	struct allocator outer;
	/* Bytes that are taken. */
	uint64_t memory_used;
	/* The secret key of all hash tables. */
	struct siphash_key hash_key;
	/* For random pauses and names. */
	struct prng prng;
	/* The limits of core_options, with the defaults filled in. */
	struct core_limits limits;

	/* The effects of the step under way. */
	struct core_out *out;
	/* The rows of all operations, by enum core_op (coordinator/operation.h). */
	const struct operation *const *operations;
	/* Says who hears of what happens in a lower room (node/events.c). */
	const struct observers *observers;
	/* The time of the step under way. */
	struct instant now;
	/* Counts spans of time that are longer than a round may last, so that a record needs only
	 * two bytes to tell that an acceptance is old. */
	uint16_t tick;
	/* The time of the last step at which all links whose loss this node has not heard of yet
	 * were still in order. A link counts as lost from then on, because the process may stand
	 * still between closing a link and noting the time. */
	struct instant links_at;

	/* The name of this node. */
	char name[NODE_NAME_MAX + 1];
	/* The address at which it is reached, as its options say. It may be empty. */
	char address[ADDRESS_MAX + 1];
	/* The initial masters that its file names; an empty name ends the list. */
	char named[MASTERS_MAX][NODE_NAME_MAX + 1];

	/* The configuration of the present epoch, or the one that the cluster is to be born
	 * with. */
	struct config config;
	/* The hash of `config`; 0 before birth. */
	uint64_t config_hash;
	/* The peer index of this node; how many peers the table has; n, the number of masters; and
	 * q, the quorum. */
	uint32_t self, peer_count, masters, quorum;
	/* The greatest number of masters that this node has known. */
	uint32_t masters_most;
	/* What this node is: it votes, follows, recovers, and so on. */
	enum core_state state;
	/* The Lamport clock over tokens (section 1). */
	uint64_t clock;
	/* The state that is wanted on disk. It may not be there yet. */
	struct durable durable;

	/* A configuration is being adopted. It takes effect when it is on disk. */
	bool adopting;
	/* This node voted in epoch - 1 when it adopted this epoch, and has kept its memory since.
	 * So it is a source that remembers (section 6). */
	bool remembers;
	/* All masters of this epoch are known to have voted in it. */
	bool complete;
	/* Other masters have another configuration under this epoch's number, so this node does not
	 * vote. */
	bool conflict;
	/* When this node adopted its epoch; and when, as a source, it need not remember any
	 * more. */
	struct instant adopted_at, forget_at;
	/* The longest max_lease, in nanoseconds, of the configurations that this node has been in
	 * since its start. */
	span_ns lease_allowed;

	/* How many snapshots are being sent to other nodes. */
	uint32_t snapshots;
	/* Somebody copies the live table, or this node builds another one: who changes a record
	 * tells those who copy (recovery_copies_changed). */
	bool copied;
	/* What this node, as a replica, receives from the master that it follows. */
	struct follow follow;
	/* The table of peers, by peer index. */
	struct peer peers[NODES_MAX];

	/* What one room alone keeps. It is touched in that room and in node/, which sets up all of
	 * them; others call the functions of the room (scripts/style checks that). The three rooms
	 * of the coordinator share one state: */
	struct engine_state engine;
	struct peering_state peering;
	struct store_state store;
	struct changes_state changes;
	struct master_state master;
	struct coordinator_state coordinator;
	struct replication_state replication;
	struct repair_state repair;
	struct node_state node;
	/* The same, of rooms that nobody asks in the way of a request. Their headers have these
	 * structs: */
	struct recovery_state *recovery;
	struct membership_state *membership;

	/* The counters, by enum core_count. */
	uint64_t counts[COUNT_TOTAL];
};

/* Counts that `name` has happened. */
#define COUNT(core, name) ((core)->counts[COUNT_##name]++)

/* Hashes two words by the folded multiplication of wyhash. It is fast, because every message looks
 * up a lock_id more than once. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* lock_ids look random, but clients choose them. The hash is keyed, so that nobody can choose many
 * of one chain. */
static inline uint64_t hash_lock_id(const struct core *core, struct id128 lock_id) {
	uint64_t w[2];
	memcpy(w, lock_id.b, sizeof w);
	return hash_fold(hash_fold(w[0] ^ core->hash_key.k0, w[1] ^ core->hash_key.k1) ^
		core->hash_key.k1, UINT64_C(0x9e3779b97f4a7c15));
}

/* Hashes the name of a key for the tables. */
static inline uint64_t table_hash(const struct core *core, struct slice name) {
	return siphash_short(core->hash_key, name.data, name.size);
}

/* Tells whether this node is or was part of a cluster: it has written epoch 1 or a later one. */
static inline bool core_born(const struct core *core) {
	return core->config_hash != 0;
}

static inline bool core_votes(const struct core *core) {
	return core->state == CORE_VOTING;
}

#endif
