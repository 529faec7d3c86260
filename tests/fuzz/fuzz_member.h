/* fuzz_member.h: what the fuzzer of a lying member has: the bytes of its input, the stage, and what
 * was said on it. */
#ifndef PAWL_TESTS_FUZZ_MEMBER_H
#define PAWL_TESTS_FUZZ_MEMBER_H

#include "check.h"
#include "lies.h"
#include "stage.h"

/* n1 to n3 are born together, and n4 may be added. The last of the masters lies. */
#define MEMBER_NODES 4
#define MEMBER_LIAR 2
#define MEMBER_LAST 3
/* How many messages the liar puts into a frame of its own. */
#define MEMBER_MESSAGES 3

struct member {
	const uint8_t *data;
	size_t size;
	struct stage *s;
	struct lies lies;
	/* By which identity, and with which boot, the liar said hello to each of the others. */
	struct id128 said_id[MEMBER_NODES];
	uint64_t said_boot[MEMBER_NODES];
	struct peer_decoder decoder;
	struct buffer bytes;
	/* How many more frames are delivered: lies may keep others talking. */
	uint32_t deliveries;
	/* No link is made anew. */
	bool cut;
	/* What the liar's own core says is altered as well. */
	bool tampers;
};

static inline uint8_t member_next(void *member) {
	struct member *w = member;
	if (w->size == 0) {
		return 0;
	}
	w->size--;
	return *w->data++;
}

static inline uint32_t member_next_of(struct member *w, uint32_t bound) {
	return member_next(w) % bound;
}

static inline bool member_runs(const struct member *w, uint32_t node) {
	return w->s->nodes[node].core != NULL;
}

/* What there is to lie about now. NULL: nobody is there to be lied to. */
static inline struct lies *member_lies(struct member *w) {
	static const char *const keys[LIES_KEYS] = { "k", "l", "m", "n" };
	const uint32_t node = member_runs(w, 0) ? 0 : 1;
	if (!member_runs(w, node)) {
		return NULL;
	}
	w->lies.next = member_next;
	w->lies.ctx = w;
	w->lies.nodes = MEMBER_NODES;
	w->lies.liar = MEMBER_LIAR;
	for (uint32_t i = 0; i < MEMBER_NODES; i++) {
		w->lies.ids[i] = w->s->nodes[i].disk.node_id;
	}
	for (uint32_t i = 0; i < LIES_LOCKS; i++) {
		w->lies.locks[i] = stage_lock((uint8_t)(1 + i));
		w->lies.keys[i] = keys[i];
	}
	w->lies.config = core_config(w->s->nodes[node].core);
	w->lies.clock = stage_status(w->s, node).clock;
	return &w->lies;
}

#endif
