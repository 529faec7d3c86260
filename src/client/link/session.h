/* session.h: a session is one connection of a client with one endpoint, from the look-up of the
 * name to the end of the connection. It knows what was sent over it, and whether an answer is owed,
 * but not what the messages say.
 *
 *   closed --session_dial--> dialing (name, address, handshake) --> up
 *     ^                             |                               |
 *     +------- session_close -------+-------------------------------+
 *
 *   When dialing fails, or the connection is lost, session_failed is called, which must close it.
 */
#ifndef PAWL_CLIENT_SESSION_H
#define PAWL_CLIENT_SESSION_H

#include "agenda.h"
#include "client.h"
#include "connection.h"
#include "endpoint.h"

struct pawl;

enum session_state { SESSION_CLOSED, SESSION_DIALING, SESSION_UP };

struct session {
	struct pawl *client;
	enum session_state state;
	struct connection connection;
	struct client_scanner scanner;

	/* The endpoint as it was when the session was dialed. */
	struct endpoint endpoint;

	/* The node has sent a message over this connection. */
	bool spoke;

	/* The bits of those parameters `party` and `trace` that the node does not know. */
	uint64_t unknown;

	/* The number of this connection among those of the client that came into use, from 1. */
	unsigned number;

	/* Goes off when dialing takes too long. */
	struct alarm dial_alarm;

	/* ---- silence.c ---- */

	/* The requests that are under way on this session, and how many of these may wait at the
	 * node for what others do. */
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

void session_init(struct session *session, struct pawl *client);
void session_done(struct session *session);

/* Dials the endpoint, of which it keeps a copy, within `limit`. The session must be closed.
 * session_up or session_failed follows, perhaps before this returns. */
void session_dial(struct session *session, const struct endpoint *endpoint, span_ns limit);
/* The name was looked up, and the endpoint of the session, which is dialing, is this one now. */
void session_located(struct session *session, const struct endpoint *endpoint);
/* Returns whether the session waits for the look-up of a name. */
bool session_waits(const struct session *session);
void session_close(struct session *session);
/* Returns the end of a sentence about a node that has said nothing over a plain connection, as a
 * port with TLS does; otherwise "". It is in thread-local storage. */
const char *session_hint(const struct session *session);
/* Sends a ping, whose answer has the msgid 0. */
void session_ping(struct session *session);

/* ---- failover.c: what becomes of a session ---- */

void session_up(struct session *session);
void session_failed(struct session *session, int error, const char *why);
/* The node has said something, which a node that only accepts connections never does. */
void session_spoke(struct session *session);
/* The node has answered a ping. */
void session_ponged(struct session *session);
/* Bytes have come over the session, and have been handled. */
void session_heard(struct session *session);

/* ---- silence.c ---- */

/* Call this when a request was sent over the session. */
void silence_sent(struct session *session, struct instant now, bool waits);
/* Call this when bytes have come, before and after they are handled. */
void silence_heard(struct session *session);
void silence_settle(struct session *session);
void silence_pinged(struct session *session);
void silence_ponged(struct session *session);
/* Sets the alarm, because what is awaited, or how long it may take, has changed. */
void silence_reset(struct session *session);
void silence_clear(struct session *session);
void silence_ring(struct alarm *alarm);

#endif
