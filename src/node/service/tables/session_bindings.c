/* session_bindings.c: the session bindings of each client of this node, and the clients that are
 * gone.
 */
#include "session_bindings.h"

#include "check.h"
#include "pawl/error.h"

/* How many bindings a client may have before expired ones are looked for. */
#define SWEEP_LEAST 64

struct session_bindings_client {
	struct map_node node;
	/* The bindings, the newest first. */
	struct list all;
	/* Linked if the client is gone. */
	struct list gone;
	/* The client is gone, and its locks end. */
	bool release;
	const struct allocator *alloc;
	uint64_t id;
	size_t count, sweep_at;
};

static struct session_bindings_client *session_bindings_client(const struct session_bindings *l,
	uint64_t client) {
	struct map_node *node = map_first_number(&l->by_client, client);
	return node ? CONTAINER_OF(node, struct session_bindings_client, node) : NULL;
}

/* The hash has a secret key, because clients choose lock_ids, and may know those of others. */
static uint64_t session_bindings_hash(const struct session_bindings *l, struct id128 lock_id) {
	return siphash(l->hash_key, lock_id.b, sizeof lock_id.b);
}

static struct session_binding *session_bindings_find(const struct session_bindings *l,
	uint64_t client, struct id128 lock_id) {
	struct map_node *node = l->by_lock.count
		? map_first(&l->by_lock, session_bindings_hash(l, lock_id)) : NULL;
	for (; node; node = map_next(node)) {
		struct session_binding *bound = CONTAINER_OF(node, struct session_binding, by_lock);
		if (bound->client->id == client && id128_equal(bound->lock_id, lock_id)) {
			return bound;
		}
	}
	return NULL;
}

static void session_bindings_client_tidy(struct session_bindings *l,
	struct session_bindings_client *c) {
	if (c->count == 0) {
		list_remove(&c->gone);
		map_remove(&l->by_client, &c->node);
		alloc_free(c->alloc, c, sizeof *c);
	}
}

/* The request that is to get the lock has been answered. */
static void session_bindings_settle(struct session_bindings *l, struct session_binding *bound) {
	if (bound->asked) {
		map_remove(&l->by_request, &bound->by_request);
		bound->asked = 0;
	}
}

static void session_bindings_free(struct session_bindings *l, struct session_binding *bound) {
	session_bindings_settle(l, bound);
	map_remove(&l->by_lock, &bound->by_lock);
	list_remove(&bound->among);
	bound->client->count--;
	alloc_free(bound->client->alloc, bound, sizeof *bound + bound->size);
}

/* Drops the bindings of locks that nobody released. This is done each time their number has
 * doubled, so that it costs little for each of them. */
static void session_bindings_sweep(struct session_bindings *l, struct session_bindings_client *c,
	struct instant now) {
	struct list *next;
	if (c->count < c->sweep_at) {
		return;
	}
	for (struct list *at = list_first(&c->all); at; at = next) {
		struct session_binding *bound = CONTAINER_OF(at, struct session_binding, among);
		next = list_after(&c->all, at);
		if (!bound->asked && instant_expired(now, bound->until)) {
			session_bindings_free(l, bound);
		}
	}
	c->sweep_at = 2 * c->count > SWEEP_LEAST ? 2 * c->count : SWEEP_LEAST;
}

static struct session_bindings_client *session_bindings_client_of(struct session_bindings *l,
	const struct allocator *alloc, uint64_t client) {
	struct session_bindings_client *c = session_bindings_client(l, client);
	if (c) {
		return c;
	}
	c = alloc_new(alloc, sizeof *c);
	if (c) {
		c->alloc = alloc;
		c->id = client;
		c->sweep_at = SWEEP_LEAST;
		list_init(&c->all);
		map_insert_number(&l->by_client, &c->node, client);
	}
	return c;
}

int session_bindings_put(struct session_bindings *l, const struct allocator *alloc, uint64_t client,
	uint64_t request, struct slice key, struct id128 lock_id, uint32_t binding,
	struct instant now, struct instant until) {
	struct session_binding *bound = session_bindings_find(l, client, lock_id);
	if (bound) {
		bound->again = bound->again || (bound->asked && bound->asked != request);
		bound->binding = bound->binding > binding ? bound->binding : binding;
		bound->until = instant_later(bound->until, until);
		return 0;
	}
	CHECK(key.size <= KEY_MAX);
	struct session_bindings_client *c = session_bindings_client_of(l, alloc, client);
	if (!c) {
		return PAWL_ENOMEM;
	}
	session_bindings_sweep(l, c, now);
	bound = alloc_new(alloc, sizeof *bound + key.size);
	if (!bound) {
		session_bindings_client_tidy(l, c);
		return PAWL_ENOMEM;
	}
	bound->client = c;
	bound->asked = request;
	bound->lock_id = lock_id;
	bound->binding = binding;
	bound->until = until;
	bound->size = (uint16_t)key.size;
	memcpy(bound->key, key.size ? key.data : bound->key, key.size);
	map_insert(&l->by_lock, &bound->by_lock, session_bindings_hash(l, lock_id));
	if (request) {
		map_insert_number(&l->by_request, &bound->by_request, request);
	}
	list_insert_before(c->all.next, &bound->among);
	c->count++;
	return 0;
}

void session_bindings_got(struct session_bindings *l, uint64_t client, struct id128 lock_id,
	struct instant until) {
	struct session_binding *bound = session_bindings_find(l, client, lock_id);
	if (bound) {
		bound->until = bound->asked ? until : instant_later(bound->until, until);
		session_bindings_settle(l, bound);
	}
}

/* If another request may still get the lock, the binding stays, like that of a lock that the client
 * has, until the time of that request is over. */
static void session_bindings_refused_one(struct session_bindings *l,
	struct session_binding *bound) {
	if (bound->again) {
		session_bindings_settle(l, bound);
	} else {
		session_bindings_free(l, bound);
	}
}

static void session_bindings_refused_all(struct session_bindings *l,
	struct session_bindings_client *c, uint64_t request) {
	struct map_node *next;
	for (struct map_node *n = map_first_number(&l->by_request, request); n; n = next) {
		next = map_next_number(n);
		session_bindings_refused_one(l,
			CONTAINER_OF(n, struct session_binding, by_request));
	}
	session_bindings_client_tidy(l, c);
}

void session_bindings_refused(struct session_bindings *l, uint64_t client, uint64_t request,
	const struct id128 *lock_id) {
	struct session_bindings_client *c = session_bindings_client(l, client);
	struct session_binding *bound = c && lock_id
		? session_bindings_find(l, client, *lock_id) : NULL;
	if (bound && bound->asked == request) {
		session_bindings_refused_one(l, bound);
		session_bindings_client_tidy(l, c);
	} else if (c && !lock_id) {
		session_bindings_refused_all(l, c, request);
	}
}

void session_bindings_drop(struct session_bindings *l, uint64_t client, struct id128 lock_id) {
	struct session_binding *bound = session_bindings_find(l, client, lock_id);
	if (bound) {
		struct session_bindings_client *c = bound->client;
		session_bindings_free(l, bound);
		session_bindings_client_tidy(l, c);
	}
}

const struct session_binding *session_bindings_first(const struct session_bindings *l,
	uint64_t client) {
	const struct session_bindings_client *c = session_bindings_client(l, client);
	return c ? CONTAINER_OF(list_first(&c->all), struct session_binding, among) : NULL;
}

bool session_bindings_moved(const struct session_bindings *l, const struct session_binding *bound) {
	for (struct map_node *node = map_first(&l->by_lock, bound->by_lock.hash); node;
		node = map_next(node)) {
		const struct session_binding *other = CONTAINER_OF(node,
			struct session_binding, by_lock);
		if (other->binding > bound->binding
			&& id128_equal(other->lock_id, bound->lock_id)) {
			return true;
		}
	}
	return false;
}

static void session_bindings_client_free(struct session_bindings *l,
	struct session_bindings_client *c) {
	struct list *first;
	while ((first = list_first(&c->all)) != NULL) {
		session_bindings_free(l, CONTAINER_OF(first, struct session_binding, among));
	}
	session_bindings_client_tidy(l, c);
}

void session_bindings_go(struct session_bindings *l, uint64_t client, bool release) {
	struct session_bindings_client *c = session_bindings_client(l, client);
	if (c) {
		c->release = release;
		list_append(&l->gone, &c->gone);
	}
}

bool session_bindings_gone(const struct session_bindings *l, uint64_t *out_client,
	bool *out_release) {
	struct list *first = list_first(&l->gone);
	if (first) {
		const struct session_bindings_client *c = CONTAINER_OF(first,
			struct session_bindings_client, gone);
		*out_client = c->id;
		*out_release = c->release;
	}
	return first;
}

int session_bindings_init(struct session_bindings *l, const struct allocator *alloc,
	struct siphash_key hash_key) {
	*l = (struct session_bindings){ .alloc = alloc, .hash_key = hash_key };
	list_init(&l->gone);
	if (map_init(&l->by_client, alloc) != 0 || map_init(&l->by_lock, alloc) != 0
		|| map_init(&l->by_request, alloc) != 0) {
		session_bindings_done(l);
		return PAWL_ENOMEM;
	}
	return 0;
}

static void session_bindings_client_drained(void *l, struct map_node *node) {
	session_bindings_client_free(l, CONTAINER_OF(node, struct session_bindings_client, node));
}

void session_bindings_done(struct session_bindings *l) {
	map_drain(&l->by_client, session_bindings_client_drained, l);
	map_done(&l->by_client);
	map_done(&l->by_lock);
	map_done(&l->by_request);
	*l = (struct session_bindings){ 0 };
}
