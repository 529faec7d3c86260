/* side_file.c: writes and reads the side file: a header {magic, node, boot}, frames {size, bytes},
 * and an end mark {size 2^32-1, number, checksum}.
 */
#include "side_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "synced.h"
#include "pawl/error.h"
#include "siphash.h"
#include "text.h"

/* The last character is the version of the format. */
#define SIDE_MAGIC "PAWLSID1"
#define SIDE_NAME "drained"
#define SIDE_NAME_NEW "drained.new"
#define SIDE_NAME_USED "drained.used"
#define SIDE_HEADER_BYTES (8 + 16 + 8)
#define SIDE_END_BYTES (4 + 8 + 8)
#define SIDE_END_MARK 0xffffffffu

/* The checksum of each frame is part of the key of the next one, so that their order, number and
 * bytes are all covered. */
static uint64_t side_checksum(uint64_t before, struct slice frame) {
	return siphash((struct siphash_key){ 0x7061776c73696465u, before }, frame.data, frame.size);
}

static void side_header(uint8_t out[SIDE_HEADER_BYTES], struct id128 node_id, uint64_t boot) {
	struct bytes_writer w = { out };
	bytes_put(&w, SIDE_MAGIC, 8);
	bytes_put(&w, node_id.b, sizeof node_id.b);
	bytes_put_number(&w, boot, 8);
}

/* ---- writing ---- */

struct side_writer {
	char dir[SYNCED_PATH_MAX];
	FILE *file;
	uint64_t count, checksum;
};

static void side_writer_free(struct side_writer *w) {
	if (w->file) {
		fclose(w->file);
	}
	free(w);
}

static int side_put(struct side_writer *w, const void *data, size_t size) {
	return fwrite(data, 1, size, w->file) == size ? 0 : PAWL_EIO;
}

int side_writer_open(const char *dir, struct id128 node_id, uint64_t boot,
	struct side_writer **out) {
	struct side_writer *w = calloc(1, sizeof *w);
	char path[SYNCED_PATH_MAX];
	if (!w) {
		return PAWL_ENOMEM;
	}
	text_copy(w->dir, sizeof w->dir, dir);
	synced_path(path, dir, SIDE_NAME_NEW);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	w->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !w->file) {
		close(fd);
	}
	uint8_t header[SIDE_HEADER_BYTES];
	side_header(header, node_id, boot);
	w->checksum = side_checksum(0, slice_of(header, sizeof header));
	if (!w->file || side_put(w, header, sizeof header)) {
		side_writer_free(w);
		return PAWL_EIO;
	}
	*out = w;
	return 0;
}

int side_writer_add(struct side_writer *w, struct slice frame) {
	uint8_t size[4];
	struct bytes_writer b = { size };
	if (frame.size == 0 || frame.size > SIDE_FRAME_BYTES_MAX) {
		return PAWL_EIO;
	}
	bytes_put_number(&b, frame.size, 4);
	w->count++;
	w->checksum = side_checksum(w->checksum, frame);
	int error = side_put(w, size, sizeof size);
	return error ? error : side_put(w, frame.data, frame.size);
}

void side_writer_abort(struct side_writer *w) {
	if (w) {
		char path[SYNCED_PATH_MAX];
		synced_path(path, w->dir, SIDE_NAME_NEW);
		unlink(path);
		side_writer_free(w);
	}
}

int side_writer_finish(struct side_writer *w) {
	uint8_t end[SIDE_END_BYTES];
	struct bytes_writer b = { end };
	char made[SYNCED_PATH_MAX], path[SYNCED_PATH_MAX];
	bytes_put_number(&b, SIDE_END_MARK, 4);
	bytes_put_number(&b, w->count, 8);
	bytes_put_number(&b, w->checksum, 8);
	synced_path(made, w->dir, SIDE_NAME_NEW);
	synced_path(path, w->dir, SIDE_NAME);
	bool ok = side_put(w, end, sizeof end) == 0 && !ferror(w->file) && fflush(w->file) == 0
		&& fsync(fileno(w->file)) == 0 && rename(made, path) == 0
		&& synced_dir(w->dir) == 0;
	if (!ok) {
		side_writer_abort(w);
		/* The file may have been renamed already. Without the sync nobody may count on
		 * it. */
		unlink(path);
		return PAWL_EIO;
	}
	side_writer_free(w);
	return 0;
}

/* ---- reading ---- */

struct side_file {
	char dir[SYNCED_PATH_MAX];
	/* The file has been renamed away, and side_file_free removes it. */
	bool used;
	FILE *file;
	uint8_t *frame;
	/* The number of frames that have not been handed out yet. */
	uint64_t left;
};

void side_file_free(struct side_file *f) {
	if (!f) {
		return;
	}
	if (f->file) {
		fclose(f->file);
	}
	if (f->used) {
		char used[SYNCED_PATH_MAX];
		synced_path(used, f->dir, SIDE_NAME_USED);
		unlink(used);
	}
	free(f->frame);
	free(f);
}

/* Returns 1 and the next frame; 0 and what the end mark says; or PAWL_EIO. */
static int side_read(struct side_file *f, struct slice *frame, uint64_t *count,
	uint64_t *checksum) {
	uint8_t head[4] = { 0 }, end[16] = { 0 };
	struct bytes_reader r = { .rest = slice_of(head, sizeof head) };
	if (fread(head, 1, sizeof head, f->file) != sizeof head) {
		return PAWL_EIO;
	}
	uint32_t size = (uint32_t)bytes_get_number(&r, 4);
	if (size == SIDE_END_MARK) {
		r.rest = slice_of(end, sizeof end);
		if (fread(end, 1, sizeof end, f->file) != sizeof end || fgetc(f->file) != EOF) {
			return PAWL_EIO;
		}
		*count = bytes_get_number(&r, 8);
		*checksum = bytes_get_number(&r, 8);
		return 0;
	}
	if (size == 0 || size > SIDE_FRAME_BYTES_MAX || fread(f->frame, 1, size, f->file) != size) {
		return PAWL_EIO;
	}
	*frame = slice_of(f->frame, size);
	return 1;
}

static const char *side_check(struct side_file *f, struct id128 node_id, uint64_t boot) {
	uint8_t header[SIDE_HEADER_BYTES] = { 0 }, wanted[SIDE_HEADER_BYTES];
	uint64_t checksum, count = 0, count_said = 0, checksum_said = 0;
	struct slice frame;
	int more;
	if (fread(header, 1, sizeof header, f->file) != sizeof header
		|| memcmp(header, SIDE_MAGIC, 8) != 0) {
		return "it is not a side file of this version";
	}
	side_header(wanted, node_id, boot);
	if (memcmp(header, wanted, sizeof wanted) != 0) {
		return "it was not written by this node's last run";
	}
	checksum = side_checksum(0, slice_of(header, sizeof header));
	while ((more = side_read(f, &frame, &count_said, &checksum_said)) == 1) {
		checksum = side_checksum(checksum, frame);
		count++;
	}
	if (more < 0 || count != count_said || checksum != checksum_said) {
		return "it is incomplete or damaged";
	}
	f->left = count;
	return fseek(f->file, SIDE_HEADER_BYTES, SEEK_SET) == 0 ? NULL : "it cannot be read";
}

/* Removes a file that will never be of use. */
static enum side_status side_bad(struct side_file *f, const char *path, const char *why,
	struct problem *problem) {
	problem_set(problem, "%s is not used: %s", path, why);
	side_file_free(f);
	unlink(path);
	return SIDE_BAD;
}

/* Leaves a file that may be good where it is, for a later start. */
static enum side_status side_failed(struct side_file *f, const char *path, const char *why,
	struct problem *problem) {
	problem_set(problem,
		"%s cannot be read: %s. Fix this and start again, or remove the file to recover "
		"as after a crash", path, why);
	side_file_free(f);
	return SIDE_FAILED;
}

enum side_status side_file_open(const char *dir, struct id128 node_id, uint64_t boot,
	struct side_file **out, struct problem *problem) {
	char path[SYNCED_PATH_MAX];
	synced_path(path, dir, SIDE_NAME);
	struct side_file *f = calloc(1, sizeof *f);
	if (!f || !(f->frame = malloc(SIDE_FRAME_BYTES_MAX))) {
		return side_failed(f, path, "out of memory", problem);
	}
	text_copy(f->dir, sizeof f->dir, dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		side_file_free(f);
		return SIDE_NONE;
	}
	f->file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f->file) {
		return side_failed(f, path, strerror(errno), problem);
	}
	const char *wrong = side_check(f, node_id, boot);
	if (ferror(f->file)) {
		return side_failed(f, path, "an input/output error", problem);
	}
	if (wrong) {
		return side_bad(f, path, wrong, problem);
	}
	*out = f;
	return SIDE_OPEN;
}

int side_file_use(struct side_file *f) {
	char path[SYNCED_PATH_MAX], used[SYNCED_PATH_MAX];
	synced_path(path, f->dir, SIDE_NAME);
	synced_path(used, f->dir, SIDE_NAME_USED);
	if (rename(path, used) != 0) {
		return PAWL_EIO;
	}
	f->used = true;
	if (synced_dir(f->dir) != 0) {
		side_file_put_back(f);
		return PAWL_EIO;
	}
	return 0;
}

void side_file_put_back(struct side_file *f) {
	char path[SYNCED_PATH_MAX], used[SYNCED_PATH_MAX];
	if (!f || !f->used) {
		return;
	}
	synced_path(path, f->dir, SIDE_NAME);
	synced_path(used, f->dir, SIDE_NAME_USED);
	if (rename(used, path) == 0) {
		f->used = false;
		/* If this fails, and the power fails too, the next start recovers as after a
		 * crash. */
		(void)synced_dir(f->dir);
	}
}

int side_file_next(struct side_file *f, struct slice *frame) {
	uint64_t count, checksum;
	if (f->left == 0) {
		return 0;
	}
	f->left--;
	return side_read(f, frame, &count, &checksum) == 1 ? 1 : PAWL_EIO;
}
