/* history.h: what a client did and believed, one event a line, written as it happens and read by the judge.
 *
 * Times are CLOCK_BOOTTIME of the machine that all of them run on, past any library that fakes clocks. A time is taken before a
 * request is sent, after its answer was received, before a belief is given up: so an order in time is an order in truth.
 */
#ifndef PAWL_SOAK_HISTORY_H
#define PAWL_SOAK_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum history_kind {
	HISTORY_INVOKED = 'I',
	HISTORY_RETURNED = 'R',
	HISTORY_BELIEVES = 'B', /* from now on for `left` */
	HISTORY_FORGETS = 'F'
};

enum history_what {
	HISTORY_ACQUIRE = 'a',
	HISTORY_EXTEND = 'e',
	HISTORY_UPDATE = 'u',
	HISTORY_RELEASE = 'r',
	HISTORY_READ = 'q' /* by quorum */
};

#define HISTORY_NO_VALUE UINT32_MAX
#define HISTORY_LOCK 33 /* lock_id as 32 hex digits; "-": none */
struct history_event {
	char kind, what;
	int64_t at, left; /* ns */
	uint32_t client, op, key; /* op: counts a client's requests */
	char lock[HISTORY_LOCK];
	int error; /* 0 or a PAWL_E...; in the file without its sign */
	uint64_t token;
	uint32_t expect, value;
	bool held; /* what a read said; an acquire's answer: no other node was asked before */
};

/* For programs of a run: who began it ends them, at the latest with itself. */
void history_ignore_signals(void);

int64_t history_now(void);
void history_write(FILE *to, const struct history_event *event); /* a line, flushed */
/* false: the end, or a last line that was cut off. A line that is none ends the program. */
bool history_read(FILE *from, struct history_event *out_event);

#endif
