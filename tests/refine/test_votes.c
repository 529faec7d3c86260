/* test_votes.c: the abstract machine refuses what a node may not send, votes and answers that
 * nothing justifies, and what no quorum has accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "asker.h"
#include "decrees.h"
#include "notes.h"
#include "pawl/error.h"
#include "transfers.h"

static struct id128 lock(uint8_t n) {
	return (struct id128){ { n } };
}

static struct m_record some_record(void) {
	return (struct m_record){ .lock_id = lock(1), .token = 90, .noted = 89,
		.wrote = { 90, 7, 1 }, .prepared = { 90, 7, 1 },
		.end = { 51 * SPAN_S, 51 * SPAN_S } };
}

/* One of three masters, whose clock is 100. */
static struct m_node some_node(void) {
	return (struct m_node){ .now = { 50 * SPAN_S, 50 * SPAN_S }, .clock = 100, .votes = true,
		.epoch = 1, .hash = 1, .masters = 3, .quorum = 2, .max_lease = 10 * SPAN_S,
		.request_timeout = 100 * SPAN_MS, .promise_timeout = 200 * SPAN_MS,
		.drift_ppm = 10000 };
}

/* ---- what leaves, and votes ---- */

static void test_sent(void **state) {
	(void)state;
	const struct m_disk disk = { .ceiling = 200, .boot = 2, .epoch = 3, .voted = true };
	const struct message m = { .kind = MESSAGE_COMMIT_ANSWER };
	struct frame f = { .epoch = 3, .boot = 2, .flags = FRAME_VOTING, .messages = &m,
		.count = 1 };
	assert_null(machine_sent(&disk, 200, &f));
	assert_non_null(machine_sent(&disk, 201, &f));
	f.boot = 3;
	assert_non_null(machine_sent(&disk, 200, &f));
	f.boot = 2;
	f.epoch = 4;
	assert_non_null(machine_sent(&disk, 200, &f));
}

static void test_decree_is_on_disk(void **state) {
	(void)state;
	struct m_disk disk = { .boot = 2, .epoch = 3, .voted = true, .accepted = { 5, 1, 1 },
		.accepted_hash = 9 };
	const struct message m = { .kind = MESSAGE_DECREE_ACCEPTED, .ballot = { 5, 1, 1 },
		.number = 9 };
	const struct frame f = { .epoch = 3, .boot = 2, .messages = &m, .count = 1 };
	assert_null(machine_sent(&disk, 0, &f));
	disk.accepted_hash = 8;
	assert_non_null(machine_sent(&disk, 0, &f));
	disk.accepted_hash = 9;
	disk.accepted.clock = 4;
	assert_non_null(machine_sent(&disk, 0, &f));
	disk.accepted.clock = 5;
	disk.voted = false;
	assert_non_null(machine_sent(&disk, 0, &f));
}

static void test_may_vote(void **state) {
	(void)state;
	struct m_return v = { .voted_on_disk = true, .had_voted = true, .longest = SPAN_S,
		.since_start = SPAN_S + 20 * SPAN_MS, .drift_ppm = 10000, .masters = 3,
		.quorum = 2, .previous_masters = 3, .previous_quorum = 2 };
	assert_null(machine_may_vote(&v));
	v.since_start--;
	assert_non_null(machine_may_vote(&v));
	v.rejoined = 1;
	assert_non_null(machine_may_vote(&v));
	v.rejoined = 2;
	assert_null(machine_may_vote(&v));
	v.reservation = 1;
	assert_non_null(machine_may_vote(&v));
	v = (struct m_return){ .voted_on_disk = true, .handover = true, .longest = SPAN_S,
		.since_start = 9 * SPAN_S, .masters = 3, .quorum = 2, .previous_masters = 3,
		.previous_quorum = 2, .handed_over = 1 };
	assert_non_null(machine_may_vote(&v));
	v.handed_over = 2;
	assert_null(machine_may_vote(&v));
	v.voted_on_disk = false;
	assert_non_null(machine_may_vote(&v));
}

static void test_merged(void **state) {
	(void)state;
	const struct m_record record = some_record(), *r = &record;
	struct m_copy c = { .has = true, .token = 90, .noted = 89, .wrote = r->wrote,
		.prepared = r->prepared, .end = r->end };
	assert_null(machine_merged(r, &c));
	c.noted = 90;
	assert_non_null(machine_merged(r, &c));
	c.noted = 89;
	c.end.raw++;
	assert_non_null(machine_merged(r, &c));
	struct m_record shortened = record;
	shortened.terms.binding = c.binding = 2;
	assert_non_null(machine_merged(&shortened, &c));
	c.binding = 1;
	assert_null(machine_merged(&shortened, &c));
	c = (struct m_copy){ .has = false, .clock = 89 };
	assert_null(machine_merged(r, &c));
	c.clock = 90;
	assert_non_null(machine_merged(r, &c));
}

static void test_snapshots(void **state) {
	(void)state;
	struct transfers t = { .next = 0 };
	const struct m_record record = some_record(), *r = &record;
	const struct instant now = { 50 * SPAN_S, 50 * SPAN_S };
	struct t_source *s = transfers_begin(&t, 1, 4);
	s->epoch = 1;
	transfers_message(s, &(struct message){ .kind = MESSAGE_SNAPSHOT_RELEASED,
		.lock_id = lock(1), .flags = FLAG_RELEASED }, now);
	transfers_message(s, &(struct message){ .kind = MESSAGE_SNAPSHOT_END }, now);
	transfers_vote(&t, 1, 1, 100);
	assert_non_null(transfers_judge(&t, &(struct t_merged){ .record = r }, now));
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = r, .forgotten = true }, now));
	s->lies = true;
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = r }, now));
	s->lies = false;
	transfers_vote(&t, 2, 1, 100);
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = r }, now));
	transfers_done(&t);
}

/* A node that is asked again and again for snapshots remembers what it gives to others. */
static void test_asked_again(void **state) {
	(void)state;
	struct transfers t = { .next = 0 };
	transfers_begin_anew(&t, 1, 4);
	for (uint64_t round = 2; round < 2 + T_SOURCES; round++) {
		transfers_begin_anew(&t, round, 5);
	}
	assert_non_null(transfers_find(&t, 1, 4));
	assert_null(transfers_find(&t, 2, 5));
	assert_non_null(transfers_find(&t, 1 + T_SOURCES, 5));
	transfers_done(&t);
}

/* What keeps a key closed when no source has its lock any more; and a lock that has ended since,
 * and lasts for its lock delay. */
static void test_merge_with_lock_delay(void **state) {
	(void)state;
	struct transfers t = { .next = 0 };
	struct m_record r = some_record();
	const struct instant now = { 50 * SPAN_S, 50 * SPAN_S };
	struct t_source *s = transfers_begin(&t, 1, 4);
	s->epoch = 1;
	transfers_message(s, &(struct message){ .kind = MESSAGE_SNAPSHOT_RECORD,
		.lock_id = lock(1), .token = 90, .noted = 89, .ballot = r.wrote,
		.prepared = r.prepared, .left_us = 2000000 }, now);
	transfers_message(s, &(struct message){ .kind = MESSAGE_SNAPSHOT_END, .clock = 200 }, now);
	transfers_vote(&t, 1, 1, 100);
	const uint64_t key = m_hash(slice_of(NULL, 0));
	r.terms.delay = SPAN_S;
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	r.terms.delay--;
	assert_non_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	s->clock = UINT64_C(1) << 33;
	transfers_vote(&t, 1, 1, 100);
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	s->clock = 200;
	transfers_vote(&t, 1, 1, 100);
	/* It was dropped after it had come from this source, and has come again from another one. */
	r.noted = 200;
	r.terms.delay = 0;
	transfers_dropped(&t, lock(1));
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	r = some_record();
	r.lock_id = lock(2);
	assert_non_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key, .kept = true }, now));
	r.closing = true;
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	transfers_done(&t);
}

/* A record that is gone without a message may have ended right after it was seen. */
static void test_lacking(void **state) {
	(void)state;
	static struct m_key before, after;
	struct notes n = { .notes = NULL };
	const struct instant now = { 52 * SPAN_S, 52 * SPAN_S };
	before.seen = (struct instant){ 49 * SPAN_S, 49 * SPAN_S };
	before.records[0] = some_record();
	before.record_count = 1;
	notes_changed(&n, &before, &after, now, NULL);
	assert_true(notes_lock(&n, lock(1))->had.boot == before.seen.boot);
	const struct message m = { .kind = MESSAGE_RELEASE, .lock_id = lock(1) };
	notes_changed(&n, &before, &after, now, &m);
	assert_true(notes_lock(&n, lock(1))->had.boot == now.boot);
	notes_done(&n);
}

static void test_adoption(void **state) {
	(void)state;
	static struct decrees d;
	struct config config = { .epoch = 2, .previous_master_count = 3 };
	for (uint8_t i = 0; i < 3; i++) {
		config.previous_masters[i].id = lock((uint8_t)(i + 1));
	}
	decrees_accepted(&d, 77, id128_word(lock(1)));
	decrees_accepted(&d, 77, id128_word(lock(1)));
	assert_non_null(decrees_adopted(&d, &config, 77, false));
	d.epoch_count = 0;
	decrees_accepted(&d, 77, id128_word(lock(2)));
	assert_null(decrees_adopted(&d, &config, 77, false));
	assert_non_null(decrees_adopted(&d, &config, 78, false));
}

/* ---- the coordinator ---- */

static struct asker asker;

static void ask_all(const struct m_node *node, const struct message *m) {
	for (uint32_t i = 0; i < 3; i++) {
		assert_null(asker_says(&asker, node, i, m));
	}
}

static void promises(const struct m_node *node, uint64_t noted) {
	const struct message m = { .kind = MESSAGE_PROMISE, .round = 0x10001, .attempt = 0x10001,
		.lock_id = lock(1), .ballot = { 100, 7, 1 } };
	ask_all(node, &m);
	for (uint32_t i = 0; i < 2; i++) {
		asker_hears(&asker, node, i, &(struct message){ .kind = MESSAGE_PROMISE_ANSWER,
			.round = m.round, .noted = noted, .age_us = 1000 });
	}
}

static void test_commit_is_justified(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct message m = { .kind = MESSAGE_COMMIT, .round = 0x10002, .lock_id = lock(1),
		.token = 101, .lease_us = 1000000, .ballot = { 100, 7, 1 } };
	memset(&asker, 0, sizeof asker);
	promises(&node, 100);
	assert_null(asker_says(&asker, &node, 0, &m));
	memset(&asker, 0, sizeof asker);
	promises(&node, 101);
	assert_non_null(asker_says(&asker, &node, 0, &m));
	memset(&asker, 0, sizeof asker);
	promises(&node, 100);
	m.ballot.clock = 99;
	assert_non_null(asker_says(&asker, &node, 0, &m));
	memset(&asker, 0, sizeof asker);
	promises(&node, 100);
	m.ballot.clock = 100;
	asker_displaced(&asker, 1, &(struct message){ .attempt = 0x10001 });
	assert_non_null(asker_says(&asker, &node, 0, &m));
}

static void enters(const struct m_node *node, struct message *m) {
	memset(&asker, 0, sizeof asker);
	*m = (struct message){ .kind = MESSAGE_ENQUEUE, .round = 0x10001, .attempt = 0x10001,
		.lock_id = lock(1) };
	assert_null(asker_says(&asker, node, 0, m));
	m->kind = MESSAGE_PROMISE;
	m->ballot = (struct ballot){ 100, 7, 1 };
}

/* The home promises without being asked, the others are asked for their promises after that. */
static void test_turn_is_a_promise(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct m_node later = node;
	struct message m;
	const struct message commit = { .kind = MESSAGE_COMMIT, .round = 0x10002,
		.lock_id = lock(1), .token = 101, .lease_us = 1000000, .ballot = { 100, 7, 1 } };
	later.now = instant_add(node.now, 10 * SPAN_MS);
	struct message ok = { .kind = MESSAGE_PROMISE_ANSWER, .round = 0x10001, .noted = 90 };
	/* The home has lacked the lock_id at that moment. */
	enters(&node, &m);
	asker_hears(&asker, &later, 0, &ok);
	assert_null(asker_says(&asker, &later, 1, &m));
	asker_hears(&asker, &later, 1, &ok);
	assert_null(asker_says(&asker, &later, 1, &commit));
	/* A master that was asked has to have lacked it since. */
	enters(&node, &m);
	asker_hears(&asker, &node, 0, &ok);
	assert_null(asker_says(&asker, &node, 1, &m));
	asker_hears(&asker, &later, 1, &ok);
	assert_non_null(asker_says(&asker, &later, 1, &commit));
	/* A turn of a master that is the home no more takes its promise from nobody; one of the
	 * present home, when the request has its turn, does until it has promised again. */
	for (uint32_t home = 0; home < 2; home++) {
		enters(&node, &m);
		asker_hears(&asker, &node, 0, &ok);
		assert_null(asker_says(&asker, &node, 1, &m));
		asker_hears(&asker, &node, 1, &ok);
		m.kind = MESSAGE_ENQUEUE;
		assert_null(asker_says(&asker, &node, home, &m));
		asker_hears(&asker, &node, 0, &(struct message){ .kind = MESSAGE_TURN,
			.round = 0x10001, .status = STATUS_PARKED });
		const char *rule = asker_says(&asker, &node, 1, &commit);
		assert_true((rule == NULL) == (home == 1));
	}
}

/* A master that has said 'held by yourself' may be left out where q others have lacked the lock_id:
 * the node may have no memory for its value. */
static void test_no_memory_for_a_reported_value(void **state) {
	(void)state;
	const struct m_node node = some_node();
	const struct message commit = { .kind = MESSAGE_COMMIT, .round = 0x10002,
		.lock_id = lock(1), .token = 101, .lease_us = 1000000, .ballot = { 100, 7, 1 } };
	struct m_node later = node;
	later.now = instant_add(node.now, SPAN_MS);
	struct message m;
	for (uint32_t lacked = 0; lacked < 2; lacked++) {
		enters(&node, &m);
		ask_all(&node, &m);
		for (uint32_t from = 0; from < 3; from++) {
			asker_hears(&asker, &later, from, &(struct message){
				.kind = MESSAGE_PROMISE_ANSWER, .round = m.round, .noted = 90,
				.ballot = { 90, 7, 1 }, .age_us = lacked ? 1000 : 0,
				.status = from ? STATUS_OK : STATUS_HELD_SELF });
		}
		const char *rule = asker_says(&asker, &node, 1, &commit);
		assert_true((rule == NULL) == lacked);
	}
}

static void test_word_of_a_liar(void **state) {
	(void)state;
	const struct m_node node = some_node();
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 0x10002, .lock_id = lock(1),
		.token = 101, .lease_us = 1000000, .ballot = { 99, 7, 1 } };
	memset(&asker, 0, sizeof asker);
	promises(&node, 100);
	asker_lied(&asker, &(struct message){ .kind = MESSAGE_PROMISE_ANSWER, .round = 0x10001 });
	assert_null(asker_says(&asker, &node, 0, &m));
}

static void test_held_is_justified(void **state) {
	(void)state;
	const struct m_node node = some_node();
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 0x10002, .lock_id = lock(1),
		.token = 101, .lease_us = 1000000 };
	const struct core_request request = { .id = 3, .client = 4, .op = CORE_ACQUIRE,
		.lock_id = lock(1), .lease = SPAN_S };
	struct core_reply reply = { .id = 3, .client = 4, .op = CORE_ACQUIRE, .lock_id = lock(1),
		.token = 101, .valid = 990 * SPAN_MS };
	const struct message ok = { .kind = MESSAGE_COMMIT_ANSWER, .round = m.round };
	memset(&asker, 0, sizeof asker);
	asker_asked(&asker, &request, node.now);
	ask_all(&node, &m);
	asker_hears(&asker, &node, 0, &ok);
	asker_hears(&asker, &node, 0, &ok);
	assert_non_null(asker_answers(&asker, &node, &reply));
	struct m_node late = node;
	late.now = instant_add(late.now, late.request_timeout);
	asker_hears(&asker, &late, 1, &ok);
	assert_non_null(asker_answers(&asker, &node, &reply));
	asker_hears(&asker, &node, 2, &ok);
	assert_null(asker_answers(&asker, &node, &reply));
	reply.valid += SPAN_MS;
	assert_non_null(asker_answers(&asker, &node, &reply));
}

static void test_extension_is_justified(void **state) {
	(void)state;
	const struct m_node node = some_node();
	const struct message m = { .kind = MESSAGE_EXTEND, .round = 0x10001, .lock_id = lock(1),
		.lease_us = 1000000 };
	struct core_request request = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .lease = SPAN_S, .deadline_kept = true };
	const struct core_reply reply = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .token = 90, .valid = 900 * SPAN_MS };
	const struct core_reply lost = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .error = PAWL_ELOST };
	memset(&asker, 0, sizeof asker);
	asker_asked(&asker, &request, node.now);
	ask_all(&node, &m);
	for (uint32_t i = 0; i < 2; i++) {
		asker_hears(&asker, &node, i, &(struct message){ .kind = MESSAGE_EXTEND_ANSWER,
			.round = m.round, .token = 90 });
	}
	/* Nobody has had the lock: that is enough for who keeps the deadline. */
	request.deadline_kept = false;
	asker_asked(&asker, &request, node.now);
	assert_non_null(asker_answers(&asker, &node, &reply));
	assert_non_null(asker_answers(&asker, &node, &lost));
	request.deadline_kept = true;
	asker_asked(&asker, &request, node.now);
	assert_null(asker_answers(&asker, &node, &reply));
	/* A master that answers again still counts once, with all that it has said. */
	struct core_reply more = reply;
	more.token = 91;
	struct message again = { .kind = MESSAGE_EXTEND_ANSWER, .round = m.round, .token = 91 };
	asker_hears(&asker, &node, 0, &again);
	asker_hears(&asker, &node, 0, &again);
	assert_non_null(asker_answers(&asker, &node, &more));
	asker_hears(&asker, &node, 1, &again);
	assert_null(asker_answers(&asker, &node, &more));
}

static void test_loss_is_justified(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct m_node later = node;
	const struct message m = { .kind = MESSAGE_EXTEND, .round = 0x10001, .lock_id = lock(1),
		.lease_us = 1000000 };
	const struct core_request request = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .lease = SPAN_S };
	const struct core_reply lost = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .error = PAWL_ELOST };
	struct message answer = { .kind = MESSAGE_EXTEND_ANSWER, .round = m.round,
		.status = STATUS_NEED, .age_us = 9000 };
	later.now = instant_add(node.now, 10 * SPAN_MS);
	memset(&asker, 0, sizeof asker);
	asker_asked(&asker, &request, node.now);
	ask_all(&node, &m);
	asker_hears(&asker, &later, 0, &answer);
	asker_hears(&asker, &later, 1, &answer);
	/* They may have lost it since they were asked. */
	assert_non_null(asker_answers(&asker, &later, &lost));
	ask_all(&node, &m);
	answer.age_us = 10000;
	asker_hears(&asker, &later, 0, &answer);
	asker_hears(&asker, &later, 1, &answer);
	assert_null(asker_answers(&asker, &later, &lost));
	/* One of them has it by now, as it says in the same step, or in one before. */
	answer.status = STATUS_OK;
	asker_hears(&asker, &later, 0, &answer);
	assert_null(asker_answers(&asker, &later, &lost));
	later.now.boot++;
	assert_non_null(asker_answers(&asker, &later, &lost));
}

/* The node has told the client, over this connection, before it told another one. */
static void test_told_before(void **state) {
	(void)state;
	const struct m_node node = some_node();
	const struct message m = { .kind = MESSAGE_EXTEND, .round = 0x10001, .lock_id = lock(1),
		.lease_us = 1000000 };
	const struct core_request request = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .lease = SPAN_S };
	const struct core_reply reply = { .id = 3, .client = 4, .op = CORE_EXTEND,
		.lock_id = lock(1), .token = 90, .valid = 900 * SPAN_MS };
	for (uint64_t client = 4; client < 6; client++) {
		memset(&asker, 0, sizeof asker);
		*a_granted_place(&asker, lock(1)) = (struct a_granted){ lock(1), client,
			{ 51 * SPAN_S, 51 * SPAN_S } };
		asker_asked(&asker, &request, node.now);
		a_granted_place(&asker, lock(1))->client = 6;
		ask_all(&node, &m);
		for (uint32_t i = 0; i < 2; i++) {
			asker_hears(&asker, &node, i, &(struct message){ .token = 90,
				.kind = MESSAGE_EXTEND_ANSWER, .round = m.round });
		}
		assert_true((asker_answers(&asker, &node, &reply) == NULL) == (client == 4));
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sent),
		cmocka_unit_test(test_decree_is_on_disk),
		cmocka_unit_test(test_may_vote),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_snapshots),
		cmocka_unit_test(test_asked_again),
		cmocka_unit_test(test_merge_with_lock_delay),
		cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_adoption),
		cmocka_unit_test(test_commit_is_justified),
		cmocka_unit_test(test_turn_is_a_promise),
		cmocka_unit_test(test_no_memory_for_a_reported_value),
		cmocka_unit_test(test_word_of_a_liar),
		cmocka_unit_test(test_held_is_justified),
		cmocka_unit_test(test_extension_is_justified),
		cmocka_unit_test(test_loss_is_justified),
		cmocka_unit_test(test_told_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
