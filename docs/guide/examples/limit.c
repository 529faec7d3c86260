/* limit.c: limits the number of calls in a second, over all hosts. Each call takes a permit of a
 * semaphore, and gives it back a second later.
 *
 *     cc limit.c $(pkg-config --cflags --libs pawl) -o limit
 *     ./limit 127.0.0.1:7117 billing-api 3 10     # ten calls, of which three begin in any second
 */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PERIOD_MS = 1000 };

static int64_t now_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int limited_call(struct pawl *client, const struct pawl_lock_options *wanted) {
	struct pawl_lock *lock;
	int error = pawl_lock_acquire(client, wanted, &lock, NULL);
	if (error) {
		return error;
	}
	uint32_t slot = 0;
	pawl_lock_slots(lock, &slot, 1);
	printf("%" PRId64 " call with permit %" PRIu32 "\n", now_ms(), slot); /* the call */
	fflush(stdout);
	const int64_t end = now_ms() + PERIOD_MS;
	for (int64_t left; (left = end - now_ms()) > 0;) {
		pawl_poll(client, (uint32_t)left); /* may return earlier */
	}
	return pawl_lock_release(lock);
}

int main(int argc, char **argv) {
	const unsigned long of = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long calls = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	if (of < 1 || of > PAWL_PERMITS_MAX) {
		fprintf(stderr, "usage: limit ENDPOINTS NAME PERMITS CALLS\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	pawl_options_from_env(&options);
	/* When this process dies, its permit is free after a period, which is neither at once nor
	 * as late as the end of the lease. */
	struct pawl_lock_options wanted = { .key = pawl_str(argv[2]), .lease_ms = 5000,
		.wait_ms = 60000, .terms = { .permits = 1, .of = (uint32_t)of,
			.release_on_disconnect = true, .lock_delay_ms = PERIOD_MS } };
	const char *problem = NULL;
	struct pawl *client;
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	int error = 0;
	for (; calls && !error; calls--) {
		error = limited_call(client, &wanted);
	}
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
	}
	pawl_free(client);
	return error != 0;
}
