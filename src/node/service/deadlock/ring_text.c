/* ring_text.c: a ring of clients that wait for each other, in words. */
#include "ring_text.h"

/* The most bytes that are shown of a name, and those that one member may take. */
#define NAME_SHOWN 64
#define MEMBER_BYTES (3 * NAME_SHOWN + 64)
/* What the end of the text takes: "; and 4294967295 more". */
#define END_BYTES 24

struct text {
	char *at;
};

static void put(struct text *t, const char *s) {
	while (*s) {
		*t->at++ = *s++;
	}
}

static void put_name(struct text *t, struct slice name) {
	if (name.size == 0) {
		put(t, "(no owner)");
	}
	for (size_t i = 0; i < name.size && i < NAME_SHOWN; i++) {
		*t->at++ = name.data[i] >= 0x20 && name.data[i] < 0x7f ? (char)name.data[i] : '?';
	}
	if (name.size > NAME_SHOWN) {
		put(t, "...");
	}
}

static void put_number(struct text *t, uint32_t number) {
	char digits[10];
	size_t n = 0;
	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (n > 0) {
		*t->at++ = digits[--n];
	}
}

void ring_text(const struct waits_ring *ring, uint32_t count, char out[RING_TEXT_BYTES]) {
	struct text t = { out };
	uint32_t i = 0;
	const char *end = out + RING_TEXT_BYTES - END_BYTES - MEMBER_BYTES;
	for (; i < ring->count && t.at < end; i++) {
		/* Behind the last member that is told may come others. */
		bool last = i + 1 == ring->count;
		put(&t, i ? "; " : "");
		put_name(&t, ring->members[i].owner);
		put(&t, " waits for ");
		put_name(&t, ring->members[i].key);
		if (!last || count == ring->count) {
			put(&t, ", which ");
			put_name(&t, ring->members[last ? 0 : i + 1].owner);
			put(&t, " holds");
		}
	}
	if (i < count) {
		put(&t, "; and ");
		put_number(&t, count - i);
		put(&t, " more");
	}
	*t.at = '\0';
}
