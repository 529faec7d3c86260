/* parties.h: the parties of this node's clients: who waits and who holds, so that deadlocks between
 * them can be found (docs/architecture.md, Deadlocks between clients). A party is a client object,
 * or a connection that names none. This is pure.
 *
 * A lock has its party by the number of its holder, because there are many locks. A party is gone
 * with the last of its locks, requests and connections here. */
#ifndef PAWL_NODE_PARTIES_H
#define PAWL_NODE_PARTIES_H

#include "list.h"
#include "map.h"
#include "siphash.h"
#include "types.h"

/* Stands for no party. */
#define PARTY_NONE 0u

struct party {
	struct map_node node;
	struct id128 id;
	uint32_t number;
	/* How many holders of locks (holdings.h), requests and connections refer to it; and how
	 * many of these are holders. */
	uint32_t uses, holders;
	/* struct requests_wait: what its requests here wait for. */
	struct list waits;
};

struct parties {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct map by_id;
	/* By their numbers, from 1 on; a free place has the number of the next free one, doubled,
	 * plus 1. */
	uintptr_t *places;
	uint32_t size, first_free;
};

/* The allocator is borrowed. Returns 0 or PAWL_ENOMEM. */
int parties_init(struct parties *p, const struct allocator *alloc, struct siphash_key hash_key);
/* Accepts zeroed memory. All parties must be gone. */
void parties_done(struct parties *p);

/* Returns the party, which is made if it is new, and is used once more; NULL if there is no
 * memory. */
struct party *parties_use(struct parties *p, struct id128 id);
void parties_free(struct parties *p, struct party *party);
/* It is used once less. NULL is allowed. */
static inline void parties_leave(struct parties *p, struct party *party) {
	if (party && --party->uses == 0) {
		parties_free(p, party);
	}
}

/* Returns NULL if the party neither waits nor holds anything here. */
struct party *parties_find(const struct parties *p, struct id128 id);
/* Returns the party of that number, which is in use; NULL for PARTY_NONE. */
static inline struct party *parties_at(const struct parties *p, uint32_t number) {
	return number ? (struct party *)p->places[number - 1] : NULL;
}

/* The party has one more holder of locks. NULL is allowed. */
static inline void party_hold(struct party *party) {
	if (party) {
		party->uses++;
		party->holders++;
	}
}
/* The party of that number has one less. */
static inline void parties_let_go(struct parties *p, uint32_t number) {
	struct party *party = parties_at(p, number);
	if (party) {
		party->holders--;
		parties_leave(p, party);
	}
}

#endif
