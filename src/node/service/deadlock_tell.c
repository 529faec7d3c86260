/* deadlock_tell.c: what this node knows of who holds and who waits: the locks that it has granted
 * to its clients, as far as they are in its table, and the requests of its clients that wait. */
#include <time.h>

#include "check.h"
#include "service_impl.h"

/* At most so many holders of a key, and waits of a party, are told. */
#define HOLDERS_TOLD 256u
#define WAITS_TOLD 32u
/* So many requests for several keys are searched for one that has a key already. */
#define SEVERAL_SEARCHED 256u

struct tell {
	struct service *s;
	const struct waits_reader *reader;
	struct slice key;
	/* How many facts were told or looked at. */
	uint32_t cost;
};

static int64_t wall_ns(void) {
	struct timespec t;
	CHECK(clock_gettime(CLOCK_REALTIME, &t) == 0);
	return t.tv_sec * SPAN_S + t.tv_nsec;
}

/* Returns when the request arrived, which is the same each time. */
static uint64_t tell_since(const struct tell *t, struct requests_wait *wait) {
	if (wait->since_ms == 0) {
		int64_t waited = driver_now(t->s->driver).boot - wait->request->count.begun;
		/* It is rounded once, so that of two requests of one host the later one is told as
		 * the younger one when they are a millisecond apart. */
		wait->since_ms = (uint64_t)((wall_ns() - (waited > 0 ? waited : 0)) / SPAN_MS);
	}
	return wait->since_ms;
}

static void tell_hold(struct tell *t, const struct party *party, const struct core_lock *lock) {
	const struct hold_fact fact = { party->id, lock->lock_id, lock->key, lock->of,
		lock->count };
	t->reader->hold(t->reader->ctx, &fact);
	t->cost++;
}

/* A request for several keys has its first ones while it waits for the next. */
static void tell_wait(struct tell *t, struct requests_wait *wait, bool free) {
	const struct request *request = wait->request;
	struct core_lock lock;
	size_t at = 0;
	while (requests_wait_lock(wait, &at, &lock)) {
		uint64_t token, noted;
		t->cost++;
		if (list_linked(&wait->several) && core_peek(t->s->driver->core, lock.key,
				lock.lock_id, &token, &noted)) {
			tell_hold(t, request->party, &lock);
			continue;
		}
		const struct wait_fact fact = { .party = request->party->id,
			.lock_id = lock.lock_id, .key = lock.key,
			.owner = requests_wait_owner(wait), .of = lock.of, .count = lock.count,
			.request = request->id, .since_ms = tell_since(t, wait), .free = free };
		t->reader->wait(t->reader->ctx, &fact);
	}
}

static void tell_waits(struct tell *t, const struct party *party) {
	uint32_t told = 0;
	for (const struct list *n = list_first(&party->waits); n && told <= WAITS_TOLD;
		n = list_after(&party->waits, n), told++) {
		tell_wait(t, CONTAINER_OF(n, struct requests_wait, of_party), told == WAITS_TOLD);
	}
}

/* Returns the party whose request for several keys has got this one already, or NULL. */
static struct party *tell_getting(struct tell *t, const struct core_entry *entry) {
	const struct list *all = &t->s->requests.several;
	uint32_t searched = 0;
	for (const struct list *n = list_first(all); n && searched < SEVERAL_SEARCHED;
		n = list_after(all, n), searched++) {
		const struct requests_wait *wait = CONTAINER_OF(n, const struct requests_wait,
			several);
		struct core_lock lock;
		size_t at = 0;
		while (requests_wait_lock(wait, &at, &lock)) {
			if (id128_equal(lock.lock_id, entry->lock_id)
				&& slice_equal(lock.key, t->key)) {
				return wait->request->party;
			}
		}
	}
	t->cost += searched / 16;
	return NULL;
}

static bool tell_holder(void *ctx, const struct core_entry *entry) {
	struct tell *t = ctx;
	const struct holdings *holdings = &t->s->holdings;
	const struct holding *held = holdings_find(holdings,
		holdings_hash(holdings, t->key, entry->lock_id));
	const struct party *party = held
		? parties_at(&t->s->requests.parties, holdings_party(holdings, held))
		: tell_getting(t, entry);
	t->cost++;
	if (party) {
		const struct core_lock lock = { t->key, entry->lock_id, entry->terms.of,
			entry->terms.count };
		tell_hold(t, party, &lock);
		tell_waits(t, party);
	}
	return t->cost <= FACTS_TOLD_MAX;
}

uint32_t deadlock_tell_key(struct service *s, struct slice key, const struct waits_reader *reader) {
	struct tell t = { .s = s, .reader = reader, .key = key, .cost = 1 };
	bool all = core_inspect_holders(s->driver->core, key, s->driver->last, HOLDERS_TOLD,
		tell_holder, &t);
	return all ? t.cost : FACTS_TOLD_MAX + 1;
}

uint32_t deadlock_tell_party(struct service *s, struct id128 id,
	const struct waits_reader *reader) {
	struct tell t = { .s = s, .reader = reader, .cost = 1 };
	const struct party *party = parties_find(&s->requests.parties, id);
	if (party) {
		tell_waits(&t, party);
	}
	return t.cost;
}
