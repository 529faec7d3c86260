/* strangers.c: counts strangers by address, and picks the one that has to make room for a newcomer.
 */
#include "strangers.h"

#include <string.h>
#include <sys/socket.h>

#include "address.h"

/* The size of an IPv6 network, in bytes. Whoever has one address in such a network has all of
 * them. */
#define NETWORK_BYTES 8

const char strangers_evicted[] = "it was closed for a newer connection, because it had not "
	"identified itself yet";

struct stranger_address stranger_address_of(int fd) {
	struct stranger_address out = { { 0 } };
	struct sockaddr_storage at = { 0 };
	socklen_t size = sizeof at;
	if (getpeername(fd, (struct sockaddr *)&at, &size) == 0) {
		address_ip((const struct sockaddr *)&at, out.ip);
	}
	return out;
}

/* Compares IPv4 addresses as a whole, and of IPv6 addresses the network only. */
static bool strangers_same_place(const struct stranger_address *a,
	const struct stranger_address *b) {
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	size_t compared = memcmp(a->ip, mapped, sizeof mapped) == 0 ? sizeof a->ip : NETWORK_BYTES;
	return memcmp(a->ip, b->ip, compared) == 0;
}

void strangers_init(struct strangers *s, uint64_t seed) {
	*s = (struct strangers){ 0 };
	list_init(&s->all);
	prng_init(&s->prng, seed);
}

/* The strangers among which one has to go. */
struct candidates {
	/* NULL: those of all addresses. */
	const struct stranger_address *place;
	/* NULL: those that are busy are candidates like the others. */
	bool (*busy)(const struct stranger *stranger);
};

/* Returns the next candidate. `at` is NULL at the beginning. */
static struct stranger *strangers_next(const struct strangers *s, const struct candidates *c,
	const struct stranger *at) {
	struct list *in = at ? list_after(&s->all, &at->in) : list_first(&s->all);
	while (in) {
		struct stranger *stranger = CONTAINER_OF(in, struct stranger, in);
		if ((!c->place || strangers_same_place(c->place, &stranger->address))
			&& !(c->busy && c->busy(stranger))) {
			return stranger;
		}
		in = list_after(&s->all, in);
	}
	return NULL;
}

static uint32_t strangers_count(const struct strangers *s, const struct candidates *c) {
	uint32_t count = 0;
	for (const struct stranger *at = NULL; (at = strangers_next(s, c, at)) != NULL;) {
		count++;
	}
	return count;
}

/* Returns one of the candidates, or NULL if there are none. Chance decides: if it were always the
 * oldest one, and more came during a handshake than have room, none would ever be done. */
static struct stranger *strangers_draw(struct strangers *s, const struct candidates *c) {
	const uint32_t count = strangers_count(s, c);
	struct stranger *drawn = NULL;
	if (count > 0) {
		for (uint64_t left = prng_below(&s->prng, count) + 1; left > 0; left--) {
			drawn = strangers_next(s, c, drawn);
		}
	}
	return drawn;
}

struct stranger *strangers_victim(struct strangers *s, const struct strangers_limits *limits,
	const struct stranger *newcomer, bool (*busy)(const struct stranger *stranger)) {
	struct candidates c = { .place = &newcomer->address };
	if (strangers_count(s, &c) < limits->per_address) {
		c.place = NULL;
		if (s->count < limits->count && s->bytes + newcomer->bytes <= limits->bytes) {
			return NULL;
		}
	}
	c.busy = busy;
	struct stranger *victim = strangers_draw(s, &c);
	c.busy = NULL;
	return victim ? victim : strangers_draw(s, &c);
}

struct stranger *strangers_oldest(const struct strangers *s) {
	return strangers_next(s, &(struct candidates){ .place = NULL }, NULL);
}

void strangers_add(struct strangers *s, struct stranger *stranger) {
	list_append(&s->all, &stranger->in);
	s->count++;
	s->bytes += stranger->bytes;
}

bool strangers_remove(struct strangers *s, struct stranger *stranger) {
	if (!list_linked(&stranger->in)) {
		return false;
	}
	list_remove(&stranger->in);
	s->count--;
	s->bytes -= stranger->bytes;
	return true;
}
