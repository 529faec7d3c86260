/* deadlock_facts.h: facts of small systems, for the tests of the search for deadlocks. */
#ifndef PAWL_TESTS_DEADLOCK_FACTS_H
#define PAWL_TESTS_DEADLOCK_FACTS_H

#include <stdio.h>
#include <string.h>

#include "facts.h"

static const struct siphash_key hash_key = { 1, 2 };

static inline struct id128 id_of(char kind, uint32_t number) {
	struct id128 id = { { (uint8_t)kind, (uint8_t)number, (uint8_t)(number >> 8) } };
	return id;
}

static inline struct slice key_of(uint32_t number) {
	static char names[64][16];
	char *name = names[number % 64];
	snprintf(name, sizeof names[0], "k%u", number);
	return slice_str(name);
}

/* A party holds a key in this mode. The lock_id is of the party and the key. */
static inline struct hold_fact holds(uint32_t party, uint32_t key, uint16_t of, uint16_t count) {
	return (struct hold_fact){ .party = id_of('p', party),
		.lock_id = id_of('h', party * 64 + key), .key = key_of(key), .of = of,
		.count = count };
}

static inline struct wait_fact waits(uint32_t party, uint32_t key, uint16_t of, uint16_t count,
	uint64_t request) {
	return (struct wait_fact){ .party = id_of('p', party),
		.lock_id = id_of('w', (uint32_t)request), .key = key_of(key), .of = of,
		.count = count, .request = request, .owner = slice_str("owner"),
		.since_ms = request };
}

#endif
