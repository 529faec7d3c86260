/* test_asker.c: the abstract machine refuses what a coordinator may not ask for, and answers that
 * nothing justifies. */
#include "voter.h"

#include "asker.h"
#include "pawl/error.h"

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
	/* The commit has arrived there twice, and was accepted the first time. */
	asker_hears(&asker, &node, 2, &(struct message){ .kind = MESSAGE_COMMIT_ANSWER,
		.round = m.round, .status = STATUS_RELEASED });
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
	/* A message that arrives twice is answered twice; the second answer says more here. */
	answer.age_us = 10000;
	asker_hears(&asker, &later, 0, &answer);
	asker_hears(&asker, &later, 1, &answer);
	assert_null(asker_answers(&asker, &later, &lost));
	/* Who has no memory for the record that it is sent goes on lacking it. */
	asker_hears(&asker, &later, 0, &(struct message){ .kind = MESSAGE_LEARN_ANSWER,
		.round = m.round, .status = STATUS_FULL });
	assert_null(asker_answers(&asker, &later, &lost));
	ask_all(&node, &m);
	/* One of them has it by now, as it says in the same step, or in one before. */
	answer.status = STATUS_OK;
	asker_hears(&asker, &later, 0, &answer);
	assert_null(asker_answers(&asker, &later, &lost));
	later.now.boot++;
	assert_non_null(asker_answers(&asker, &later, &lost));
}

/* Another epoch begins in the step in which q masters have acknowledged the release, and the others
 * are asked under that. */
static void test_release_is_acknowledged(void **state) {
	(void)state;
	struct m_node node = some_node();
	const struct message m = { .kind = MESSAGE_RELEASE, .round = 0x10001, .lock_id = lock(1) };
	const struct core_request request = { .id = 3, .client = 4, .op = CORE_RELEASE,
		.lock_id = lock(1) };
	const struct core_reply done = { .id = 3, .client = 4, .op = CORE_RELEASE,
		.lock_id = lock(1), .released = true };
	for (uint32_t acknowledged = 1; acknowledged < 3; acknowledged++) {
		memset(&asker, 0, sizeof asker);
		asker_asked(&asker, &request, node.now);
		ask_all(&node, &m);
		for (uint32_t i = 0; i < acknowledged; i++) {
			asker_hears(&asker, &node, i, &(struct message){
				.kind = MESSAGE_RELEASE_ANSWER, .round = m.round });
		}
		node.epoch++;
		assert_null(asker_says(&asker, &node, 2, &m));
		assert_true((asker_answers(&asker, &node, &done) == NULL) == (acknowledged == 2));
	}
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
		cmocka_unit_test(test_commit_is_justified),
		cmocka_unit_test(test_turn_is_a_promise),
		cmocka_unit_test(test_no_memory_for_a_reported_value),
		cmocka_unit_test(test_word_of_a_liar),
		cmocka_unit_test(test_held_is_justified),
		cmocka_unit_test(test_extension_is_justified),
		cmocka_unit_test(test_loss_is_justified),
		cmocka_unit_test(test_release_is_acknowledged),
		cmocka_unit_test(test_told_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
