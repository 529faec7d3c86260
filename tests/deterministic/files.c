/* files.c: tells the conductor what happens to files before it happens. The conductor may end the
 * process instead. Files are the kernel's, but what is on the disk is what the conductor says
 * (disk.py): a sync does nothing here. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include "channel.h"

#define PATH_BYTES 512

typedef int open64_function(const char *, int, ...);
typedef ssize_t pwrite64_function(int, const void *, size_t, off64_t);
typedef int ftruncate64_function(int, off64_t);
typedef int rename_function(const char *, const char *);
typedef int unlink_function(const char *);
typedef int fsync_function(int);
typedef int fdatasync_function(int);
typedef ssize_t getrandom_function(void *, size_t, unsigned);

static int64_t about_path(enum call call, const char *path) {
	return channel_call((struct call_out){ .call = call }, path, strlen(path), NULL, 0, NULL);
}

static int64_t about_fd(enum call call, int fd, int64_t a, int64_t b) {
	char link[64], path[PATH_BYTES];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, path, sizeof path);
	return channel_call((struct call_out){ call, fd, a, b }, path, size < 0 ? 0 : (size_t)size,
		NULL, 0, NULL);
}

int open64(const char *path, int flags, ...) {
	va_list rest;
	va_start(rest, flags);
	mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
	va_end(rest);
	if (channel_open() && flags & O_CREAT && about_path(CALL_FILE_CREATE, path) < 0) {
		return -1;
	}
	return REAL(open64)(path, flags, mode);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t offset) {
	if (channel_open() && about_fd(CALL_FILE_WRITE, fd, offset, (int64_t)size) < 0) {
		return -1;
	}
	return REAL(pwrite64)(fd, from, size, offset);
}

int ftruncate64(int fd, off64_t size) {
	if (channel_open() && about_fd(CALL_FILE_WRITE, fd, size, 0) < 0) {
		return -1;
	}
	return REAL(ftruncate64)(fd, size);
}

int fsync(int fd) {
	return channel_open() ? (int)about_fd(CALL_FILE_SYNC, fd, 0, 0) : REAL(fsync)(fd);
}

int fdatasync(int fd) {
	return channel_open() ? (int)about_fd(CALL_FILE_SYNC, fd, 0, 0) : REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
	char both[2 * PATH_BYTES];
	if (!channel_open()) {
		return REAL(rename)(from, to);
	}
	int size = snprintf(both, sizeof both, "%s\n%s", from, to);
	return (int)channel_call((struct call_out){ .call = CALL_FILE_RENAME }, both, (size_t)size,
		NULL, 0, NULL);
}

int unlink(const char *path) {
	return channel_open() ? (int)about_path(CALL_FILE_UNLINK, path) : REAL(unlink)(path);
}

/* ---- random bytes ---- */

static void draw(void *to, size_t size) {
	char *at = to;
	while (size > 0) {
		size_t got, most = size < CALL_BYTES_MAX ? size : CALL_BYTES_MAX;
		const struct call_out call = { .call = CALL_RANDOM, .fd = -1, .a = (int64_t)most };
		channel_call(call, NULL, 0, at, most, &got);
		at += got;
		size -= got;
	}
}

ssize_t getrandom(void *to, size_t size, unsigned flags) {
	if (!channel_open()) {
		return REAL(getrandom)(to, size, flags);
	}
	draw(to, size);
	return (ssize_t)size;
}

/* Those of OpenSSL, without its header: the library is built without it. */
int RAND_bytes(unsigned char *to, int size);
int RAND_bytes(unsigned char *to, int size) {
	draw(to, (size_t)size);
	return 1;
}
