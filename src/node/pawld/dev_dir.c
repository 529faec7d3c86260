/* dev_dir.c: makes and removes the temporary state directory of `pawld --dev`. */
#include "dev_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pawl/error.h"
#include "synced.h"

int dev_dir_make(char out[CONFIG_PATH_MAX], struct problem *problem) {
	const char *tmp = getenv("TMPDIR");
	int size = snprintf(out, CONFIG_PATH_MAX, "%s/pawld-dev.XXXXXX", tmp
		&& tmp[0] == '/' ? tmp : "/tmp");
	if (size >= CONFIG_PATH_MAX || !mkdtemp(out)) {
		problem_set(problem,
			"cannot create the temporary directory %s: %s; set TMPDIR to a "
			"writable directory", out, strerror(errno));
		return PAWL_EIO;
	}
	return 0;
}

void dev_dir_remove(const char *dir) {
	static const char *const names[] = { "state", "state.new", "lock", "drained", "drained.new",
		"drained.used" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[SYNCED_PATH_MAX];
		synced_path(path, dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}
