/* sketch.h: which keys something happens to most often, within the last minute or so, in bounded
 * memory and without a step that takes long: a space-saving sketch (Metwally et al., 2005) over
 * SKETCH_SLOTS slots of time. A key that is not among those that are counted takes the place of the
 * one with the fewest. So a key is counted for certain if more than 1 in SKETCH_KEYS of all happens
 * to it; how often is never more than the truth. */
#ifndef PAWL_BASE_SKETCH_H
#define PAWL_BASE_SKETCH_H

#include <stdbool.h>

#include "slice.h"

#define SKETCH_KEYS 64u
#define SKETCH_SLOTS 6u
#define SKETCH_KEY_BYTES 512u

struct sketch {
	/* Of each place: 31 bits of the hash of its key and a 1, or 0 if it has never had a key;
	 * the number by which places are compared, which includes what keys before this one had
	 * there; and that number by slots. Two keys with the same bits count as one. */
	uint32_t tags[SKETCH_KEYS], ranks[SKETCH_KEYS];
	uint32_t by_slot[SKETCH_KEYS][SKETCH_SLOTS];
	/* How often it has happened to this key, by slots. */
	uint32_t seen[SKETCH_KEYS][SKETCH_SLOTS];
	uint32_t slot;
	/* No rank is below `least`, and no place before `at` has it. So a place with the lowest
	 * rank is found by going on from there. */
	uint32_t least, at;
	uint16_t sizes[SKETCH_KEYS];
	uint8_t keys[SKETCH_KEYS][SKETCH_KEY_BYTES];
};

/* Counts once more for the key, which has this hash. */
void sketch_add(struct sketch *s, uint64_t hash, struct slice key);
/* A slot of time is over: what happened SKETCH_SLOTS slots ago is forgotten. */
void sketch_turn(struct sketch *s);
/* Returns how often it has happened to the key in this place, at least; 0 if there is none. The
 * key is borrowed. */
uint64_t sketch_count(const struct sketch *s, uint32_t place, struct slice *out_key);

#endif
