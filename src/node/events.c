#include "events_impl.h"

#include "check.h"
#include "pawl/error.h"

#define SERVE_STEPS 4096 /* news looked at for one client in one turn */

/* ---- finding ---- */

static uint64_t events_hash(const struct events *e, struct slice subject, bool prefix) {
	struct siphash_key key = e->hash_key;
	key.k1 ^= prefix;
	return siphash(key, subject.data, subject.size);
}

/* Clients are numbered by this node, so that nobody can choose where they collide. */
static uint64_t events_own_hash(uint64_t hash, uint64_t client) {
	return hash ^ client * 0x9e3779b97f4a7c15u;
}

static struct events_client *events_client(const struct events *e, uint64_t id) {
	struct map_node *node = map_first(&e->clients, id);
	return node ? CONTAINER_OF(node, struct events_client, node) : NULL;
}

static bool events_matches(const struct events_one *w, struct slice key, size_t size, bool prefix) {
	return w->prefix == prefix && w->size == size && memcmp(w->subject, key.data, size) == 0;
}

/* Calls for each watch of the key, of one client (or of all: NULL), until it returns false; false then. */
typedef bool events_visit(struct events *e, struct events_one *w, const void *arg);

static bool events_each_of(struct events *e, const struct events_client *of, struct slice key, size_t size, bool prefix,
	events_visit *visit, const void *arg) {
	uint64_t hash = events_hash(e, slice_of(key.data, size), prefix);
	struct map_node *next;
	for (struct map_node *n = of ? map_first(&e->by_own, events_own_hash(hash, of->id)) : map_first(&e->by_subject, hash); n; n = next) {
		struct events_one *w = of ? CONTAINER_OF(n, struct events_one, by_own) : CONTAINER_OF(n, struct events_one, by_subject);
		next = map_next(n);
		if ((!of || w->client == of) && events_matches(w, key, size, prefix) && !visit(e, w, arg)) {
			return false;
		}
	}
	return true;
}

static bool events_each(struct events *e, const struct events_client *of, struct slice key, events_visit *visit, const void *arg) {
	bool on = events_each_of(e, of, key, key.size, false, visit, arg);
	for (size_t size = 0; on && size <= key.size && size <= KEY_MAX; size++) {
		on = !e->prefixes[size] || events_each_of(e, of, key, size, true, visit, arg);
	}
	return on;
}

/* ---- telling ---- */

struct events_telling {
	uint64_t number;
	const struct core_news *news;
};

static bool events_shows_lock_id(const struct events_client *c, const struct core_news *n) {
	return c->admin || slice_equal(slice_of(c->identity, c->identity_size), n->identity);
}

/* A gap without a key concerns everybody. */
static bool events_is_global(const struct core_news *news) {
	return news->kind == NEWS_GAP && news->key.size == 0;
}

/* False: not now. */
static bool events_tell(struct events *e, struct events_one *w, const struct events_telling *t) {
	const struct core_news *news = t->news && events_is_global(t->news) ? NULL : t->news;
	const struct events_item item = { .watch = w->id, .position = { e->log, t->number }, .news = news,
		.show_lock_id = news && news->kind != NEWS_GAP && events_shows_lock_id(w->client, news) };
	if (e->port->tell(e->ctx, w->client->id, &item) != 0) {
		return false;
	}
	e->told++;
	w->since = t->number + 1;
	return true;
}

static void events_lag(struct events *e, struct events_client *c, uint64_t next) {
	c->next = next;
	list_append(&e->lagging, &c->lagging);
}

static bool events_tell_at_once(struct events *e, struct events_one *w, const void *arg) {
	const struct events_telling *t = arg;
	struct events_client *c = w->client;
	if (!list_linked(&c->lagging) && (list_linked(&c->doubted) || e->port->full(e->ctx, c->id) || !events_tell(e, w, t))) {
		events_lag(e, c, t->number); /* what its other watches were told of this one is noted in `since` */
	}
	return true;
}

static void events_tell_all(struct events *e, const struct events_telling *t) {
	for (size_t bucket = 0; bucket < e->clients.bucket_count; bucket++) {
		for (struct map_node *n = map_bucket(&e->clients, bucket); n; n = map_next_in_bucket(n)) {
			struct events_client *c = CONTAINER_OF(n, struct events_client, node);
			for (struct list *at = list_first(&c->watches); at; at = list_after(&c->watches, at)) {
				events_tell_at_once(e, CONTAINER_OF(at, struct events_one, among), t);
			}
		}
	}
}

void events_add(struct events *e, const struct core_news *news) {
	if (!events_is_open(e)) {
		return;
	}
	news_ring_push(&e->ring, news);
	const struct events_telling t = { e->ring.next - 1, news };
	if (events_is_global(news)) {
		events_tell_all(e, &t);
	} else {
		events_each(e, NULL, news->key, events_tell_at_once, &t);
	}
}

/* ---- those that are behind ---- */

static bool events_tell_late(struct events *e, struct events_one *w, const void *arg) {
	const struct events_telling *t = arg;
	return w->since > t->number || events_tell(e, w, t);
}

static bool events_serve_gap(struct events *e, struct events_client *c, const struct events_telling *t) {
	bool on = true;
	for (struct list *at = list_first(&c->watches); on && at; at = list_after(&c->watches, at)) {
		on = events_tell_late(e, CONTAINER_OF(at, struct events_one, among), t);
	}
	return on;
}

/* The ring has gone on without it: a watch that lost something goes on with what comes now, for its owner reads anew. */
static bool events_serve_overflow(struct events *e, struct events_client *c) {
	const struct events_telling now = { e->ring.next - 1, NULL };
	bool on = true;
	for (struct list *at = list_first(&c->watches); on && at; at = list_after(&c->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, among);
		on = w->since >= e->ring.oldest || events_tell(e, w, &now);
	}
	if (on) {
		c->next = e->ring.oldest;
	}
	return on;
}

static bool events_serve_one(struct events *e, struct events_client *c) {
	if (c->next < e->ring.oldest) {
		return events_serve_overflow(e, c);
	}
	const struct events_telling t = { c->next, news_ring_at(&e->ring, c->next) };
	bool on = events_is_global(t.news) ? events_serve_gap(e, c, &t) : events_each(e, c, t.news->key, events_tell_late, &t);
	c->next += on;
	return on;
}

/* True: it got on, and is not up to date. */
static bool events_serve_client(struct events *e, struct events_client *c) {
	uint64_t told = e->told;
	unsigned steps = 0;
	bool may = !list_linked(&c->doubted);
	while (may && c->next < e->ring.next && steps < SERVE_STEPS && !e->port->full(e->ctx, c->id) && events_serve_one(e, c)) {
		steps++;
	}
	if (c->next == e->ring.next) {
		list_remove(&c->lagging);
		return false;
	}
	return steps > 0 || e->told != told;
}

bool events_serve(struct events *e) {
	bool on = false;
	struct list *next;
	for (struct list *at = list_first(&e->lagging); at; at = next) {
		next = list_after(&e->lagging, at);
		on |= events_serve_client(e, CONTAINER_OF(at, struct events_client, lagging));
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
		memcpy(c->identity, who->identity.size ? who->identity.data : c->identity, who->identity.size);
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

/* The client is to be told from that number on: what its other watches were told already they are not told again. */
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

/* The first number that is for it. One of another log, or one that has not been yet, has nothing to do with these. */
static uint64_t events_since(const struct events *e, const struct events_position *from) {
	if (!from) {
		return e->ring.next;
	}
	return from->log == e->log && from->number < e->ring.next ? from->number + 1 : 0;
}

int events_watch(struct events *e, const struct events_watcher *who, struct slice subject, bool prefix,
	const struct events_position *from, uint32_t limit, uint64_t *out_watch) {
	CHECK(events_is_open(e) && subject.size <= KEY_MAX);
	struct events_client *c = events_client_of(e, who);
	if (!c) {
		return PAWL_ENOMEM;
	}
	struct events_one *w = c->count < limit ? alloc_new(e->alloc, sizeof *w + subject.size) : NULL;
	if (!w) {
		int error = c->count < limit ? PAWL_ENOMEM : PAWL_EFULL;
		events_client_tidy(e, c);
		return error;
	}
	w->client = c;
	w->id = ++e->last_id;
	w->since = events_since(e, from);
	w->prefix = prefix;
	w->rules = e->rules;
	w->size = (uint16_t)subject.size;
	memcpy(w->subject, subject.size ? subject.data : w->subject, subject.size);
	events_go_back(e, c, w->since);
	uint64_t hash = events_hash(e, subject, prefix);
	map_insert(&e->by_subject, &w->by_subject, hash);
	map_insert(&e->by_own, &w->by_own, events_own_hash(hash, c->id));
	list_append(&c->watches, &w->among);
	c->count++;
	e->prefixes[subject.size] += prefix;
	*out_watch = w->id;
	return 0;
}

static void events_remove(struct events *e, struct events_one *w) {
	map_remove(&e->by_subject, &w->by_subject);
	map_remove(&e->by_own, &w->by_own);
	list_remove(&w->among);
	w->client->count--;
	e->prefixes[w->size] -= w->prefix;
	alloc_free(e->alloc, w, sizeof *w + w->size);
}

bool events_unwatch(struct events *e, uint64_t client, uint64_t watch) {
	struct events_client *c = events_client(e, client);
	for (struct list *at = c ? list_first(&c->watches) : NULL; at; at = list_after(&c->watches, at)) {
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

static bool events_count_client(struct events *e, struct events_one *w, const void *arg) {
	uint32_t *count = *(uint32_t *const *)arg;
	if (w->client->stamp != e->stamp) {
		w->client->stamp = e->stamp;
		++*count;
	}
	return true;
}

uint32_t events_watchers(struct events *e, struct slice key) {
	uint32_t count = 0, *to = &count;
	e->stamp++;
	events_each(e, NULL, key, events_count_client, &to);
	return count;
}

uint32_t events_watches(const struct events *e, uint64_t client) {
	const struct events_client *c = events_client(e, client);
	return c ? c->count : 0;
}

/* ---- life ---- */

int events_open(struct events *e) {
	return events_is_open(e) ? 0 : news_ring_open(&e->ring, e->ring_bytes);
}

void events_close(struct events *e) {
	CHECK(e->by_subject.count == 0);
	if (events_is_open(e)) {
		news_ring_close(&e->ring);
	}
}

int events_init(struct events *e, const struct allocator *alloc, struct siphash_key hash_key, uint64_t log,
	const struct events_port *port, void *ctx) {
	*e = (struct events){ .alloc = alloc, .port = port, .ctx = ctx, .hash_key = hash_key, .log = log, .ring_bytes = EVENTS_RING_BYTES };
	list_init(&e->lagging);
	list_init(&e->doubted);
	news_ring_init(&e->ring, alloc);
	if (map_init(&e->clients, alloc) != 0 || map_init(&e->by_subject, alloc) != 0 || map_init(&e->by_own, alloc) != 0) {
		events_done(e);
		return PAWL_ENOMEM;
	}
	return 0;
}

void events_done(struct events *e) {
	map_walk_begin(&e->clients); /* removing must not move those that are still to come */
	for (size_t bucket = 0; bucket < e->clients.bucket_count; bucket++) {
		struct map_node *node;
		while ((node = map_bucket(&e->clients, bucket)) != NULL) {
			events_client_free(e, CONTAINER_OF(node, struct events_client, node));
		}
	}
	map_walk_end(&e->clients);
	map_done(&e->by_subject);
	map_done(&e->by_own);
	map_done(&e->clients);
	news_ring_done(&e->ring);
	*e = (struct events){ 0 };
}
