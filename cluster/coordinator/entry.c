/* entry.c: records as reads show them (sections 3, 9 and 10): while only the lock delay runs nobody holds the key, and nobody gets it. */
#include "coordinator.h"

static struct instant lease_end(const struct record *r) {
	return instant_add(r->end, -record_delay(r));
}

bool entry_closing(const struct record *r, struct instant now) {
	return record_delay(r) > 0 && instant_expired(now, lease_end(r));
}

/* Its lease runs. Who counts holders and who copies them ask this and nothing else. */
static bool holds(const struct record *r, struct instant now) {
	return !instant_expired(now, r->end) && !entry_closing(r, now);
}

/* The bytes are the record's own. */
struct core_entry entry_of(const struct record *r, struct instant now) {
	struct core_entry e = { .owner = record_owner(r), .value = record_value(r), .identity = record_identity(r), .label = record_label(r),
		.token = r->token, .lock_id = r->lock_id, .value_seq = r->wrote, .terms = record_terms(r), .remaining = instant_left_long(now, lease_end(r)),
		.age = record_age(r, now), .closing = entry_closing(r, now) };
	e.closed_for = e.closing ? instant_left_long(now, r->end) : 0;
	return e;
}

/* Of several the one that ends last, and who holds before who only held. *holders: how many hold. */
const struct record *entry_shown(const struct key *key, struct instant now, uint32_t *holders) {
	const struct record *best = NULL;
	bool best_closing = true;
	*holders = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		bool closing = !holds(r, now);
		if (instant_expired(now, r->end)) {
			continue;
		}
		*holders += !closing;
		if (best == NULL || (best_closing && !closing) || (best_closing == closing && r->end.boot > best->end.boot)) {
			best = r;
			best_closing = closing;
		}
	}
	return best;
}

bool local_entry(struct core *core, const struct caller *c, struct slice identity, struct slice key, const struct record *r, struct core_entry *e) {
	const struct core_entry own = entry_of(r, core->now);
	*e = own;
	e->show_lock_id = c->admin || slice_equal(identity, own.identity); /* section 9: lock_id is the proof of holding */
	return out_copy(core, key, &e->key) && out_copy(core, own.owner, &e->owner) && out_copy(core, own.value, &e->value) &&
		out_copy(core, own.identity, &e->identity) && out_copy(core, own.label, &e->label);
}

#define SHOWN_BYTES ((size_t)1 << 20) /* of several holders, in one answer; two are always told */

/* Of those behind the first: whether the next one is told, too. */
static bool fits(uint32_t told, size_t *bytes, const struct record *r) {
	*bytes += record_size(r);
	return told < 2 || *bytes <= SHOWN_BYTES;
}

const struct record *entry_lacks(const struct key *key, struct instant now) {
	uint32_t holders, told = 1;
	size_t bytes = 0;
	const struct record *first = entry_shown(key, now, &holders);
	if (first == NULL || first->uneven) {
		return first;
	}
	for (const struct record *r = key->held; r; r = r->next) {
		if (r == first || !holds(r, now)) {
			continue;
		}
		if (!fits(told++, &bytes, r)) {
			return NULL;
		}
		if (r->uneven) {
			return r;
		}
	}
	return NULL;
}

/* All that hold a key, the one that is shown first. False: no memory. */
static bool show_holders(struct core *core, const struct caller *c, const struct op *op, const struct key *key, const struct record *first,
	struct shown *s) {
	struct core_entry *list = out_room(core, s->holder_count * sizeof *list);
	uint32_t n = 0;
	size_t bytes = 0;
	bool copied = list != NULL;
	if (copied) {
		list[n++] = s->entry;
	}
	for (const struct record *r = key->held; copied && r && !s->more; r = r->next) {
		if (r != first && holds(r, core->now)) {
			CHECK(n < s->holder_count);
			s->more = !fits(n, &bytes, r);
			copied = s->more || local_entry(core, c, op->identity, op->key, r, &list[n++]);
		}
	}
	s->holders = list;
	s->holder_count = n;
	return copied;
}

bool entry_show(struct core *core, const struct caller *c, const struct op *op, const struct key *key, struct shown *s) {
	*s = (struct shown){ .held = false };
	const struct record *first = entry_shown(key, core->now, &s->holder_count);
	if (first == NULL) {
		return true;
	}
	s->contested = key_contested(key);
	s->held = s->holder_count > 0;
	bool copied = local_entry(core, c, op->identity, op->key, first, &s->entry);
	if (s->holder_count < 2) {
		s->holder_count = 0; /* a list of those that are not in `entry` alone */
		return copied;
	}
	return copied && show_holders(core, c, op, key, first, s);
}

void entry_reply(struct core_reply *reply, const struct shown *s) {
	reply->held = s->held;
	reply->contested = s->contested;
	reply->entry = s->entry;
	reply->value_seq = s->entry.value_seq;
	reply->holders = s->holders;
	reply->holder_count = s->holder_count;
	reply->more = s->more;
}
