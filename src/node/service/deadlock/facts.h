/* facts.h: who waits for what, and who holds what: the parties, keys, waits and locks that a look
 * for a deadlock has heard of. This is pure.
 *
 * A *party* is a client: what it holds it lets go only by itself, and not while all its requests
 * wait. A lock of which nobody says who holds it is not here, so it counts as one that its holder
 * will release. */
#ifndef PAWL_NODE_DEADLOCK_FACTS_H
#define PAWL_NODE_DEADLOCK_FACTS_H

#include "buffer.h"
#include "peer_waits.h"
#include "siphash.h"

/* The most waits, the most locks, the most parties, and the most keys of one look. */
#define FACTS_MAX 1024u
/* The most bytes of keys and owners. */
#define FACTS_BYTES_MAX 262144u
/* Stands for no index. */
#define FACT_NONE UINT32_MAX

/* One request waits for one key. */
struct fact_wait {
	struct id128 lock_id;
	struct slice owner;
	/* Indexes of the party and the key. */
	uint32_t party, key;
	uint16_t of, count;
	bool free;
	/* The peer index of the node that has told it. */
	uint32_t node;
	/* Together with the node, the request. */
	uint64_t request;
	uint64_t since_ms;
	/* The next wait of the key; FACT_NONE: there is none. */
	uint32_t next_of_key;
};

/* One party holds one lock. */
struct fact_hold {
	struct id128 lock_id;
	uint32_t party, key;
	uint16_t of, count;
	/* Two nodes name different parties, so nothing is known of the holder. */
	bool disputed;
	/* The next lock of the key, and of the party; FACT_NONE: there is none. */
	uint32_t next_of_key, next_of_party;
};

struct fact_party {
	struct id128 id;
	/* The first of its locks. */
	uint32_t holds;
	uint32_t next_in_bucket;
};

struct fact_key {
	struct slice name;
	/* The first of its waits and locks. */
	uint32_t waits, holds;
	uint32_t next_in_bucket;
};

struct facts {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct arena bytes;
	/* Something did not fit, so nothing can be concluded. */
	bool cut;
	uint32_t wait_count, hold_count, party_count, key_count;
	struct fact_wait waits[FACTS_MAX];
	struct fact_hold holds[FACTS_MAX];
	struct fact_party parties[FACTS_MAX];
	struct fact_key keys[FACTS_MAX];
	/* Hash tables: the first party and the first key of each bucket. */
	uint32_t party_buckets[FACTS_MAX], key_buckets[FACTS_MAX];
};

/* Makes an empty set, or returns NULL if there is no memory. The allocator is borrowed. */
struct facts *facts_new(const struct allocator *alloc, struct siphash_key hash_key);
/* Accepts NULL. */
void facts_free(struct facts *f);

/* Return the index of a party or a key, which is added if it is new; FACT_NONE, and `cut`, if there
 * is no room. */
uint32_t facts_party(struct facts *f, struct id128 id);
uint32_t facts_key(struct facts *f, struct slice name);

/* Add a fact that the node has told. What was told before changes nothing. */
void facts_wait(struct facts *f, const struct wait_fact *fact, uint32_t node);
void facts_hold(struct facts *f, const struct hold_fact *fact);

/* Tell whether the fact is known: the same party waits for, or holds, this lock. */
bool facts_has_wait(const struct facts *f, const struct facts *other, uint32_t wait);
bool facts_has_hold(const struct facts *f, const struct facts *other, uint32_t hold);

#endif
