/* events.c: the tables of clients, of the keys and prefixes that they watch, and of their watches.
 */
#include "events_impl.h"

#include "check.h"
#include "pawl/error.h"

/* ---- finding ---- */

static uint64_t events_hash(const struct events *e, struct slice subject, bool prefix) {
	struct siphash_key key = e->hash_key;
	key.k1 ^= prefix;
	return siphash(key, subject.data, subject.size);
}

/* This node numbers the clients, so nobody can choose where they collide. */
static uint64_t events_own_hash(uint64_t hash, uint64_t client) {
	return hash ^ client * 0x9e3779b97f4a7c15u;
}

struct events_client *events_client(const struct events *e, uint64_t id) {
	struct map_node *node = map_first(&e->clients, id);
	return node ? CONTAINER_OF(node, struct events_client, node) : NULL;
}

static bool events_matches(const struct events_subject *s, struct slice key, size_t size,
	bool prefix) {
	return s->prefix == prefix && s->size == size && memcmp(s->bytes, key.data, size) == 0;
}

static struct events_subject *events_subject(const struct events *e, uint64_t hash,
	struct slice key, size_t size, bool prefix) {
	for (struct map_node *n = map_first(&e->by_subject, hash); n; n = map_next(n)) {
		struct events_subject *s = CONTAINER_OF(n, struct events_subject, node);
		if (events_matches(s, key, size, prefix)) {
			return s;
		}
	}
	return NULL;
}

static bool events_each_own(struct events *e, const struct events_client *c, uint64_t hash,
	struct slice key, size_t size, bool prefix, events_visit *visit, const void *arg) {
	struct map_node *next;
	for (struct map_node *n = map_first(&e->by_own, events_own_hash(hash, c->id));
		n; n = next) {
		struct events_one *w = CONTAINER_OF(n, struct events_one, by_own);
		next = map_next(n);
		if (w->client == c && events_matches(w->subject, key, size, prefix)
			&& !visit(e, w, arg)) {
			return false;
		}
	}
	return true;
}

void events_each(struct events *e, struct slice key, events_visit_subject *visit, const void *arg) {
	struct events_subject *s = events_subject(e, events_hash(e, key, false), key,
		key.size, false);
	if (s) {
		visit(e, s, arg);
	}
	for (size_t size = 0; size <= key.size && size <= KEY_MAX; size++) {
		s = e->prefixes[size]
			? events_subject(e, events_hash(e, slice_of(key.data, size), true), key,
				size, true) : NULL;
		if (s) {
			visit(e, s, arg);
		}
	}
}

bool events_each_of(struct events *e, const struct events_client *c, struct slice key,
	events_visit *visit, const void *arg) {
	bool on = events_each_own(e, c, events_hash(e, key, false), key, key.size,
		false, visit, arg);
	for (size_t size = 0; on && size <= key.size && size <= KEY_MAX; size++) {
		on = !e->prefixes[size]
			|| events_each_own(e, c, events_hash(e, slice_of(key.data, size), true),
				key, size, true, visit, arg);
	}
	return on;
}

/* ---- watches ---- */

static struct events_client *events_client_of(struct events *e, const struct events_watcher *who) {
	struct events_client *c = events_client(e, who->client);
	CHECK(who->identity.size <= IDENTITY_MAX);
	if (c) {
		return c;
	}
	c = alloc_new(e->alloc, sizeof *c);
	if (c) {
		c->id = who->client;
		c->admin = who->admin;
		c->identity_size = (uint8_t)who->identity.size;
		memcpy(c->identity, who->identity.size ? who->identity.data : c->identity,
			who->identity.size);
		list_init(&c->watches);
		map_insert(&e->clients, &c->node, c->id);
	}
	return c;
}

static void events_client_tidy(struct events *e, struct events_client *c) {
	if (c->count == 0) {
		list_remove(&c->lagging);
		list_remove(&c->doubted);
		map_remove(&e->clients, &c->node);
		alloc_free(e->alloc, c, sizeof *c);
	}
}

/* The client is to be told from that number on. Its other watches are not told again what they have
 * already been told. */
static void events_go_back(struct events *e, struct events_client *c, uint64_t to) {
	uint64_t told = list_linked(&c->lagging) ? c->next : e->ring.next;
	if (to >= told) {
		return;
	}
	for (struct list *at = list_first(&c->watches); at; at = list_after(&c->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, among);
		w->since = w->since > told ? w->since : told;
	}
	list_remove(&c->lagging);
	events_lag(e, c, to);
}

/* Returns the first number that is for a watch. A position of another log, or one that has not been
 * reached yet, has nothing to do with the numbers here. */
static uint64_t events_since(const struct events *e, const struct events_position *from) {
	if (!from) {
		return e->ring.next;
	}
	return from->log == e->log && from->number < e->ring.next ? from->number + 1 : 0;
}

static struct events_subject *events_subject_of(struct events *e, struct slice subject,
	bool prefix) {
	uint64_t hash = events_hash(e, subject, prefix);
	struct events_subject *s = events_subject(e, hash, subject, subject.size, prefix);
	if (!s && (s = alloc_new(e->alloc, sizeof *s + subject.size)) != NULL) {
		list_init(&s->watches);
		s->prefix = prefix;
		s->size = (uint16_t)subject.size;
		memcpy(s->bytes, subject.size ? subject.data : s->bytes, subject.size);
		map_insert(&e->by_subject, &s->node, hash);
		e->prefixes[s->size] += prefix;
	}
	return s;
}

static void events_subject_tidy(struct events *e, struct events_subject *s) {
	if (list_empty(&s->watches)) {
		e->prefixes[s->size] -= s->prefix;
		map_remove(&e->by_subject, &s->node);
		alloc_free(e->alloc, s, sizeof *s + s->size);
	}
}

static size_t events_watch_bytes(const struct events_subject *s) {
	return sizeof(struct events_one) + sizeof *s + s->size;
}

static int events_add_watch(struct events *e, struct events_client *c, struct slice subject,
	bool prefix, uint64_t since) {
	struct events_subject *s = events_subject_of(e, subject, prefix);
	struct events_one *w = s ? alloc_new(e->alloc, sizeof *w) : NULL;
	if (!w) {
		if (s) {
			events_subject_tidy(e, s);
		}
		return PAWL_ENOMEM;
	}
	w->client = c;
	w->subject = s;
	w->id = ++e->last_id;
	w->since = since;
	w->rules = e->rules;
	events_go_back(e, c, w->since);
	map_insert(&e->by_own, &w->by_own, events_own_hash(events_hash(e, subject, prefix), c->id));
	list_append(&c->watches, &w->among);
	list_append(&s->watches, &w->of_subject);
	s->all_behind = false;
	c->count++;
	c->bytes += events_watch_bytes(s);
	e->count++;
	return 0;
}

int events_watch(struct events *e, const struct events_watcher *who, struct slice subject,
	bool prefix, const struct events_position *from, uint32_t limit, uint64_t *out_watch) {
	CHECK(events_is_open(e) && subject.size <= KEY_MAX);
	struct events_client *c = events_client_of(e, who);
	if (!c) {
		return PAWL_ENOMEM;
	}
	int error = c->count < limit
		? events_add_watch(e, c, subject, prefix, events_since(e, from)) : PAWL_EFULL;
	events_client_tidy(e, c);
	*out_watch = e->last_id;
	return error;
}

static void events_remove(struct events *e, struct events_one *w) {
	map_remove(&e->by_own, &w->by_own);
	list_remove(&w->among);
	list_remove(&w->of_subject);
	w->client->count--;
	w->client->bytes -= events_watch_bytes(w->subject);
	e->count--;
	events_subject_tidy(e, w->subject);
	alloc_free(e->alloc, w, sizeof *w);
}

bool events_unwatch(struct events *e, uint64_t client, uint64_t watch) {
	struct events_client *c = events_client(e, client);
	for (struct list *at = c ? list_first(&c->watches) : NULL; at;
		at = list_after(&c->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, among);
		if (w->id == watch) {
			events_remove(e, w);
			events_client_tidy(e, c);
			return true;
		}
	}
	return false;
}

static void events_client_free(struct events *e, struct events_client *c) {
	struct list *first;
	while ((first = list_first(&c->watches)) != NULL) {
		events_remove(e, CONTAINER_OF(first, struct events_one, among));
	}
	events_client_tidy(e, c);
}

void events_forget(struct events *e, uint64_t client) {
	struct events_client *c = events_client(e, client);
	if (c) {
		events_client_free(e, c);
	}
}

static void events_count_clients(struct events *e, struct events_subject *s, const void *arg) {
	uint32_t *count = *(uint32_t *const *)arg;
	for (struct list *at = list_first(&s->watches); at; at = list_after(&s->watches, at)) {
		struct events_client *c = CONTAINER_OF(at, struct events_one, of_subject)->client;
		if (c->stamp != e->stamp) {
			c->stamp = e->stamp;
			++*count;
		}
	}
}

uint32_t events_watchers(struct events *e, struct slice key) {
	uint32_t count = 0, *to = &count;
	e->stamp++;
	events_each(e, key, events_count_clients, &to);
	return count;
}

uint32_t events_watches(const struct events *e, uint64_t client) {
	const struct events_client *c = events_client(e, client);
	return c ? c->count : 0;
}

size_t events_bytes(const struct events *e, uint64_t client) {
	const struct events_client *c = events_client(e, client);
	return c ? c->bytes : 0;
}

/* ---- life ---- */

int events_open(struct events *e) {
	return events_is_open(e) ? 0 : watch_event_ring_open(&e->ring, e->ring_bytes);
}

void events_close(struct events *e) {
	CHECK(e->count == 0);
	if (events_is_open(e)) {
		watch_event_ring_close(&e->ring);
	}
}

int events_init(struct events *e, const struct allocator *alloc, struct siphash_key hash_key,
	uint64_t log, const struct events_port *port, void *ctx) {
	*e = (struct events){ .alloc = alloc, .port = port, .ctx = ctx, .hash_key = hash_key,
		.log = log, .ring_bytes = EVENTS_RING_BYTES };
	list_init(&e->lagging);
	list_init(&e->full);
	list_init(&e->doubted);
	events_turn(e);
	watch_event_ring_init(&e->ring, alloc);
	if (map_init(&e->clients, alloc) != 0 || map_init(&e->by_subject, alloc) != 0
		|| map_init(&e->by_own, alloc) != 0) {
		events_done(e);
		return PAWL_ENOMEM;
	}
	return 0;
}

static void events_client_drained(void *e, struct map_node *node) {
	events_client_free(e, CONTAINER_OF(node, struct events_client, node));
}

void events_done(struct events *e) {
	map_drain(&e->clients, events_client_drained, e);
	map_done(&e->by_subject);
	map_done(&e->by_own);
	map_done(&e->clients);
	watch_event_ring_done(&e->ring);
	*e = (struct events){ 0 };
}
