/* fence_file.c: reads, writes and rewrites the file of a store of tokens. It never repairs damage
 * by guessing. */
#include "fence_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pawl/error.h"
#include "pawl/fence.h"
#include "siphash.h"

#define HEADER_BYTES 16
/* The bytes of a record before the name. */
#define HEAD_BYTES 20
#define SUM_BYTES 8
#define RECORD_BYTES_MAX (HEAD_BYTES + PAWL_FENCE_NAME_MAX + SUM_BYTES)
#define CHUNK_BYTES 65536
#define SUFFIX ".new"

static const uint8_t header[HEADER_BYTES] = "pawl fence 1\n";

static uint64_t le_read(const uint8_t *p, size_t bytes) {
	uint64_t value = 0;
	while (bytes-- > 0) {
		value = value << 8 | p[bytes];
	}
	return value;
}

static void le_write(uint8_t *p, uint64_t value, size_t bytes) {
	for (size_t i = 0; i < bytes; i++, value >>= 8) {
		p[i] = (uint8_t)value;
	}
}

/* The checksum protects against accidents, not against people: who may write the file may write any
 * number into it. */
static uint64_t sum_of(const uint8_t *p, size_t size) {
	static const struct siphash_key key = { 0x7061776c20666e63, 1 };
	return siphash(key, p, size);
}

static int damaged(void) {
	errno = 0;
	return PAWL_EIO;
}

/* ---- records ---- */

static size_t record_put(uint8_t out[RECORD_BYTES_MAX], const struct fence_record *r) {
	le_write(out, r->name.size, 2);
	le_write(out + 2, ~(uint64_t)r->name.size & 0xffff, 2);
	le_write(out + 4, r->exclusive, 8);
	le_write(out + 12, r->highest, 8);
	if (r->name.size) {
		memcpy(out + HEAD_BYTES, r->name.data, r->name.size);
	}
	le_write(out + HEAD_BYTES + r->name.size, sum_of(out, HEAD_BYTES + r->name.size),
		SUM_BYTES);
	return HEAD_BYTES + r->name.size + SUM_BYTES;
}

/* Reads the record at the front. Returns its size, or 0 if there is no whole record. */
static size_t record_get(const uint8_t *p, size_t left, struct fence_record *out) {
	size_t length = left >= HEAD_BYTES ? (size_t)le_read(p, 2) : SIZE_MAX;
	if (length > PAWL_FENCE_NAME_MAX || left < HEAD_BYTES + length + SUM_BYTES
		|| le_read(p + 2, 2) != (~length & 0xffff)) {
		return 0;
	}
	if (le_read(p + HEAD_BYTES + length, SUM_BYTES) != sum_of(p, HEAD_BYTES + length)) {
		return 0;
	}
	*out = (struct fence_record){ .name = slice_of(p + HEAD_BYTES, length),
		.exclusive = le_read(p + 4, 8), .highest = le_read(p + 12, 8) };
	return HEAD_BYTES + length + SUM_BYTES;
}

/* Returns whether the rest of the file is a part of one record that was never confirmed. No
 * whole record can be found in such a rest. */
static bool torn(const uint8_t *p, size_t left) {
	struct fence_record r;
	for (size_t i = 0; i < left; i++) {
		if (record_get(p + i, left - i, &r)) {
			return false;
		}
	}
	return left < RECORD_BYTES_MAX;
}

/* ---- the disk ---- */

static ssize_t read_fully(int fd, uint8_t *p, size_t size, off_t at) {
	size_t got = 0;
	while (got < size) {
		ssize_t n = pread(fd, p + got, size - got, at + (off_t)got);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -1;
		}
		if (n == 0) {
			break;
		}
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int write_fully(int fd, const uint8_t *p, size_t size, off_t at) {
	while (size > 0) {
		ssize_t n = pwrite(fd, p, size, at);
		if (n < 0 && errno != EINTR) {
			return PAWL_EIO;
		}
		if (n > 0) {
			p += n;
			size -= (size_t)n;
			at += n;
		}
	}
	return 0;
}

static int flock_fully(int fd) {
	while (flock(fd, LOCK_EX) != 0) {
		if (errno != EINTR) {
			return PAWL_EIO;
		}
	}
	return 0;
}

static void close_kept_errno(int *fd) {
	int number = errno;
	if (*fd >= 0) {
		close(*fd);
	}
	*fd = -1;
	errno = number;
}

/* Writes the header of a new file, or of one whose maker died before anything was in it. The lock
 * must be held. */
static int begin(struct fence_file *file, off_t size) {
	uint8_t found[HEADER_BYTES] = { 0 };
	if (read_fully(file->fd, found, (size_t)size, 0) != (ssize_t)size) {
		return PAWL_EIO;
	}
	uint8_t nothing[HEADER_BYTES] = { 0 };
	if (memcmp(found, header, (size_t)size) != 0 && memcmp(found, nothing, (size_t)size) != 0) {
		return damaged();
	}
	int error = write_fully(file->fd, header, sizeof(header), 0);
	return error || fsync(file->fd) != 0 ? PAWL_EIO : 0;
}

static int check_header(struct fence_file *file) {
	struct stat st;
	uint8_t found[HEADER_BYTES];
	if (fstat(file->fd, &st) != 0) {
		return PAWL_EIO;
	}
	if (!S_ISREG(st.st_mode)) {
		return damaged();
	}
	if (st.st_size < HEADER_BYTES) {
		return begin(file, st.st_size);
	}
	if (read_fully(file->fd, found, sizeof(found), 0) != sizeof(found)) {
		return PAWL_EIO;
	}
	uint8_t nothing[HEADER_BYTES] = { 0 };
	if (st.st_size == HEADER_BYTES && memcmp(found, nothing, sizeof(found)) == 0) {
		return begin(file, st.st_size);
	}
	return memcmp(found, header, sizeof(header)) == 0 ? 0 : damaged();
}

/* ---- opening and locking ---- */

static int open_locked(struct fence_file *file) {
	file->fd = openat(file->dir, file->name, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	int error = file->fd < 0 ? PAWL_EIO : flock_fully(file->fd);
	error = error ? error : check_header(file);
	if (error) {
		close_kept_errno(&file->fd);
		return error;
	}
	file->read_to = HEADER_BYTES;
	file->records = 0;
	file->unsynced = file->unnamed = true;
	return 0;
}

/* Returns whether the name still leads to the file that is open. Another process may have rewritten
 * the file while this one waited for the lock. */
static bool is_current(const struct fence_file *file) {
	struct stat open_one, named;
	return fstat(file->fd, &open_one) == 0 && fstatat(file->dir, file->name, &named, 0) == 0
		&& open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

/* Cuts off what a crash has left. */
static int cut(struct fence_file *file, off_t at) {
	return ftruncate(file->fd, at) != 0 ? PAWL_EIO : 0;
}

/* Takes whole records from `bytes`, and sets *used to the size of those that were taken. */
static int take_all(struct fence_file *file, const uint8_t *bytes, size_t size, fence_take_fn *take,
	void *ctx, size_t *used) {
	struct fence_record r;
	size_t taken;
	*used = 0;
	while ((taken = record_get(bytes + *used, size - *used, &r)) > 0) {
		int error = take(ctx, &r);
		if (error) {
			/* This record was not taken. It is read again before anything else
			 * passes. */
			return error;
		}
		*used += taken;
		file->records++;
	}
	return 0;
}

static int catch_up(struct fence_file *file, fence_take_fn *take, void *ctx) {
	uint8_t *chunk = alloc_new(file->alloc, CHUNK_BYTES);
	int error = chunk ? 0 : PAWL_ENOMEM;
	while (!error) {
		ssize_t got = read_fully(file->fd, chunk, CHUNK_BYTES, file->read_to);
		size_t used = 0;
		error = got < 0 ? PAWL_EIO : take_all(file, chunk, (size_t)got, take, ctx, &used);
		file->unsynced = file->unsynced || used > 0;
		file->read_to += (off_t)used;
		if (error || got == 0) {
			break;
		}
		if (got < CHUNK_BYTES || used == 0) {
			size_t left = (size_t)got - used;
			error = left == 0 ? 0
				: torn(chunk + used, left) && got < CHUNK_BYTES
				? cut(file, file->read_to)
				: damaged();
			break;
		}
	}
	if (chunk) {
		alloc_free(file->alloc, chunk, CHUNK_BYTES);
	}
	return error;
}

int fence_file_lock(struct fence_file *file, fence_take_fn *take, void *ctx) {
	int error = file->failed ? PAWL_EIO : 0;
	if (!error && file->fd >= 0) {
		error = flock_fully(file->fd);
	}
	while (!error && (file->fd < 0 || !is_current(file))) {
		close_kept_errno(&file->fd);
		error = open_locked(file);
	}
	error = error ? error : catch_up(file, take, ctx);
	if (error && file->fd >= 0) {
		fence_file_unlock(file);
	}
	return error;
}

void fence_file_unlock(struct fence_file *file) {
	int number = errno;
	/* This cannot fail for a lock that is held. */
	(void)flock(file->fd, LOCK_UN);
	errno = number;
}

int fence_file_sync(struct fence_file *file) {
	if ((file->unsynced && fdatasync(file->fd) != 0)
		|| (file->unnamed && fsync(file->dir) != 0)) {
		/* The system never reports again what the disk has failed to confirm once, so a
		 * later success would mean nothing. */
		file->failed = true;
		return PAWL_EIO;
	}
	file->unsynced = file->unnamed = false;
	return 0;
}

int fence_file_append(struct fence_file *file, const struct fence_record *record) {
	uint8_t bytes[RECORD_BYTES_MAX];
	size_t size = record_put(bytes, record);
	int error = write_fully(file->fd, bytes, size, file->read_to);
	file->unsynced = true;
	error = error ? error : fence_file_sync(file);
	if (error) {
		int number = errno;
		file->failed = file->failed || cut(file, file->read_to) != 0;
		errno = number;
		return error;
	}
	file->read_to += (off_t)size;
	file->records++;
	return 0;
}

/* ---- rewriting ---- */

static int write_all(int fd, fence_next_fn *next, void *ctx, off_t *out_size) {
	struct fence_record r;
	uint8_t bytes[RECORD_BYTES_MAX];
	off_t at = HEADER_BYTES;
	int error = write_fully(fd, header, sizeof(header), 0);
	while (!error && next(ctx, &r)) {
		size_t size = record_put(bytes, &r);
		error = write_fully(fd, bytes, size, at);
		at += (off_t)size;
	}
	*out_size = at;
	return error;
}

/* Gives the new file the owner and the mode of the old one, for the others who use it. */
static bool like(int fd, int old) {
	struct stat a, b;
	if (fstat(fd, &a) != 0 || fstat(old, &b) != 0) {
		return false;
	}
	bool owned = (a.st_uid == b.st_uid && a.st_gid == b.st_gid)
		|| fchown(fd, b.st_uid, b.st_gid) == 0;
	return owned && fchmod(fd, b.st_mode & 07777) == 0;
}

static void name_new(const struct fence_file *file, char *out) {
	memcpy(out, file->name, file->name_size - 1);
	memcpy(out + file->name_size - 1, SUFFIX, sizeof(SUFFIX));
}

int fence_file_rewrite(struct fence_file *file, fence_next_fn *next, void *ctx, size_t count) {
	size_t room = file->name_size + sizeof(SUFFIX);
	char *name = alloc_new(file->alloc, room);
	if (!name) {
		return 0;
	}
	name_new(file, name);
	/* A process that died while it rewrote the file may have left this. No other process works
	 * on it, because the lock is held. */
	(void)unlinkat(file->dir, name, 0);
	off_t size = 0;
	int fd = openat(file->dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool done = fd >= 0 && like(fd, file->fd) && flock_fully(fd) == 0
		&& write_all(fd, next, ctx, &size) == 0 && fsync(fd) == 0
		&& renameat(file->dir, name, file->dir, file->name) == 0;
	if (done) {
		close_kept_errno(&file->fd);
		file->fd = fd;
		file->read_to = size;
		file->records = count;
		/* After a crash of the machine the old file may be there again, without what is
		 * appended to this one. */
		file->unnamed = true;
	} else if (fd >= 0) {
		(void)unlinkat(file->dir, name, 0);
		close_kept_errno(&fd);
	}
	alloc_free(file->alloc, name, room);
	return done ? fence_file_sync(file) : 0;
}

/* ---- its life ---- */

int fence_file_open(struct fence_file *file, const struct allocator *alloc, const char *path) {
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t dir_size = slash ? (size_t)(slash - path) + 1 : 0;
	*file = (struct fence_file){ .alloc = alloc, .dir = -1, .fd = -1,
		.name_size = strlen(name) + 1 };
	char *dir = alloc_new(alloc, dir_size + 2);
	file->name = alloc_new(alloc, file->name_size);
	int error = dir && file->name ? 0 : PAWL_ENOMEM;
	if (!error) {
		memcpy(file->name, name, file->name_size);
		memcpy(dir, path, dir_size);
		/* The path is "dir/." now, or "." if the file is in the working directory. */
		memcpy(dir + dir_size, ".", 2);
		file->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		error = file->dir < 0 ? PAWL_EIO : 0;
	}
	if (dir) {
		alloc_free(alloc, dir, dir_size + 2);
	}
	if (error) {
		fence_file_close(file);
	}
	return error;
}

void fence_file_close(struct fence_file *file) {
	close_kept_errno(&file->fd);
	close_kept_errno(&file->dir);
	if (file->name) {
		alloc_free(file->alloc, file->name, file->name_size);
	}
	file->name = NULL;
}
