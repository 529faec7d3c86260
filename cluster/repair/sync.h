/* sync.h: what the files of the anti-entropy among masters share (sync.c, sync_list.c, sync_evaluate.c). */
#ifndef PAWL_CLUSTER_SYNC_H
#define PAWL_CLUSTER_SYNC_H

#include "buffer.h"
#include "repair.h"

#define SYNC_GROUPS_MAX 16          /* whose leaves are compared in one exchange */
#define SYNC_LEAVES_MAX 256         /* pulled from one master in one exchange */
#define SYNC_SEEN_MAX 4096          /* records that masters listed, kept until they are judged */
#define SYNC_NAME_BYTES_MAX ((size_t)1 << 20)
#define SYNC_FETCHES_MAX 256        /* asked of one master in one exchange */
#define SYNC_LISTED_MAX 2048        /* that a master lists for one question */
#define SYNC_SCRATCH (SYNC_GROUPS_MAX * (1 + 8 * DIGEST_GROUP))

enum sync_list_end { SYNC_LIST_WHOLE, SYNC_LIST_GOES_ON, SYNC_LIST_CUT }; /* number of SYNC_KEYS */

struct sync_seen { /* a record as another master listed it */
	struct id128 lock_id;
	uint64_t token;
	struct ballot wrote;
	uint16_t of; /* of its terms, with the set and the bond */
	uint32_t binding;
	struct permits set;
	struct slice key;
	uint8_t from;
	bool barred;
};

struct sync_pull { /* of one master */
	uint16_t leaves[SYNC_LEAVES_MAX];
	uint32_t count, asked, listed; /* listed: so many of them have arrived */
	uint32_t fetches;
	bool cut; /* it had more than it listed: what is missing may be there */
};

struct sync {
	uint64_t epoch;
	uint64_t suspects[DIGEST_LEAVES / 64]; /* leaves that differed when they were last compared */
	uint64_t differs[DIGEST_LEAVES / 64];  /* ... in this exchange */
	uint64_t compared[DIGEST_GROUPS / 64]; /* groups of this exchange */
	uint32_t cursor, cursor_next;          /* the leaf to begin with, when more differ than an exchange takes */
	bool capped;                           /* cursor_next is where the pulling had to stop */
	struct sync_pull pulls[MASTERS_MAX];
	struct sync_seen *seen;
	uint32_t seen_count, seen_capacity;
	struct arena names;
	uint8_t scratch[SYNC_SCRATCH];
};

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

static inline uint64_t get_u64(const uint8_t *p) {
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

static inline bool sync_bit(const uint64_t *bits, uint32_t i) {
	return bits[i / 64] >> (i % 64) & 1;
}

static inline void sync_set(uint64_t *bits, uint32_t i, bool on) {
	bits[i / 64] = (bits[i / 64] & ~((uint64_t)1 << (i % 64))) | (uint64_t)on << (i % 64);
}

struct sync *sync_open(struct core *core); /* only nodes that meet a difference have it; NULL: no memory */
/* sync_list.c: the keys of leaves, from table to message to `seen` */
void sync_list_leaves(struct core *core, uint32_t to, uint64_t round, struct slice leaves);
bool sync_take_list(struct core *core, uint32_t from, struct slice list); /* false: no memory or nonsense */
/* sync_evaluate.c */
void sync_evaluate(struct core *core);

#endif
