/* scene.h: a step of a master by hand, which tests of the abstract machine break in one thing. */
#ifndef PAWL_REFINE_SCENE_H
#define PAWL_REFINE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "machine.h"

static inline struct id128 lock(uint8_t n) {
	return (struct id128){ { n } };
}

/* A step of a master whose clock is 100, at second 50; it has voted for 40 s. */
struct scene {
	struct m_node node;
	struct m_key before, after;
	struct message m, answer;
	struct m_step step;
};

static inline void scene_begin(struct scene *s, enum message_kind kind, enum message_kind answer) {
	memset(s, 0, sizeof *s);
	s->node = (struct m_node){ .now = { 50 * SPAN_S, 50 * SPAN_S }, .clock = 100, .votes = true,
		.epoch = 1, .hash = 1, .masters = 3, .quorum = 2, .max_lease = 10 * SPAN_S,
		.request_timeout = 100 * SPAN_MS, .promise_timeout = 200 * SPAN_MS,
		.drift_ppm = 10000, .vote_began = { 10 * SPAN_S, 10 * SPAN_S } };
	s->m = (struct message){ .kind = kind, .lock_id = lock(1), .round = 1, .attempt = 0 };
	s->answer = (struct message){ .kind = answer, .round = 1 };
	s->step = (struct m_step){ .node = &s->node, .clock_after = 100, .clock_between = 100,
		.before = &s->before, .after = &s->after, .m = &s->m, .from = 7,
		.from_master = true, .in_epoch = true, .answer = &s->answer };
}

static inline struct m_record *put_record(struct m_key *key, uint8_t id, uint64_t token) {
	struct m_record *r = &key->records[key->record_count++];
	*r = (struct m_record){ .lock_id = lock(id), .token = token, .noted = token - 1,
		.wrote = { token, 7, 1 }, .prepared = { token, 7, 1 },
		.end = { 51 * SPAN_S, 51 * SPAN_S }, .value = m_hash(slice_of("a", 1)),
		.identity = m_hash(slice_of(NULL, 0)) };
	return r;
}

static inline struct m_promise *put_promise(struct m_key *key, uint8_t id, uint64_t noted) {
	struct m_promise *p = &key->promises[key->promise_count++];
	*p = (struct m_promise){ .lock_id = lock(id), .attempt = 5, .noted = noted, .from = 7,
		.end = { 50 * SPAN_S + 200 * SPAN_MS, 50 * SPAN_S + 200 * SPAN_MS } };
	return p;
}

static inline void allowed(const struct scene *s) {
	const char *rule = machine_handled(&s->step);
	if (rule) {
		fail_msg("refused: %s", rule);
	}
}

static inline void refused(const struct scene *s, const char *part) {
	const char *rule = machine_handled(&s->step);
	if (rule == NULL || strstr(rule, part) == NULL) {
		fail_msg("expected '%s', got '%s'", part, rule ? rule : "nothing");
	}
}

#endif
