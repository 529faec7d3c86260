/* released.h: what has ended of late and is not to come back (released.c). */
#ifndef PAWL_CLUSTER_RELEASED_H
#define PAWL_CLUSTER_RELEASED_H

#include "map.h"
#include "message.h"

struct core;

struct released {
	struct map_node node;
	struct id128 lock_id;
	/* By a request that failed (section 11): a record up to this token was dropped; 0: none was. */
	uint64_t given_back;
	/* The name under which the lock_id was given back last; 0: it was not. */
	uint64_t name;
	uint32_t bond;       /* it ended with this connection of its holder (section 2): up to this bond; 0: not */
	bool released;       /* R3 */
	bool barred;         /* by a break */
	bool used;
};

#define EXTENDED_MAX 64

struct extended { /* a record that rested on `name` alone was lengthened by an extension that may be taken back (section 11) */
	uint64_t name, by;
};

#define LACKED_PLACES (NODES_MAX < 8 ? 8 : 1024)

void lacked_since(struct core *core, struct id128 lock_id, struct instant at);
uint64_t lacked_us(const struct core *core, struct id128 lock_id); /* what is not here has not been here for so long, at least (lacked.c) */
uint32_t lacked_place(const struct core *core, struct id128 lock_id); /* of its entries in `lacked` and `lost` */
/* How long ago that was, in microseconds, rounded down. What was before this master voted it does not know. */
uint64_t lacked_us_since(const struct core *core, struct instant last);

int released_init(struct core *core);
void released_done(struct core *core);
void released_add(struct core *core, struct id128 lock_id, bool barred_only);
bool released_has(const struct core *core, struct id128 lock_id);
void released_end_bond(struct core *core, struct id128 lock_id, uint32_t bond);
bool released_ended(const struct core *core, struct id128 lock_id, uint32_t bond); /* what has this bond, and so ended with a connection */
uint64_t name_draw(struct core *core);
uint64_t name_next(struct core *core, uint64_t name); /* "given back" of this one says it of `name` as well */
uint64_t name_draw_extension(struct core *core);
bool name_of_extension(uint64_t name);
uint64_t name_extended(struct core *core, uint64_t name, uint64_t by);    /* the new name of a record that had `name` */
uint64_t name_before(const struct core *core, uint64_t by);               /* what it had before that extension; 0: not known */
void given_back_add(struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
/* A copy of the record with this token, or one that rests on this name alone (0: it has none), was given back. */
bool given_back_has(const struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
bool given_back_named(const struct core *core, struct id128 lock_id, uint64_t name); /* only the latter */
bool master_give_back(struct core *core, struct slice name, struct id128 lock_id, uint64_t attempt);
struct released *released_find(const struct core *core, struct id128 lock_id); /* NULL: nothing is remembered of it */
void released_describe(const struct released *r, struct slice key, struct message *m); /* as a SNAPSHOT_RELEASED */
/* The one that stood i places after the oldest when the ring's next place was `next`: who is told of all is told of the oldest first. */
const struct released *released_at(const struct core *core, uint32_t next, uint32_t i);
void released_take(struct core *core, const struct message *m); /* what such a message says */

#endif
