/* sessions.h: the connections of clients: requests in, answers out, within limits.
 *
 * A ping is within every limit: by it a client whose requests wait finds out that the node is alive.
 * Requests may be pipelined and are answered in any order. What is not MessagePack-RPC gets one bad_request and is closed.
 */
#ifndef PAWL_NET_SESSIONS_H
#define PAWL_NET_SESSIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "client.h"
#include "shares.h"
#include "strangers.h"
#include "tls_context.h"
#include "net_loop.h"
#include "origin.h"

#define SESSIONS_OUT_BYTES_MAX (20u << 20) /* that may wait on a connection: more than the largest answer */

struct sessions;

/* How far a request of many parts has come that is not served in one piece. */
struct session_progress {
	size_t done; /* parts: of an `extend` with `locks` each lock is one, of everything else the whole */
	size_t most; /* parts to be done in this piece */
	uint64_t tag; /* the owner's, who finds the request by it again; 0 before the first piece */
};

struct session_who {
	struct slice identity; /* proven by a certificate; of a local connection unix:uid:N, by the kernel, or plain; empty: none */
	bool local;            /* a Unix socket, or loopback without TLS */
	bool inside;           /* the program that the node is part of: trusted, whatever its name */
	const struct origin *from;
	const struct share_pair *share; /* what it counts for; its identity is NULL before that is known */
};

struct sessions_handlers { /* from the loop; each may call anything here but sessions_free */
	/* Requests wait for sessions_serve in this turn. */
	void (*ready)(void *ctx);
	/* A well-formed request: to be answered once, by sessions_answer. An `extend` with `locks` may come several times, until
	 * progress->done has reached their number; others come once, and `progress` is not for them. */
	void (*request)(void *ctx, uint64_t client, const struct session_who *who, const struct client_request *request,
		struct session_progress *progress, struct instant now);
	/* Its requests need no answer any more. `closed_there`: the other side closed the connection (it ended, or its kernel did that
	 * for it), and neither the network nor the node did. */
	void (*gone)(void *ctx, uint64_t client, bool closed_there);
	/* A connection was refused, or ended because of what it did. The node says so; nothing else follows. */
	void (*trouble)(void *ctx, const struct session_who *who, const char *why);
	void (*refused)(void *ctx); /* a request was refused here: the refusal waits for sessions_flush in this turn */
	void (*drained)(void *ctx, uint64_t client); /* of a client that was crowded everything has left */
	/* Changes the limits of its identity to what it has of its own. True: it is an administrator, who gets in where others do not. */
	bool (*terms)(void *ctx, const struct session_who *who, struct share_limits *limits);
	/* A request was refused because its identity or address has had enough. */
	void (*over)(void *ctx, const struct session_who *who, const struct client_refusal *refusal);
};

struct sessions_limits {
	uint32_t clients, requests_per_client;
	uint32_t admin_clients; /* further connections, for administrators alone */
	/* Of all connections of one identity (without one: of those from one address), and of one address whatever the identities. */
	struct share_limits identity, address;
	span_ns idle; /* 0: for ever */
	uint64_t memory; /* of all connections; 0: no limit */
	struct strangers_limits strangers; /* connections that have shown no certificate and made no request */
};

struct sessions_options {
	struct net_loop *loop; /* borrowed */
	struct alloc_counter *memory; /* borrowed; of the loop's allocator. NULL: limits.memory means nothing */
	struct sessions_limits limits;
	const struct sessions_handlers *handlers; /* borrowed, static */
	void *ctx;
};

int sessions_new(const struct sessions_options *options, struct sessions **out); /* 0 or PAWL_ENOMEM */
void sessions_free(struct sessions *s); /* no handler is called any more; accepts NULL */
void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits); /* for what comes after */

/* `tls`: NULL for plain. With client_auth other than off a certificate that is shown must be a client's. */
void sessions_accept(struct sessions *s, int take_fd, SSL_CTX *tls, enum tls_client_auth auth, bool local,
	const struct origin *from);
/* The other end of the socket is in this process, and speaks under that name. */
void sessions_accept_inside(struct sessions *s, int take_fd, const char *identity);

/* A request of the client has cost so much more than was charged when it was handed over, in simple requests. */
void sessions_charge(struct sessions *s, uint64_t client, int64_t cost);
/* Where to append the answer to one request of the client; NULL: it is gone. Counts the request as answered. */
struct buffer *sessions_answer(struct sessions *s, uint64_t client);
/* Who the client is; false: it is gone. Valid until then. */
bool sessions_who(const struct sessions *s, uint64_t client, struct session_who *out);
/* Where to append what answers no request; NULL: it is gone. */
struct buffer *sessions_notify(struct sessions *s, uint64_t client);
/* More than `most` bytes have not left yet: nothing should be added before drained(), which is called for nobody else. */
bool sessions_crowded(struct sessions *s, uint64_t client, size_t most);
/* It has so many, which take so much: then silence is no reason to close it. */
void sessions_watches(struct sessions *s, uint64_t client, uint32_t watches, size_t bytes);
/* For what the owner keeps for the client, which counts as its memory, until that is given back; NULL: the client is gone. */
const struct allocator *sessions_alloc(const struct sessions *s, uint64_t client);
/* How much more memory a large answer to the client may take, and what refuses more than that. */
uint64_t sessions_room(const struct sessions *s, uint64_t client);
void sessions_say_full(const struct sessions *s, uint64_t client, struct share_quota *out);
/* What it counts for; NULL: it is gone. */
const struct share_pair *sessions_share(const struct sessions *s, uint64_t client);
void sessions_drop(struct sessions *s, uint64_t client); /* closes at once; gone() is not called */

/* Ends the connections whose certificate the context would refuse as revoked, and those over TLS that have not finished their
 * handshake: they began under the context before. Calls trouble() and gone(). */
void sessions_end_revoked(struct sessions *s, SSL_CTX *now);

/* Once a turn of the loop, after the sockets that were readable have been read: hands over requests that wait, those of every
 * identity and of every connection by turns, for as long as one turn may take. True: some are left for the next turn. */
bool sessions_serve(struct sessions *s);

/* Once a turn of the loop: one write for each client that has answers. May call gone(). */
void sessions_flush(struct sessions *s);

uint32_t sessions_count(const struct sessions *s);
struct strangers_counts sessions_strangers(const struct sessions *s);
uint64_t sessions_memory(const struct sessions *s); /* what all take; 0 without a counter */
uint64_t sessions_memory_most(struct sessions *s);  /* what all took at most since this was asked last */
uint64_t sessions_refused(const struct sessions *s); /* for having had enough, since the start */
void sessions_count_refused(struct sessions *s); /* the owner has done so */

/* One connection as operators see it. Borrowed from it. */
struct session_view {
	uint64_t client;
	struct session_who who;
	/* It has shown no certificate and made no request: its place is a newcomer's as soon as one needs it. */
	bool stranger;
	/* How long it has been there, and how long it has said nothing. */
	span_ns age, silent;
	/* Requests since its beginning, and those that are not answered yet. */
	uint64_t requests;
	uint32_t open;
	/* Bytes on the network since its beginning, and those that the other side has not read yet. */
	uint64_t received, sent;
	size_t unsent;
	/* Of the node, as it counts for its identity and its address. */
	uint64_t memory;
};
/* Calls for each connection with a number above `after`, in the order of their numbers, which is that of their age, until it returns
 * false. It must not call anything here that changes the connections. */
typedef bool sessions_visit(void *ctx, const struct session_view *view);
/* The first share with a number above that; NULL: there is none. */
const struct share *sessions_share_after(const struct sessions *s, uint64_t number);
void sessions_each(const struct sessions *s, uint64_t after, sessions_visit *visit, void *ctx);

#endif
