/* sketch.c: see sketch.h. The loop over the tags has no branch, so that the compiler takes several
 * places at a time. */
#include "sketch.h"

#include <string.h>

#include "check.h"

/* Returns one more than the place of the tag, or 0. */
static uint32_t find(const struct sketch *s, uint32_t tag) {
	uint32_t found = 0;
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		found |= s->tags[i] == tag ? i + 1 : 0;
	}
	return found;
}

/* Returns a place with the lowest rank. */
static uint32_t lowest(struct sketch *s) {
	while (s->at < SKETCH_KEYS && s->ranks[s->at] != s->least) {
		s->at++;
	}
	if (s->at < SKETCH_KEYS) {
		return s->at;
	}
	s->least = s->ranks[0];
	s->at = 0;
	for (uint32_t i = 1; i < SKETCH_KEYS; i++) {
		if (s->ranks[i] < s->least) {
			s->least = s->ranks[i];
			s->at = i;
		}
	}
	return s->at;
}

void sketch_add(struct sketch *s, uint64_t hash, struct slice key) {
	const uint32_t tag = (uint32_t)(hash >> 32) | 1, found = find(s, tag);
	const uint32_t place = found ? found - 1 : lowest(s);
	CHECK(key.size <= SKETCH_KEY_BYTES);
	if (!found) {
		s->tags[place] = tag;
		s->sizes[place] = (uint16_t)key.size;
		memcpy(s->keys[place], key.data, key.size);
		memset(s->seen[place], 0, sizeof s->seen[place]);
	}
	s->ranks[place]++;
	s->by_slot[place][s->slot]++;
	s->seen[place][s->slot]++;
}

void sketch_turn(struct sketch *s) {
	s->slot = (s->slot + 1) % SKETCH_SLOTS;
	s->at = SKETCH_KEYS;
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		s->ranks[i] -= s->by_slot[i][s->slot];
		s->by_slot[i][s->slot] = s->seen[i][s->slot] = 0;
	}
}

uint64_t sketch_count(const struct sketch *s, uint32_t place, struct slice *out_key) {
	uint64_t count = 0;
	for (uint32_t i = 0; i < SKETCH_SLOTS; i++) {
		count += s->seen[place][i];
	}
	*out_key = slice_of(s->keys[place], s->sizes[place]);
	return s->ranks[place] ? count : 0;
}
