/* synced.c: writes at an offset until everything is written, and syncs directories. */
#include "synced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"

void synced_path(char out[SYNCED_PATH_MAX], const char *dir, const char *name) {
	int size = snprintf(out, SYNCED_PATH_MAX, "%s/%s", dir, name);
	CHECK(size > 0 && size < SYNCED_PATH_MAX);
}

int write_all_at(int fd, const void *data, size_t size, uint64_t offset) {
	const uint8_t *from = data;
	while (size > 0) {
		ssize_t n = pwrite(fd, from, size, (off_t)offset);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			errno = n < 0 ? errno : ENOSPC;
			return PAWL_EIO;
		}
		from += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int synced_dir(const char *dir) {
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		return PAWL_EIO;
	}
	int error = fsync(fd) == 0 ? 0 : PAWL_EIO;
	int kept = errno;
	close(fd);
	errno = kept;
	return error;
}
