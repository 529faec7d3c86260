/* test_epochs.c: the abstract machine refuses decrees, adoptions and forced starts that break a
 * rule of section 6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "decrees.h"
#include "epochs.h"
#include "proposals.h"

static void refused(const char *rule, const char *part) {
	if (rule == NULL || strstr(rule, part) == NULL) {
		fail_msg("expected '%s', got '%s'", part, rule ? rule : "nothing");
	}
}

/* ---- the decree ---- */

/* The encoding of a configuration that two different numbers of masters make different. */
static struct slice some_value(uint8_t *bytes, uint32_t max_lease_s) {
	static struct config c;
	memset(&c, 0, sizeof c);
	c.epoch = 2;
	memcpy(c.cluster, "c", 2);
	c.max_lease = max_lease_s * SPAN_S;
	c.request_timeout = 100 * SPAN_MS;
	c.promise_timeout = 200 * SPAN_MS;
	c.drift_ppm = 10000;
	c.node_count = 1;
	memcpy(c.nodes[0].name, "n1", 3);
	memcpy(c.nodes[0].address, "a:1", 4);
	c.nodes[0].id.b[0] = 1;
	c.nodes[0].master = true;
	const struct slice s = slice_of(bytes, config_encode(&c, bytes));
	struct config back;
	assert_int_equal(config_decode(s, &back), 0);
	return s;
}

/* Two of three masters have promised the ballot 5; one of them has accepted a value before. */
static void promise_twice(struct proposals *p, struct slice accepted) {
	*p = (struct proposals){ .next = 0 };
	struct message m = { .kind = MESSAGE_DECREE_PROMISE, .ballot = { 5, 1, 1 } };
	proposals_hears(p, 1, &m);
	m.prepared = (struct ballot){ 4, 2, 1 };
	m.blob = accepted;
	proposals_hears(p, 2, &m);
}

static void test_proposals(void **state) {
	(void)state;
	static uint8_t one[CONFIG_BYTES_MAX], other[CONFIG_BYTES_MAX];
	const struct slice value = some_value(one, 10), another = some_value(other, 11);
	const struct m_node node = { .masters = 3, .quorum = 2 };
	struct message m = { .kind = MESSAGE_DECREE_ACCEPT, .ballot = { 5, 1, 1 }, .blob = value };
	struct proposals p;
	promise_twice(&p, value);
	assert_null(proposals_says(&p, &node, true, true, &m));
	m.blob = another;
	refused(proposals_says(&p, &node, true, true, &m), "one value for each");
	promise_twice(&p, value);
	refused(proposals_says(&p, &node, true, true, &m), "the accepted value");
	promise_twice(&p, value);
	m.ballot.clock = 6;
	refused(proposals_says(&p, &node, true, true, &m), "q masters of the epoch");
	refused(proposals_says(&p, &node, false, true, &m), "only masters propose");
	m = (struct message){ .kind = MESSAGE_DECREE_PROMISE };
	assert_null(proposals_says(&p, &node, true, true, &m));
	refused(proposals_says(&p, &node, true, false, &m), "hears a proposal");
}

static void test_one_master_twice(void **state) {
	(void)state;
	const struct m_node node = { .masters = 3, .quorum = 2 };
	struct message m = { .kind = MESSAGE_DECREE_PROMISE, .ballot = { 5, 1, 1 } };
	struct proposals p = { .next = 0 };
	proposals_hears(&p, 1, &m);
	proposals_hears(&p, 1, &m);
	m.kind = MESSAGE_DECREE_ACCEPT;
	refused(proposals_says(&p, &node, true, true, &m), "q masters of the epoch");
}

static void test_synced(void **state) {
	(void)state;
	const struct p_disk before = { 1, { 5, 1, 1 }, { 4, 1, 1 }, 9 };
	struct p_disk after = before;
	assert_null(proposals_synced(&before, &after));
	after.accepted.clock = after.promised.clock = 5;
	assert_null(proposals_synced(&before, &after));
	after = before;
	after.promised.clock = 4;
	refused(proposals_synced(&before, &after), "promises no ballot");
	after = before;
	after.accepted_hash = 8;
	refused(proposals_synced(&before, &after), "under the same ballot");
	after = (struct p_disk){ 1, { 6, 1, 1 }, { 4, 2, 1 }, 8 };
	refused(proposals_synced(&before, &after), "accepts nothing below");
	after.epoch = 2;
	assert_null(proposals_synced(&before, &after));
}

/* ---- adoption ---- */

static void test_marks(void **state) {
	(void)state;
	const struct e_disk before = { .id = 1, .epoch = 4, .hash = 40, .voted = true };
	struct e_disk after = { .id = 1, .epoch = 5, .hash = 50, .voted = true };
	assert_null(epochs_synced(&before, &after, true, false));
	refused(epochs_synced(&before, &after, false, false), "only if the masters are the same");
	after.epoch = 6;
	refused(epochs_synced(&before, &after, true, false), "only if the masters are the same");
	after.voted = false;
	assert_null(epochs_synced(&before, &after, false, false));
}

static void test_birth(void **state) {
	(void)state;
	const struct e_disk before = { .id = 1, .epoch = 1, .hash = 10, .pledged = true };
	const struct e_disk after = { .id = 1, .epoch = 1, .hash = 10, .voted = true };
	assert_null(epochs_synced(&before, &after, false, true));
	refused(epochs_synced(&before, &after, false, false), "pledged the same");
	static struct config c;
	c.node_count = 2;
	c.nodes[0].id.b[0] = 1;
	c.nodes[1].id.b[0] = 2;
	c.nodes[0].master = c.nodes[1].master = true;
	static struct decrees d;
	decrees_accepted(&d, 10, id128_word(c.nodes[0].id));
	assert_false(decrees_all_pledged(&d, &c, 10));
	decrees_accepted(&d, 10, id128_word(c.nodes[1].id));
	assert_true(decrees_all_pledged(&d, &c, 10));
	assert_false(decrees_all_pledged(&d, &c, 11));
}

static void test_forced(void **state) {
	(void)state;
	const uint64_t second = (UINT64_C(1) << 32) + 1, jump = UINT64_C(1) << 40;
	struct e_disk before = { .id = 1, .epoch = 4, .hash = 40 };
	const struct e_disk after = { .id = 1, .epoch = second, .hash = 50, .voted = true };
	assert_null(epochs_synced(&before, &after, false, false));
	before.pledged = true;
	refused(epochs_synced(&before, &after, false, false), "has been a member");
	before = (struct e_disk){ .id = 1 };
	refused(epochs_synced(&before, &after, false, false), "has been a member");
	assert_int_equal(epochs_forced_clock(second, 7), jump + 7);
	assert_int_equal(epochs_forced_clock((UINT64_C(2) << 32) + 1, 7), 2 * jump);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_proposals),
		cmocka_unit_test(test_one_master_twice),
		cmocka_unit_test(test_synced),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_birth),
		cmocka_unit_test(test_forced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
