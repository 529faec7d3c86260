/* call.h: one request under way, over all the nodes that it is sent to.
 *
 *   queued --sent--> in flight --answer--> over
 *      ^                 |
 *      +-connection lost-+      (but not what must not be repeated)
 *      +---- resting ----+      (its identity has had enough); at the deadline or a cancel: over, from any of them
 */
#ifndef PAWL_CLIENT_CALL_H
#define PAWL_CLIENT_CALL_H

#include "client_core.h"
#include "request_copy.h"
#include "result.h"

struct pawl_call {
	struct list link;         /* in queue, flight or resting */
	struct map_node by_msgid; /* in flight */
	struct list named;        /* in client->named: an acquire whose lock_ids others may know, too */
	struct pawl *client;
	struct request_copy *request;
	struct result_box *box; /* made in advance: an outcome needs no memory */
	struct result_box *before; /* what a node said that was left for another one; else NULL */
	struct alarm alarm;     /* the deadline */
	int64_t deadline;       /* CLOCK_BOOTTIME */
	struct alarm rest;      /* when it is sent again */
	struct instant wait_end;
	struct instant sent_at; /* on this connection */
	uint32_t msgid;
	unsigned sends;
	size_t moves; /* nodes that were left because of their answers to it */
	unsigned connection; /* tied: the only connection that it may go over, as in client->connection_number */
	bool flying, internal, tied;
	bool crossed; /* an acquire, and another request under its lock_id was on its way as well: its answer says nothing of that one */
	/* Called once, not after a cancel; takes the result. `sent_at` is that of the request that was answered. */
	void (*end)(struct pawl_call *call, struct pawl_result *take_result, void *ctx);
	void (*drop)(void *ctx); /* instead of end after a cancel or, with client->dying, never; may be NULL */
	void *ctx;
	pawl_done_fn *done; /* the program's, of a pawl_start */
};

struct call_start {
	const struct pawl_request *request;
	span_ns timeout; /* beyond wait_ms; 0: as the request says */
	bool internal;   /* the library's own: goes before what the program has queued, and is not limited by it */
	bool tied;       /* over the present connection only: PAWL_ECLOSED when that one is lost before there is an answer */
	void (*end)(struct pawl_call *call, struct pawl_result *take_result, void *ctx);
	void (*drop)(void *ctx);
	void *ctx;
};
/* 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY or PAWL_ENOMEM. Goes out at the end of the loop's turn. */
int call_start(struct pawl *client, const struct call_start *start, struct pawl_call **out_call);
void call_cancel(struct pawl_call *take_call);

/* Sends what is queued, as far as there is room. */
void calls_send(struct pawl *client);
void calls_answer(struct pawl *client, uint32_t msgid, struct slice message);
void calls_connection_lost(struct pawl *client);
void calls_fail_all(struct pawl *client, int error);
/* The last words before the connection is closed for good: what is being acquired is released. */
void calls_part(struct pawl *client);
void call_part(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id);

/* A release that nobody waits for: for what may have been acquired, but not for the caller. Best effort. */
void call_release_quietly(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id);
/* The same for all that an acquire asks for. */
void calls_release_quietly(struct pawl *client, const struct request_copy *request);

/* rest.c: the node says when it may be asked again. False: it does not, or that is too late for this call. */
bool call_back_off(struct pawl_call *call, const struct client_response *r);

#endif
