/* sim_trace.h: the last events of a run in a ring; they become text only when something went wrong. */
#ifndef PAWL_SIM_TRACE_H
#define PAWL_SIM_TRACE_H

#include <stdio.h>

#include "core.h"

enum sim_trace_kind {
	TRACE_SENT,    /* a message leaves node for other */
	TRACE_HANDLED, /* a message from other is handled at node */
	TRACE_REQUEST, /* a request arrives at node */
	TRACE_REPLY,   /* a reply leaves node */
	TRACE_CLIENT,  /* what a client did or believes */
	TRACE_FAULT,   /* what the simulator did to a node or link */
	TRACE_NOTE     /* what the node would log */
};

#define TRACE_NONE UINT32_MAX

struct sim_trace_record {
	int64_t at;
	enum sim_trace_kind kind;
	uint32_t node, other;      /* TRACE_NONE: none */
	uint32_t key, lock;        /* numbers of sim_name_*; TRACE_NONE: none */
	enum message_kind message; /* SENT, HANDLED */
	enum status status;
	int error;
	const char *text; /* static storage */
	uint64_t token, noted, a, b, epoch; /* epoch: of the frame */
	uint32_t flags;
};

struct sim_trace {
	struct sim_trace_record *ring;
	size_t size; /* power of two */
	uint64_t count;
	FILE *live; /* every record is printed at once too; NULL: not */
};

void sim_trace_init(struct sim_trace *t, size_t size);
void sim_trace_done(struct sim_trace *t);
void sim_trace_add(struct sim_trace *t, const struct sim_trace_record *record);
/* The last `limit` records that concern the key (or no key at all). */
void sim_trace_print(const struct sim_trace *t, FILE *to, uint32_t key, size_t limit);

/* Keys and lock_ids of the simulator carry their number. */
struct slice sim_name_key(char buffer[16], uint32_t key);
uint32_t sim_name_key_number(struct slice key); /* TRACE_NONE: not one of ours */
const char *sim_op_name(enum core_op op);
struct id128 sim_name_lock(uint32_t lock, uint64_t random);
uint32_t sim_name_lock_number(struct id128 lock);

#endif
