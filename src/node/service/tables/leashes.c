#include "leashes.h"

#include "check.h"
#include "pawl/error.h"

#define SWEEP_LEAST 64 /* leashes of one client before those that are over are looked for */

struct leashes_client {
	struct map_node node;
	struct list all;  /* the newest first */
	struct list gone; /* linked: it is gone, */
	bool release;     /* and its locks end */
	const struct allocator *alloc;
	uint64_t id;
	size_t count, sweep_at;
};

static struct leashes_client *leashes_client(const struct leashes *l, uint64_t client) {
	struct map_node *node = map_first(&l->by_client, client);
	return node ? CONTAINER_OF(node, struct leashes_client, node) : NULL;
}

/* Clients choose lock_ids, and may know those of others. */
static uint64_t leashes_hash(const struct leashes *l, struct id128 lock_id) {
	return siphash(l->hash_key, lock_id.b, sizeof lock_id.b);
}

static struct leash *leashes_find(const struct leashes *l, uint64_t client, struct id128 lock_id) {
	struct map_node *node = l->by_lock.count ? map_first(&l->by_lock, leashes_hash(l, lock_id)) : NULL;
	for (; node; node = map_next(node)) {
		struct leash *leash = CONTAINER_OF(node, struct leash, by_lock);
		if (leash->client->id == client && id128_equal(leash->lock_id, lock_id)) {
			return leash;
		}
	}
	return NULL;
}

static void leashes_client_tidy(struct leashes *l, struct leashes_client *c) {
	if (c->count == 0) {
		list_remove(&c->gone);
		map_remove(&l->by_client, &c->node);
		alloc_free(c->alloc, c, sizeof *c);
	}
}

static void leashes_free(struct leashes *l, struct leash *leash) {
	map_remove(&l->by_lock, &leash->by_lock);
	list_remove(&leash->among);
	leash->client->count--;
	alloc_free(leash->client->alloc, leash, sizeof *leash + leash->size);
}

/* Locks that nobody released: each time that their number has doubled, so that it costs little for each. */
static void leashes_sweep(struct leashes *l, struct leashes_client *c, struct instant now) {
	struct list *next;
	if (c->count < c->sweep_at) {
		return;
	}
	for (struct list *at = list_first(&c->all); at; at = next) {
		struct leash *leash = CONTAINER_OF(at, struct leash, among);
		next = list_after(&c->all, at);
		if (!leash->asked && instant_expired(now, leash->until)) {
			leashes_free(l, leash);
		}
	}
	c->sweep_at = 2 * c->count > SWEEP_LEAST ? 2 * c->count : SWEEP_LEAST;
}

static struct leashes_client *leashes_client_of(struct leashes *l, const struct allocator *alloc, uint64_t client) {
	struct leashes_client *c = leashes_client(l, client);
	if (c) {
		return c;
	}
	c = alloc_new(alloc, sizeof *c);
	if (c) {
		c->alloc = alloc;
		c->id = client;
		c->sweep_at = SWEEP_LEAST;
		list_init(&c->all);
		map_insert(&l->by_client, &c->node, client);
	}
	return c;
}

int leashes_put(struct leashes *l, const struct allocator *alloc, uint64_t client, uint64_t request, struct slice key, struct id128 lock_id,
	uint32_t binding, struct instant now, struct instant until) {
	struct leash *leash = leashes_find(l, client, lock_id);
	if (leash) {
		leash->again = leash->again || (leash->asked && leash->asked != request);
		leash->binding = leash->binding > binding ? leash->binding : binding;
		leash->until = instant_later(leash->until, until);
		return 0;
	}
	CHECK(key.size <= KEY_MAX);
	struct leashes_client *c = leashes_client_of(l, alloc, client);
	if (!c) {
		return PAWL_ENOMEM;
	}
	leashes_sweep(l, c, now);
	leash = alloc_new(alloc, sizeof *leash + key.size);
	if (!leash) {
		leashes_client_tidy(l, c);
		return PAWL_ENOMEM;
	}
	leash->client = c;
	leash->asked = request;
	leash->lock_id = lock_id;
	leash->binding = binding;
	leash->until = until;
	leash->size = (uint16_t)key.size;
	memcpy(leash->key, key.size ? key.data : leash->key, key.size);
	map_insert(&l->by_lock, &leash->by_lock, leashes_hash(l, lock_id));
	list_insert_before(c->all.next, &leash->among);
	c->count++;
	return 0;
}

void leashes_got(struct leashes *l, uint64_t client, struct id128 lock_id, struct instant until) {
	struct leash *leash = leashes_find(l, client, lock_id);
	if (leash) {
		leash->until = leash->asked ? until : instant_later(leash->until, until);
		leash->asked = 0;
	}
}

/* Where another request may still get it the leash stays, as of a lock that was got: until the time of that request is over. */
static void leashes_refused_one(struct leashes *l, struct leash *leash) {
	if (leash->again) {
		leash->asked = 0;
	} else {
		leashes_free(l, leash);
	}
}

/* What a request for several locks asked for stands together, not far from the front. */
static void leashes_refused_all(struct leashes *l, struct leashes_client *c, uint64_t request) {
	struct list *next;
	bool met = false;
	for (struct list *at = list_first(&c->all); at; at = next) {
		struct leash *leash = CONTAINER_OF(at, struct leash, among);
		next = list_after(&c->all, at);
		if (leash->asked == request) {
			leashes_refused_one(l, leash);
			met = true;
		} else if (met) {
			break;
		}
	}
	leashes_client_tidy(l, c);
}

void leashes_refused(struct leashes *l, uint64_t client, uint64_t request, const struct id128 *lock_id) {
	struct leashes_client *c = leashes_client(l, client);
	struct leash *leash = c && lock_id ? leashes_find(l, client, *lock_id) : NULL;
	if (leash && leash->asked == request) {
		leashes_refused_one(l, leash);
		leashes_client_tidy(l, c);
	} else if (c && !lock_id) {
		leashes_refused_all(l, c, request);
	}
}

void leashes_drop(struct leashes *l, uint64_t client, struct id128 lock_id) {
	struct leash *leash = leashes_find(l, client, lock_id);
	if (leash) {
		struct leashes_client *c = leash->client;
		leashes_free(l, leash);
		leashes_client_tidy(l, c);
	}
}

const struct leash *leashes_first(const struct leashes *l, uint64_t client) {
	const struct leashes_client *c = leashes_client(l, client);
	return c ? CONTAINER_OF(list_first(&c->all), struct leash, among) : NULL;
}

bool leashes_moved(const struct leashes *l, const struct leash *leash) {
	for (struct map_node *node = map_first(&l->by_lock, leash->by_lock.hash); node; node = map_next(node)) {
		const struct leash *other = CONTAINER_OF(node, struct leash, by_lock);
		if (other->binding > leash->binding && id128_equal(other->lock_id, leash->lock_id)) {
			return true;
		}
	}
	return false;
}

static void leashes_client_free(struct leashes *l, struct leashes_client *c) {
	struct list *first;
	while ((first = list_first(&c->all)) != NULL) {
		leashes_free(l, CONTAINER_OF(first, struct leash, among));
	}
	leashes_client_tidy(l, c);
}

void leashes_go(struct leashes *l, uint64_t client, bool release) {
	struct leashes_client *c = leashes_client(l, client);
	if (c) {
		c->release = release;
		list_append(&l->gone, &c->gone);
	}
}

bool leashes_gone(const struct leashes *l, uint64_t *out_client, bool *out_release) {
	struct list *first = list_first(&l->gone);
	if (first) {
		const struct leashes_client *c = CONTAINER_OF(first, struct leashes_client, gone);
		*out_client = c->id;
		*out_release = c->release;
	}
	return first;
}

int leashes_init(struct leashes *l, const struct allocator *alloc, struct siphash_key hash_key) {
	*l = (struct leashes){ .alloc = alloc, .hash_key = hash_key };
	list_init(&l->gone);
	if (map_init(&l->by_client, alloc) != 0 || map_init(&l->by_lock, alloc) != 0) {
		leashes_done(l);
		return PAWL_ENOMEM;
	}
	return 0;
}

static void leashes_client_drained(void *l, struct map_node *node) {
	leashes_client_free(l, CONTAINER_OF(node, struct leashes_client, node));
}

void leashes_done(struct leashes *l) {
	map_drain(&l->by_client, leashes_client_drained, l);
	map_done(&l->by_client);
	map_done(&l->by_lock);
	*l = (struct leashes){ 0 };
}
