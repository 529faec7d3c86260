/* These tests are about the table of requests that a node has not answered yet. */
#include "unit.h"

#include "pawl/error.h"
#include "requests.h"

static const struct client_context context = { .node = "n1", .role = "master" };

static struct requests open_table(struct alloc_counter *counter, struct allocator *alloc) {
	struct requests r;
	*alloc = alloc_libc(counter);
	assert_int_equal(requests_init(&r, alloc, alloc, (struct siphash_key){ 1, 2 }), 0);
	return r;
}

static void each_request_is_found_by_its_id_until_it_is_closed(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct request *one, *two;
	(void)state;
	assert_int_equal(requests_open(&r, 7, 100, &one), 0);
	assert_int_equal(requests_open(&r, 7, 100, &two), 0);
	assert_int_not_equal(one->id, two->id);
	uint64_t id = one->id;
	assert_ptr_equal(requests_find(&r, id), one);
	requests_close(&r, one);
	assert_null(requests_find(&r, id));
	assert_int_equal(two->msgid, 100);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

/* A request may wait for days, in which a node gets any number of others. */
static void four_billion_requests_later_a_request_is_still_found_and_no_other(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct request *waits, *later;
	const uint64_t turn = UINT64_C(1) << 32;
	(void)state;
	assert_int_equal(requests_open(&r, 7, 100, &waits), 0);
	const uint64_t id = waits->id;
	r.last_id += turn - 1;
	assert_int_equal(requests_open(&r, 7 + turn, 1, &later), 0);
	assert_int_equal(later->id, id + turn);
	assert_int_equal(later->client, 7 + turn);
	assert_ptr_equal(requests_find(&r, id), waits);
	assert_ptr_equal(requests_find(&r, id + turn), later);
	requests_close(&r, later);
	assert_null(requests_find(&r, id + turn));
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

static void a_batch_is_whole_with_its_last_part_in_whatever_order(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct requests_batch *batch, *whole = NULL;
	(void)state;
	assert_int_equal(requests_open_batch(&r, 7, 1, 3, NULL, &batch), 0);
	for (uint32_t i = 3; i-- > 0;) {
		const struct client_extended result = { .token = i + 1 };
		assert_null(whole);
		whole = requests_close_part(&r, requests_find(&r, batch->requests[i].id), &result,
			&context);
	}
	assert_ptr_equal(whole, batch);
	assert_int_equal(batch->results[0].token, 1);
	assert_int_equal(batch->results[2].token, 3);
	struct buffer out;
	buffer_init(&out, &alloc, 1000);
	assert_int_equal(requests_batch_encode(batch, &context, &out), 0);
	assert_true(out.size > 0);
	buffer_done(&out);
	requests_batch_free(&r, batch);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

/* A batch is written up to the first result that is missing, so that little is left to write when
 * the last result comes. */
static void a_batch_is_written_as_far_as_its_results_are_there(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct requests_batch *batch;
	const struct client_extended result = { .token = 1 };
	(void)state;
	assert_int_equal(requests_open_batch(&r, 7, 1, 4, NULL, &batch), 0);
	assert_null(requests_close_part(&r, &batch->requests[0], &result, &context));
	assert_int_equal(batch->encoded, 1);
	assert_null(requests_close_part(&r, &batch->requests[2], &result, &context));
	assert_int_equal(batch->encoded, 1);
	assert_null(requests_close_part(&r, &batch->requests[1], &result, &context));
	assert_int_equal(batch->encoded, 3);
	requests_forget(&r, 7, UINT32_MAX);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

static void a_client_that_is_gone_takes_its_requests_along_and_no_others(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct request *other, *mine;
	struct requests_batch *batch;
	const struct client_extended result = { .token = 1 };
	(void)state;
	assert_int_equal(requests_open(&r, 8, 1, &other), 0);
	assert_int_equal(requests_open(&r, 7, 1, &mine), 0);
	assert_int_equal(requests_open_batch(&r, 7, 2, 5, NULL, &batch), 0);
	assert_null(requests_close_part(&r, &batch->requests[2], &result, &context));
	uint64_t other_id = other->id, last = batch->requests[4].id;
	requests_forget(&r, 7, UINT32_MAX);
	assert_null(requests_find(&r, last));
	assert_ptr_equal(requests_find(&r, other_id), other);
	/* Forgetting it again changes nothing. */
	requests_forget(&r, 7, UINT32_MAX);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

static void what_is_left_open_is_freed_with_the_table(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	(void)state;
	for (uint64_t client = 1; client <= 3000; client++) {
		struct request *request;
		struct requests_batch *batch;
		assert_int_equal(requests_open(&r, client, 1, &request), 0);
		assert_int_equal(requests_open_batch(&r, client, 2, 2, NULL, &batch), 0);
	}
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

static void without_memory_nothing_is_left_behind(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct requests_batch *batch;
	struct request *request;
	(void)state;
	for (size_t room = 0; room < 4000; room += 40) {
		counter.max = counter.used + room;
		if (requests_open_batch(&r, 7, 1, 10, NULL, &batch) == 0) {
			break;
		}
		assert_int_equal(r.by_id.count, 0);
	}
	counter.max = counter.used;
	assert_int_equal(requests_open(&r, 9, 1, &request), PAWL_ENOMEM);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

static void requests_that_wait_are_counted_until_they_are_closed(void **state) {
	struct alloc_counter counter = { 0 };
	struct allocator alloc;
	struct requests r = open_table(&counter, &alloc);
	struct request *one, *two, *other;
	(void)state;
	assert_int_equal(requests_waiting(&r, 7), 0);
	assert_int_equal(requests_open(&r, 7, 1, &one), 0);
	assert_int_equal(requests_open(&r, 7, 2, &two), 0);
	assert_int_equal(requests_open(&r, 8, 3, &other), 0);
	requests_mark_waiting(one);
	requests_mark_waiting(other);
	assert_int_equal(requests_waiting(&r, 7), 1);
	requests_close(&r, two);
	assert_int_equal(requests_waiting(&r, 7), 1);
	requests_close(&r, one);
	assert_int_equal(requests_waiting(&r, 7), 0);
	requests_forget(&r, 8, UINT32_MAX);
	assert_int_equal(requests_waiting(&r, 8), 0);
	requests_done(&r);
	assert_int_equal(counter.used, 0);
}

UNIT(node_requests) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_wait_are_counted_until_they_are_closed),
		cmocka_unit_test(each_request_is_found_by_its_id_until_it_is_closed),
		cmocka_unit_test(
			four_billion_requests_later_a_request_is_still_found_and_no_other),
		cmocka_unit_test(a_batch_is_whole_with_its_last_part_in_whatever_order),
		cmocka_unit_test(a_batch_is_written_as_far_as_its_results_are_there),
		cmocka_unit_test(a_client_that_is_gone_takes_its_requests_along_and_no_others),
		cmocka_unit_test(what_is_left_open_is_freed_with_the_table),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
