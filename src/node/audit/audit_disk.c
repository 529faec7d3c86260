/* audit_disk.c: opens, writes and rotates the audit file. */
#include "audit_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_config.h"
#include "config_file.h"
#include "folder.h"
#include "pawl/error.h"

#define FILE_MODE 0640
/* Room for a dot and a number below AUDIT_KEEP_MAX, and the terminating 0. */
#define SUFFIX_BYTES 8

static void disk_trouble(struct audit_disk *d, const char *what) {
	d->trouble = errno ? errno : EIO;
	d->what = what;
}

/* Opens the file, or makes it. Returns -1 with errno; a pipe or a directory is no file. A symbolic
 * link is not followed: whoever has made it could choose which file this node appends to. */
static int disk_open(const char *path) {
	struct stat st;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
	if (fd >= 0) {
		/* Whatever the umask is. */
		(void)fchmod(fd, FILE_MODE);
		return fd;
	}
	/* O_NONBLOCK: a pipe without a reader does not hold up the start. */
	fd = errno == EEXIST
		? open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
			| O_NOFOLLOW) : -1;
	if (fd >= 0 && (fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)))) {
		close(fd);
		errno = EBADF;
		return -1;
	}
	if (fd >= 0) {
		/* From now on the thread waits for what it writes. */
		(void)fcntl(fd, F_SETFL, O_APPEND);
	}
	return fd;
}

static int disk_refused(const char *path, int problem, char *why, size_t why_size) {
	const char *remedy = problem == EBADF || problem == ENXIO || problem == EISDIR
		? "it is no file: name another path in [audit] file"
		: problem == ELOOP
		? "it is a symbolic link, which is not followed: name the file itself in [audit] "
			"file, or remove the link"
		: "the node must be able to write there: make the directory, and give it to the "
			"account of pawld";
	snprintf(why, why_size, "[audit] file = %s cannot be opened (%s): %s", path,
		problem == EBADF ? "it is no file" : strerror(problem), remedy);
	return PAWL_EIO;
}

/* Writes the path of the directory of the file, with its slash. */
static void disk_folder(const char *path, char out[CONFIG_PATH_MAX]) {
	snprintf(out, CONFIG_PATH_MAX, "%s", path);
	*(strrchr(out, '/') + 1) = '\0';
}

/* Whoever can replace the file can hide lines, and have others made up. */
static int disk_check_folder(const char *path, bool only_checked, char *why, size_t why_size) {
	char folder[CONFIG_PATH_MAX], what[FOLDER_WHY_BYTES];
	disk_folder(path, folder);
	const enum folder_access access = folder_look(folder, only_checked, what);
	if (access == FOLDER_CLOSED) {
		return 0;
	}
	const bool own = access == FOLDER_OPEN;
	snprintf(why, why_size, "[audit] file = %s: the directory %s %s: %s%s%s"
		"name a path in a directory that belongs to the account of pawld", path, folder,
		what, own ? "run chmod go-w " : "", own ? folder : "", own ? ", or " : "");
	return PAWL_EIO;
}

int audit_disk_check(const char *path, char *why, size_t why_size) {
	struct stat st;
	char folder[CONFIG_PATH_MAX];
	int error = disk_check_folder(path, true, why, why_size);
	if (error) {
		return error;
	}
	if (lstat(path, &st) == 0) {
		const bool file = S_ISREG(st.st_mode) || S_ISCHR(st.st_mode);
		return file && access(path, W_OK) == 0 ? 0
			: disk_refused(path, file ? errno : S_ISLNK(st.st_mode) ? ELOOP : EBADF,
				why, why_size);
	}
	if (errno == ENOENT) {
		disk_folder(path, folder);
		if (access(folder, W_OK | X_OK) == 0) {
			return 0;
		}
	}
	return disk_refused(path, errno, why, why_size);
}

/* Looks at a file that was opened: how large it is, and whether its last line has its end. Returns
 * the size. */
static uint64_t disk_look(struct audit_disk *d) {
	struct stat st = { .st_size = 0 };
	char last = '\n';
	d->regular = fstat(d->fd, &st) == 0 && S_ISREG(st.st_mode);
	if (d->regular && st.st_size > 0 && pread(d->fd, &last, 1, st.st_size - 1) != 1) {
		/* It was made by this process, which may not read it, and is empty. */
		last = '\n';
	}
	d->torn = last != '\n';
	return d->regular ? (uint64_t)st.st_size : 0;
}

int audit_disk_open(struct audit_disk *d, const char *path, uint64_t *size, char *why,
	size_t why_size) {
	*d = (struct audit_disk){ .path = strdup(path), .fd = -1 };
	if (!d->path) {
		snprintf(why, why_size, "out of memory");
		return PAWL_ENOMEM;
	}
	int error = disk_check_folder(path, false, why, why_size);
	if (error) {
		return error;
	}
	d->fd = disk_open(path);
	if (d->fd < 0) {
		return disk_refused(path, errno, why, why_size);
	}
	*size = disk_look(d);
	return 0;
}

void audit_disk_close(struct audit_disk *d) {
	/* Before audit_disk_open, everything is zero. */
	if (d->path && d->fd >= 0) {
		close(d->fd);
	}
	free(d->path);
}

/* Returns how many bytes were written. */
static size_t disk_put(struct audit_disk *d, const char *bytes, size_t size) {
	size_t done = 0;
	while (done < size) {
		const ssize_t n = write(d->fd, bytes + done, size - done);
		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			disk_trouble(d, "write");
			break;
		}
	}
	return done;
}

bool audit_disk_write(struct audit_disk *d, const char *bytes, size_t size) {
	if (d->torn && disk_put(d, "\n", 1) != 1) {
		return false;
	}
	d->torn = false;
	const off_t before = d->regular ? lseek(d->fd, 0, SEEK_END) : 0;
	const size_t done = disk_put(d, bytes, size);
	if (done == size) {
		return true;
	}
	/* A part of a line must not be left. */
	d->torn = done > 0 && (!d->regular || before < 0 || ftruncate(d->fd, before) != 0);
	return false;
}

void audit_disk_sync(struct audit_disk *d) {
	/* A device has nothing to sync. */
	if (d->regular && fdatasync(d->fd) != 0) {
		d->unsynced = true;
		disk_trouble(d, "sync");
	}
}

static void disk_name(char *out, size_t size, const struct audit_disk *d, uint32_t number) {
	if (number) {
		snprintf(out, size, "%s.%u", d->path, number);
	} else {
		snprintf(out, size, "%s", d->path);
	}
}

/* Moves the file with this number to the next one, if it is there. Returns false if that failed. */
static bool disk_move(const struct audit_disk *d, uint32_t number, char *from, char *to,
	size_t room) {
	disk_name(from, room, d, number);
	disk_name(to, room, d, number + 1);
	return rename(from, to) == 0 || errno == ENOENT;
}

void audit_disk_rotate(struct audit_disk *d, uint32_t keep) {
	const size_t room = strlen(d->path) + SUFFIX_BYTES;
	char *from = malloc(room), *to = malloc(room);
	bool moved = from && to;
	if (!d->regular) {
		moved = false;
	} else if (!moved) {
		errno = ENOMEM;
		disk_trouble(d, "rotate");
	}
	for (uint32_t number = keep; moved && number > 0; number--) {
		moved = disk_move(d, number - 1, from, to, room);
		if (!moved) {
			disk_trouble(d, "rotate");
		}
	}
	free(from);
	free(to);
	if (moved) {
		audit_disk_reopen(d);
	}
}

void audit_disk_reopen(struct audit_disk *d) {
	const int fd = disk_open(d->path);
	if (fd < 0) {
		disk_trouble(d, "open");
		return;
	}
	close(d->fd);
	d->fd = fd;
	(void)disk_look(d);
}
