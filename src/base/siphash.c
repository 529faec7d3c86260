/* siphash.c: SipHash with any numbers of rounds. */
#include "siphash.h"

#include "load.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, int k) {
	return (x << k) | (x >> (64 - k));
}

static inline void sip_round(struct sip *s) {
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

static inline void sip_rounds(struct sip *s, int n) {
	for (int i = 0; i < n; i++) {
		sip_round(s);
	}
}

static inline void sip_word(struct sip *s, uint64_t m, int rounds) {
	s->v3 ^= m;
	sip_rounds(s, rounds);
	s->v0 ^= m;
}

/* Returns the last 0 .. 7 bytes as a number. If there are bytes before them, it reads them together
 * with those. */
static inline uint64_t load_rest(const uint8_t *p, size_t left, size_t size) {
	if (left > 0 && size >= 8) {
		return load_le64(p + left - 8) >> (64 - 8 * left);
	}
	uint64_t rest = 0;
	for (size_t i = 0; i < left; i++) {
		rest |= (uint64_t)p[i] << (8 * i);
	}
	return rest;
}

static inline struct sip sip_begin(struct siphash_key key) {
	return (struct sip){
		.v0 = key.k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = key.k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = key.k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = key.k1 ^ UINT64_C(0x7465646279746573),
	};
}

/* `p` points behind the whole words of the data, at the last `left` bytes. */
static inline uint64_t sip_end(struct sip s, const uint8_t *p, size_t left, size_t size,
	int word_rounds, int last_rounds) {
	sip_word(&s, (uint64_t)size << 56 | load_rest(p, left, size), word_rounds);
	s.v2 ^= 0xff;
	sip_rounds(&s, last_rounds);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static inline uint64_t sip(struct siphash_key key, const void *data, size_t size, int word_rounds,
	int last_rounds) {
	struct sip s = sip_begin(key);
	const uint8_t *p = data;
	size_t left = size;
	for (; left >= 8; left -= 8, p += 8) {
		sip_word(&s, load_le64(p), word_rounds);
	}
	return sip_end(s, p, left, size, word_rounds, last_rounds);
}

uint64_t siphash(struct siphash_key key, const void *data, size_t size) {
	return sip(key, data, size, 2, 4);
}

uint64_t siphash_short(struct siphash_key key, const void *data, size_t size) {
	return sip(key, data, size, 1, 3);
}

void siphash_prefixes_begin(struct siphash_prefixes *p, struct siphash_key key) {
	const struct sip s = sip_begin(key);
	*p = (struct siphash_prefixes){ s.v0, s.v1, s.v2, s.v3, 0 };
}

uint64_t siphash_prefixes_next(struct siphash_prefixes *p, const void *data, size_t size) {
	struct sip s = { p->v0, p->v1, p->v2, p->v3 };
	const uint8_t *bytes = data;
	for (; size - p->done >= 8; p->done += 8) {
		sip_word(&s, load_le64(bytes + p->done), 1);
	}
	p->v0 = s.v0;
	p->v1 = s.v1;
	p->v2 = s.v2;
	p->v3 = s.v3;
	return sip_end(s, bytes ? bytes + p->done : NULL, size - p->done, size, 1, 3);
}
