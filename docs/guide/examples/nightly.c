/* nightly.c: cron starts this on every host at the same minute. One of them makes the report; the
 * others find that it is already made.
 *
 *     cc nightly.c $(pkg-config --cflags --libs pawl) -o nightly
 *     ./nightly 127.0.0.1:7117 /shared/report-2024-05-01.txt
 */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Does the work in steps that are short compared with the lease. Between the steps it renews the
 * lock, and checks that it is still held. */
static bool write_report(struct pawl *client, const struct pawl_lock *lock, const char *path) {
	FILE *out = fopen(path, "w");
	if (!out) {
		perror(path);
		return false;
	}
	bool held = true;
	for (int section = 1; section <= 5 && held; section++) {
		fprintf(out, "section %d\n", section);
		held = pawl_poll(client, 100) == 0 && pawl_lock_valid_ms(lock) > 500;
	}
	return fclose(out) == 0 && held;
}

static int make_report(struct pawl *client, const struct pawl_lock *lock, const char *path) {
	char mine[4096];
	if (access(path, F_OK) == 0) {
		printf("made already\n");
		return 0;
	}
	/* Nobody else writes to this name, because each token is given out only once. */
	snprintf(mine, sizeof mine, "%s.%" PRIu64, path, pawl_lock_token(lock));
	if (!write_report(client, lock, mine) || rename(mine, path) != 0) {
		fprintf(stderr, "not made\n");
		unlink(mine);
		return 1;
	}
	printf("made with token %" PRIu64 "\n", pawl_lock_token(lock));
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: nightly ENDPOINTS REPORT\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	pawl_options_from_env(&options);
	/* It waits: if the host that makes the report dies, the next one makes it. */
	struct pawl_lock_options wanted = { .key = pawl_str("nightly-report"), .lease_ms = 5000,
		.wait_ms = 600000, .terms.release_on_disconnect = true };
	const char *problem = NULL;
	struct pawl *client;
	struct pawl_lock *lock;
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	int status = 1, error = pawl_lock_acquire(client, &wanted, &lock, NULL);
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
	} else {
		status = make_report(client, lock, argv[2]);
		pawl_lock_release(lock);
	}
	pawl_free(client);
	return status;
}
