/* Calls the C API at random, with every option, in both styles. The sanitizers judge what it does;
 * this program checks that each callback comes once, that no trust comes back, and that no memory
 * is left. Two fake nodes answer, refuse, hang, hang up and garble.
 *
 *   test_client client_random_calls [--rounds N] [--seed S]   N rounds of each style, from seed S
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "random_program.h"

#define STEPS 80

static uint64_t rounds, first_seed;

static struct pawl_options some_client_options(struct world *w) {
	struct draw *d = &w->draw;
	return (struct pawl_options){ .owner = draw_name(d), .label = draw_name(d),
		.timeout_ms = d->short_waits ? 20 : draw_ms(d), .connect_timeout_ms = draw_ms(d),
		.silence_ms = draw_ms(d), .prefer_first = one_in(w, 2),
		.trace = one_in(w, 3)
			? "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" : NULL };
}

static void upset_nodes(struct world *w) {
	struct fake_node *n = some_node(w);
	if (one_in(w, 3)) {
		draw_node(&w->draw, n);
	} else {
		draw_happening(&w->draw, n);
	}
}

static void world_end(struct world *w) {
	printf("%u steps, %u outcomes, %u locks\n", w->steps, w->come, w->granted);
	assert_int_equal(w->come, w->expected);
	free(w);
}

/* ---- the event-driven style ---- */

static void evented_step(struct world *w) {
	static const span_ns times[] = { 0, 0, 5, 50, 400, 3000 };
	step_start(w);
	if (one_in(w, 3)) {
		upset_nodes(w);
	}
	const span_ns time = times[below(w, LENGTH(times))] * SPAN_MS;
	if (one_in(w, 40)) {
		/* The process has stood still, or the machine was suspended. */
		rig_jump(&w->rig, 10 * SPAN_S, one_in(w, 2) ? 10 * SPAN_S : 0);
	}
	for (span_ns passed = 0; w->client && passed <= time; passed += 5 * SPAN_MS) {
		rig_jump(&w->rig, 5 * SPAN_MS, 5 * SPAN_MS);
		client_core_tick(w->client);
		CHECK(event_base_loop(w->rig.base, EVLOOP_NONBLOCK) >= 0);
	}
}

static void evented_round(uint64_t seed) {
	struct world *w = calloc(1, sizeof(*w));
	CHECK(w);
	world_init(w, seed);
	w->evented = true;
	const struct pawl_options options = some_client_options(w);
	rig_open(&w->rig, &options);
	w->client = w->rig.client;
	for (unsigned i = 0; w->client && i < STEPS; i++) {
		if (one_in(w, 60)) {
			/* There is no memory for a while. */
			w->rig.fail_from = w->rig.allocations + 1 + below(w, 40);
			w->rig.fail_count = 1 + below(w, 3);
		}
		evented_step(w);
		check_locks(w);
		w->steps++;
	}
	if (w->client) {
		free_client(w);
	}
	rig_close(&w->rig);
	world_end(w);
}

/* ---- the blocking style ---- */

/* A lock may be freed, and so may the client, while a call blocks. */
static void block_with_lock(struct world *w, struct held *h, struct pawl_result **result) {
	struct draw *d = &w->draw;
	const struct pawl_bytes expect = pawl_str("v");
	struct pawl_lock *several[3];
	size_t count = 0;
	switch (below(w, 8)) {
	case 0:
		(void)pawl_lock_update(h->lock, draw_bytes(d), one_in(w, 2) ? &expect : NULL,
			result);
		break;
	case 1:
		(void)pawl_lock_downgrade(h->lock, result);
		break;
	case 2:
		h->moves = true;
		(void)pawl_lock_transfer(h->lock, draw_name(d), result);
		break;
	case 3:
		for (size_t i = 0; i < PLACES && count < LENGTH(several); i++) {
			if (w->locks[i].lock && one_in(w, 2)) {
				several[count++] = take_one(&w->locks[i]);
			}
		}
		(void)pawl_locks_release(several, count);
		break;
	case 4:
		(void)pawl_lock_shorten(h->lock, 1 + (uint32_t)below(w, 5000), result);
		break;
	case 5:
		(void)pawl_lock_release_closing(take_one(h), (uint32_t)below(w, 5000));
		break;
	default:
		(void)pawl_lock_release(take_one(h));
		break;
	}
}

static void block(struct world *w, struct pawl_result **result) {
	struct drawn_request r;
	struct pawl_key_item keys[3];
	struct pawl_lock *locks[3];
	const struct pawl_lock_options o = some_options(w);
	struct held *h = some_lock(w);
	const char *found = "";
	switch (below(w, h ? 7 : 5)) {
	case 0:
		if (pawl_lock_acquire(w->client, &o, locks, result) == 0) {
			add_lock(w, locks[0]);
		}
		break;
	case 1: {
		const size_t count = draw_keys(&w->draw, keys, LENGTH(keys));
		const int error = pawl_locks_acquire(w->client, &o, keys, count, locks, result);
		for (size_t i = 0; !error && i < count; i++) {
			add_lock(w, locks[i]);
		}
		break;
	}
	case 2:
		draw_request(&w->draw, &r);
		(void)pawl_call(w->client, &r.request, result);
		break;
	case 3:
		(void)pawl_poll(w->client, (uint32_t)below(w, 4));
		break;
	case 4:
		if (pawl_look_up(w->client, &found) == 0) {
			read_bytes(pawl_str(found));
		}
		break;
	default:
		block_with_lock(w, h, result);
		break;
	}
}

static void blocking_step(struct world *w) {
	struct pawl_result *result = NULL;
	if (one_in(w, 2)) {
		step_start(w);
	}
	if (one_in(w, 3)) {
		upset_nodes(w);
	}
	if (one_in(w, 5)) {
		pawl_wake(w->client);
	}
	if (one_in(w, 3)) {
		struct pollfd fd = { .fd = pawl_fd(w->client), .events = POLLIN };
		const int limit_ms = pawl_timeout_ms(w->client);
		CHECK(poll(&fd, 1, limit_ms == 0 ? 0 : 1) >= 0);
		(void)pawl_poll(w->client, 0);
		return;
	}
	block(w, one_in(w, 2) ? &result : NULL);
	if (result) {
		read_result(result);
		pawl_result_free(result);
	}
}

struct waker {
	struct pawl *client;
	struct prng prng;
	atomic_bool stop;
};

static void *wake_now_and_then(void *arg) {
	struct waker *waker = arg;
	const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	CHECK(fd >= 0);
	while (!atomic_load(&waker->stop)) {
		uint64_t count;
		const long ns = (long)prng_between(&waker->prng, 1, 400000);
		const struct itimerspec soon = { .it_value.tv_nsec = ns };
		CHECK(timerfd_settime(fd, 0, &soon, NULL) == 0);
		CHECK(read(fd, &count, sizeof(count)) > 0);
		pawl_wake(waker->client);
	}
	close(fd);
	return NULL;
}

static void blocking_steps(struct world *w) {
	for (unsigned i = 0; w->client && i < STEPS; i++) {
		blocking_step(w);
		check_locks(w);
		w->steps++;
	}
}

static void blocking_round(uint64_t seed) {
	struct world *w = calloc(1, sizeof(*w));
	CHECK(w);
	world_init(w, seed);
	w->woken = seed % 2 == 0;
	w->draw.short_waits = true;
	w->draw.forever = w->woken;
	char endpoints[80];
	fake_open(&w->nodes[0]);
	fake_open(&w->nodes[1]);
	(void)snprintf(endpoints, sizeof(endpoints), "%s,%s", w->nodes[0].endpoint,
		w->nodes[1].endpoint);
	struct pawl_options options = some_client_options(w);
	options.endpoints = endpoints;
	assert_int_equal(pawl_new(&options, &w->client, NULL), 0);
	fake_attach(&w->nodes[0], w->client->base);
	fake_attach(&w->nodes[1], w->client->base);
	if (w->woken) {
		struct waker waker = { .client = w->client };
		pthread_t thread;
		prng_init(&waker.prng, seed);
		assert_int_equal(pthread_create(&thread, NULL, wake_now_and_then, &waker), 0);
		blocking_steps(w);
		atomic_store(&waker.stop, true);
		assert_int_equal(pthread_join(thread, NULL), 0);
	} else {
		blocking_steps(w);
	}
	if (w->client) {
		free_client(w);
	}
	world_end(w);
}

/* ---- the rounds ---- */

static void play(const char *style, void (*play_round)(uint64_t seed)) {
	for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++) {
		printf("%s, seed %llu: ", style, (unsigned long long)seed);
		(void)fflush(stdout);
		play_round(seed);
	}
}

static void random_calls_in_the_loop_of_the_program_break_nothing(void **state) {
	(void)state;
	play("event-driven", evented_round);
}

static void random_calls_that_block_break_nothing(void **state) {
	(void)state;
	play("blocking", blocking_round);
}

UNIT(client_random_calls) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_calls_in_the_loop_of_the_program_break_nothing),
		cmocka_unit_test(random_calls_that_block_break_nothing),
	};
	rounds = unit_option("--rounds", 60);
	first_seed = unit_option("--seed", 1);
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
