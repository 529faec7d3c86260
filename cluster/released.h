/* released.h: what has ended of late and is not to come back (released.c). */
#ifndef PAWL_CLUSTER_RELEASED_H
#define PAWL_CLUSTER_RELEASED_H

#include "map.h"
#include "message.h"

struct core;

struct released {
	struct map_node node;
	struct id128 lock_id;
	uint64_t given_back; /* by a request that failed (section 11): up to this token; 0: not */
	uint32_t bond;       /* it ended with this connection of its holder (section 2): up to this bond; 0: not */
	bool released;       /* R3 */
	bool barred;         /* by a break */
	bool used;
};

int released_init(struct core *core);
void released_done(struct core *core);
void released_add(struct core *core, struct id128 lock_id, bool barred_only);
bool released_has(const struct core *core, struct id128 lock_id);
void released_end_bond(struct core *core, struct id128 lock_id, uint32_t bond);
bool released_ended(const struct core *core, struct id128 lock_id, uint32_t bond); /* what has this bond, and so ended with a connection */
void given_back_add(struct core *core, struct id128 lock_id, uint64_t token);
bool given_back_has(const struct core *core, struct id128 lock_id, uint64_t token); /* what has this token, or an older one */
struct released *released_find(const struct core *core, struct id128 lock_id); /* NULL: nothing is remembered of it */
void released_describe(const struct released *r, struct slice key, struct message *m); /* as a SNAPSHOT_RELEASED */
void released_take(struct core *core, const struct message *m); /* what such a message says */

#endif
