/* move.c: moves money from one account to another while other processes do the same. Each account
 * is a file with a number.
 *
 *     cc move.c $(pkg-config --cflags --libs pawl) -o move
 *     ./move 127.0.0.1:7117 /shared/accounts anna ben 5
 *
 * One request acquires both locks or none. If another process moves money from ben to anna at the
 * same moment, there is no deadlock. */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_amount(const char *directory, const char *account, long *out_amount) {
	char path[4096], line[64] = "";
	snprintf(path, sizeof path, "%s/%s", directory, account);
	FILE *in = fopen(path, "r");
	bool read = in && fgets(line, sizeof line, in);
	*out_amount = strtol(line, NULL, 10);
	return (!in || fclose(in) == 0) && read;
}

static bool write_amount(const char *directory, const char *account, long amount) {
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", directory, account);
	FILE *out = fopen(path, "w");
	bool written = out && fprintf(out, "%ld\n", amount) > 0;
	return out && fclose(out) == 0 && written;
}

static int move(const char *directory, const char *from, const char *to, long amount) {
	long there, here;
	if (!read_amount(directory, from, &there) || !read_amount(directory, to, &here) ||
		there < amount) {
		fprintf(stderr, "not moved\n");
		return 1;
	}
	return write_amount(directory, from, there - amount) &&
		write_amount(directory, to, here + amount) ? 0 : 1;
}

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: move ENDPOINTS DIRECTORY FROM TO AMOUNT\n");
		return 2;
	}
	char from[300], to[300];
	snprintf(from, sizeof from, "account/%.200s", argv[3]);
	snprintf(to, sizeof to, "account/%.200s", argv[4]);
	struct pawl_options options = { .endpoints = argv[1] };
	pawl_options_from_env(&options);
	struct pawl_lock_options wanted = { .lease_ms = 5000, .wait_ms = 60000 };
	struct pawl_key_item keys[] = { { .key = pawl_str(from) }, { .key = pawl_str(to) } };
	struct pawl_lock *locks[2];
	struct pawl_result *result = NULL;
	const char *problem = NULL;
	struct pawl *client;
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	int status = 1, error = pawl_locks_acquire(client, &wanted, keys, 2, locks, &result);
	if (error) {
		fprintf(stderr, "%s\n", result ? result->message : pawl_error_message(error));
	} else {
		printf("tokens %" PRIu64 " and %" PRIu64 "\n", pawl_lock_token(locks[0]),
			pawl_lock_token(locks[1]));
		status = move(argv[2], argv[3], argv[4], strtol(argv[5], NULL, 10));
		pawl_locks_release(locks, 2);
	}
	pawl_result_free(result);
	pawl_free(client);
	return status;
}
