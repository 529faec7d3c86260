/* reaper.c: finds and ends everything that a command has started. */
#include "reaper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct process {
	pid_t pid, parent, group;
	bool ours;
};

struct snapshot {
	struct process *all;
	size_t count, room;
};

bool reaper_become(void) {
	return prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL) == 0;
}

/* Reads the parent and the group from /proc/PID/stat. They follow the name, which is in parentheses
 * and may contain anything. */
static bool process_read(pid_t pid, struct process *out) {
	char path[48], text[512];
	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		return false;
	}
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n <= 0) {
		return false;
	}
	text[n] = '\0';
	char *at = strrchr(text, ')');
	if (!at || strlen(at) < 5) {
		return false;
	}
	char *end;
	*out = (struct process){ .pid = pid };
	out->parent = (pid_t)strtol(at + 4, &end, 10);
	out->group = (pid_t)strtol(end, &end, 10);
	return true;
}

static bool snapshot_add(struct snapshot *s, struct process p) {
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct process *grown = realloc(s->all, room * sizeof *grown);
		if (!grown) {
			return false;
		}
		s->all = grown;
		s->room = room;
	}
	s->all[s->count++] = p;
	return true;
}

static void snapshot_take(struct snapshot *s) {
	*s = (struct snapshot){ 0 };
	DIR *proc = opendir("/proc");
	if (!proc) {
		return;
	}
	const struct dirent *entry;
	while ((entry = readdir(proc)) != NULL) {
		struct process p;
		long pid = strtol(entry->d_name, NULL, 10);
		if (pid > 0 && process_read((pid_t)pid, &p) && !snapshot_add(s, p)) {
			/* What was seen so far must do. The next round sees fewer processes. */
			break;
		}
	}
	closedir(proc);
}

static int process_compare(const void *a, const void *b) {
	const struct process *p = a, *q = b;
	return (p->pid > q->pid) - (p->pid < q->pid);
}

/* Marks the descendants of `root`. It makes passes for as long as a pass finds more, because /proc
 * need not show parents first. */
static void snapshot_mark(struct snapshot *s, pid_t root) {
	if (s->count) {
		qsort(s->all, s->count, sizeof *s->all, process_compare);
	}
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < s->count; i++) {
			struct process *p = &s->all[i], wanted = { .pid = p->parent };
			const struct process *parent = bsearch(&wanted, s->all, s->count,
				sizeof *s->all, process_compare);
			if (!p->ours && (p->parent == root || (parent && parent->ours))) {
				p->ours = changed = true;
			}
		}
	}
}

/* Sends the signal to just that process. The handle is opened before the second look, because it
 * stays with the process even if its number is given to another one. */
static void signal_exactly(const struct process *seen, int signal_number) {
	int fd = (int)syscall(SYS_pidfd_open, seen->pid, 0U);
	if (fd < 0) {
		return;
	}
	struct process now;
	if (process_read(seen->pid, &now)
		&& (now.parent == seen->parent || now.parent == getpid())) {
		syscall(SYS_pidfd_send_signal, fd, signal_number, NULL, 0U);
	}
	close(fd);
}

/* Sends the signal to the descendants that are in the group, or to those that are not. */
static void signal_descendants(pid_t group, bool inside, int signal_number) {
	struct snapshot s;
	snapshot_take(&s);
	snapshot_mark(&s, getpid());
	for (size_t i = 0; i < s.count; i++) {
		if (s.all[i].ours && (s.all[i].group == group) == inside) {
			signal_exactly(&s.all[i], signal_number);
		}
	}
	free(s.all);
}

void reaper_signal(pid_t group, int signal_number) {
	if (group > 1) {
		kill(-group, signal_number);
	}
	signal_descendants(group > 1 ? group : -1, false, signal_number);
}

void reaper_pass_on(pid_t child, int signal_number) {
	const pid_t group = getpgid(child);
	if (group == child) {
		kill(-group, signal_number);
	} else {
		/* Others are in this group, too. */
		signal_descendants(group, true, signal_number);
	}
}

bool reaper_collect(pid_t pid, int *out_status, bool *out_ended) {
	for (;;) {
		int status;
		pid_t ended = waitpid(-1, &status, WNOHANG);
		if (ended == 0) {
			return false;
		}
		if (ended < 0) {
			if (errno == EINTR) {
				continue;
			}
			return errno == ECHILD;
		}
		if (ended == pid) {
			*out_status = status;
			*out_ended = true;
		}
	}
}
