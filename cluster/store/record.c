/* record.c: a held record in one block of memory: the fields that every lock has, and then its
 * bytes (section 1).
 *
 * A record names who drew the ballot of its value: a node and its boot. Nearly all records name one
 * of a few, so a record has a number of 16 bits for it (record.origin), and this file counts the
 * records that have each number. */
#include "store.h"

_Static_assert(sizeof(struct terms) % 8 == 0 && sizeof(struct lapsing) % 8 == 0 &&
	sizeof(struct older) % 8 == 0, "the size of the terms is in words");

uint8_t terms_rest(const struct terms *t) {
	return terms_semaphore(t) ? sizeof *t + sizeof(struct lapsing) + sizeof(struct older)
		: t->priority || t->delay ? sizeof *t
		: 0;
}

struct slice record_owner(const struct record *r) {
	return slice_of(r->bytes + record_terms_size(r), r->owner_size);
}

struct slice record_identity(const struct record *r) {
	return slice_of(r->bytes + record_terms_size(r) + r->owner_size, r->identity_size);
}

struct slice record_label(const struct record *r) {
	return slice_of(r->bytes + record_terms_size(r) + r->owner_size + r->identity_size,
		r->label_size);
}

/* Returns the size of what stands in front of the ballot. The value is the last of it. */
static size_t before_ballot(const struct record *r) {
	return record_terms_size(r) + r->owner_size + r->identity_size + r->label_size +
		r->value_size;
}

struct slice record_value(const struct record *r) {
	return slice_of(r->bytes + before_ballot(r) - r->value_size, r->value_size);
}

/* The bytes begin in the padding of the struct, of which no record has less. */
static size_t size_with(size_t bytes) {
	const size_t size = offsetof(struct record, bytes) + bytes;
	return size > sizeof(struct record) ? size : sizeof(struct record);
}

/* Returns the size of all that stands behind the fields. The binding is the last of it. */
static size_t bytes_of(const struct record *r) {
	return before_ballot(r) + (r->ballot_room ? sizeof(struct ballot) : 0) +
		(r->bindable ? sizeof(uint32_t) : 0);
}

uint32_t record_binding(const struct record *r) {
	uint32_t binding = 0;
	if (r->bindable) {
		memcpy(&binding, r->bytes + bytes_of(r) - sizeof binding, sizeof binding);
	}
	return binding;
}

static void put_binding(struct record *r, uint32_t binding) {
	memcpy(r->bytes + bytes_of(r) - sizeof binding, &binding, sizeof binding);
}

void record_put_terms(struct record *r, const struct terms *terms) {
	r->of = terms->of;
	if (r->terms_words > 0) {
		memcpy(r->bytes, terms, sizeof *terms);
	}
	if (r->bindable) {
		put_binding(r, terms->binding);
	}
}

struct terms record_terms(const struct record *r) {
	struct terms t = record_plain_terms(r);
	t.binding = record_binding(r);
	return t;
}

size_t record_size(const struct record *r) {
	return size_with(bytes_of(r));
}

/* style: record, because a new record is in no table yet. */
struct record *record_new(struct core *core, const struct message *m) {
	const uint8_t rest = terms_rest(&m->terms);
	const size_t size = size_with(rest + m->owner.size + m->identity.size + m->label.size +
		m->value.size + (m->terms.binding ? sizeof m->terms.binding : 0));
	struct record *r = alloc_new(&core->alloc, size);
	if (r == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	if (!record_origin_take(core, m->ballot, &r->origin)) {
		alloc_free(&core->alloc, r, size);
		return NULL;
	}
	r->lock_id = m->lock_id;
	r->token = m->token;
	r->wrote_clock = m->ballot.clock;
	const uint64_t since = (uint64_t)clock_saturating_add(core->now.boot,
		-span_from_us(m->age_us)) >> SINCE_UNIT_BITS;
	r->since_low = (uint32_t)since;
	r->since_high = (uint8_t)(since >> 32);
	r->terms_words = (size_t)rest / 8 & 0x1f;
	r->bindable = m->terms.binding > 0;
	r->barred = (m->flags & FLAG_BARRED) != 0;
	/* Those who decode and ask have checked the sizes. */
	r->owner_size = m->owner.size & 0x1ff;
	r->identity_size = (uint8_t)m->identity.size;
	r->label_size = m->label.size & 0x1ff;
	r->value_size = m->value.size & 0x1fffff;
	slice_put(slice_put(slice_put(slice_put(
		r->bytes + rest, m->owner), m->identity), m->label), m->value);
	record_put_terms(r, &m->terms);
	return r;
}

struct record *record_with_value(struct core *core, struct slice value, struct ballot wrote) {
	struct message m = { .value = value, .ballot = wrote };
	return record_new(core, &m);
}

void record_free(struct core *core, struct record *r) {
	if (r) {
		record_origin_give(core, r->origin);
		alloc_free(&core->alloc, r, size_with(bytes_of(r)));
	}
}

struct ballot record_prepared(const struct core *core, const struct record *r) {
	struct ballot prepared = record_wrote(core, r);
	if (r->prepared) {
		memcpy(&prepared, r->bytes + before_ballot(r), sizeof prepared);
	}
	return prepared;
}

/* Gives the record another size. False: no memory. */
static bool resize(struct core *core, struct record **at, size_t size) {
	const size_t old = record_size(*at);
	struct record *r = size == old ? *at : alloc_resize(&core->alloc, *at, old, size);
	if (r == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	*at = r;
	return true;
}

/* style: record, because whoever sets ballots and values says so. */
bool record_write(struct core *core, struct record **at, const struct slice *value,
	struct ballot wrote, struct ballot prepared) {
	const bool differ = ballot_compare(wrote, prepared) != 0,
		room = (*at)->ballot_room || differ;
	const size_t size = size_with(bytes_of(*at) +
		(room && !(*at)->ballot_room ? sizeof prepared : 0) +
		(value ? value->size - (*at)->value_size : 0));
	const uint32_t binding = record_binding(*at);
	uint16_t origin;
	if (!record_origin_take(core, wrote, &origin)) {
		return false;
	}
	if (!resize(core, at, size)) {
		record_origin_give(core, origin);
		return false;
	}
	struct record *r = *at;
	record_origin_give(core, r->origin);
	r->origin = origin;
	r->wrote_clock = wrote.clock;
	r->ballot_room = room;
	r->prepared = differ;
	if (value) {
		r->value_size = value->size & 0x1fffff;
		slice_put(r->bytes + before_ballot(r) - r->value_size, *value);
	}
	if (differ) {
		memcpy(r->bytes + before_ballot(r), &prepared, sizeof prepared);
	}
	if (r->bindable) {
		put_binding(r, binding);
	}
	return true;
}

/* style: record, because no copy of a record rests on its binding. */
bool record_bind(struct core *core, struct record **at, uint32_t binding) {
	if (binding <= record_binding(*at)) {
		return true;
	}
	if (!(*at)->bindable && !resize(core, at, size_with(bytes_of(*at) + sizeof binding))) {
		return false;
	}
	(*at)->bindable = true;
	put_binding(*at, binding);
	return true;
}

static uint64_t span_to_us(span_ns d) {
	return ((uint64_t)d + 999) / 1000;
}

void record_describe(const struct core *core, const struct record *r, struct message *m) {
	m->lock_id = r->lock_id;
	m->token = r->token;
	m->left_us = span_to_us(instant_left_long(core->now, r->end));
	m->owner = record_owner(r);
	m->identity = record_identity(r);
	m->label = record_label(r);
	m->value = record_value(r);
	m->terms = record_terms(r);
	m->age_us = (uint64_t)(record_age(r, core->now) / SPAN_US);
	m->ballot = record_wrote(core, r);
	m->flags |= r->barred ? FLAG_BARRED : 0;
}

struct id128 record_closing_id(struct id128 released) {
	struct id128 id;
	for (size_t i = 0; i < sizeof id.b; i++) {
		id.b[i] = (uint8_t)~released.b[i];
	}
	/* No lock_id is zero. */
	id.b[0] |= id128_zero(id);
	return id;
}

/* Nobody trusts it, so it is barred: no extension ever makes it held.
 * style: record, because a new record is in no table yet. */
struct record *record_closing_new(struct core *core, const struct record *r, span_ns closes) {
	struct message m = { .flags = FLAG_BARRED };
	record_describe(core, r, &m);
	m.lock_id = record_closing_id(r->lock_id);
	m.value = slice_of(NULL, 0);
	m.ballot = (struct ballot){ 0, 0, 0 };
	m.terms.delay = closes;
	m.terms.binding = 0;
	struct record *closing = record_new(core, &m);
	if (closing) {
		closing->noted = core->clock;
		closing->end = instant_add(core->now, closes);
		closing->accepted = core->tick;
	}
	return closing;
}

/* ---- who drew the ballots ---- */

#define ORIGINS_MIN 16
/* One more than the greatest number. */
#define ORIGINS_MAX ((uint32_t)1 << 16)

static uint32_t *chain_of(struct core *core, struct ballot b) {
	return &core->store.origins.chains[
		hash_fold(b.node ^ core->hash_key.k0, b.boot ^ core->hash_key.k1) % ORIGIN_CHAINS];
}

/* Makes sure that there is a free number. */
static bool has_free(struct core *core) {
	struct origins *o = &core->store.origins;
	if (o->free) {
		return true;
	}
	const uint32_t size = o->size ? 2 * o->size : ORIGINS_MIN;
	struct origin *all = size <= ORIGINS_MAX ? alloc_resize(&core->alloc, o->all,
		o->size * sizeof *all, size * sizeof *all) : NULL;
	if (all == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	/* The number 0 stands for the ballot of nobody. */
	for (uint32_t number = size; number-- > (o->size ? o->size : 1);) {
		all[number] = (struct origin){ .next = o->free };
		o->free = number;
	}
	o->all = all;
	o->size = size;
	return true;
}

bool record_origin_take(struct core *core, struct ballot ballot, uint16_t *out) {
	struct origins *o = &core->store.origins;
	if (ballot.node == 0 && ballot.boot == 0) {
		*out = 0;
		return true;
	}
	uint32_t *chain = chain_of(core, ballot), number = *chain;
	while (number && (o->all[number].node != ballot.node ||
		o->all[number].boot != ballot.boot)) {
		number = o->all[number].next;
	}
	if (number == 0) {
		if (!has_free(core)) {
			return false;
		}
		number = o->free;
		o->free = o->all[number].next;
		o->all[number] = (struct origin){ .node = ballot.node, .boot = ballot.boot,
			.next = *chain };
		*chain = number;
	}
	o->all[number].records++;
	*out = (uint16_t)number;
	return true;
}

void record_origin_give(struct core *core, uint16_t number) {
	struct origins *o = &core->store.origins;
	struct origin *origin = number ? &o->all[number] : NULL;
	if (origin == NULL || --origin->records > 0) {
		return;
	}
	uint32_t *at = chain_of(core, origin_ballot(core, 0, number));
	while (*at != number) {
		at = &o->all[*at].next;
	}
	*at = origin->next;
	*origin = (struct origin){ .next = o->free };
	o->free = number;
}

void record_origins_done(struct core *core) {
	struct origins *o = &core->store.origins;
	for (uint32_t number = 1; number < o->size; number++) {
		CHECK(o->all[number].records == 0);
	}
	alloc_free(&core->alloc, o->all, o->size * sizeof *o->all);
	*o = (struct origins){ .size = 0 };
}
