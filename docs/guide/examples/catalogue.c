/* catalogue.c: many readers and one writer share a file. On no host is the file read while it is
 * being written.
 *
 *     cc catalogue.c $(pkg-config --cflags --libs pawl) -o catalogue
 *     ./catalogue 127.0.0.1:7117 /shared/catalogue read
 *     ./catalogue 127.0.0.1:7117 /shared/catalogue write 'some text'
 */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIES = 5 };

static int print_file(const char *path) {
	char line[256];
	FILE *in = fopen(path, "r");
	while (in && fgets(line, sizeof line, in)) {
		fputs(line, stdout);
	}
	return in ? fclose(in) : -1;
}

static int read_shared(struct pawl *client, struct pawl_lock_options wanted, const char *path) {
	struct pawl_lock *lock;
	/* Readers hold the key together, but wait for writers that asked earlier. */
	wanted.terms.mode = PAWL_SHARED;
	int error = pawl_lock_acquire(client, &wanted, &lock, NULL);
	if (error) {
		return error;
	}
	if (print_file(path) != 0) {
		perror(path);
	}
	return pawl_lock_release(lock);
}

/* This writes the file in several steps: a reader in between would see half of it. */
static bool write_file(struct pawl *client, const struct pawl_lock *lock, const char *path,
	const char *text) {
	FILE *out = fopen(path, "w");
	bool held = out != NULL;
	for (int i = 0; i < COPIES && held; i++) {
		fprintf(out, "%s\n", text);
		held = fflush(out) == 0 && pawl_poll(client, 20) == 0 &&
			pawl_lock_valid_ms(lock) > 500;
	}
	return out && fclose(out) == 0 && held;
}

static int write_exclusive(struct pawl *client, const struct pawl_lock_options *wanted,
	const char *path, const char *text) {
	struct pawl_lock *lock;
	int error = pawl_lock_acquire(client, wanted, &lock, NULL);
	if (error) {
		return error;
	}
	if (!write_file(client, lock, path, text)) {
		fprintf(stderr, "%s: not written\n", path);
		pawl_lock_release(lock);
		return PAWL_ELOST;
	}
	/* From here on others may read, and nobody writes before this one has read what it
	 * wrote. */
	error = pawl_lock_downgrade(lock, NULL);
	printf("written with token %" PRIu64 "\n", pawl_lock_token(lock));
	print_file(path);
	pawl_lock_release(lock);
	return error;
}

int main(int argc, char **argv) {
	const bool writes = argc == 5 && strcmp(argv[3], "write") == 0;
	if (!writes && (argc != 4 || strcmp(argv[3], "read") != 0)) {
		fprintf(stderr, "usage: catalogue ENDPOINTS FILE read | "
			"catalogue ENDPOINTS FILE write TEXT\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	pawl_options_from_env(&options);
	struct pawl_lock_options wanted = { .key = pawl_str("catalogue"), .lease_ms = 5000,
		.wait_ms = 60000 };
	const char *problem = NULL;
	struct pawl *client;
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	int error = writes ? write_exclusive(client, &wanted, argv[2], argv[4])
		: read_shared(client, wanted, argv[2]);
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
	}
	pawl_free(client);
	return error != 0;
}
