/* line.h: a line is one connection of a client with one endpoint, from the look-up of the name to
 * the end of the connection. It knows what it was sent and what it still owes, but not what the
 * messages say.
 *
 *   closed --line_dial--> dialing (name, addresses in turn, handshake) --> up
 *     ^                          |                                         |
 *     +------ line_close --------+-----------------------------------------+
 *
 *   When dialing fails, or the connection is lost, line_failed is called, which must close it.
 */
#ifndef PAWL_CLIENT_LINE_H
#define PAWL_CLIENT_LINE_H

#include "agenda.h"
#include "client.h"
#include "connection.h"

struct pawl;

enum line_state { LINE_CLOSED, LINE_DIALING, LINE_UP };

struct line {
	struct pawl *client;
	enum line_state state;
	struct connection connection;
	struct client_scanner scanner;

	/* The index of the endpoint. */
	size_t endpoint;

	/* The number of this connection among those of the client that came into use, from 1. */
	unsigned number;

	/* Goes off when dialing takes too long, which `dial_limit` says for each address. */
	struct alarm dial_alarm;
	span_ns dial_limit;

	/* ---- silence.c ---- */

	/* The requests that are under way on this line, and how many of these may wait at the node
	 * for what others do. */
	size_t flights, waits;

	/* The node owes an answer: to a request that is under way, to a ping, or to a request that
	 * has given up. */
	bool owed;

	/* A ping was sent, and nothing has come since. */
	bool pinged;

	/* No answer to any ping has come since the last ping was sent. */
	bool pong_due;

	/* The ping was not answered in time. */
	bool overdue;

	/* Since when the node is silent: when it was last heard, or when the first request after
	 * that was sent. `quiet_since` is later if the client stood still itself meanwhile. */
	struct instant silent_since, quiet_since;
	struct instant ping_at;

	/* When the last request that may wait was sent. The node has read all that was sent before
	 * `read_until`: it has answered a ping that was sent then. */
	struct instant wait_sent_at, read_until;

	/* When silence_alarm goes off, and when it was set for that, in ns of CLOCK_BOOTTIME. */
	struct alarm silence_alarm;
	int64_t alarm_at, alarm_set_at;
};

void line_init(struct line *line, struct pawl *client);
void line_done(struct line *line);

/* Dials the endpoint with this index; `limit` is for one address. The line must be closed. line_up or
 * line_failed follows, perhaps before this returns. */
void line_dial(struct line *line, size_t endpoint, span_ns limit);
void line_close(struct line *line);
/* Sends a ping, whose answer has the msgid 0. */
void line_ping(struct line *line);

/* ---- failover.c: what becomes of a line ---- */

void line_up(struct line *line);
void line_failed(struct line *line, int error, const char *why);
/* The node has said something, which a node that only accepts connections never does. */
void line_spoke(struct line *line);
/* The node has answered a ping. */
void line_ponged(struct line *line);
/* Bytes have come over the line, and have been handled. */
void line_heard(struct line *line);

/* ---- silence.c ---- */

/* Call this when a request was sent over the line. */
void silence_sent(struct line *line, struct instant now, bool waits);
/* Call this when bytes have come, before and after they are handled. */
void silence_heard(struct line *line);
void silence_settle(struct line *line);
void silence_pinged(struct line *line);
void silence_ponged(struct line *line);
/* Sets the alarm anew, because what is awaited, or how long it may take, has changed. */
void silence_reset(struct line *line);
void silence_clear(struct line *line);
void silence_ring(struct alarm *alarm);

#endif
