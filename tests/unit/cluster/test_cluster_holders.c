/* These tests are about a key with several holders, as reads, breaks, restarts and replicas see it,
 * and about what travels with a record (docs/protocol.md, sections 3, 4, 7, 9 and 10). */
#include "modes.h"

static const struct id128 no_lock;

static const struct stage_reply *get(struct stage *s, uint32_t node, bool quorum) {
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = quorum;
	r.admin = true;
	uint64_t id = stage_ask(s, node, r);
	/* A quorum read may ask twice. */
	stage_wait(s, 250 * SPAN_MS);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	return reply;
}

static void three_readers(struct stage *s) {
	for (uint8_t i = 0; i < 3; i++) {
		assert_int_equal(share(s, i, "k", stage_lock((uint8_t)(i + 1))), PAWL_OK);
	}
}

static void reads_list_all_holders(void **state) {
	struct stage *s = *state;
	three_readers(s);
	for (int quorum = 0; quorum < 2; quorum++) {
		const struct stage_reply *r = get(s, 1, quorum);
		assert_true(r->r.held);
		assert_false(r->r.contested);
		assert_int_equal(r->r.holder_count, 3);
		assert_int_equal(r->r.entry.terms.of, MODE_SHARED);
	}
	release(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(2));
	for (int quorum = 0; quorum < 2; quorum++) {
		const struct stage_reply *r = get(s, 2, quorum);
		assert_true(r->r.held);
		/* The only holder is in the entry itself. */
		assert_int_equal(r->r.holder_count, 0);
		assert_true(id128_equal(r->r.entry.lock_id, stage_lock(3)));
	}
	release(s, 0, "k", stage_lock(3));
	assert_false(get(s, 0, true)->r.held);
}

static void a_refusal_names_all_holders(void **state) {
	struct stage *s = *state;
	three_readers(s);
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(9), LEASE, 0)), PAWL_EHELD);
	assert_true(stage_last(s)->r.held);
	assert_int_equal(stage_last(s)->r.holder_count, 3);
}

static void a_quorum_read_counts_each_holder_by_itself(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	for (uint32_t i = 0; i < 3; i++) {
		/* The second holder's commit reaches its coordinator alone. */
		stage_stop(s, 1, i, MESSAGE_COMMIT, true);
	}
	uint64_t id = stage_ask(s, 1, shared_request("k", stage_lock(2), 0));
	stage_wait(s, 150 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
	const struct stage_reply *r = get(s, 2, true);
	assert_true(r->r.held);
	assert_int_equal(r->r.holder_count, 0);
	assert_true(id128_equal(r->r.entry.lock_id, stage_lock(1)));
}

static void a_break_of_one_of_several_needs_its_token(void **state) {
	struct stage *s = *state;
	three_readers(s);
	uint64_t token = get(s, 0, false)->r.entry.token;
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.admin = r.now = true;
	assert_int_equal(stage_do(s, 0, r), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "token");
	assert_int_equal(stage_status(s, 0).held, 3);
	r.token = token;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_status(s, 0).held, 2);
	assert_false(core_peek(s->nodes[0].core, slice_str("k"), stage_lock(3), &token, &token) &&
		core_peek(s->nodes[0].core, slice_str("k"), stage_lock(2), &token, &token) &&
		core_peek(s->nodes[0].core, slice_str("k"), stage_lock(1), &token, &token));
}

static void each_holder_has_a_value_of_its_own(void **state) {
	struct stage *s = *state;
	three_readers(s);
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(2));
	r.value = slice_str("two");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	release(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(3));
	const struct stage_reply *reply = get(s, 2, true);
	assert_memory_equal(reply->value.bytes, "two", 3);
}

/* ---- what travels with a record ---- */

static struct core_request labelled(void) {
	struct core_request r = permits_request("k", stage_lock(1), 2, 4, 0);
	r.label = slice_str("a label");
	r.terms.delay = SPAN_S;
	r.terms.priority = -7;
	r.lease = 5 * SPAN_S;
	return r;
}

static void assert_labelled(struct stage *s, uint32_t node, span_ns age) {
	struct core_inspect look;
	assert_true(core_inspect(s->nodes[node].core, slice_str("k"), stage_clock(s, node), &look));
	const struct core_entry *e = &look.entry;
	assert_int_equal(e->label.size, 7);
	assert_memory_equal(e->label.data, "a label", 7);
	assert_int_equal(e->terms.of, 4);
	assert_int_equal(e->terms.count, 2);
	assert_int_equal(e->terms.priority, -7);
	assert_int_equal(e->terms.delay, SPAN_S);
	assert_int_equal(e->terms.set.w[0], 3);
	assert_true(e->age >= age && e->age < age + SPAN_S);
}

static void a_master_that_starts_anew_gets_terms_label_and_age_back(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, labelled()), PAWL_OK);
	assert_labelled(s, 2, 0);
	stage_wait(s, SPAN_S);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_labelled(s, 2, SPAN_S);
	stage_drain(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_labelled(s, 2, SPAN_S);
}

static void a_master_that_missed_the_commit_learns_terms_label_and_age(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	assert_int_equal(stage_do(s, 0, labelled()), PAWL_OK);
	/* That node would have sent the record to the others. */
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), 5 * SPAN_S, true), PAWL_OK);
	assert_labelled(s, 2, 0);
}

static void replicas_have_all_holders_with_their_terms(void **state) {
	stage_free(*state);
	struct stage_options o = named_options();
	o.replicas = 1;
	struct stage *s = *state = stage_born(&o);
	assert_int_equal(stage_do(s, 0, labelled()), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	assert_labelled(s, 3, 0);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 2, 4), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(get(s, 3, false)->r.holder_count, 2);
	stage_kill(s, 3);
	assert_true(stage_start(s, 3));
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(get(s, 3, false)->r.holder_count, 2);
	/* A replica coordinates like any node. */
	assert_int_equal(take_permits(s, 3, "k", stage_lock(3), 1, 4), PAWL_EHELD);
	assert_int_equal(stage_last(s)->r.holder_count, 2);
}

/* The holders are more than one bucket's share of a frame, so that the side file writes the key in
 * several. */
static void a_key_with_many_holders_survives_a_planned_stop(void **state) {
	stage_free(*state);
	struct stage_options o = named_options();
	/* The check of every pair of them would take too long. */
	o.unchecked = true;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t i = 1; i <= 700; i++) {
		struct id128 lock = stage_lock((uint8_t)(i % 251 + 1));
		lock.b[1] = (uint8_t)(i / 251);
		struct core_request r = shared_request("k", lock, 0);
		r.lease = 10 * SPAN_S;
		assert_int_equal(stage_do(s, i % 3, r), PAWL_OK);
	}
	stage_drain(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_int_equal(stage_status(s, 2).held, 700);
	core_check(s->nodes[2].core);
}

UNIT(cluster_holders) {
	const struct CMUnitTest tests[] = {
		NAMED(reads_list_all_holders),
		NAMED(a_refusal_names_all_holders),
		NAMED(a_quorum_read_counts_each_holder_by_itself),
		NAMED(a_break_of_one_of_several_needs_its_token),
		NAMED(each_holder_has_a_value_of_its_own),
		NAMED(a_master_that_starts_anew_gets_terms_label_and_age_back),
		NAMED(a_master_that_missed_the_commit_learns_terms_label_and_age),
		NAMED(replicas_have_all_holders_with_their_terms),
		NAMED(a_key_with_many_holders_survives_a_planned_stop),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
