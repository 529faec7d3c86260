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

void strangers_init(struct strangers *s) {
	*s = (struct strangers){ 0 };
	list_init(&s->all);
}

/* Returns the oldest stranger at `place`, or the oldest of all if `place` is NULL. If `busy` is
 * given, strangers that are busy are passed over. */
static struct stranger *strangers_find(const struct strangers *s,
	const struct stranger_address *place, bool (*busy)(const struct stranger *stranger)) {
	for (struct list *at = list_first(&s->all); at; at = list_after(&s->all, at)) {
		struct stranger *stranger = CONTAINER_OF(at, struct stranger, in);
		if ((!place || strangers_same_place(place, &stranger->address))
			&& !(busy && busy(stranger))) {
			return stranger;
		}
	}
	return NULL;
}

static uint32_t strangers_count_at(const struct strangers *s,
	const struct stranger_address *place) {
	uint32_t count = 0;
	for (struct list *at = list_first(&s->all); at; at = list_after(&s->all, at)) {
		count += strangers_same_place(place,
			&CONTAINER_OF(at, struct stranger, in)->address);
	}
	return count;
}

struct stranger *strangers_victim(const struct strangers *s, const struct strangers_limits *limits,
	const struct stranger *newcomer, bool (*busy)(const struct stranger *stranger)) {
	const struct stranger_address *place = NULL;
	if (strangers_count_at(s, &newcomer->address) >= limits->per_address) {
		place = &newcomer->address;
	} else if (s->count < limits->count && s->bytes + newcomer->bytes <= limits->bytes) {
		return NULL;
	}
	struct stranger *victim = strangers_find(s, place, busy);
	return victim ? victim : strangers_find(s, place, NULL);
}

struct stranger *strangers_oldest(const struct strangers *s) {
	return strangers_find(s, NULL, NULL);
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
