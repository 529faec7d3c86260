/* siphash.c: SipHash with any numbers of rounds. */
#include "siphash.h"

#include "load.h"

static inline uint64_t rotate_left(uint64_t x, int k) {
	return (x << k) | (x >> (64 - k));
}

/* Takes a word of the data, or none: 0 changes nothing but by the rounds. */
static inline void sip_word(struct siphash_prefixes *s, uint64_t m, int rounds) {
	s->v3 ^= m;
	for (int i = 0; i < rounds; i++) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotate_left(s->v1, 13) ^ s->v0;
		s->v3 = rotate_left(s->v3, 16) ^ s->v2;
		s->v0 = rotate_left(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotate_left(s->v1, 17) ^ s->v2;
		s->v3 = rotate_left(s->v3, 21) ^ s->v0;
		s->v2 = rotate_left(s->v2, 32);
	}
	s->v0 ^= m;
}

void siphash_prefixes_begin(struct siphash_prefixes *p, struct siphash_key key) {
	*p = (struct siphash_prefixes){
		.v0 = key.k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = key.k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = key.k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = key.k1 ^ UINT64_C(0x7465646279746573),
	};
}

/* Goes on to the end of the whole words, which *p keeps, and returns the hash with the last 0 .. 7
 * bytes. If there are bytes before these, it reads them together with those. */
static inline uint64_t sip(struct siphash_prefixes *p, const void *data, size_t size,
	int word_rounds, int last_rounds) {
	struct siphash_prefixes s = *p;
	const uint8_t *bytes = data;
	for (; size - s.done >= 8; s.done += 8) {
		sip_word(&s, load_le64(bytes + s.done), word_rounds);
	}
	*p = s;
	const size_t left = size - s.done;
	uint64_t last = 0;
	if (left > 0 && size >= 8) {
		last = load_le64(bytes + size - 8) >> (64 - 8 * left);
	} else {
		for (size_t i = 0; i < left; i++) {
			last |= (uint64_t)bytes[i] << (8 * i);
		}
	}
	sip_word(&s, (uint64_t)size << 56 | last, word_rounds);
	s.v2 ^= 0xff;
	sip_word(&s, 0, last_rounds);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t siphash(struct siphash_key key, const void *data, size_t size) {
	struct siphash_prefixes s;
	siphash_prefixes_begin(&s, key);
	return sip(&s, data, size, 2, 4);
}

uint64_t siphash_short(struct siphash_key key, const void *data, size_t size) {
	struct siphash_prefixes s;
	siphash_prefixes_begin(&s, key);
	return sip(&s, data, size, 1, 3);
}

uint64_t siphash_prefixes_next(struct siphash_prefixes *p, const void *data, size_t size) {
	return sip(p, data, size, 1, 3);
}
