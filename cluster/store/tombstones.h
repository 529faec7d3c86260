/* tombstones.h: what has ended lately and must not come back (tombstones.c). Part of store.h. */
#ifndef PAWL_CLUSTER_TOMBSTONES_H
#define PAWL_CLUSTER_TOMBSTONES_H

#include "engine.h"

/* What a master remembers of a lock_id that has ended. */
struct tombstone {
	/* The lock_id that has ended. */
	struct id128 lock_id;
	/* A record up to this token was rolled back by a request that failed (section 11); 0: none
	 * was. */
	uint64_t rolled_back;
	/* The name under which the lock_id was last rolled back; 0: it was not. */
	uint64_t name;
	/* The lock has ended with this connection of its holder, and so has whatever is bound to it
	 * or to an earlier one (section 2, Release on disconnect); 0: it has not. */
	uint32_t binding;
	/* The lock_id was released (R3). */
	bool released;
	/* A break forbids its extension. */
	bool barred;
	/* This place of the ring is in use. */
	bool used;
};

/* What a master remembers of a lock_id that it lacks (lacked.c). */
struct lacking {
	/* Stands for the lock_id, and is not 0. */
	uint64_t tag;
	/* When a record of it ended here last. */
	struct instant at;
	/* Of the lapsed: the highest ballot that was noted for it, and lost. */
	struct ballot noted;
};

enum { LACKS_A_PLACE = 4 };

/* The lock_ids that share a place. `lacks` has those that were noted last, the last one first. In
 * `rest` is the latest end, and the highest ballot, of all that have left. */
struct lacking_place {
	struct lacking lacks[LACKS_A_PLACE], rest;
};

/* Returns 0 or PAWL_ENOMEM. */
int tombstone_init(struct core *core);
void tombstone_done(struct core *core);
/* Remembers that the lock_id was released, or (barred_only) barred. */
void tombstone_add(struct core *core, struct id128 lock_id, bool barred_only);
/* Tells whether the lock_id was released (R3). */
bool tombstone_released(const struct core *core, struct id128 lock_id);
/* This connection of the holder was closed. What is bound to it, or to an earlier one, does not
 * come back. */
void tombstone_end_binding(struct core *core, struct id128 lock_id, uint32_t binding);
/* Tells whether what is bound to this connection has ended with a connection. */
bool tombstone_connection_ended(const struct core *core, struct id128 lock_id, uint32_t binding);
/* Draws a random name for what a request has accepted (section 11). */
uint64_t name_draw(struct core *core);
/* Returns the name for a try that follows one under `name`, of which nothing is believed. When
 * what rests on this name is rolled back, so is what rests on `name`. */
uint64_t name_next(struct core *core, uint64_t name);
/* Draws a name for an extension. No request has such a name. */
uint64_t name_draw_extension(struct core *core);
bool name_of_extension(uint64_t name);
/* Returns what a record rests on that rested on `name` alone and is lengthened under the name `by`;
 * 0: on several. */
uint64_t name_extended(struct core *core, uint64_t name, uint64_t by);
/* A record was made under the name `by`. If an extension has that name, there was nothing before
 * it. */
void name_made(struct core *core, uint64_t by);
/* Returns what the record rested on before that extension: `by` itself, if the extension has made
 * the record; 0: it is not known. */
uint64_t name_before(const struct core *core, uint64_t by);
/* A request that failed has rolled back the lock_id: a record up to this token, and what rests on
 * this name. */
void rolled_back_add(struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
/* Tells whether a copy of the record with this token was rolled back, or one that rests on this
 * name alone; 0 stands for no name. */
bool rolled_back_has(const struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
/* Tells whether what rests on this name alone was rolled back. */
bool rolled_back_named(const struct core *core, struct id128 lock_id, uint64_t name);
/* Returns the tombstone of the lock_id, whose hash_lock_id is given; NULL: nothing is remembered of
 * it. */
struct tombstone *tombstone_find_hashed(const struct core *core, struct id128 lock_id,
	uint64_t hash);
/* Does the same. Most lock_ids have no tombstone, and at least half of the slots are empty. */
static inline struct tombstone *tombstone_find(const struct core *core, struct id128 lock_id) {
	const uint64_t hash = hash_lock_id(core, lock_id);
	return core->store.tombstones_index[hash & (core->store.tombstones_slots - 1)] == 0 ? NULL
		: tombstone_find_hashed(core, lock_id, hash);
}
/* Describes the tombstone as a SNAPSHOT_RELEASED. */
void tombstone_describe(const struct tombstone *r, struct slice key, struct message *m);
/* Returns the tombstone i places after the oldest one, as it was when the ring's next place was
 * `next`. Those who tell all of them begin with the oldest. */
const struct tombstone *tombstone_at(const struct core *core, uint32_t next, uint32_t i);
/* Remembers what a SNAPSHOT_RELEASED says. */
void tombstone_take(struct core *core, const struct message *m);

/* Returns how many places the ring of tombstones has, and the place that is filled next. */
static inline uint32_t tombstone_places(const struct core *core) {
	return core->store.tombstones_size;
}
static inline uint32_t tombstone_next(const struct core *core) {
	return core->store.tombstones_next;
}

#endif
