/* audit.h: looks for double grants in what the masters tell of their tables (docs/guarantees.md,
 * The audit of double grants). It is pure: it knows messages of feeds and the time, and no node.
 *
 * It judges each master by that master's own stream alone, because streams of different masters
 * come with different delays. What it reports is a breach of rules R1 or R2 at one master, between
 * two locks each of which a quorum of the masters has accepted. */
#ifndef PAWL_CLUSTER_AUDIT_H
#define PAWL_CLUSTER_AUDIT_H

#include "core.h"

/* The most keys that are remembered: the one that was granted least lately is forgotten first. A
 * key takes about 1 KiB with three masters, and 2 KiB with nine. */
#define AUDIT_KEYS_MAX 16384u
/* How many acquisitions of a key are remembered. */
#define AUDIT_LOCKS_MAX 4u
/* The bytes of an owner that are remembered. */
#define AUDIT_OWNER_MAX 64u

enum audit_why {
	/* A master had both locks at once. */
	AUDIT_OVERLAP,
	/* The earlier lease ended at a master before its time, and the later lock was accepted
	 * there within that time. */
	AUDIT_EARLY,
	/* The later lock does not have the greater token. */
	AUDIT_TOKEN
};
/* Returns what a reason means, in words, as static text. */
const char *audit_why_text(enum audit_why why);

/* A breach. The slices are borrowed for the call. */
struct audit_breach {
	enum audit_why why;
	/* The peer index of the master at which it was seen. */
	uint32_t master;
	struct slice key;
	/* The two locks, the earlier first. */
	struct core_note_holder holders[2];
};

struct audit_options {
	/* Borrowed. */
	const struct allocator *alloc;
	struct siphash_key hash_key;
	/* Called for each breach, once for each pair of locks. */
	void (*breach)(void *ctx, const struct audit_breach *breach);
	void *ctx;
};

struct audit;
/* Returns NULL if there is no memory. The caller frees it with audit_free, which accepts NULL. */
struct audit *audit_new(const struct audit_options *options);
void audit_free(struct audit *a);

/* A new epoch begins: forgets everything. A master is named by its peer index in this epoch, which
 * is below `masters`. */
void audit_epoch(struct audit *a, uint32_t masters, uint32_t quorum, uint32_t drift_ppm);

/* The stream of this master begins, or goes on, at this place of its log. `snapshot`: its whole
 * table comes first. */
void audit_begins(struct audit *a, uint32_t master, uint64_t log, uint64_t number, bool snapshot);
/* Something about a key has come with a feed: FEED_RECORD, FEED_GONE or FEED_WATCH_EVENT. `sent` is
 * a moment before which the master has not sent it. */
void audit_entry(struct audit *a, uint32_t master, const struct message *m, struct instant sent,
	struct instant now);
/* A batch has ended (FEED_BATCH). `heard`: everything has come that happened at the master before
 * it heard what this node said at that moment; NULL: that is not known. `whole`: the snapshot is
 * complete. */
void audit_batch(struct audit *a, uint32_t master, bool whole, const struct instant *heard);

/* Returns how many keys are remembered, and the bytes that they take. */
size_t audit_keys(const struct audit *a);

#endif
