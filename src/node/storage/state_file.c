/* state_file.c: two slots in one file, written in turn, under a lock. */
#include "state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "folder.h"
#include "synced.h"
#include "pawl/error.h"
#include "text.h"

struct state_file {
	char dir[SYNCED_PATH_MAX];
	int fd, lock_fd;
	/* For tests: the number of bytes until ENOSPC; negative means never. */
	long fail_after;
	/* The slot that does not hold the state on disk. */
	unsigned next_slot;
	/* The names, and the sequence number of the last slot that was written. */
	struct state_slot now;
};

void state_file_fail_after(struct state_file *f, long bytes) {
	f->fail_after = bytes;
}

static int state_put(struct state_file *f, const uint8_t *bytes, size_t size, uint64_t offset) {
	if (f->fail_after >= 0 && (size_t)f->fail_after < size) {
		write_all_at(f->fd, bytes, (size_t)f->fail_after, offset);
		errno = ENOSPC;
		return PAWL_EIO;
	}
	int error = write_all_at(f->fd, bytes, size, offset);
	return error ? error : fdatasync(f->fd) == 0 ? 0 : PAWL_EIO;
}

/* The slot with the state on disk is not touched, so that it stays readable, whatever happens to
 * the write. A write that failed is repeated into the same slot, with the same sequence number. */
int state_file_write(struct state_file *f, const struct durable *state) {
	uint8_t bytes[STATE_SLOT_BYTES];
	f->now.durable = *state;
	f->now.sequence++;
	size_t size = state_encode(&f->now, bytes);
	int error = state_put(f, bytes, size, (uint64_t)f->next_slot * STATE_SLOT_BYTES);
	if (error) {
		f->now.sequence--;
		return error;
	}
	f->next_slot ^= 1;
	return 0;
}

static int state_problem(struct state_file *f, struct problem *problem, const char *what,
	const char *remedy) {
	problem_set(problem, "state_dir %s: %s: %s%s%s", f->dir, what, strerror(errno),
		remedy[0] ? "; " : "", remedy);
	return PAWL_EIO;
}

static int state_make_dir(struct state_file *f, struct problem *problem) {
	return mkdir(f->dir, 0700) == 0 || errno == EEXIST ? 0
		: state_problem(f, problem, "cannot be created",
		"create it with mode 0700, owned by the user who runs pawld");
}

/* Puts the name of the directory on the disk: this process has made it, or an earlier one that was
 * killed. Who may not read the directory above has not made it. */
static bool state_sync_parent(const struct state_file *f) {
	char parent[SYNCED_PATH_MAX];
	synced_path(parent, f->dir, "..");
	return synced_dir(parent) == 0 || errno == EACCES;
}

/* Whoever can replace the state file can give this node an older one: it would forget its identity,
 * its configuration, or the clock that it has reserved. */
int state_file_check(const char *dir, bool only_checked, struct problem *problem) {
	char why[FOLDER_WHY_BYTES], chown[SYNCED_PATH_MAX] = "";
	const enum folder_access access = folder_look(dir, only_checked, why);
	if (access == FOLDER_CLOSED) {
		return 0;
	}
	if (access == FOLDER_FOREIGN) {
		snprintf(chown, sizeof chown, "chown %u %s and ", (unsigned)geteuid(), dir);
	}
	problem_set(problem, "state_dir %s %s: run %schmod 700 %s", dir, why, chown, dir);
	return PAWL_EINVAL;
}

static int state_lock(struct state_file *f, struct problem *problem) {
	char path[SYNCED_PATH_MAX];
	synced_path(path, f->dir, "lock");
	f->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->lock_fd < 0) {
		return state_problem(f, problem, "cannot be written to",
			"it must belong to the user who runs pawld");
	}
	if (flock(f->lock_fd, LOCK_EX | LOCK_NB) == 0) {
		return 0;
	}
	if (errno != EWOULDBLOCK) {
		return state_problem(f, problem, "cannot be locked", "");
	}
	problem_set(problem,
		"state_dir %s is in use by another pawld: stop it first, or give every node a "
		"state_dir of its own", f->dir);
	return PAWL_EINVAL;
}

static int state_draw_id(struct id128 *id) {
	do {
		if (getrandom(id->b, sizeof id->b, 0) != (ssize_t)sizeof id->b) {
			return PAWL_EIO;
		}
	} while (id128_zero(*id));
	return 0;
}

/* Writes the new file under another name first, so that there is never half a state file under its
 * own name. */
static int state_create(struct state_file *f, struct problem *problem) {
	static const uint8_t zeros[STATE_SLOT_BYTES];
	char path[SYNCED_PATH_MAX], made[SYNCED_PATH_MAX];
	synced_path(path, f->dir, "state");
	synced_path(made, f->dir, "state.new");
	if (!state_sync_parent(f)) {
		return state_problem(f, problem, "the directory above it cannot be synced", "");
	}
	f->fd = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0) {
		return state_problem(f, problem, "no file can be created in it", "");
	}
	struct durable fresh = { .boot = 0 };
	bool ok = state_draw_id(&fresh.node_id) == 0
		&& write_all_at(f->fd, zeros, sizeof zeros, 0) == 0
		&& write_all_at(f->fd, zeros, sizeof zeros, STATE_SLOT_BYTES) == 0
		&& state_file_write(f, &fresh) == 0 && fsync(f->fd) == 0 && rename(made, path) == 0
		&& synced_dir(f->dir) == 0;
	return ok ? 0 : state_problem(f, problem, "the state file cannot be written",
		"is the disk full?");
}

static int state_read_slot(int fd, unsigned slot, uint8_t bytes[STATE_SLOT_BYTES],
	struct slice *out) {
	size_t size = 0;
	while (size < STATE_SLOT_BYTES) {
		ssize_t n = pread(fd, bytes + size, STATE_SLOT_BYTES - size,
			(off_t)(slot * STATE_SLOT_BYTES + size));
		if (n < 0 && errno != EINTR) {
			return PAWL_EIO;
		}
		if (n == 0) {
			break;
		}
		size += n > 0 ? (size_t)n : 0;
	}
	*out = slice_of(bytes, size);
	return 0;
}

static int state_load(struct state_file *f, struct state_slot *out, struct problem *problem) {
	bool found = false;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t bytes[STATE_SLOT_BYTES];
		struct slice slice;
		struct state_slot slot;
		if (state_read_slot(f->fd, i, bytes, &slice)) {
			return state_problem(f, problem, "the state file cannot be read", "");
		}
		if (state_decode(slice, &slot) == 0 && (!found || slot.sequence > out->sequence)) {
			*out = slot;
			f->next_slot = i ^ 1;
			found = true;
		}
	}
	if (found) {
		return 0;
	}
	problem_set(problem,
		"state_dir %s: the state file is damaged in both slots, or was written by another "
		"version. Restore a copy of it. Only if there is none, move the file away: then "
		"this node starts with a new identity, and must be admitted again", f->dir);
	return PAWL_EINVAL;
}

/* If the process was killed while it wrote, what was read may be in the kernel's memory only. The
 * next write goes to the other slot, which is the only one that is certainly on the disk. So the
 * slot that was read is put on the disk first: the same bytes go to the same place, and it does no
 * harm if they are torn. The name of the file is put on the disk, too: the process may have been
 * killed between its renaming and the sync of the directory. */
static int state_make_sure(struct state_file *f, struct problem *problem) {
	uint8_t bytes[STATE_SLOT_BYTES];
	size_t size = state_encode(&f->now, bytes);
	int error = state_put(f, bytes, size, (uint64_t)(f->next_slot ^ 1) * STATE_SLOT_BYTES);
	return error == 0 && synced_dir(f->dir) == 0 ? 0
		: state_problem(f, problem, "the state file cannot be written",
			"is the disk full?");
}

static int state_check_owner(struct state_file *f, const struct state_slot *slot,
	struct problem *problem) {
	if (strcmp(slot->cluster, f->now.cluster) != 0) {
		problem_set(problem,
			"state_dir %s belongs to cluster %s, but the configuration says [cluster] "
			"name = %s: use another state_dir, or "
			"correct the name", f->dir, slot->cluster,
			f->now.cluster);
		return PAWL_EINVAL;
	}
	if (strcmp(slot->node, f->now.node) != 0) {
		problem_set(problem,
			"state_dir %s belongs to node %s, but the configuration says [node] name = "
			"%s: every node needs a state_dir of its own, never a copy "
			"of another node's", f->dir,
			slot->node, f->now.node);
		return PAWL_EINVAL;
	}
	return 0;
}

static int state_start(struct state_file *f, struct problem *problem) {
	char path[SYNCED_PATH_MAX];
	int error = state_make_dir(f, problem);
	error = error ? error : state_file_check(f->dir, false, problem);
	error = error ? error : state_lock(f, problem);
	if (error) {
		return error;
	}
	synced_path(path, f->dir, "state");
	f->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (f->fd < 0) {
		return errno == ENOENT ? state_create(f, problem)
			: state_problem(f, problem, "the state file cannot be opened", "");
	}
	struct state_slot slot;
	error = state_load(f, &slot, problem);
	error = error ? error : state_check_owner(f, &slot, problem);
	if (error) {
		return error;
	}
	f->now = slot;
	return state_make_sure(f, problem);
}

int state_file_open(const char *dir, const char *cluster, const char *node, struct state_file **out,
	struct durable *out_state, struct problem *problem) {
	struct state_file *f = calloc(1, sizeof *f);
	if (!f) {
		problem_set(problem, "out of memory");
		return PAWL_ENOMEM;
	}
	CHECK(strlen(dir) < sizeof f->dir && strlen(cluster) <= NODE_NAME_MAX
		&& strlen(node) <= NODE_NAME_MAX);
	f->fd = f->lock_fd = -1;
	f->fail_after = -1;
	text_copy(f->dir, sizeof f->dir, dir);
	text_copy(f->now.cluster, sizeof f->now.cluster, cluster);
	text_copy(f->now.node, sizeof f->now.node, node);
	int error = state_start(f, problem);
	if (error) {
		state_file_close(f);
		return error;
	}
	*out_state = f->now.durable;
	*out = f;
	return 0;
}

void state_file_close(struct state_file *f) {
	if (!f) {
		return;
	}
	if (f->fd >= 0) {
		close(f->fd);
	}
	if (f->lock_fd >= 0) {
		close(f->lock_fd);
	}
	free(f);
}
