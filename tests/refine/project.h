/* project.h: shows the state of a core as the abstract machine sees it, and changes nothing. */
#ifndef PAWL_REFINE_PROJECT_H
#define PAWL_REFINE_PROJECT_H

#include "core.h"
#include "machine.h"

/* What is past its end at `now` is left out. */
void project_node(const struct core *core, struct instant now, struct m_node *out);
void project_key(const struct core *core, struct slice name, struct instant now,
	struct m_key *out);
struct m_ended project_ended(const struct core *core, struct id128 lock_id);
/* Tells whether the ring of tombstones is full, so that each new one takes the place of another. */
bool project_tombstones_full(const struct core *core);
/* Shows all keys of the live table. */
void project_each(const struct core *core, struct instant now,
	void (*visit)(void *ctx, struct slice name, const struct m_key *key), void *ctx);
/* Returns the number that stands for the node at a peer index. */
uint64_t project_peer(const struct core *core, uint32_t peer);
/* Tells whether the peer is a master of the configuration; and whether its messages are of this
 * epoch and hash, and from a member or a former master. */
bool project_is_master(const struct core *core, uint32_t peer);
bool project_in_epoch(const struct core *core, uint32_t peer);
/* Tells whether the peer has said that it votes in this epoch. */
bool project_votes(const struct core *core, uint32_t peer);
/* Tells whether a node has bound the record to itself. */
bool project_bound(const struct core *core, struct id128 lock_id);
/* Fills in the numbers of the masters of the configuration, which may not be linked. */
void project_masters(const struct core *core, uint64_t ids[MASTERS_MAX]);
/* Tells whether the link of a peer is up; and the boot that it has said. */
bool project_linked(const struct core *core, uint32_t peer);
uint64_t project_boot(const struct core *core, uint32_t peer);
/* Counts the links that the node has given up itself. */
uint64_t project_links_reset(const struct core *core);
/* Counts the records that have ended with a node. */
uint64_t project_bindings_ended(const struct core *core);
const struct durable *project_durable(const struct core *core);

#endif
