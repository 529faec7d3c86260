/* sim_trace.h: the last events of a run in a ring. They become text only when something went
 * wrong. */
#ifndef PAWL_SIM_TRACE_H
#define PAWL_SIM_TRACE_H

#include <stdio.h>

#include "core.h"

enum sim_trace_kind {
	/* A message leaves `node` for `other`. */
	TRACE_SENT,
	/* A message from `other` is handled at `node`. */
	TRACE_HANDLED,
	/* A request arrives at `node`. */
	TRACE_REQUEST,
	/* A reply leaves `node`. */
	TRACE_REPLY,
	/* What a client did or believes. */
	TRACE_CLIENT,
	/* What the simulator did to a node or a link. */
	TRACE_FAULT,
	/* What the node would log. */
	TRACE_NOTE };

#define TRACE_NONE UINT32_MAX

struct sim_trace_record {
	int64_t at;
	enum sim_trace_kind kind;
	/* TRACE_NONE: none. */
	uint32_t node, other;
	/* The numbers of sim_name_*; TRACE_NONE: none. */
	uint32_t key, lock;
	/* Of SENT and HANDLED. */
	enum message_kind message;
	enum status status;
	int error;
	/* In static storage. */
	const char *text;
	/* `epoch` is the one of the frame. */
	uint64_t token, noted, a, b, epoch;
	uint32_t flags;
	/* Of SENT and HANDLED: the lock terms, or zeroes. */
	struct terms terms;
};

struct sim_trace {
	struct sim_trace_record *ring;
	/* A power of two. */
	size_t size;
	uint64_t count;
	/* Every record is also printed there at once; NULL: it is not. */
	FILE *live;
};

void sim_trace_init(struct sim_trace *t, size_t size);
void sim_trace_done(struct sim_trace *t);
void sim_trace_add(struct sim_trace *t, const struct sim_trace_record *record);
/* Prints the last `limit` records that concern the key, or no key at all. */
void sim_trace_print(const struct sim_trace *t, FILE *to, uint32_t key, size_t limit);

/* Keys and lock_ids of the simulator carry their number. */
struct slice sim_name_key(char buffer[16], uint32_t key);
/* TRACE_NONE: it is not a key of the simulator. */
uint32_t sim_name_key_number(struct slice key);
const char *sim_op_name(enum core_op op);
struct id128 sim_name_lock(uint32_t lock, uint64_t random);
uint32_t sim_name_lock_number(struct id128 lock);

#endif
