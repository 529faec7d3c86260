/* append.c: guards a plain file. It appends a line, unless somebody with a higher token was here
 * before.
 *
 *     cc append.c $(pkg-config --cflags --libs pawl) -o append
 *     ./append /var/lib/app/journal ledger 17 'a line'
 *
 * Every writer has to use this program, on the one machine that has the file. */
#include <fcntl.h>
#include <pawl/fence.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* For all others, the check and the write are one step, because both happen while this process has
 * the file lock. */
static int guarded_append(const char *path, const char *store, const char *name, uint64_t token,
	const char *line) {
	struct pawl_fence *fence;
	uint64_t highest = 0;
	int error = pawl_fence_open(store, &fence);
	if (error) {
		return error;
	}
	error = pawl_fence_store_check(fence, pawl_str(name), token, PAWL_EXCLUSIVE, &highest);
	if (error == 0) {
		FILE *out = fopen(path, "a");
		bool written = out && fprintf(out, "%s\n", line) > 0;
		error = out && fclose(out) == 0 && written ? 0 : PAWL_EIO;
	} else if (error == PAWL_ELOST) {
		fprintf(stderr, "refused: token %llu has been seen\n", (unsigned long long)highest);
	}
	pawl_fence_close(fence);
	return error;
}

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: append FILE NAME TOKEN LINE\n");
		return 2;
	}
	char guard[4096], store[4096];
	snprintf(guard, sizeof guard, "%s.lock", argv[1]);
	snprintf(store, sizeof store, "%s.fence", argv[1]);
	int lock = open(guard, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) != 0) {
		perror(guard);
		return 1;
	}
	int error = guarded_append(argv[1], store, argv[2], strtoull(argv[3], NULL, 10), argv[4]);
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
	}
	close(lock);
	return error != 0;
}
