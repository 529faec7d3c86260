/* worker.h: what the files of the worker share. */
#ifndef PAWL_SOAK_WORKER_H
#define PAWL_SOAK_WORKER_H

#include <event2/event.h>
#include <stdio.h>
#include <time.h>

#include "history.h"
#include "pawl/pawl.h"
#include "prng.h"

#define CONTESTS 3

struct worker;
/* What the client does with one key. */
struct contest {
	struct worker *worker;
	uint32_t key;
	char name[16];
	struct event *timer;
	/* It grows when a lock is given up. Answers about an earlier lock are only written down. */
	uint64_t turn;
	/* A lock was acquired, and is not given up yet. */
	bool held;
	/* NULL: the lock is kept without the library's lock, until the deadline below. */
	struct pawl_lock *lock;
	/* The deadline by both clocks, in nanoseconds. */
	int64_t boot, raw;
	struct pawl_id id;
	uint64_t token;
	/* `value`: the value that was written last, as far as is known. */
	uint32_t lease_ms, value, updates;
};

struct request {
	struct contest *contest;
	uint64_t turn;
	struct history_event asked;
	bool deadline_kept;
	/* The endpoint that was connected when it was asked. */
	char endpoint[128];
};

struct worker {
	struct event_base *base;
	struct pawl *client_handle;
	uint32_t client, ops, values;
	FILE *history;
	/* The time of the last event. */
	int64_t last;
	int resource;
	struct prng prng;
	struct contest contests[CONTESTS];
};

/* Fills in time and client. */
void worker_note(struct worker *w, struct history_event *e);
uint32_t worker_draw(struct worker *w, uint32_t below);
void worker_deadline(struct contest *c, const struct pawl_result *result);

/* ---- worker_write.c ---- */
bool worker_connect(struct worker *w, const char *path);
/* Reads what the key protects and writes to it, with this token both times; sometimes with a long
 * pause in between. */
void worker_write(struct contest *c, uint64_t token);

#endif
