/* grants.h: looks for double grants in what the masters tell of their tables (docs/guarantees.md,
 * The audit of double grants). It is pure: it knows messages of feeds and the time, and no node.
 *
 * It judges each master by that master's own stream alone, because streams of different masters
 * come with different delays. What it reports is a breach of rules R1 or R2 at one master, between
 * two locks each of which a quorum of the masters has accepted. */
#ifndef PAWL_CLUSTER_GRANTS_H
#define PAWL_CLUSTER_GRANTS_H

#include "core.h"

/* The most keys that are remembered: the one that was granted least lately is forgotten first. A
 * key takes at most 2 KiB with three masters, and 4 KiB with nine, and mostly half of that. */
#define GRANTS_KEYS_MAX 16384u
/* How many acquisitions of a key are remembered. */
#define GRANTS_LOCKS_MAX 4u
/* The bytes of an owner that are remembered. */
#define GRANTS_OWNER_MAX 64u

enum grants_why {
	/* A master had both locks at once. */
	GRANTS_OVERLAP,
	/* The earlier lease ended at a master before its time, and the later lock was accepted
	 * there within that time. */
	GRANTS_EARLY,
	/* The later lock does not have the greater token. */
	GRANTS_TOKEN
};
/* Returns what a reason means, in words, as static text. */
const char *grants_why_text(enum grants_why why);

/* A breach. The slices are borrowed for the call. */
struct grants_breach {
	/* What is wrong. */
	enum grants_why why;
	/* The peer index of the master at which it was seen. */
	uint32_t master;
	/* The key of both locks. */
	struct slice key;
	/* The two locks, the earlier first. */
	struct core_note_holder holders[2];
};

struct grants_options {
	/* Borrowed. */
	const struct allocator *alloc;
	/* The key of its hash tables. */
	struct siphash_key hash_key;
	/* Called for each breach, once for each pair of locks. */
	void (*breach)(void *ctx, const struct grants_breach *breach);
	void *ctx;
};

struct grants;
/* Returns NULL if there is no memory. The caller frees it with grants_free, which accepts NULL. */
struct grants *grants_new(const struct grants_options *options);
void grants_free(struct grants *a);

/* A new epoch begins: forgets everything. A master is named by its peer index in this epoch, which
 * is below `masters`. */
void grants_epoch(struct grants *a, uint32_t masters, uint32_t quorum, uint32_t drift_ppm);

/* The stream of this master begins, or goes on, at this place of its log. `snapshot`: its whole
 * table comes first. */
void grants_begins(struct grants *a, uint32_t master, uint64_t log, uint64_t number, bool snapshot);
/* Something about a key has come with a feed: FEED_RECORD, FEED_GONE or FEED_WATCH_EVENT. `sent` is
 * a moment before which the master has not sent it. */
void grants_entry(struct grants *a, uint32_t master, const struct message *m, struct instant sent,
	struct instant now);
/* A batch has ended (FEED_BATCH). `heard`: everything has come that happened at the master before
 * it heard what this node said at that moment; NULL: that is not known. `whole`: the snapshot is
 * complete. */
void grants_batch(struct grants *a, uint32_t master, bool whole, const struct instant *heard);

/* Returns how many keys are remembered, and the bytes that they take. */
size_t grants_keys(const struct grants *a);

#endif
