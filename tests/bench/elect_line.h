/* elect_line.h: a connection with a Redis server, for the parts of elect-bench that measure it. */
#ifndef PAWL_BENCH_ELECT_LINE_H
#define PAWL_BENCH_ELECT_LINE_H

#include "elect_bench.h"

struct line {
	struct load *load;
	struct event *event;

	/* Handles the input as far as it is complete, and takes it off. */
	void (*act)(struct line *line);
	int fd;
	char input[65536];
	size_t size;

	/* For whoever uses the line: what it belongs to, whether it waits for an answer, and how
	 * many answers have come. */
	void *owner;
	bool busy;
	uint64_t answers;
};

/* Connects to a port on loopback, or to a Unix socket if `address` begins with "/". Ends the
 * program if it cannot. */
struct line *line_new(struct load *load, const char *address, void (*act)(struct line *line));
void line_send(struct line *line, const char *text, size_t size);
/* Takes the first bytes of the input off. */
void line_take(struct line *line, size_t size);

#endif
