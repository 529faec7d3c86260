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
struct contest { /* one key */
	struct worker *worker;
	uint32_t key;
	char name[16];
	struct event *timer;
	uint64_t turn;          /* grows when a lock is given up: answers about an earlier one are only written down */
	bool held;              /* acquired, and not yet given up */
	struct pawl_lock *lock; /* NULL: kept by hand, ... */
	int64_t boot, raw;      /* ... until this deadline */
	struct pawl_id id;
	uint64_t token;
	uint32_t lease_ms, value, updates; /* value: the one last written, as far as is known */
};

struct request {
	struct contest *contest;
	uint64_t turn;
	struct history_event asked;
	bool deadline_kept;
	char endpoint[128]; /* that was connected when it was asked */
};

struct worker {
	struct event_base *base;
	struct pawl *client_handle;
	uint32_t client, ops, values;
	FILE *history;
	int64_t last; /* time of the last event */
	int resource;
	struct prng prng;
	struct contest contests[CONTESTS];
};

void worker_note(struct worker *w, struct history_event *e); /* fills in time and client */
uint32_t worker_draw(struct worker *w, uint32_t below);
void worker_deadline(struct contest *c, const struct pawl_result *result);

/* worker_write.c */
bool worker_connect(struct worker *w, const char *path);
/* Reads what the key protects and writes to it, with this token both times; sometimes with a long pause in between. */
void worker_write(struct contest *c, uint64_t token);

#endif
