/* entry.c: records as reads show them (sections 3, 9 and 10). While only the lock delay runs nobody
 * holds the key, and nobody can get it. */
#include "coordinator.h"

static struct instant lease_end(const struct record *r) {
	return instant_add(r->end, -record_delay(r));
}

/* Tells whether the record's lease runs. This is the only test for whoever counts holders or copies
 * them. */
bool entry_holds(const struct record *r, struct instant now) {
	return !instant_expired(now, r->end) && !record_closing(r, now);
}

bool entry_held(const struct key *key, struct instant now) {
	const struct record *r = key->held;
	while (r && !entry_holds(r, now)) {
		r = r->next;
	}
	return r != NULL;
}

/* The bytes of the entry are the record's own. */
struct core_entry entry_of(const struct core *core, const struct record *r, struct instant now) {
	struct core_entry e = { .owner = record_owner(r), .value = record_value(r),
		.identity = record_identity(r), .label = record_label(r), .token = r->token,
		.lock_id = r->lock_id, .value_seq = record_wrote(core, r), .terms = record_terms(r),
		.remaining = instant_left_long(now, lease_end(r)), .age = record_age(r, now),
		.closing = record_closing(r, now) };
	e.closed_for = e.closing ? instant_left_long(now, r->end) : 0;
	return e;
}

/* Picks the record to show: live holders come before records whose lock delay runs, and then the
 * latest end decides. *holders: how many live holders there are. */
const struct record *entry_shown(const struct key *key, struct instant now, uint32_t *holders) {
	const struct record *best = NULL;
	bool best_closing = true;
	*holders = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		bool closing = !entry_holds(r, now);
		if (instant_expired(now, r->end)) {
			continue;
		}
		*holders += !closing;
		if (best == NULL || (best_closing && !closing) ||
			(best_closing == closing && r->end.boot > best->end.boot)) {
			best = r;
			best_closing = closing;
		}
	}
	return best;
}

bool local_entry(struct core *core, const struct caller *c, struct slice identity, struct slice key,
	const struct record *r, struct core_entry *e) {
	const struct core_entry own = entry_of(core, r, core->now);
	*e = own;
	/* Section 9: the lock_id is the proof of holding, so it is shown only to its holder and to
	 * administrators. */
	e->show_lock_id = c->admin || slice_equal(identity, own.identity);
	return out_copy(core, key, &e->key) && out_copy(core, own.owner, &e->owner) &&
		out_copy(core, own.value, &e->value) &&
		out_copy(core, own.identity, &e->identity) && out_copy(core, own.label, &e->label);
}

/* Returns this node's own copy of a record, if it has the value of the write that was reported
 * (section 3, Reports); NULL: it has another one, or none. */
static const struct record *own_copy(struct core *core, const struct op *op,
	const struct record *r) {
	const struct key *key = table_find(core, op->key);
	const struct record *own = key ? key_record(key, r->lock_id) : NULL;
	return own && ballot_compare(record_wrote(core, own), record_wrote(core, r)) == 0
		? own : NULL;
}

/* Returns the record that has the value to be shown: this one, or this node's own copy of it. NULL:
 * the value has to be fetched. */
static const struct record *whole(struct core *core, const struct op *op, const struct record *r) {
	return r->value_left_out ? own_copy(core, op, r) : r;
}

/* The number of holders that cost as much to tell as a simple request. */
#define HOLDERS_A_COST 8

/* Limits the bytes of several holders in one answer. Two holders are always told. */
#define SHOWN_BYTES ((size_t)1 << 20)

/* Tells whether the next holder, after those already told, still fits into the answer. `r` is the
 * record with its value. */
static bool fits(uint32_t told, size_t *bytes, const struct record *r) {
	*bytes += record_size(r);
	return told < 2 || *bytes <= SHOWN_BYTES;
}

const struct record *entry_lacks(struct core *core, const struct op *op, const struct key *key) {
	uint32_t holders, told = 1;
	size_t bytes = 0;
	const struct record *first = entry_shown(key, core->now, &holders);
	if (first == NULL || whole(core, op, first) == NULL) {
		return first;
	}
	for (const struct record *r = key->held; r; r = r->next) {
		if (r == first || !entry_holds(r, core->now)) {
			continue;
		}
		const struct record *value = whole(core, op, r);
		if (!fits(told++, &bytes, value ? value : r)) {
			return NULL;
		}
		if (value == NULL) {
			return r;
		}
	}
	return NULL;
}

/* Describes a record like local_entry, with the value of this node's own copy where it was left out
 * of the report. */
static bool show(struct core *core, const struct caller *c, const struct op *op,
	const struct record *r, struct core_entry *e) {
	if (!local_entry(core, c, op->identity, op->key, r, e)) {
		return false;
	}
	if (op->kind == CORE_GET && op_read(op)->quorum) {
		e->weighed = true;
		e->terms.binding = (uint32_t)r->noted;
		e->order_settled = !r->uneven;
		e->at_least = instant_left_short(core->now,
			instant_add(op_reports(op)->asked, r->left));
		e->at_most = span_grow(e->remaining, core->config.drift_ppm);
	}
	const struct record *own = r->value_left_out ? own_copy(core, op, r) : NULL;
	return own == NULL || out_copy(core, record_value(own), &e->value);
}

/* Copies all holders of a key, beginning with the one that is shown first. False: no memory. */
static bool show_holders(struct core *core, const struct caller *c, const struct op *op,
	const struct key *key, const struct record *first, struct shown *s) {
	struct core_entry *list = out_room(core, s->holder_count * sizeof *list);
	uint32_t n = 0;
	size_t bytes = 0;
	bool copied = list != NULL;
	if (copied) {
		list[n++] = s->entry;
	}
	for (const struct record *r = key->held; copied && r && !s->more; r = r->next) {
		if (r != first && entry_holds(r, core->now)) {
			CHECK(n < s->holder_count);
			const struct record *value = whole(core, op, r);
			s->more = !fits(n, &bytes, value ? value : r);
			copied = s->more || show(core, c, op, r, &list[n++]);
		}
	}
	s->holders = list;
	s->holder_count = n;
	return copied;
}

bool entry_show(struct core *core, const struct caller *c, const struct op *op,
	const struct key *key, struct shown *s) {
	*s = (struct shown){ .held = false };
	const struct record *first = entry_shown(key, core->now, &s->holder_count);
	if (first == NULL) {
		return true;
	}
	s->contested = key_contested(key);
	s->held = s->holder_count > 0;
	bool copied = show(core, c, op, first, &s->entry);
	if (s->holder_count < 2) {
		/* A list is made only where there are other holders than the one in `entry`. */
		s->holder_count = 0;
		return copied;
	}
	return copied && show_holders(core, c, op, key, first, s);
}

uint64_t entry_value_bytes(const struct shown *s) {
	uint64_t bytes = s->entry.value.size;
	for (uint32_t i = 1; i < s->holder_count; i++) {
		bytes += s->holders[i].value.size;
	}
	return bytes;
}

void entry_reply(struct core_reply *reply, const struct shown *s) {
	reply->held = s->held;
	reply->contested = s->contested;
	reply->entry = s->entry;
	reply->value_seq = s->entry.value_seq;
	reply->holders = s->holders;
	reply->holder_count = s->holder_count;
	reply->more = s->more;
	reply->cost += s->holder_count / HOLDERS_A_COST;
}

struct core_reply *entry_answer(struct core *core, struct caller *c, const struct op *op,
	const struct key *key, int error, struct shown *shown) {
	const bool copied = entry_show(core, c, op, key, shown);
	struct core_reply *reply = op_reply(core, c, copied ? error : PAWL_EBUSY);
	if (copied) {
		entry_reply(reply, shown);
	}
	return reply;
}
