/* blocking.c: runs one job at a time over all machines, in the blocking style.
 *
 *     cc blocking.c $(pkg-config --cflags --libs pawl) -o blocking
 *     ./blocking 127.0.0.1:7117 nightly-report
 *
 * It waits up to ten seconds for the key, works in small steps while it holds the key, and lets go.
 * There are no threads: the lease is renewed inside pawl_poll, so each step of the work must be
 * short compared with a third of the lease. */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>

#define STEPS 10
/* A step is not begun unless the lock may be trusted for this long. */
#define STEP_NEEDS_MS 200

/* Stands for a piece of real work. Whatever it writes elsewhere carries the token. So a store that
 * keeps the highest token it has seen can refuse a writer that was stopped for too long and does
 * not know it yet. */
static void work(int step, uint64_t token) {
	printf("step %d of %d with token %" PRIu64 "\n", step, STEPS, token);
}

/* Returns 0, or the reason why the work was not finished. */
static int work_while_held(struct pawl *client, struct pawl_lock *lock) {
	for (int step = 1; step <= STEPS; step++) {
		/* This renews the lock when that is due. Here it also paces the example. */
		int error = pawl_poll(client, 50);
		if (error) {
			return error;
		}
		if (pawl_lock_error(lock)) {
			return pawl_lock_error(lock);
		}
		if (pawl_lock_valid_ms(lock) < STEP_NEEDS_MS) {
			/* Somebody else may hold the key before this step would be over. */
			return PAWL_ELOST;
		}
		work(step, pawl_lock_token(lock));
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: blocking ENDPOINTS KEY\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	struct pawl *client;
	const char *problem = "";
	int error = pawl_new(&options, &client, &problem);
	if (error) {
		fprintf(stderr, "%s: %s\n", argv[1], problem);
		return 2;
	}
	struct pawl_lock_options wanted = { .key = pawl_str(argv[2]), .lease_ms = 3000,
		.wait_ms = 10000 };
	struct pawl_lock *lock;
	struct pawl_result *result;
	error = pawl_lock_acquire(client, &wanted, &lock, &result);
	if (error) {
		fprintf(stderr, "not acquired: %s\n",
			result ? result->message : pawl_error_message(error));
	} else {
		error = work_while_held(client, lock);
		if (error) {
			fprintf(stderr, "stopped: %s\n", pawl_error_message(error));
		}
		/* Without this, the next holder would have to wait until the lease is over. */
		int not_released = pawl_lock_release(lock);
		if (not_released) {
			fprintf(stderr, "not released: %s\n", pawl_error_message(not_released));
		}
	}
	pawl_result_free(result);
	pawl_free(client);
	return error ? 1 : 0;
}
