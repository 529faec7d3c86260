/* resource.c: what the locks protect, twice: one copy compares fencing tokens, and one takes every
 * write.
 *
 *     resource SOCKET LOG
 *
 * A client reads under its lock and writes what follows from what it read. "r KEY TOKEN" is
 * answered with "OK FENCED OPEN": OK is 1 unless the token is behind; then come the numbers of the
 * last write of either copy. "w KEY TOKEN FENCED OPEN" is answered with "OK". A write that follows
 * from another state than the present one undoes somebody's write. In the fenced copy that must not
 * happen. In the open one it does as soon as a client pauses between checking its lock and writing
 * for longer than its lease. The program ends when stdin does, and prints the counts.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "history.h"
#include "pawl/pawl.h"

#define KEYS_MAX 64
#define CLIENTS_MAX 64

struct copy {
	/* The number of the last write. */
	uint64_t last;
	/* How many writes were undone by a client that did not know of them. */
	uint64_t lost;
};

struct protected {
	uint64_t highest;
	struct copy fenced, open;
};

struct resource {
	struct protected keys[KEYS_MAX];
	uint64_t writes, refused;
	FILE *log;
};

static void apply(struct resource *r, struct copy *copy, const char *name, uint64_t key,
	uint64_t token, uint64_t seen) {
	if (seen != copy->last) {
		copy->lost++;
		fprintf(r->log, "%" PRId64 " LOST in %s: key %" PRIu64 " token %" PRIu64
			" writes over %" PRIu64 ", saw %" PRIu64 "\n", history_now(), name, key,
			token, copy->last, seen);
	}
	copy->last = r->writes;
}

/* Writes the answer to a line. */
static void serve(struct resource *r, const char *line, char *out, size_t size) {
	char what = line[0], *rest;
	uint64_t key = strtoull(line + 1, &rest, 10), token = strtoull(rest, &rest, 10);
	uint64_t fenced = strtoull(rest, &rest, 10), open = strtoull(rest, &rest, 10);
	if ((what != 'r' && what != 'w') || key >= KEYS_MAX || *rest != 0) {
		snprintf(out, size, "?\n");
		return;
	}
	struct protected *p = &r->keys[key];
	bool pass = pawl_fence_check(&p->highest, token);
	r->refused += !pass;
	fprintf(r->log, "%" PRId64 " %s %s\n", history_now(), pass ? "pass" : "refused", line);
	if (what == 'r') {
		snprintf(out, size, "%d %" PRIu64 " %" PRIu64 "\n", pass, p->fenced.last,
			p->open.last);
		return;
	}
	r->writes++;
	if (pass) {
		apply(r, &p->fenced, "fenced", key, token, fenced);
	}
	apply(r, &p->open, "open", key, token, open);
	snprintf(out, size, "%d\n", pass);
}

/* A client sends one line and waits for its answer, so a line never comes in two pieces. False: the
 * client has gone. */
static bool serve_client(struct resource *r, int fd) {
	char line[128], answer[128];
	ssize_t n = read(fd, line, sizeof line - 1);
	if (n <= 0) {
		return false;
	}
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	serve(r, line, answer, sizeof answer);
	return write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer);
}

static int listen_at(const char *path) {
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0 ||
		listen(fd, CLIENTS_MAX) != 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static void run(struct resource *r, int listener) {
	struct pollfd fds[2 + CLIENTS_MAX] = { { .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = listener, .events = POLLIN } };
	nfds_t count = 2;
	while (poll(fds, count, -1) > 0 && fds[0].revents == 0) {
		for (nfds_t i = count; i-- > 2;) {
			if (fds[i].revents && !serve_client(r, fds[i].fd)) {
				close(fds[i].fd);
				fds[i] = fds[--count];
			}
		}
		int fd = fds[1].revents && count < 2 + CLIENTS_MAX ? accept(listener, NULL, NULL)
			: -1;
		if (fd >= 0) {
			fds[count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
		}
	}
}

int main(int argc, char **argv) {
	static struct resource r;
	if (argc != 3 || !(r.log = fopen(argv[2], "we"))) {
		return 2;
	}
	history_ignore_signals();
	run(&r, listen_at(argv[1]));
	uint64_t fenced = 0, open = 0;
	for (size_t i = 0; i < KEYS_MAX; i++) {
		fenced += r.keys[i].fenced.lost;
		open += r.keys[i].open.lost;
	}
	printf("writes %" PRIu64 "\nrefused %" PRIu64 "\nlost_fenced %" PRIu64
		"\nlost_open %" PRIu64 "\n", r.writes, r.refused, fenced, open);
	fclose(r.log);
	return 0;
}
