/* events.c: the tables of clients, of the keys and prefixes that they watch, and of their watches.
 */
#include "events_impl.h"

#include "check.h"
#include "pawl/error.h"

/* How many clients events_watchers looks at. */
#define COUNT_VISITS 1000u

/* ---- finding ---- */

static uint64_t events_hash(const struct events *e, struct slice subject, bool prefix) {
	return siphash_short(e->hash_keys[prefix], subject.data, subject.size);
}

/* This node numbers the clients, so nobody can choose where they collide. */
static uint64_t events_own_hash(uint64_t hash, uint64_t client) {
	return hash ^ client * 0x9e3779b97f4a7c15u;
}

struct events_client *events_client(const struct events *e, uint64_t id) {
	struct map_node *node = map_first_number(&e->clients, id);
	return node ? CONTAINER_OF(node, struct events_client, node) : NULL;
}

static bool events_is_subject(const struct events_subject *s, struct slice subject, bool prefix) {
	return s->prefix == prefix && s->size == subject.size
		&& memcmp(s->bytes, subject.data, subject.size) == 0;
}

/* Returns whether the key is the subject, or has the subject as a prefix. */
static bool events_is_match(const struct events_subject *s, struct slice key) {
	return (s->prefix ? s->size <= key.size : s->size == key.size)
		&& memcmp(s->bytes, key.data, s->size) == 0;
}

struct events_subject *events_subject(const struct events *e, uint64_t hash, struct slice subject,
	bool prefix) {
	for (struct map_node *n = map_first(&e->by_subject, hash); n; n = map_next(n)) {
		struct events_subject *s = CONTAINER_OF(n, struct events_subject, node);
		if (events_is_subject(s, subject, prefix)) {
			return s;
		}
	}
	return NULL;
}

static struct events_entry *events_entry(const struct events *e, uint64_t hash,
	const struct events_client *c, struct slice subject, bool prefix) {
	for (struct map_node *n = map_first(&e->by_own, events_own_hash(hash, c->id)); n;
		n = map_next(n)) {
		struct events_entry *entry = CONTAINER_OF(n, struct events_entry, by_own);
		if (entry->client == c && events_is_subject(entry->subject, subject, prefix)) {
			return entry;
		}
	}
	return NULL;
}

bool events_match_next(const struct events *e, struct events_match *m, struct slice key) {
	size_t most = key.size < KEY_MAX ? key.size : KEY_MAX;
	m->prefix = m->looked > 0;
	if (!m->prefix) {
		m->looked++;
		m->size = key.size;
		m->hash = events_hash(e, key, false);
		return true;
	}
	while (e->prefix_sizes > 0 && m->looked <= most + 1) {
		if (m->looked == 1) {
			siphash_prefixes_begin(&m->hashes, e->hash_keys[true]);
		}
		m->size = m->looked++ - 1;
		if (e->prefixes[m->size]) {
			m->hash = siphash_prefixes_next(&m->hashes, key.data, m->size);
			return true;
		}
	}
	return false;
}

static bool events_each_found(struct events *e, const struct events_client *c, struct slice key,
	events_visit *visit, const void *arg) {
	struct events_match m = { 0 };
	bool on = true;
	while (on && events_match_next(e, &m, key)) {
		struct events_entry *entry = events_entry(e, m.hash, c, slice_of(key.data, m.size),
			m.prefix);
		on = !entry || visit(e, entry, arg);
	}
	return on;
}

bool events_each_of(struct events *e, const struct events_client *c, struct slice key,
	events_visit *visit, const void *arg) {
	bool on = true;
	/* Whatever others watch, a client that watches little costs little. */
	if (c->entry_count > e->prefix_sizes + 1) {
		return events_each_found(e, c, key, visit, arg);
	}
	for (struct list *at = list_first(&c->entries); on && at;
		at = list_after(&c->entries, at)) {
		struct events_entry *entry = CONTAINER_OF(at, struct events_entry, among);
		on = !events_is_match(entry->subject, key) || visit(e, entry, arg);
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
		list_init(&c->entries);
		list_append(&e->everybody, &c->among);
		map_insert_number(&e->clients, &c->node, c->id);
	}
	return c;
}

static void events_client_tidy(struct events *e, struct events_client *c) {
	if (c->count == 0) {
		events_walk_leave_client(e, c);
		list_remove(&c->among);
		list_remove(&c->lagging);
		list_remove(&c->doubted);
		map_remove(&e->clients, &c->node);
		alloc_free(e->alloc, c, sizeof *c);
	}
}

/* The client is to be told from that number on. Its other watches are not told again what they have
 * already been told. */
static void events_go_back(struct events *e, struct events_client *c, uint64_t to) {
	uint64_t told = list_linked(&c->lagging) ? c->next : e->walk.number;
	/* The walk of the event `told` may have passed the place of the new watch. */
	if (to > told || to == e->ring.next || (to == told && list_linked(&c->lagging))) {
		return;
	}
	for (struct list *at = list_first(&c->entries); at; at = list_after(&c->entries, at)) {
		struct events_entry *entry = CONTAINER_OF(at, struct events_entry, among);
		for (struct list *of = list_first(&entry->watches); of;
			of = list_after(&entry->watches, of)) {
			struct events_one *w = CONTAINER_OF(of, struct events_one, of_entry);
			w->since = w->since > told ? w->since : told;
		}
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
	struct events_subject *s = events_subject(e, hash, subject, prefix);
	if (!s && (s = alloc_new(e->alloc, sizeof *s + subject.size)) != NULL) {
		list_init(&s->entries);
		s->prefix = prefix;
		s->size = (uint16_t)subject.size;
		memcpy(s->bytes, subject.size ? subject.data : s->bytes, subject.size);
		map_insert(&e->by_subject, &s->node, hash);
		e->prefixes[s->size] += prefix;
		e->prefix_sizes += prefix && e->prefixes[s->size] == 1;
	}
	return s;
}

static void events_subject_tidy(struct events *e, struct events_subject *s) {
	if (list_empty(&s->entries)) {
		events_walk_leave_subject(e, s);
		e->prefixes[s->size] -= s->prefix;
		e->prefix_sizes -= s->prefix && e->prefixes[s->size] == 0;
		map_remove(&e->by_subject, &s->node);
		alloc_free(e->alloc, s, sizeof *s + s->size);
	}
}

static size_t events_entry_bytes(const struct events_subject *s) {
	return sizeof(struct events_entry) + sizeof *s + s->size;
}

/* Returns the client's entry for the subject, which is made if there is none, or NULL. */
static struct events_entry *events_entry_of(struct events *e, struct events_client *c,
	struct slice subject, bool prefix) {
	uint64_t hash = events_hash(e, subject, prefix);
	struct events_entry *entry = events_entry(e, hash, c, subject, prefix);
	struct events_subject *s = entry ? NULL : events_subject_of(e, subject, prefix);
	if (!s) {
		return entry;
	}
	entry = alloc_new(e->alloc, sizeof *entry);
	if (!entry) {
		events_subject_tidy(e, s);
		return NULL;
	}
	entry->client = c;
	entry->subject = s;
	entry->rules = e->rules;
	list_init(&entry->watches);
	map_insert(&e->by_own, &entry->by_own, events_own_hash(hash, c->id));
	list_append(&c->entries, &entry->among);
	list_append(&s->entries, &entry->of_subject);
	events_walk_found(e, s);
	c->entry_count++;
	c->bytes += events_entry_bytes(s);
	s->clients++;
	return entry;
}

static void events_entry_tidy(struct events *e, struct events_entry *entry) {
	struct events_client *c = entry->client;
	struct events_subject *s = entry->subject;
	if (!list_empty(&entry->watches)) {
		return;
	}
	events_walk_leave_entry(e, entry);
	map_remove(&e->by_own, &entry->by_own);
	list_remove(&entry->among);
	list_remove(&entry->of_subject);
	c->entry_count--;
	c->bytes -= events_entry_bytes(s);
	s->clients--;
	alloc_free(e->alloc, entry, sizeof *entry);
	events_subject_tidy(e, s);
}

static int events_add_watch(struct events *e, struct events_client *c, struct slice subject,
	bool prefix, uint64_t since) {
	struct events_entry *entry = events_entry_of(e, c, subject, prefix);
	struct events_one *w = entry ? alloc_new(e->alloc, sizeof *w) : NULL;
	if (!w) {
		if (entry) {
			events_entry_tidy(e, entry);
		}
		return PAWL_ENOMEM;
	}
	w->entry = entry;
	w->id = ++e->last_id;
	w->since = since;
	events_go_back(e, c, w->since);
	events_place(e, w, &entry->watches);
	c->count++;
	c->bytes += sizeof *w;
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
	struct events_entry *entry = w->entry;
	list_remove(&w->of_entry);
	entry->told = entry->told == w ? NULL : entry->told;
	entry->client->count--;
	entry->client->bytes -= sizeof *w;
	e->count--;
	alloc_free(e->alloc, w, sizeof *w);
	events_entry_tidy(e, entry);
}

static struct events_one *events_find_one(const struct events_entry *entry, uint64_t watch) {
	for (struct list *at = list_first(&entry->watches); at;
		at = list_after(&entry->watches, at)) {
		struct events_one *w = CONTAINER_OF(at, struct events_one, of_entry);
		if (w->id == watch) {
			return w;
		}
	}
	return NULL;
}

bool events_unwatch(struct events *e, uint64_t client, uint64_t watch) {
	struct events_client *c = events_client(e, client);
	struct events_one *w = NULL;
	for (struct list *at = c ? list_first(&c->entries) : NULL; at && !w;
		at = list_after(&c->entries, at)) {
		w = events_find_one(CONTAINER_OF(at, struct events_entry, among), watch);
	}
	if (w) {
		events_remove(e, w);
		events_client_tidy(e, c);
	}
	return w;
}

static uint32_t events_client_free(struct events *e, struct events_client *c, uint32_t most) {
	uint32_t removed = 0;
	struct list *first;
	while (removed < most && (first = list_first(&c->entries)) != NULL) {
		struct events_entry *entry = CONTAINER_OF(first, struct events_entry, among);
		events_remove(e, CONTAINER_OF(list_first(&entry->watches), struct events_one,
				of_entry));
		removed++;
	}
	events_client_tidy(e, c);
	return removed;
}

uint32_t events_forget(struct events *e, uint64_t client, uint32_t most) {
	struct events_client *c = events_client(e, client);
	return c ? events_client_free(e, c, most) : 0;
}

/* Looks at no more than *visits clients. Returns how many of them had not been counted. */
static uint32_t events_count_clients(struct events *e, const struct events_subject *s,
	uint32_t *visits) {
	uint32_t count = 0;
	for (struct list *at = list_first(&s->entries); at && *visits > 0;
		at = list_after(&s->entries, at)) {
		struct events_client *c = CONTAINER_OF(at, struct events_entry, of_subject)->client;
		count += c->stamp != e->stamp;
		c->stamp = e->stamp;
		--*visits;
	}
	return count;
}

uint32_t events_watchers(struct events *e, struct slice key) {
	uint32_t count = 0, most = 0, visits = COUNT_VISITS;
	struct events_match m = { 0 };
	e->stamp++;
	while (events_match_next(e, &m, key)) {
		const struct events_subject *s = events_subject(e, m.hash,
			slice_of(key.data, m.size), m.prefix);
		if (s) {
			count += events_count_clients(e, s, &visits);
			most = s->clients > most ? s->clients : most;
		}
	}
	return count > most ? count : most;
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
		events_walk_reset(e);
	}
}

int events_init(struct events *e, const struct allocator *alloc, struct siphash_key hash_key,
	uint64_t log, const struct events_port *port, void *ctx) {
	*e = (struct events){ .alloc = alloc, .port = port, .ctx = ctx,
		.hash_keys = { hash_key, { hash_key.k0, hash_key.k1 ^ 1 } },
		.log = log, .ring_bytes = EVENTS_RING_BYTES };
	list_init(&e->lagging);
	list_init(&e->full);
	list_init(&e->doubted);
	list_init(&e->everybody);
	events_turn(e, false);
	watch_event_ring_init(&e->ring, alloc);
	events_walk_reset(e);
	if (map_init(&e->clients, alloc) != 0 || map_init(&e->by_subject, alloc) != 0
		|| map_init(&e->by_own, alloc) != 0) {
		events_done(e);
		return PAWL_ENOMEM;
	}
	return 0;
}

static void events_client_drained(void *e, struct map_node *node) {
	events_client_free(e, CONTAINER_OF(node, struct events_client, node), UINT32_MAX);
}

void events_done(struct events *e) {
	map_drain(&e->clients, events_client_drained, e);
	map_done(&e->by_subject);
	map_done(&e->by_own);
	map_done(&e->clients);
	watch_event_ring_done(&e->ring);
	*e = (struct events){ 0 };
}
