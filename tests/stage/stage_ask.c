/* stage_ask.c: the clients: their requests, and copies of the replies. */
#include "check.h"
#include "stage.h"

struct id128 stage_lock(uint8_t number) {
	struct id128 id;
	memset(id.b, 0xa0, sizeof id.b);
	id.b[0] = number;
	return id;
}

static void copy_text(struct stage_text *to, struct slice from) {
	to->size = from.size < STAGE_TEXT ? from.size : STAGE_TEXT;
	if (to->size) {
		memcpy(to->bytes, from.data, to->size);
	}
}

static void copy_report(struct stage_report *to, const struct core_report *from) {
	*to = (struct stage_report){ .status = from->status, .home = from->home,
		.waiting = from->waiting, .count = from->count, .more = from->more };
	for (uint32_t i = 0; i < from->count && i < STAGE_ROWS; i++) {
		const struct core_reported *s = &from->items[i];
		to->items[i].kind = s->kind;
		to->items[i].barred = s->barred;
		to->items[i].show_lock_id = s->entry.show_lock_id;
		to->items[i].lock_id = s->entry.lock_id;
		to->items[i].remaining = s->entry.remaining;
	}
}

static void copy_entry(struct stage_row *row, const struct core_entry *e) {
	copy_text(&row->key, e->key);
	copy_text(&row->owner, e->owner);
	copy_text(&row->value, e->value);
	copy_text(&row->label, e->label);
	row->terms = e->terms;
	row->token = e->token;
	row->lock_id = e->lock_id;
	row->show_lock_id = e->show_lock_id;
}

static struct stage_reply *find(const struct stage *s, uint64_t id) {
	for (uint64_t i = s->reply_count; i > 0 && s->reply_count - i < s->options.replies; i--) {
		struct stage_reply *r = &s->replies[(i - 1) % s->options.replies];
		if (r->r.id == id) {
			return r;
		}
	}
	return NULL;
}

/* A list may come in several replies, and one copy holds the rows of all of them. False: this is
 * not a later reply of such a list. */
static bool goes_on(struct stage *s, const struct core_reply *reply) {
	struct stage_reply *copy = reply->op == CORE_LIST ? find(s, reply->id) : NULL;
	if (copy == NULL || !copy->r.goes_on) {
		return false;
	}
	const size_t before = reply->error ? 0 : copy->r.count;
	copy->r = *reply;
	copy->r.count += before;
	for (size_t i = 0; i < reply->count && before + i < STAGE_ROWS; i++) {
		copy_entry(&copy->rows[before + i], &reply->entries[i]);
	}
	return true;
}

void stage_take_reply(struct stage *s, const struct core_reply *reply) {
	if (goes_on(s, reply)) {
		return;
	}
	struct stage_reply *copy = &s->replies[s->reply_count++ % s->options.replies];
	memset(copy, 0, sizeof *copy);
	copy->r = *reply;
	copy->times = reply->times ? *reply->times : copy->times;
	copy_text(&copy->owner, reply->entry.owner);
	copy_text(&copy->value, reply->entry.value);
	copy_text(&copy->why, reply->why);
	copy_text(&copy->failed_key, reply->failed_key);
	for (size_t i = 0; i < reply->count && i < STAGE_ROWS; i++) {
		struct stage_row *row = &copy->rows[i];
		if (reply->entries) {
			copy_entry(row, &reply->entries[i]);
		} else if (reply->waiters) {
			copy_text(&row->key, reply->waiters[i].key);
			copy_text(&row->owner, reply->waiters[i].owner);
			copy_text(&row->label, reply->waiters[i].label);
			row->terms = reply->waiters[i].terms;
			row->lock_id = reply->waiters[i].lock_id;
			row->show_lock_id = reply->waiters[i].show_lock_id;
		} else if (reply->reports) {
			copy_report(&copy->reports[i], &reply->reports[i]);
		} else if (reply->got) {
			copy_text(&row->key, reply->got[i].key);
			row->terms = reply->got[i].terms;
			row->token = reply->got[i].token;
			row->lock_id = reply->got[i].lock_id;
		}
	}
}

void stage_want_events(struct stage *s, uint32_t node) {
	s->events = s->events ? s->events
		: alloc_new(s->options.own, STAGE_EVENTS * sizeof *s->events);
	CHECK(s->events && s->nodes[node].core);
	core_want_watch_events(s->nodes[node].core, true);
}

void stage_take_event(struct stage *s, uint32_t node, const struct core_watch_event *watch_event) {
	/* The oldest event is forgotten. */
	s->events_read += s->events_count - s->events_read == STAGE_EVENTS;
	struct stage_event *copy = &s->events[s->events_count++ % STAGE_EVENTS];
	memset(copy, 0, sizeof *copy);
	copy->node = node;
	copy->event = *watch_event;
	copy_text(&copy->key, watch_event->key);
	copy_text(&copy->owner, watch_event->owner);
	copy_text(&copy->value, watch_event->value);
	copy_text(&copy->label, watch_event->label);
}

const struct stage_event *stage_next_event(struct stage *s, uint32_t node) {
	while (s->events_read < s->events_count) {
		const struct stage_event *n = &s->events[s->events_read++ % STAGE_EVENTS];
		if (n->node == node) {
			return n;
		}
	}
	return NULL;
}

uint64_t stage_ask(struct stage *s, uint32_t node, struct core_request request) {
	request.id = ++s->requests;
	request.client = request.client ? request.client : node + 1;
	stage_step(s, node, &(struct core_event){ .kind = CORE_REQUEST, .request = &request });
	return request.id;
}

const struct stage_reply *stage_answer(const struct stage *s, uint64_t id) {
	const struct stage_reply *r = find(s, id);
	return r && !r->r.goes_on ? r : NULL;
}

const struct stage_reply *stage_last(const struct stage *s) {
	CHECK(s->reply_count > 0);
	return &s->replies[(s->reply_count - 1) % s->options.replies];
}

void stage_client_gone(struct stage *s, uint32_t node, uint64_t client) {
	stage_step(s, node, &(struct core_event){ .kind = CORE_CLIENT_GONE, .client = client });
}

struct core_request stage_request(enum core_op op, const char *key, struct id128 lock_id) {
	return (struct core_request){ .op = op, .key = slice_str(key), .lock_id = lock_id };
}

struct core_request stage_acquire(const char *key, struct id128 lock_id, span_ns lease,
	span_ns wait) {
	struct core_request r = stage_request(CORE_ACQUIRE, key, lock_id);
	r.lease = lease;
	r.wait = wait;
	return r;
}

int stage_do(struct stage *s, uint32_t node, struct core_request request) {
	uint64_t id = stage_ask(s, node, request);
	stage_settle(s);
	const struct stage_reply *r = stage_answer(s, id);
	return r ? r->r.error : PAWL_ECLOSED;
}
