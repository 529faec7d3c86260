/* transfers.h: what a node has taken from others to vote with (sections 4 and 6), and what it has
 * given to others, as far as messages show it. */
#ifndef PAWL_REFINE_TRANSFERS_H
#define PAWL_REFINE_TRANSFERS_H

#include "machine.h"

/* One lock_id of a copy. */
struct t_lock {
	struct id128 lock_id;
	struct m_copy copy;
	/* The source remembers that it was released. */
	bool released;
	/* It was released at the source while the snapshot was under way. */
	bool due;
	/* It has permit numbers. */
	bool numbers;
	/* The source still has its record at the end of the snapshot. */
	bool there;
	/* The key, by its hash (m_hash). */
	uint64_t key;
};

/* One snapshot: by this round one node asked another for it. */
struct t_source {
	uint64_t round, other, epoch;
	bool handover;
	/* It lies, so whatever a node makes of its copies is right. */
	bool lies;
	/* It was asked at that time, and voted then as far as the asker knew. */
	struct instant asked;
	bool voted;
	/* The end has come: what it says. */
	bool done;
	/* The one that gives it has known its asker as one that may have it. */
	bool allowed;
	/* It had come when the node began to vote. */
	bool counts;
	uint32_t flags;
	uint64_t clock;
	span_ns lease;
	struct t_lock *locks;
	size_t count, room;
};

enum { T_SOURCES = 32 };
struct transfers {
	/* The next one takes the place of the oldest. */
	struct t_source sources[T_SOURCES];
	uint32_t next;
	/* How many sources were enough for the present vote. */
	uint32_t needed;
};

void transfers_done(struct transfers *t);
struct t_source *transfers_begin(struct transfers *t, uint64_t round, uint64_t other);
/* The same. The last snapshot of that other node is over. */
struct t_source *transfers_begin_anew(struct transfers *t, uint64_t round, uint64_t other);
struct t_source *transfers_find(struct transfers *t, uint64_t round, uint64_t other);
/* A message of a snapshot has come, or leaves. */
void transfers_message(struct t_source *s, const struct message *m, struct instant now);
struct t_lock *transfers_lock(const struct t_source *s, struct id128 lock_id);
/* The node has released the lock_id: the snapshots that it gives have to say so. */
void transfers_released(struct transfers *t, struct id128 lock_id);
/* The node has dropped what it had merged of the lock_id by then. */
void transfers_dropped(struct transfers *t, struct id128 lock_id);
/* Judges the end of a snapshot that was given: it holds every release up to its end. */
const char *transfers_all_released(const struct t_source *s);
/* Judges whether it has told of the records that have ended since it sent them. */
const char *transfers_all_lost(const struct t_source *s, struct instant now);
/* Judges whether a lock of the key is missing in a table that was merged. */
const char *transfers_kept(const struct transfers *t, const struct t_lock *l, bool there,
	struct instant now);
/* What is known of a source that ends a snapshot. */
struct t_end {
	/* For a handover of that epoch. */
	bool handover;
	uint64_t asked_epoch;
	/* It voted when it adopted its epoch, and has kept its memory since. */
	bool remembers;
	/* The reservation with which it started, and the longest lease that it voted under. */
	uint64_t reservation;
	span_ns longest;
};
const char *transfers_end_right(const struct t_end *e, const struct m_node *node,
	const struct message *m);
/* Counts the sources that suffice for rejoining, of these masters, since the epoch `run`; `from` is
 * the earliest time at which they may have been asked. */
uint32_t transfers_rejoined(const struct transfers *t, const struct config *config, uint64_t run,
	struct instant from);
/* The node begins to vote with this clock, and with what has come to its end by then. So many of
 * these sources are enough for it, so it may have left out the others. */
void transfers_vote(struct transfers *t, uint64_t run, uint32_t needed, uint64_t clock);
/* A record that was merged. */
struct t_merged {
	const struct m_record *record;
	/* Its key, by its hash. */
	uint64_t key;
	/* It has just been finished, and the node itself is no source. */
	bool fresh;
	/* The node has voted before with the table that it has. */
	bool kept;
	/* The node has no tombstone of its lock_id, and no place for more than it has. */
	bool forgotten;
};
/* Judges it from the sources of these epochs. */
const char *transfers_judge(const struct transfers *t, const struct t_merged *merged,
	struct instant now);

#endif
