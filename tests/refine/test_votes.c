/* test_votes.c: the abstract machine refuses what a node may not send, votes that nothing
 * justifies, and what no quorum has accepted. */
#include "voter.h"

#include "decrees.h"
#include "notes.h"
#include "transfers.h"

static struct m_record some_record(void) {
	return (struct m_record){ .lock_id = lock(1), .token = 90, .noted = 89,
		.wrote = { 90, 7, 1 }, .prepared = { 90, 7, 1 },
		.end = { 51 * SPAN_S, 51 * SPAN_S }, .freed = true };
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

/* What one source has bound to no node does not end with the node that another one names. */
static void test_merge_of_bound_locks(void **state) {
	(void)state;
	struct m_record r = some_record();
	const struct m_copy bound = { .has = true, .token = 90, .noted = 89, .wrote = r.wrote,
		.prepared = r.prepared, .end = r.end, .bound = true };
	struct m_copy unbound = bound;
	unbound.bound = false;
	r.freed = false;
	assert_null(machine_merged(&r, &bound));
	assert_non_null(machine_merged(&r, &unbound));
	r.freed = true;
	assert_null(machine_merged(&r, &unbound));
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
	/* What the source has no more at the end, it tells; unless its lease is over there, too. */
	assert_non_null(transfers_all_lost(s, now));
	assert_null(transfers_all_lost(s, instant_add(now, 2 * SPAN_S)));
	s->locks[0].there = true;
	assert_null(transfers_all_lost(s, now));
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
	/* It was dropped after it had come from this source, and has come again from another. */
	r.noted = 200;
	r.terms.delay = 0;
	transfers_dropped(&t, lock(1));
	assert_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	r = some_record();
	r.lock_id = lock(2);
	assert_non_null(transfers_judge(&t, &(struct t_merged){ .record = &r, .key = key }, now));
	assert_null(transfers_judge(&t,
		&(struct t_merged){ .record = &r, .key = key, .kept = true }, now));
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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sent),
		cmocka_unit_test(test_decree_is_on_disk),
		cmocka_unit_test(test_may_vote),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_merge_of_bound_locks),
		cmocka_unit_test(test_snapshots),
		cmocka_unit_test(test_asked_again),
		cmocka_unit_test(test_merge_with_lock_delay),
		cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_adoption),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
