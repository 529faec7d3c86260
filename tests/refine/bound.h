/* bound.h: locks that end with a node (section 2, Release on disconnect): what the node may still
 * trust, and what a master has bound to which start of a node. Locks with permit numbers are left
 * out, and those whose lease was shortened. */
#ifndef PAWL_REFINE_BOUND_H
#define PAWL_REFINE_BOUND_H

#include "machine.h"

/* ---- the node ---- */

/* What the node knows of one master. */
struct b_master {
	uint64_t id;
	/* It was told; it has said that it has the record; it has said so or the opposite in this
	 * epoch. */
	bool told, has, heard;
	/* It is linked. If not: since when, and whether its own side has closed the link. */
	bool linked, away, closed;
	struct instant since;
	/* It had the record, and says that it has it no more; it says that it has none. */
	bool dropped, absent;
	struct instant lacks_from, lacks_to;
	/* Until when it has it. */
	struct instant until;
	/* So many questions are open, the first of them since then. */
	uint32_t open;
	struct instant asked;
};

/* A lock that is bound to the node. */
struct b_lock {
	struct id128 lock_id;
	uint8_t key[64];
	size_t key_size;
	span_ns grace;
	/* The number under which its masters are asked. */
	uint64_t round;
	uint32_t masters, quorum, self;
	struct b_master master[MASTERS_MAX];
	/* A master of the previous epoch may drop the record from then on. */
	struct instant before;
	/* When the node itself has the record no more. */
	struct instant own_end;
	/* Its rules are not followed; and the node has it no more, and has not said why. */
	bool left_out, over;
	/* It was lost when the node adopted another epoch. */
	bool was_lost;
};

enum { B_LOCKS = 64 };
struct b_node {
	struct b_lock locks[B_LOCKS];
	uint32_t count;
};

struct b_lock *bound_find(struct b_node *n, struct id128 lock_id);
/* The program binds the lock. `ids`: the masters. */
void bound_begins(struct b_node *n, struct slice key, struct id128 lock_id, span_ns grace);
void bound_masters(struct b_lock *l, const struct m_node *node, const uint64_t *ids);
void bound_ends(struct b_node *n, struct id128 lock_id);
/* The node asks a master, and hears its answer. */
void bound_asks(struct b_lock *l, uint32_t master, struct instant now);
void bound_hears(struct b_lock *l, uint32_t master, const struct message *m,
	const struct m_node *node);
/* A master has accepted an extension that was sent then. */
void bound_extended(struct b_lock *l, uint32_t master, struct instant sent, uint64_t lease_us,
	const struct m_node *node);
/* A link is there, or not any more since then; `closed`: the master's side has closed it. */
void bound_link(struct b_lock *l, uint32_t master, bool linked, struct instant since, bool closed);
/* Another epoch, perhaps with other masters. */
void bound_epoch(struct b_lock *l, const struct m_node *node, const uint64_t *ids);
/* What has happened in a step may let the lock go on for good in this epoch. */
void bound_settles(struct b_lock *l, const struct m_node *node);
/* Judges until when the node trusts the lock. */
const char *bound_trusted(const struct b_lock *l, const struct m_node *node, struct instant until);
/* Judges that the node says that the lock is lost. */
const char *bound_lost(const struct b_lock *l, const struct m_node *node);

/* ---- the master ---- */

/* One start of a node. */
struct b_holder {
	uint64_t id, boot;
	bool used, closed;
	struct instant since;
	/* It counts the links and the epochs. */
	uint32_t told;
};

struct b_record {
	struct id128 lock_id;
	uint32_t holder, told;
	span_ns grace;
};

enum { B_HOLDERS = 32, B_RECORDS = 256 };
struct b_table {
	struct b_holder holders[B_HOLDERS];
	struct b_record records[B_RECORDS];
	uint32_t count;
	/* There was no place for one. */
	bool more;
};

/* The master has answered that the lock is bound to this start of a node. */
void bound_makes(struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot,
	span_ns grace);
/* The lock is not bound any more. */
void bound_unmakes(struct b_table *t, struct id128 lock_id);
/* The master has accepted a commit or an extension through this start of a node. */
void bound_accepts(struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot);
/* A link to this start of a node is up, or was closed by its side. */
void bound_up(struct b_table *t, uint64_t id, uint64_t boot, struct instant now);
void bound_closed(struct b_table *t, uint64_t id, uint64_t boot, struct instant now);
/* Another epoch; `stays`: this node was a master in the one before, too. */
void bound_next(struct b_table *t, bool stays);
/* Tells whether the lock may be bound; to this start of a node, unless `id` is 0. */
bool bound_is(const struct b_table *t, struct id128 lock_id, uint64_t id, uint64_t boot);
/* Judges whether so many records may end now without a message that ends them. */
const char *bound_may_end(const struct b_table *t, uint32_t ended, struct instant now);

#endif
