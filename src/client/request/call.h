/* call.h: one request under way, over all the nodes that it is sent to.
 *
 *   queued --sent--> in flight --answer--> over
 *      ^                 |
 *      +-connection lost-+      (unless the call must not be repeated)
 *      +---- resting ----+      (its identity has reached a limit at the node)
 *
 *   At its deadline, and when it is canceled, a call is over, whatever its state.
 */
#ifndef PAWL_CLIENT_CALL_H
#define PAWL_CLIENT_CALL_H

#include "client_core.h"
#include "request_copy.h"
#include "result.h"

/* A call that was sent once and is not answered yet. */
struct flight {
	/* In client->by_msgid. */
	struct map_node by_msgid;
	struct pawl_call *call;

	/* NULL: there is no such flight. */
	struct session *session;

	/* The number of the request; no two flights of a client have the same one. */
	uint32_t msgid;
	struct instant sent_at;
};

struct pawl_call {
	/* In `queue`, `flight` or `resting` of the client. */
	struct list link;

	/* Its last sending; and the one before on a session that the client has left, whose answer
	 * counts as well. */
	struct flight last, before;

	/* In client->named, for an acquire whose lock_ids others may know as well. */
	struct list named;
	struct pawl *client;
	struct request_copy *request;

	/* The outcome. The box is made before the call is sent, so that an outcome needs no
	 * memory. */
	struct result_box *box;

	/* What a node said that was left for another node; NULL if no node was left. */
	struct result_box *previous;

	/* Goes off at the deadline. */
	struct alarm alarm;

	/* The deadline in ns of CLOCK_BOOTTIME. */
	int64_t deadline;

	/* Goes off when the call is to be sent again. */
	struct alarm rest;

	/* The end of the time that the node itself may take before it answers. */
	struct instant wait_end;

	/* When it was sent; after the answer, when the request that was answered was sent. */
	struct instant sent_at;

	/* How often it was sent; a refusal after which it rests does not count. */
	unsigned sends;

	/* It was sent again with a shorter lease, because the cluster allows no longer one. */
	bool lease_lowered;

	/* It was sent again because it had waited for so long that its grant left no time. */
	bool asked_again;

	/* How many nodes were left because of their answers to this call. */
	size_t moves;

	/* The connection over which it was answered, as a number like client->connection_number;
	 * if `tied` is set, the only one that this call may go over. */
	unsigned connection;

	/* See struct call_start. */
	bool internal, tied;

	/* The node may let it wait for what others do. */
	bool waits;

	/* This is an acquire, and another request under its lock_id was under way at the same time.
	 * So the answer to this call says nothing about the outcome of the other request. */
	bool crossed;

	/* This is an acquire, and the lease of a lock that it is for was shortened meanwhile. So
	 * the answer does not say how long that lock may be trusted. */
	bool outdated;

	/* Called once, but not after a cancel. It takes the result. `sent_at` is the time at which
	 * the request that was answered was sent. */
	void (*end)(struct pawl_call *call, struct pawl_result *take_result, void *ctx);

	/* Called instead of `end` after a cancel; it may be NULL. When the client is freed, its
	 * calls are not canceled in this sense: `end` is called. */
	void (*drop)(void *ctx);
	void *ctx;

	/* The callback of the program, for a call that pawl_start has made. */
	pawl_done_fn *done;

	/* moved.c: the errands at other clusters that are under way for this call, which rests
	 * meanwhile. */
	struct list errands;

	/* This is the call of a guest, and its request belongs to the call that it is for. */
	bool borrows;
};

struct call_start {
	const struct pawl_request *request;

	/* What the request says besides; NULL: nothing. */
	const struct pawl_with *with;

	/* The session bindings in the request's list of locks to extend are orders. */
	bool orders;

	/* The time beyond wait_ms; 0 means what the request says. */
	span_ns timeout;

	/* The library itself makes this call. It goes before what the program has queued, and the
	 * program's limit does not apply to it. */
	bool internal;

	/* The call may go over the present connection only. If that connection is lost before there
	 * is an answer, the outcome is PAWL_ECLOSED. */
	bool tied;
	void (*end)(struct pawl_call *call, struct pawl_result *take_result, void *ctx);
	void (*drop)(void *ctx);
	void *ctx;
};
/* Starts a call, which is sent at the end of this turn of the loop. Returns 0, PAWL_EINVAL,
 * PAWL_ETOOLARGE, PAWL_EBUSY or PAWL_ENOMEM. */
int call_start(struct pawl *client, const struct call_start *start, struct pawl_call **out_call);
void call_cancel(struct pawl_call *take_call);

/* Sends the calls that are queued, as far as there is room. */
void calls_send(struct pawl *client);
void calls_answer(struct session *session, uint32_t msgid, struct slice message);
/* flight.c: the session is closed: what was under way there is sent again, or fails. */
void calls_connection_lost(struct session *session);
/* flight.c: returns whether no call is under way that asks for a lock which ends with the
 * connection. */
bool calls_may_return(const struct pawl *client);
/* flight.c: the client has left the session, which is still open. If `repeat` is set, what was
 * under way there is sent again, and otherwise it stays there. Returns how many calls are sent
 * again. */
size_t calls_session_left(struct session *session, bool repeat);
void calls_fail_all(struct pawl *client, int error);
/* Writes what must be sent before the connection is closed for good: releases of the locks that are
 * being acquired. */
void calls_release_on_close(struct pawl *client);
void call_release_on_close(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id);

/* Sends a release that nobody waits for, for a lock that may have been acquired without the caller
 * getting it. It may fail; then the lease runs out. */
void call_release_quietly(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id);
/* Does the same for all locks that an acquire asks for, or repeats a release. */
void calls_release_quietly(struct pawl *client, const struct request_copy *request);

/* ---- flight.c ---- */

/* Draws a msgid that no flight has. */
uint32_t flight_draw_msgid(struct pawl *client);
struct flight *flight_find(const struct pawl *client, uint32_t msgid);
/* Returns whether the call asks for a lock that ends with the connection. */
static inline bool call_binds(const struct pawl_call *call) {
	return call->request->wire.present & CLIENT_HAS_RELEASE_ON_DISCONNECT;
}
/* Notes that the call was sent over the present session. */
void flight_begin(struct pawl_call *call, uint32_t msgid, struct instant now);
/* Forgets a sending, if there was one. */
void flight_end(struct flight *flight);
/* The call is to be sent once more: its last sending was answered, or it has rested. */
void flight_again(struct pawl_call *call);

/* Ends the call with the outcome in its box. `answered`: a node has answered it. */
void call_end(struct pawl_call *call, bool answered);
/* Ends the call with an error that no node has answered. */
void call_fail(struct pawl_call *call, int error, const char *why);
/* Ends the call with PAWL_EINTERRUPTED. A release goes on in the background. */
void call_interrupt(struct pawl_call *call);

/* move_on.c: if the node has refused for itself, sends the call to the next one, or to the same one
 * after a pause. Returns whether it did. */
bool call_move_on(struct pawl_call *call, struct session *session,
	const struct client_response *r, struct slice message);

/* moved.c: if the node says that another cluster serves the request, or some of its locks, asks
 * that cluster. Returns whether it does. */
bool call_follow(struct pawl_call *call, struct session *session, const struct client_response *r,
	struct slice message);
/* Gives up the errands of a call. */
void call_follow_no_more(struct pawl_call *call);

/* rest.c: takes the call out of the flight, and sends it again after the pause. */
void call_rest(struct pawl_call *call, span_ns pause);
/* rest.c: lets the call rest if the node says when it may be asked again. Returns false if the node
 * does not say so, or if that time is too late for this call. */
bool call_back_off(struct pawl_call *call, const struct client_response *r);

#endif
