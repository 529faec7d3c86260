/* worker.c: a queue of jobs, which are the files DIRECTORY/NAME.job. Start any number of workers,
 * on all hosts that share the directory.
 *
 *     cc worker.c $(pkg-config --cflags --libs pawl) -o worker
 *     ./worker 127.0.0.1:7117 /shared/queue
 *
 * Each job has a lock. Workers do not wait for each other, and a job belongs to one worker at a
 * time. If a worker dies, the next one gets its job. */
#include <dirent.h>
#include <inttypes.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_job(const char *name) {
	size_t length = strlen(name);
	return length > 4 && strcmp(name + length - 4, ".job") == 0;
}

/* Does the job itself, in steps, and only as long as the lock is held. */
static bool do_job(struct pawl *client, const struct pawl_lock *lock, const char *result) {
	FILE *out = fopen(result, "w");
	if (!out) {
		return false;
	}
	bool held = true;
	for (int step = 1; step <= 3 && held; step++) {
		fprintf(out, "step %d\n", step);
		held = pawl_poll(client, 50) == 0 && pawl_lock_valid_ms(lock) > 500;
	}
	return fclose(out) == 0 && held;
}

static bool work(struct pawl *client, const struct pawl_lock *lock, const char *job) {
	char mine[4128], result[4104];
	if (access(job, F_OK) != 0) {
		return true; /* done by another worker, after the directory was read */
	}
	snprintf(mine, sizeof mine, "%s.%" PRIu64, job, pawl_lock_token(lock));
	snprintf(result, sizeof result, "%.*s.result", (int)strlen(job) - 4, job);
	if (!do_job(client, lock, mine) || rename(mine, result) != 0) {
		unlink(mine);
		return false;
	}
	printf("%s with token %" PRIu64 "\n", job, pawl_lock_token(lock));
	return unlink(job) == 0;
}

/* Returns 0, or the error that ends the worker. */
static int try_job(struct pawl *client, const char *directory, const char *name) {
	char key[300], job[4096];
	snprintf(key, sizeof key, "queue/%s", name);
	snprintf(job, sizeof job, "%s/%s", directory, name);
	struct pawl_lock_options wanted = { .key = pawl_str(key), .lease_ms = 5000,
		.terms.release_on_disconnect = true };
	struct pawl_lock *lock;
	int error = pawl_lock_acquire(client, &wanted, &lock, NULL);
	if (error) {
		/* PAWL_EHELD: another worker has it, and this one goes on to the next job. */
		return error == PAWL_EHELD ? 0 : error;
	}
	if (!work(client, lock, job)) {
		fprintf(stderr, "%s: not done\n", job);
	}
	pawl_lock_release(lock);
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: worker ENDPOINTS DIRECTORY\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	pawl_options_from_env(&options);
	const char *problem = NULL;
	struct pawl *client;
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	int error = 0;
	DIR *directory = opendir(argv[2]);
	for (struct dirent *entry; directory && error == 0 && (entry = readdir(directory));) {
		if (is_job(entry->d_name)) {
			error = try_job(client, argv[2], entry->d_name);
		}
	}
	if (error || !directory) {
		fprintf(stderr, "%s\n", error ? pawl_error_message(error) : "no such directory");
	}
	if (directory) {
		closedir(directory);
	}
	pawl_free(client);
	return error || !directory;
}
