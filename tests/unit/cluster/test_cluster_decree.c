/* The configuration that follows an epoch is chosen by one durable Paxos decree (docs/protocol.md,
 * section 6). */
#include "members.h"

static uint8_t encoded[CONFIG_BYTES_MAX];

/* Returns what node 0 might propose now: the same nodes with another max_lease. */
static struct config following(const struct stage *s, span_ns max_lease) {
	struct config c = *core_config(s->nodes[0].core);
	c.epoch++;
	c.max_lease = max_lease;
	c.previous_master_count = config_masters(&c);
	memcpy(c.previous_masters, c.nodes, c.previous_master_count * sizeof *c.previous_masters);
	return c;
}

static struct message prepare_with(uint64_t ballot) {
	return (struct message){ .kind = MESSAGE_DECREE_PREPARE, .round = ballot,
		.ballot = { ballot, 1, 1 } };
}

static struct message accept_with(uint64_t ballot, const struct config *value) {
	struct message m = { .kind = MESSAGE_DECREE_ACCEPT, .round = ballot,
		.ballot = { ballot, 1, 1 } };
	m.blob = slice_of(encoded, config_encode(value, encoded));
	return m;
}

static void prepare(struct stage *s, uint32_t node, uint64_t ballot) {
	struct message m = prepare_with(ballot);
	stage_inject(s, (node + 1) % 3, node, &m);
}

static void accept(struct stage *s, uint32_t node, uint64_t ballot, span_ns max_lease) {
	struct config c = following(s, max_lease);
	struct message m = accept_with(ballot, &c);
	stage_inject(s, (node + 1) % 3, node, &m);
}

static uint64_t answers(const struct stage *s, uint32_t node, enum message_kind kind) {
	return s->sent[node][(node + 1) % 3][kind];
}

static span_ns longest(const struct stage *s, uint32_t node) {
	return core_config(s->nodes[node].core)->max_lease;
}

/* ---- acceptors ---- */

static void a_ballot_is_on_disk_before_it_is_promised(void **state) {
	struct stage *s = *state;
	s->nodes[1].disk_held = true;
	prepare(s, 1, 5);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_PROMISE), 0);
	assert_int_equal(s->nodes[1].disk.decree_promised.clock, 0);
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_PROMISE), 1);
	assert_int_equal(s->nodes[1].disk.decree_promised.clock, 5);
}

static void a_value_is_on_disk_before_it_is_accepted(void **state) {
	struct stage *s = *state;
	prepare(s, 1, 5);
	s->nodes[1].disk_held = true;
	accept(s, 1, 5, 9 * SPAN_S);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_ACCEPTED), 0);
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_ACCEPTED), 1);
	assert_int_equal(s->nodes[1].disk.decree_accepted.clock, 5);
	assert_int_equal(s->nodes[1].disk.decree_config.max_lease, 9 * SPAN_S);
}

static void a_lower_ballot_is_refused_also_after_a_restart(void **state) {
	struct stage *s = *state;
	prepare(s, 1, 5);
	accept(s, 1, 4, 9 * SPAN_S);
	assert_int_equal(s->nodes[1].disk.decree_config.epoch, 0);
	stage_kill(s, 1);
	assert_true(stage_start(s, 1));
	stage_mend(s);
	accept(s, 1, 4, 9 * SPAN_S);
	prepare(s, 1, 3);
	assert_int_equal(s->nodes[1].disk.decree_promised.clock, 5);
	assert_int_equal(s->nodes[1].disk.decree_config.epoch, 0);
	/* A master that recovers answers from its disk. */
	accept(s, 1, 5, 9 * SPAN_S);
	assert_int_equal(s->nodes[1].disk.decree_config.epoch, 2);
}

static void only_what_follows_this_epoch_is_accepted(void **state) {
	struct stage *s = *state;
	struct config c = following(s, 9 * SPAN_S);
	struct message m;
	c.epoch = 3;
	m = accept_with(5, &c);
	stage_inject(s, 0, 1, &m);
	c = following(s, 9 * SPAN_S);
	c.cluster_id.b[0] ^= 1;
	m = accept_with(5, &c);
	stage_inject(s, 0, 1, &m);
	c = following(s, 9 * SPAN_S);
	c.previous_master_count = 2;
	m = accept_with(5, &c);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(s->nodes[1].disk.decree_config.epoch, 0);
	assert_int_equal(stage_count(s, COUNT_decree_accept), 0);
}

/* n3 lies: it says "I accept" for both, and one honest master would be enough for each. */
static void a_second_value_under_the_same_ballot_is_not_accepted(void **state) {
	struct stage *s = *state;
	accept(s, 1, 5, 9 * SPAN_S);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_ACCEPTED), 1);
	accept(s, 1, 5, 8 * SPAN_S);
	assert_int_equal(answers(s, 1, MESSAGE_DECREE_ACCEPTED), 1);
	assert_int_equal(s->nodes[1].disk.decree_config.max_lease, 9 * SPAN_S);
	assert_int_equal(count_of(s, 1, COUNT_decree_two_under_one), 1);
	accept(s, 1, 6, 8 * SPAN_S);
	assert_int_equal(s->nodes[1].disk.decree_config.max_lease, 8 * SPAN_S);
}

/* n4 is a master of epoch 3 and does not get what it needs to vote. */
static void a_master_that_has_not_voted_in_the_epoch_does_not_answer(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, change_of(CHANGE_PROMOTE, "n4"));
	assert_true(wait_until_epoch(s, 3, 3, SPAN_S));
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	uint64_t others = count_of(s, 0, COUNT_decree_promise),
		before = count_of(s, 3, COUNT_decree_not_voted);
	struct message m = prepare_with(50);
	stage_inject(s, 0, 3, &m);
	struct config c = following(s, 9 * SPAN_S);
	m = accept_with(50, &c);
	stage_inject(s, 0, 3, &m);
	stage_inject(s, 1, 0, &m);
	assert_int_equal(count_of(s, 3, COUNT_decree_not_voted), before + 2);
	assert_int_equal(s->nodes[3].disk.decree_promised.clock, 0);
	assert_int_equal(s->nodes[3].disk.decree_config.epoch, 0);
	assert_int_equal(count_of(s, 0, COUNT_decree_promise), others);
	assert_int_equal(s->nodes[0].disk.decree_config.epoch, 4);
}

/* ---- proposers ---- */

static int setup_four(void **state) {
	return named_setup_of(state, 4, 0);
}

/* n1 has accepted 9 s under one ballot and n2 8 s under another; n3 is dead. n4, another master,
 * coordinates, and needs the promises of both. */
static span_ns chosen_of_two(struct stage *s, uint64_t of_n1, uint64_t of_n2, bool n1_first) {
	stage_mend(s);
	stage_settle(s);
	accept(s, 0, of_n1, 9 * SPAN_S);
	accept(s, 1, of_n2, 8 * SPAN_S);
	stage_settle(s);
	stage_kill(s, 2);
	uint32_t last = n1_first ? 1 : 0;
	s->held[last][3] = true;
	uint64_t id = ask_change(s, 3, max_lease_of(7 * SPAN_S));
	stage_settle(s);
	s->held[last][3] = false;
	assert_int_equal(await(s, id)->r.error, PAWL_EMISMATCH);
	assert_int_equal(longest(s, 0), longest(s, 1));
	assert_int_equal(longest(s, 0), longest(s, 3));
	return longest(s, 0);
}

static void the_value_with_the_highest_ballot_is_adopted_if_it_comes_first(void **state) {
	assert_int_equal(chosen_of_two(*state, 30, 20, true), 9 * SPAN_S);
}

static void the_value_with_the_highest_ballot_is_adopted_if_it_comes_last(void **state) {
	assert_int_equal(chosen_of_two(*state, 20, 30, true), 8 * SPAN_S);
}

static void the_value_with_the_highest_ballot_is_adopted_from_either(void **state) {
	assert_int_equal(chosen_of_two(*state, 30, 20, false), 9 * SPAN_S);
}

static void of_two_operators_one_wins_and_the_other_is_told(void **state) {
	struct stage *s = *state;
	uint64_t a = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	struct core_change other = max_lease_of(8 * SPAN_S);
	struct core_request r = { .op = CORE_CHANGE, .change = &other, .admin = true,
		.client = 101 };
	uint64_t b = stage_ask(s, 1, r);
	int first = await(s, a)->r.error, second = await(s, b)->r.error;
	assert_true((first == PAWL_OK && second == PAWL_EMISMATCH) ||
		(first == PAWL_EMISMATCH && second == PAWL_OK));
	stage_wait(s, 200 * SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(epoch_of(s, i), 2);
		assert_int_equal(longest(s, i), first == PAWL_OK ? 9 * SPAN_S : 8 * SPAN_S);
	}
}

static void a_proposer_goes_above_the_ballots_that_it_meets(void **state) {
	struct stage *s = *state;
	prepare(s, 1, 50);
	prepare(s, 2, 60);
	stage_settle(s);
	must(s, 0, max_lease_of(9 * SPAN_S));
	assert_true(count_of(s, 0, COUNT_decree_rival) > 0);
}

/* n1 and n2 have accepted what n1 alone has adopted. The promises that n1 gives for what follows
 * are none for n3, which is an epoch behind. */
static void promises_of_another_epoch_do_not_count(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 1; i < 3; i++) {
		lose_choices(s, i, true);
	}
	lose_to(s, 2, MESSAGE_DECREE_ACCEPT, true);
	lose_to(s, 1, MESSAGE_DECREE_PROMISE, true);
	stage_lose(s, 1, 2, MESSAGE_DECREE_PROMISE, true);
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	uint64_t id = ask_change(s, 2, max_lease_of(8 * SPAN_S));
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(epoch_of(s, 1), 1);
	assert_int_equal(epoch_of(s, 2), 1);
	for (uint32_t i = 1; i < 3; i++) {
		lose_choices(s, i, false);
		lose_to(s, i, MESSAGE_DECREE_PROMISE, false);
	}
	assert_int_not_equal(await(s, id)->r.error, PAWL_OK);
	stage_wait(s, SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(longest(s, i), 9 * SPAN_S);
	}
}

static void without_a_majority_nothing_is_chosen(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	stage_kill(s, 2);
	struct core_change c = max_lease_of(9 * SPAN_S);
	c.anyway = true;
	assert_int_equal(do_change(s, 0, c), PAWL_ENOQUORUM);
	assert_int_equal(epoch_of(s, 0), 1);
}

/* ---- the proposer dies ---- */

static bool deliver_one(struct stage *s) {
	for (uint32_t from = 0; from < s->count; from++) {
		for (uint32_t to = 0; to < s->count; to++) {
			if (stage_deliver(s, from, to)) {
				return true;
			}
		}
	}
	return false;
}

static uint32_t acceptors(const struct stage *s) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < 3; i++) {
		n += s->nodes[i].disk.decree_config.epoch == 2 ||
			s->nodes[i].disk.config.epoch == 2;
	}
	return n;
}

/* The proposer dies after this number of messages. Returns false when the change was answered
 * before that. */
static bool dies_after(uint32_t messages) {
	struct stage_options o = named_options();
	o.seed = messages + 1;
	struct stage *s = stage_born(&o);
	uint64_t id = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	for (uint32_t i = 0; i < messages && deliver_one(s); i++) {
	}
	bool done = answered(s, id), may_be_chosen = acceptors(s) >= 2;
	stage_kill(s, 0);
	stage_wait(s, 2 * SPAN_S);
	/* Nobody asks for it again. */
	if (may_be_chosen) {
		assert_int_equal(longest(s, 1), 9 * SPAN_S);
		assert_int_equal(longest(s, 2), 9 * SPAN_S);
	}
	assert_true(stage_start(s, 0));
	stage_wait(s, 2 * SPAN_S);
	/* The request is repeated. */
	must(s, 1, max_lease_of(9 * SPAN_S));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(epoch_of(s, i), 2);
		assert_int_equal(stage_status(s, i).config_hash, stage_status(s, 1).config_hash);
	}
	stage_free(s);
	return !done;
}

static void whenever_the_proposer_dies_the_others_agree_and_finish_what_may_be_chosen(
	void **state) {
	(void)state;
	uint32_t messages = 0;
	while (dies_after(messages)) {
		messages++;
	}
	assert_true(messages > 4);
}

static void an_accepted_value_is_finished_after_a_restart_of_everything(void **state) {
	struct stage *s = *state;
	prepare(s, 1, 5);
	accept(s, 1, 5, 9 * SPAN_S);
	prepare(s, 2, 5);
	accept(s, 2, 5, 9 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	stage_wait(s, SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(epoch_of(s, i), 2);
		assert_int_equal(longest(s, i), 9 * SPAN_S);
	}
}

UNIT(cluster_decree) {
	const struct CMUnitTest tests[] = {
		NAMED(a_ballot_is_on_disk_before_it_is_promised),
		NAMED(a_value_is_on_disk_before_it_is_accepted),
		NAMED(a_lower_ballot_is_refused_also_after_a_restart),
		NAMED(a_second_value_under_the_same_ballot_is_not_accepted),
		NAMED(only_what_follows_this_epoch_is_accepted),
		MEMBERS(a_master_that_has_not_voted_in_the_epoch_does_not_answer),
		cmocka_unit_test_setup_teardown(
			the_value_with_the_highest_ballot_is_adopted_if_it_comes_first, setup_four,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			the_value_with_the_highest_ballot_is_adopted_if_it_comes_last, setup_four,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			the_value_with_the_highest_ballot_is_adopted_from_either, setup_four,
			named_teardown),
		NAMED(of_two_operators_one_wins_and_the_other_is_told),
		NAMED(a_proposer_goes_above_the_ballots_that_it_meets),
		NAMED(promises_of_another_epoch_do_not_count),
		NAMED(without_a_majority_nothing_is_chosen),
		cmocka_unit_test(
			whenever_the_proposer_dies_the_others_agree_and_finish_what_may_be_chosen),
		NAMED(an_accepted_value_is_finished_after_a_restart_of_everything),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
