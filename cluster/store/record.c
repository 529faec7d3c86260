/* record.c: a held record in one block of memory: the fields that every lock has, and then its
 * bytes (section 1). */
#include "store.h"

uint8_t terms_rest(const struct terms *t) {
	return terms_semaphore(t) ? sizeof *t + sizeof(struct lapsing) + sizeof(struct older)
		: t->priority || t->delay ? sizeof *t
		: 0;
}

void record_put_terms(struct record *r, const struct terms *terms) {
	r->of = terms->of;
	r->binding = terms->binding;
	if (r->terms_size) {
		memcpy(r->bytes, terms, sizeof *terms);
	}
}

struct slice record_owner(const struct record *r) {
	return slice_of(r->bytes + r->terms_size, r->owner_size);
}

struct slice record_identity(const struct record *r) {
	return slice_of(r->bytes + r->terms_size + r->owner_size, r->identity_size);
}

struct slice record_label(const struct record *r) {
	return slice_of(r->bytes + r->terms_size + r->owner_size + r->identity_size, r->label_size);
}

static size_t before_value(const struct record *r) {
	return (size_t)r->terms_size + r->owner_size + r->identity_size + r->label_size;
}

struct slice record_value(const struct record *r) {
	return slice_of(r->bytes + before_value(r), r->value_size);
}

size_t record_size(const struct record *r) {
	return sizeof *r + before_value(r) + r->value_size;
}

/* style: record, because a new record is in no table yet. */
struct record *record_new(struct core *core, const struct message *m) {
	const uint8_t rest = terms_rest(&m->terms);
	struct record *r = alloc_new(&core->alloc,
		sizeof *r + rest + m->owner.size + m->identity.size + m->label.size +
		m->value.size);
	if (r == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	r->lock_id = m->lock_id;
	r->token = m->token;
	r->wrote = r->prepared = m->ballot;
	r->since = clock_saturating_add(core->now.boot, -span_from_us(m->age_us));
	r->terms_size = rest;
	record_put_terms(r, &m->terms);
	r->barred = (m->flags & FLAG_BARRED) != 0;
	r->owner_size = (uint16_t)m->owner.size;
	r->identity_size = (uint8_t)m->identity.size;
	r->label_size = (uint16_t)m->label.size;
	r->value_size = (uint32_t)m->value.size;
	slice_put(slice_put(slice_put(slice_put(
		r->bytes + rest, m->owner), m->identity), m->label), m->value);
	return r;
}

struct record *record_with_value(struct core *core, struct slice value) {
	struct message m = { .value = value };
	return record_new(core, &m);
}

void record_free(struct core *core, struct record *r) {
	if (r) {
		alloc_free(&core->alloc, r, record_size(r));
	}
}

bool record_set_value(struct core *core, struct record **at, struct slice value) {
	struct record *r = *at;
	size_t fixed = sizeof *r + before_value(r);
	if (value.size != r->value_size) {
		struct record *moved = alloc_resize(&core->alloc, r, fixed + r->value_size,
			fixed + value.size);
		if (moved == NULL) {
			COUNT(core, no_memory);
			return false;
		}
		*at = r = moved;
		r->value_size = (uint32_t)value.size;
	}
	if (value.size) {
		/* `bytes` begins before the end of the struct's padding, so the size of the struct
		 * says nothing about where the value is. */
		memcpy(r->bytes + before_value(r), value.data, value.size);
	}
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
	m->ballot = r->wrote;
	m->prepared = r->prepared;
	m->flags |= r->barred ? FLAG_BARRED : 0;
}
