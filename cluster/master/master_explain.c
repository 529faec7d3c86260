/* master_explain.c: what a master reports about a key to explain it: its records, its promise, its
 * parked requests, and how many requests wait. */
#include "master.h"

/* One master reports at most this many parts, because a key may have thousands of readers. */
#define PARTS_MAX REPORT_PIECE_MAX
#define REQUESTS_MAX (PARTS_MAX / 2)

/* Says how many parts are told. FLAG_REST on the last record, or on the last request, says that
 * more of its sort was left out. */
struct telling {
	/* Count the records that are told, and all parts. */
	uint32_t records, all;

	/* Say that records, or requests, were left out. */
	bool records_rest, requests_rest;
};

/* Requests leave room for records, and records leave room for requests. */
static struct telling telling_of(const struct key *key) {
	const uint32_t requests = (key_promises(key) ? 1 : 0) +
		(key_more(key) ? key_more(key)->parked_count : 0);
	const uint32_t told = requests < REQUESTS_MAX ? requests : REQUESTS_MAX,
		room = PARTS_MAX - told;
	const uint32_t records = key_count(key, UINT32_MAX);
	struct telling t = { .records = records < room ? records : room,
		.records_rest = records > room, .requests_rest = told < requests };
	t.all = t.records + told;
	return t;
}

static struct message part(const struct message *answer, uint32_t flags) {
	return (struct message){ .kind = MESSAGE_READ_ANSWER, .round = answer->round,
		.status = STATUS_OK, .part = answer->part, .parts = answer->parts,
		.number = answer->number, .flags = flags };
}

static void say(struct core *core, uint32_t from, struct message *answer, const struct telling *t) {
	const uint32_t next = answer->part + 1;
	if (answer->part < t->all) {
		answer->flags |= (t->records_rest && next == t->records) ||
				(t->requests_rest && next == t->all)
			? FLAG_REST : 0;
		out_send(core, from, answer);
		answer->part++;
	}
}

/* Records are told in the order of their lock_ids, so that all masters leave out the last ones.
 * What q masters have is then told by q masters. */
static void say_records(struct core *core, uint32_t from, const struct key *key,
	struct message *answer, const struct telling *t) {
	const uint32_t common = answer->flags;
	const struct record *piece[REPORT_PIECE_MAX];
	const struct message beginning = { .number = 0 };
	uint32_t left;
	const uint32_t count = t->records
		? report_pick(key, &beginning, t->records, piece, &left) : 0;
	for (uint32_t i = 0; i < count; i++) {
		*answer = part(answer, common);
		record_describe(core, piece[i], answer);
		report_leave_value_out(core, answer);
		say(core, from, answer, t);
	}
	answer->flags = common;
}

static void say_requests(struct core *core, uint32_t from, const struct key *key,
	struct message *answer, const struct telling *t) {
	const uint32_t common = answer->flags;
	const struct promise *p = key_promises(key);
	if (p) {
		*answer = part(answer, common | FLAG_PROMISE);
		answer->lock_id = p->lock_id;
		answer->terms = p->terms;
		answer->left_us = (uint64_t)instant_left_long(core->now, p->end) / 1000;
		say(core, from, answer, t);
	}
	for (const struct parked *k = queue_parked_next(core, key, NULL);
		k && answer->part < t->all; k = queue_parked_next(core, key, k)) {
		*answer = part(answer, common | FLAG_PARKED);
		answer->lock_id = k->q.lock_id;
		answer->terms = k->q.terms;
		say(core, from, answer, t);
	}
}

void master_explain(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_READ_ANSWER, .round = m->round,
		.status = rule_votes(core), .flags = FLAG_EXPLAIN };
	struct key *key = table_find(core, m->key);
	if (key && key_more(key) && key_more(key)->waiters) {
		answer.number = key_more(key)->waiters;
		answer.flags |= FLAG_IS_HOME;
	}
	const struct telling t = key && answer.status == STATUS_OK
		? telling_of(key) : (struct telling){ .all = 0 };
	answer.parts = t.all;
	if (t.all > 0) {
		say_records(core, from, key, &answer, &t);
		say_requests(core, from, key, &answer, &t);
		return;
	}
	answer.status = answer.status == STATUS_OK ? STATUS_ABSENT : answer.status;
	out_send(core, from, &answer);
}
