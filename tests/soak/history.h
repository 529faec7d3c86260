/* history.h: what a client did and believed, one event a line, written as it happens and read by
 * the judge.
 *
 * Times are CLOCK_BOOTTIME of the machine that all clients run on, read past any library that fakes
 * clocks. A time is taken before a request is sent, after its answer was received, and before a
 * belief is given up: so an order in time is an order in truth.
 */
#ifndef PAWL_SOAK_HISTORY_H
#define PAWL_SOAK_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum history_kind {
	HISTORY_INVOKED = 'I',
	HISTORY_RETURNED = 'R',
	/* The client believes in the lock from now on, for `left`. */
	HISTORY_BELIEVES = 'B',
	HISTORY_FORGETS = 'F'
};

enum history_what {
	HISTORY_ACQUIRE = 'a',
	HISTORY_EXTEND = 'e',
	HISTORY_UPDATE = 'u',
	HISTORY_RELEASE = 'r',
	/* A read by quorum. */
	HISTORY_READ = 'q'
};

#define HISTORY_NO_VALUE UINT32_MAX
/* The lock_id as 32 hex digits; "-": none. */
#define HISTORY_LOCK 33
struct history_event {
	char kind, what;
	/* In nanoseconds. */
	int64_t at, left;
	/* `op` counts a client's requests. */
	uint32_t client, op, key;
	char lock[HISTORY_LOCK];
	/* 0 or a PAWL_E...; it stands in the file without its sign. */
	int error;
	uint64_t token;
	uint32_t expect, value;
	/* What a read said. Of an acquire's answer: no other node was asked before. */
	bool held;
};

/* For the programs of a run: the process that began the run ends them, at the latest with
 * itself. */
void history_ignore_signals(void);

int64_t history_now(void);
/* Writes a line, and flushes it. */
void history_write(FILE *to, const struct history_event *event);
/* False: this is the end, or a last line that was cut off. A line that is no event ends the
 * program. */
bool history_read(FILE *from, struct history_event *out_event);

#endif
