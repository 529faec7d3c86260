/* What a node cannot send, for want of memory or because too much waits already, is lost together
 * with its link (docs/protocol.md, section 1, Frames). The node handles that like any other loss,
 * in the same step. */
#include <stdio.h>

#include "members.h"

#include "failing.h"
#include "modes.h"

#define HOLDER 3
#define GRACE (50 * SPAN_MS)

static struct failing memory;
static struct allocator failing_allocator;

static struct stage *stage_short_of(uint32_t masters, uint32_t replicas) {
	struct stage_options o = named_options();
	memory = (struct failing){ .calls = 0 };
	failing_allocator = (struct allocator){ failing_resize, &memory };
	o.core = &failing_allocator;
	o.masters = masters;
	o.replicas = replicas;
	o.replies = 1024;
	return stage_born(&o);
}

static void end(struct stage *s) {
	stage_free(s);
	assert_int_equal(memory.used, 0);
	assert_int_equal(named_memory.used, 0);
}

/* `count` allocations fail from the nth one on. */
static void fail_from(uint64_t nth, uint64_t count) {
	memory.fail_first = memory.calls + nth;
	memory.fail_count = count;
}

static void fail_none(void) {
	memory.fail_first = 0;
}

/* The core believes in a link exactly where there is one. */
static void assert_links_known(const struct stage *s) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->nodes[i].core == NULL) {
			continue;
		}
		const struct core_status status = stage_status(s, i);
		for (uint32_t k = 0; k < s->count; k++) {
			if (k != i && status.peers[stage_peer(s, i, k)].linked && !s->up[i][k]) {
				fail_msg("n%u believes in a link to n%u that it has closed",
					i + 1, k + 1);
			}
		}
	}
}

/* ---- links ---- */

/* X is bound to its node. Two of the three masters lose their links to it because the node could
 * not send. They drop X after the grace time, and somebody else gets the key. */
static void a_node_gives_up_what_is_bound_to_it_when_it_resets_links_for_want_of_memory(
	void **state) {
	(void)state;
	static uint8_t bytes[VALUE_MAX_DEFAULT];
	uint32_t resets = 0;
	for (uint64_t nth = 1; nth <= 20; nth++) {
		struct stage *s = stage_short_of(3, 1);
		take(s, HOLDER, "k", stage_lock(1));
		struct core_request bind = stage_request(CORE_BINDING, "k", stage_lock(1));
		bind.wait = GRACE;
		uint64_t binding = stage_ask(s, HOLDER, bind);
		stage_settle(s);
		uint64_t waiter = wait_for(s, 0, "k", stage_lock(2));
		struct core_request large = stage_acquire("large", stage_lock(3), LEASE, 0);
		large.value = slice_of(bytes, sizeof bytes);
		for (uint32_t i = 0; i < 3; i++) {
			/* No link is made again. */
			s->cut[HOLDER][i] = s->cut[i][HOLDER] = true;
		}
		/* Two of the three links are lost. */
		fail_from(nth, 2);
		stage_ask(s, HOLDER, large);
		stage_settle(s);
		fail_none();
		assert_links_known(s);
		resets += (uint32_t)core_counts(s->nodes[HOLDER].core)[COUNT_link_reset];
		stage_wait(s, 3 * GRACE);
		/* There would be two holders. */
		assert_false(answered(s, waiter) && !answered(s, binding));
		end(s);
	}
	assert_true(resets > 0);
}

/* One turn has more to send than a peer's backlog may hold; nothing else is short. */
static void a_backlog_that_is_full_is_a_lost_link(void **state) {
	(void)state;
	const uint32_t count = 140000;
	struct stage *s = stage_short_of(3, 0);
	struct message *pings = calloc(count, sizeof *pings);
	assert_non_null(pings);
	for (uint32_t i = 0; i < count; i++) {
		pings[i].kind = MESSAGE_PING;
	}
	const struct core_status status = stage_status(s, 1), sender = stage_status(s, 0);
	const struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[0].disk.node_id, .boot = sender.boot, .clock = sender.clock,
		.flags = FRAME_VOTING, .messages = pings, .count = count };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, 1, 0),
		.frame = &frame });
	free(pings);
	assert_int_equal(core_counts(s->nodes[1].core)[COUNT_link_reset], 1);
	assert_links_known(s);
	assert_false(s->up[1][0]);
	end(s);
}

/* ---- what a node says to itself ---- */

#define KEYS 80
#define DYING 3

/* Every key is free. All turns belong to the node that dies before it can use them, and behind each
 * of them somebody waits at node 0. */
static void fill_queues(struct stage *s, char keys[KEYS][8], uint64_t waiters[KEYS]) {
	for (uint8_t i = 0; i < KEYS; i++) {
		snprintf(keys[i], 8, "k%u", i);
		take(s, 1, keys[i], stage_lock(i));
		wait_for(s, DYING, keys[i], stage_lock((uint8_t)(KEYS + i)));
		waiters[i] = wait_for(s, 0, keys[i], stage_lock((uint8_t)(2 * KEYS + i)));
	}
	s->nodes[DYING].paused = true;
	for (uint8_t i = 0; i < KEYS; i++) {
		release(s, 1, keys[i], stage_lock(i));
		assert_false(answered(s, waiters[i]));
	}
}

/* However much is lost of what the homes say to themselves, whoever waits gets the key once there
 * is memory again. */
static void a_waiter_gets_the_key_although_a_turn_could_not_be_told(void **state) {
	(void)state;
	uint64_t lost = 0;
	for (uint64_t nth = 1; nth <= 40; nth++) {
		struct stage *s = stage_short_of(3, 1);
		char keys[KEYS][8];
		uint64_t waiters[KEYS];
		fill_queues(s, keys, waiters);
		fail_from(nth, 1000);
		stage_kill(s, DYING);
		fail_none();
		assert_links_known(s);
		stage_mend(s);
		stage_wait(s, SPAN_S);
		for (uint8_t i = 0; i < KEYS; i++) {
			if (!answered(s, waiters[i])) {
				fail_msg("nobody has %s, and its waiter waits (allocations "
					"failed from %d on)", keys[i], (int)nth);
			}
		}
		lost += stage_count(s, COUNT_self_lost);
		end(s);
	}
	assert_true(lost > 0);
}

/* A request for two keys has a, and waits for b. Then its client leaves, and there is no memory.
 * The name of a is so long that a release of it needs memory. */
static void what_could_not_be_rolled_back_is_rolled_back_soon(void **state) {
	(void)state;
	struct stage *s = stage_short_of(3, 0);
	char a[200] = { 0 };
	memset(a, 'a', sizeof a - 1);
	const struct core_lock locks[] = { { .key = slice_str(a), .lock_id = stage_lock(1) },
		{ .key = slice_str("b"), .lock_id = stage_lock(2) } };
	take(s, 1, "b", stage_lock(9));
	stage_ask(s, 0, (struct core_request){ .op = CORE_ACQUIRE_ALL, .locks = locks,
		.lock_count = 2, .lease = LEASE, .wait = WAIT });
	stage_settle(s);
	assert_true(holds(s, 1, a, stage_lock(1)));
	uint64_t refused = stage_count(s, COUNT_no_memory);
	fail_from(1, 1000);
	stage_client_gone(s, 0, 1);
	fail_none();
	assert_true(stage_count(s, COUNT_no_memory) > refused);
	stage_wait(s, SPAN_S / 4);
	take(s, 1, a, stage_lock(3));
	end(s);
}

/* ---- what cannot be shown ---- */

/* Returns the answer to an update that expects another value when the nth allocation from there on
 * fails. */
static int refused_update(uint64_t nth) {
	static uint8_t large[VALUE_MAX_DEFAULT];
	struct stage *s = stage_short_of(1, 0);
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.value = slice_of(large, sizeof large);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	struct core_request update = stage_request(CORE_UPDATE, "k", stage_lock(1));
	update.value = slice_str("new");
	update.expect_value = true;
	update.expected = slice_str("old");
	fail_from(nth, 1);
	uint64_t id = stage_ask(s, 0, update);
	stage_settle(s);
	fail_none();
	stage_wait(s, SPAN_S / 2);
	assert_non_null(stage_answer(s, id));
	const struct core_reply answer = stage_answer(s, id)->r;
	if (answer.error == PAWL_EMISMATCH) {
		assert_true(answer.held);
		assert_int_equal(answer.entry.value.size, sizeof large);
	}
	end(s);
	return answer.error;
}

static void a_mismatch_shows_the_present_value_or_is_not_told(void **state) {
	(void)state;
	uint64_t nth = 1, mismatches = 0;
	/* The loop goes on until the allocation that fails would come later. */
	for (; mismatches < 10; nth++) {
		mismatches = refused_update(nth) == PAWL_EMISMATCH ? mismatches + 1 : 0;
	}
	assert_true(nth > 12);
}

/* Of two permits one is held, and the other is not given away yet after its release. A reader asks
 * when the nth allocation from there on fails: it may have memory for the report of one of the two
 * records. */
static int read_of_two_reports(uint64_t nth) {
	struct stage *s = stage_short_of(1, 0);
	/* What keeps the key closed has the complement of the lock_id, so it is reported first. */
	assert_int_equal(take_permits(s, 0, "k", stage_lock(0xff), 1, 2), PAWL_OK);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(2), 1, 2), PAWL_OK);
	struct core_request release = stage_request(CORE_RELEASE, "k", stage_lock(0xff));
	release.closes = LEASE;
	assert_int_equal(stage_do(s, 0, release), PAWL_OK);
	struct core_request read = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	read.quorum = true;
	fail_from(nth, 1);
	uint64_t id = stage_ask(s, 0, read);
	stage_settle(s);
	fail_none();
	stage_wait(s, SPAN_S);
	const struct stage_reply *r = stage_answer(s, id);
	const int error = r ? r->r.error : PAWL_EBUSY;
	if (error == PAWL_OK) {
		assert_true(r->r.held);
	}
	end(s);
	return error;
}

static void a_key_is_held_although_the_report_of_its_lock_could_not_be_kept(void **state) {
	(void)state;
	uint32_t read = 0;
	for (uint64_t nth = 1; nth <= 60; nth++) {
		read += read_of_two_reports(nth) == PAWL_OK;
	}
	assert_in_range(read, 1, 59);
}

/* n3 is slow, and a request_timeout below eight round trips with it is refused. The sentence that
 * says why is read when the step is long over. Where there is no memory for the name and for what
 * was measured, it is said without them. */
static bool refused_without_what_was_measured(uint64_t nth) {
	struct stage *s = stage_short_of(3, 0);
	static const char least[] =
		"request_timeout must be at least 8 times the longest round trip";
	s->held[2][0] = true;
	stage_wait(s, 70 * SPAN_MS);
	s->held[2][0] = false;
	stage_settle(s);
	fail_from(nth, 1);
	uint64_t id = ask_change(s, 0,
		(struct core_change){ .kind = CHANGE_SET_TIMING, .request_timeout = 80 * SPAN_MS });
	fail_none();
	stage_wait(s, SPAN_S / 4);
	/* There is none where there is no memory for any answer. */
	const struct stage_reply *r = answered(s, id) ? stage_answer(s, id) : NULL;
	const bool without = r && r->r.error == PAWL_EBADREQUEST && r->why.size == strlen(least);
	if (without) {
		assert_memory_equal(r->why.bytes, least, strlen(least));
	} else if (r && r->r.error == PAWL_EBADREQUEST) {
		assert_true(r->why.size > strlen(least));
		assert_memory_equal(r->why.bytes, "n3: a round trip with it took ", 30);
	}
	end(s);
	return without;
}

static void a_change_that_is_refused_says_why_also_without_memory(void **state) {
	(void)state;
	uint32_t without = 0;
	for (uint64_t nth = 1; nth <= 12; nth++) {
		without += refused_without_what_was_measured(nth);
	}
	assert_true(without > 0);
}

/* ---- what cannot be taken ---- */

/* n1 and n2 have X, n1 by a repeat's later token and with a longer value; n3 lacks it. n1's
 * extension sends the record to both others, and the nth allocation at each of them fails. */
static int extension_that_cannot_be_repaired(uint64_t nth) {
	static uint8_t large[1000];
	struct stage *s = stage_short_of(3, 0);
	stage_isolate(s, 2, true);
	take(s, 0, "k", stage_lock(1));
	struct core_request update = stage_request(CORE_UPDATE, "k", stage_lock(1));
	update.value = slice_of(large, sizeof large);
	stage_lose(s, 0, 1, MESSAGE_WRITE, true);
	(void)stage_ask(s, 0, update);
	stage_wait(s, SPAN_S / 4);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_settle(s);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	stage_lose(s, 0, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	(void)stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_wait(s, SPAN_S / 4);
	stage_stop(s, 0, 1, MESSAGE_LEARN, true);
	stage_stop(s, 0, 2, MESSAGE_LEARN, true);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	for (uint32_t to = 1; to < 3; to++) {
		fail_from(nth, 1);
		stage_deliver(s, 0, to);
		fail_none();
	}
	stage_stop(s, 0, 1, MESSAGE_LEARN, false);
	stage_stop(s, 0, 2, MESSAGE_LEARN, false);
	stage_wait(s, SPAN_S / 4);
	uint64_t token, noted;
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(core_peek(s->nodes[i].core, slice_str("k"), stage_lock(1), &token,
			&noted));
	}
	const int error = stage_answer(s, id)->r.error;
	end(s);
	return error;
}

static void a_lock_is_not_lost_where_there_was_no_memory_for_its_copy(void **state) {
	(void)state;
	/* The first allocation is for the record's value. */
	assert_int_equal(extension_that_cannot_be_repaired(1), PAWL_ENOQUORUM);
	for (uint64_t nth = 2; nth <= 6; nth++) {
		assert_int_not_equal(extension_that_cannot_be_repaired(nth), PAWL_ELOST);
	}
}

/* The nth allocation of a master fails when it hears that X is bound to a connection from now on,
 * which needs memory. */
static int extension_that_cannot_bind(uint64_t nth) {
	struct stage *s = stage_short_of(3, 0);
	take(s, 0, "k", stage_lock(1));
	stage_settle(s);
	stage_stop(s, 0, 1, MESSAGE_EXTEND, true);
	stage_stop(s, 0, 2, MESSAGE_EXTEND, true);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.binding = 1;
	const uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	for (uint32_t to = 1; to < 3; to++) {
		fail_from(nth, 1);
		stage_deliver(s, 0, to);
		fail_none();
	}
	stage_stop(s, 0, 1, MESSAGE_EXTEND, false);
	stage_stop(s, 0, 2, MESSAGE_EXTEND, false);
	stage_wait(s, SPAN_S / 4);
	const int error = stage_answer(s, id)->r.error;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	end(s);
	return error;
}

static void a_lock_is_not_lost_where_there_was_no_memory_for_its_binding(void **state) {
	(void)state;
	uint32_t refused = 0;
	for (uint64_t nth = 1; nth <= 3; nth++) {
		const int error = extension_that_cannot_bind(nth);
		assert_true(error == PAWL_OK || error == PAWL_ENOQUORUM);
		refused += error != PAWL_OK;
	}
	assert_true(refused > 0);
}

/* The bytes of messages go with the turn, also where a node talks to itself alone. */
static void messages_give_their_memory_back(void **state) {
	(void)state;
	static uint8_t bytes[10000];
	for (uint32_t masters = 1; masters <= 3; masters += 2) {
		struct stage *s = stage_short_of(masters, 0);
		size_t before = 0;
		for (uint8_t i = 0; i < 200; i++) {
			struct core_request r = stage_acquire("k", stage_lock(i), LEASE, 0);
			r.value = slice_of(bytes, sizeof bytes);
			assert_int_equal(stage_do(s, 0, r), PAWL_OK);
			release(s, 0, "k", stage_lock(i));
			stage_settle(s);
			before = i == 100 ? memory.used : before;
		}
		assert_in_range(memory.used, before / 2, before + 10 * sizeof bytes);
		end(s);
	}
}

UNIT(cluster_resources) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		a_node_gives_up_what_is_bound_to_it_when_it_resets_links_for_want_of_memory),
		cmocka_unit_test(a_backlog_that_is_full_is_a_lost_link),
		cmocka_unit_test(a_waiter_gets_the_key_although_a_turn_could_not_be_told),
		cmocka_unit_test(what_could_not_be_rolled_back_is_rolled_back_soon),
		cmocka_unit_test(a_mismatch_shows_the_present_value_or_is_not_told),
		cmocka_unit_test(a_key_is_held_although_the_report_of_its_lock_could_not_be_kept),
		cmocka_unit_test(a_change_that_is_refused_says_why_also_without_memory),
		cmocka_unit_test(a_lock_is_not_lost_where_there_was_no_memory_for_its_copy),
		cmocka_unit_test(a_lock_is_not_lost_where_there_was_no_memory_for_its_binding),
		cmocka_unit_test(messages_give_their_memory_back),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
