/* sync.h: what the files of repair/ share (sync.c, sync_list.c, sync_evaluate.c). */
#ifndef PAWL_CLUSTER_SYNC_H
#define PAWL_CLUSTER_SYNC_H

#include "buffer.h"
#include "load.h"
#include "repair.h"

/* Limits the groups whose leaves are compared in one exchange. */
#define SYNC_GROUPS_MAX 16
/* Limits the leaves that are pulled from one master in one exchange. */
#define SYNC_LEAVES_MAX 256
/* Limits the records that masters listed and that are kept until they are evaluated. */
#define SYNC_SEEN_MAX 4096
#define SYNC_NAME_BYTES_MAX ((size_t)1 << 20)
/* Limits the records that one master is asked for in one exchange. */
#define SYNC_FETCHES_MAX 256
#define SYNC_SCRATCH (SYNC_GROUPS_MAX * (1 + 8 * DIGEST_GROUP))

/* Says in the `number` of a SYNC_KEYS message how the list goes on: it is whole, another message
 * follows, or the master has more than it may list. */
enum sync_list_end { SYNC_LIST_WHOLE, SYNC_LIST_GOES_ON, SYNC_LIST_CUT };

/* A record as another master listed it. */
struct sync_seen {
	/* The lock_id of the record. */
	struct id128 lock_id;
	/* Its fencing token. */
	uint64_t token;
	/* The ballot of its value. */
	struct ballot wrote;
	/* Of its terms: the mode; the session binding; and the permit numbers. */
	uint16_t of;
	uint32_t binding;
	struct permits set;
	/* Its key, whose bytes are in sync.names. */
	struct slice key;
	/* The peer index of that master. */
	uint8_t from;
	/* A break forbids its extension. */
	bool barred;
};

/* What is pulled from one master in this exchange. */
struct sync_pull {
	/* The numbers of the leaves that are pulled. */
	uint16_t leaves[SYNC_LEAVES_MAX];
	/* How many leaves are to be pulled, how many of these were asked for, and how many of the
	 * lists have arrived. */
	uint32_t count, asked, listed;
	/* How many records it was asked for. */
	uint32_t fetches;
	/* The master had more than it listed, so what is missing from its lists may still be
	 * there. */
	bool cut;
};

/* How far the judgement of an exchange has come. Of each master in turn (`from`) the leaves that it
 * listed are judged, and of a leaf the own keys, from the last one to the first: of the leaf at
 * `leaf` all but the first `keys` are done. Then the reports follow, of which the first `reports`
 * are done. */
struct sync_judging {
	/* The judging is under way. */
	bool active;
	/* The place at which it goes on: see above. */
	uint32_t from, leaf, keys, reports;
};

struct sync {
	/* The epoch in which the exchange began. */
	uint64_t epoch;
	/* Bit sets: leaves that differed when they were last compared; leaves that differ in this
	 * exchange; and groups that were compared in this exchange. */
	uint64_t suspects[DIGEST_LEAVES / 64];
	uint64_t differs[DIGEST_LEAVES / 64];
	uint64_t compared[DIGEST_GROUPS / 64];
	/* The leaf with which this exchange begins, and the one with which the next exchange does,
	 * when more leaves differ than one exchange takes. */
	uint32_t cursor, cursor_next;
	/* cursor_next is where pulling had to stop in this exchange. */
	bool capped;
	/* What is pulled, by peer index. */
	struct sync_pull pulls[MASTERS_MAX];
	/* The records that others listed, by leaf and key. */
	struct sync_seen *seen;
	uint32_t seen_count, seen_capacity;
	/* The bytes of their keys. */
	struct arena names;
	/* How far the exchange is judged. */
	struct sync_judging judging;
	/* Where lists and digests are put together that are sent. */
	uint8_t scratch[SYNC_SCRATCH];
};

/* The following functions write and read numbers, as load_le64 does. In the blobs of SYNC_...
 * messages they are little-endian. */
static inline void put_u16(uint8_t *p, uint32_t n) {
	p[0] = (uint8_t)n;
	p[1] = (uint8_t)(n >> 8);
}

static inline void put_u32(uint8_t *p, uint32_t n) {
	for (int i = 0; i < 4; i++) {
		p[i] = (uint8_t)(n >> (8 * i));
	}
}

static inline void put_u64(uint8_t *p, uint64_t n) {
	put_u32(p, (uint32_t)n);
	put_u32(p + 4, (uint32_t)(n >> 32));
}

static inline uint32_t get_u16(const uint8_t *p) {
	return p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t get_u32(const uint8_t *p) {
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline bool sync_bit(const uint64_t *bits, uint32_t i) {
	return bits[i / 64] >> (i % 64) & 1;
}

static inline void sync_set(uint64_t *bits, uint32_t i, bool on) {
	bits[i / 64] = (bits[i / 64] & ~((uint64_t)1 << (i % 64))) | (uint64_t)on << (i % 64);
}

/* Returns the memory of the exchange, which only nodes have that meet a difference. NULL: there is
 * no memory. */
struct sync *sync_open(struct core *core);

/* ---- sync_list.c ---- */

/* Lists all records of these leaves (two bytes each) to the master that asks for them. */
void sync_list_leaves(struct core *core, uint32_t to, uint64_t round, struct slice leaves);

/* Adds what a master listed to `seen`. False: there is no memory, or the list is not
 * well-formed. */
bool sync_take_list(struct core *core, uint32_t from, struct slice list);

/* ---- sync_evaluate.c ---- */

/* Draws the conclusions from all lists of the exchange: drops what fewer than a quorum have, and
 * asks for the records and releases that this master lacks. sync_evaluate begins with it;
 * sync_evaluate_more goes on, as far as one turn may. */
void sync_evaluate(struct core *core);
void sync_evaluate_more(struct core *core);

#endif
