/* worker_write.c: what a holder does with its lock: it reads the resource and writes what follows
 * from that. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "worker.h"

bool worker_connect(struct worker *w, const char *path) {
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	w->resource = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return w->resource >= 0 && connect(w->resource, (struct sockaddr *)&a, sizeof a) == 0;
}

/* Sends a line and reads its answer. The resource is always there; if it is not, the run is
 * over. */
static void ask(const struct worker *w, const char *line, char *out, size_t size) {
	ssize_t n = -1;
	if (write(w->resource, line, strlen(line)) == (ssize_t)strlen(line)) {
		n = read(w->resource, out, size - 1);
	}
	if (n <= 0) {
		exit(0);
	}
	out[n] = 0;
}

/* Stands still, like a process that swaps, is moved to another machine, or collects garbage. */
static void stand_still(uint32_t ms) {
	printf("pause %" PRIu32 "\n", ms);
	raise(SIGSTOP);
}

void worker_write(struct contest *c, uint64_t token) {
	struct worker *w = c->worker;
	char line[128];
	snprintf(line, sizeof line, "r %" PRIu32 " %" PRIu64 "\n", c->key, token);
	ask(w, line, line, sizeof line);
	char *rest = line;
	/* The first number says whether the token is already behind: then the write is refused. */
	strtoull(rest, &rest, 10);
	uint64_t fenced = strtoull(rest, &rest, 10);
	uint64_t open = strtoull(rest, &rest, 10);
	if (worker_draw(w, 30) == 0) {
		stand_still(c->lease_ms / 2 + worker_draw(w, 3 * c->lease_ms));
	}
	snprintf(line, sizeof line, "w %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->key,
		token, fenced, open);
	ask(w, line, line, sizeof line);
}
