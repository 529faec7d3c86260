/* file_stamp.h: whether a file is still the one that was read. */
#ifndef PAWL_CLIENT_FILE_STAMP_H
#define PAWL_CLIENT_FILE_STAMP_H

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is not there looks like one that is empty. */
static inline void file_stamp(const char *path, struct stat *out) {
	if (stat(path, out) != 0) {
		memset(out, 0, sizeof(*out));
	}
}

static inline bool file_stamp_same(const struct stat *a, const struct stat *b) {
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size
		&& a->st_mtim.tv_sec == b->st_mtim.tv_sec
		&& a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

#endif
