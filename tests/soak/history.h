/* history.h: what a client did and believed, one event a line, written as it happens in the form of
 * docs/testing/histories.md.
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
	HISTORY_INVOKED,
	/* It completes the line of the invocation. */
	HISTORY_RETURNED,
	/* The client believes in the lock from now on, for `left`. */
	HISTORY_BELIEVES,
	HISTORY_FORGETS
};

enum history_what {
	HISTORY_ACQUIRE,
	HISTORY_EXTEND,
	HISTORY_UPDATE,
	HISTORY_RELEASE,
	/* A read by quorum. */
	HISTORY_READ
};

#define HISTORY_NO_VALUE UINT32_MAX
/* The lock_id as 32 hex digits; empty: none. */
#define HISTORY_LOCK 33
struct history_event {
	enum history_kind kind;
	enum history_what what;
	/* In nanoseconds. */
	int64_t at, left;
	/* `op` counts a client's events; the answer has that of its request. */
	uint32_t client, op, key;
	char lock[HISTORY_LOCK];
	/* 0 or a PAWL_E.... */
	int error;
	uint64_t token;
	/* What an update compares with; what a request writes, or an answer shows. */
	uint32_t expect, value;
	/* What a read said. */
	bool held;
	/* An acquire was answered by another node than the one that was asked first. */
	bool again;
};

/* For the programs of a run: the process that began the run ends them, at the latest with
 * itself. */
void history_ignore_signals(void);

int64_t history_now(void);
/* Writes a line, and flushes it. */
void history_write(FILE *to, const struct history_event *event);

#endif
