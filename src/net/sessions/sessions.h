/* sessions.h: the connections of clients: requests come in and answers go out, within limits.
 *
 * A ping is within every limit, because with it a client whose requests wait finds out that the
 * node is alive. Requests may be pipelined and are answered in any order. Input that is not
 * MessagePack-RPC gets one bad_request, and the connection is closed.
 */
#ifndef PAWL_NET_SESSIONS_H
#define PAWL_NET_SESSIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "client.h"
#include "dialect.h"
#include "shares.h"
#include "strangers.h"
#include "tls_context.h"
#include "net_loop.h"
#include "origin.h"

/* How many bytes may wait to leave on one connection. That is more than the largest answer. */
#define SESSIONS_OUT_BYTES_MAX (20u << 20)

struct sessions;

/* How far a request of many parts, which is not served in one piece, has come. */
struct session_progress {
	/* The number of parts that are done. Each lock of an `extend` with `locks` is one part;
	 * every other request is a single part. */
	size_t done;
	/* The number of parts to be done in this piece. */
	size_t most;
	/* Belongs to the owner, who finds the request again by it. It is 0 before the first
	 * piece. */
	uint64_t tag;
};

/* Who is at the other end of a connection. */
struct session_who {
	/* Proven by a certificate. On a local connection it is unix:uid:N, as the kernel says, or
	 * plain. Empty means that there is none. */
	struct slice identity;
	/* The connection came over a Unix socket, or over loopback without TLS. */
	bool local;
	/* The other end is the program that the node is part of. It is trusted, whatever its name
	 * is. */
	bool inside;
	/* Borrowed from the connection. */
	const struct origin *from;
	/* The shares that the connection counts for; the identity is NULL before it is known. */
	const struct share_pair *share;
};

/* What the owner is told. The handlers are called from the loop. Each of them may call any function
 * of this header but sessions_free. */
struct sessions_handlers {
	/* Requests wait for sessions_serve in this turn. */
	void (*ready)(void *ctx);

	/* A well-formed request, to be answered once by sessions_answer. An `extend` with `locks`
	 * may come several times, until progress->done has reached the number of its locks. Every
	 * other request comes once, and `progress` is not for it. */
	void (*request)(void *ctx, uint64_t client, const struct session_who *who,
		const struct client_request *request, struct session_progress *progress,
		struct instant now);

	/* The client leaves, and its requests need no answer any more. Forgets at most that many
	 * of its requests and watches, and returns how many. When it has many of them, this is
	 * called once in each turn; at last gone() is called. */
	uint32_t (*forget)(void *ctx, uint64_t client, uint32_t most);
	/* The client is gone, with what is left of its requests and watches. `closed_there`: the
	 * other side closed the connection (it ended, or its kernel closed it), and neither the
	 * network nor this node did. */
	void (*gone)(void *ctx, uint64_t client, bool closed_there);

	/* A connection was refused, or was ended because of what it did. The node logs it; nothing
	 * else follows. */
	void (*trouble)(void *ctx, const struct session_who *who, const char *why);

	/* A request was refused here. The refusal waits for sessions_flush in this turn. */
	void (*refused)(void *ctx);
	/* Everything has left for a client that was crowded. */
	void (*drained)(void *ctx, uint64_t client);

	/* Changes `limits`, which apply to the identity of `who`, to its own limits where it has
	 * any. Returns true for an administrator, who gets in where others do not. */
	bool (*own_limits)(void *ctx, const struct session_who *who, struct share_limits *limits);

	/* A request was refused because its identity or address has reached a limit. */
	void (*over)(void *ctx, const struct session_who *who,
		const struct client_refusal *refusal);
};

/* The limits of the connections of clients. */
struct sessions_limits {
	/* The number of connections, and of the requests of one of them that are under way. */
	uint32_t clients, requests_per_client;
	/* The number of further connections, for administrators alone. */
	uint32_t admin_clients;
	/* The limits of all connections of one identity (without an identity: of those from one
	 * address), and of all connections from one address, whatever their identities are. */
	struct share_limits identity, address;
	/* After this time, a connection that is silent and has nothing under way is closed; 0 means
	 * never. */
	span_ns idle;
	/* The limit for the memory of all connections, in bytes; 0 means no limit. */
	uint64_t memory;
	/* The limits for connections that have shown no certificate and made no request. */
	struct strangers_limits strangers;
};

/* What sessions_new needs to know. */
struct sessions_options {
	/* Borrowed. */
	struct net_loop *loop;
	/* Borrowed. It counts what the loop's allocator has given. NULL means that limits.memory
	 * has no effect. */
	struct alloc_counter *memory;
	struct sessions_limits limits;
	/* Borrowed and static. */
	const struct sessions_handlers *handlers;
	void *ctx;
};

/* Returns 0 or PAWL_ENOMEM. */
int sessions_new(const struct sessions_options *options, struct sessions **out);
/* No handler is called any more. Accepts NULL. */
void sessions_free(struct sessions *s);
/* The limits hold for what comes after this call. */
void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits);

/* Takes over a connection. A `tls` of NULL means a plain one. If `auth` is not off, a certificate
 * that is shown must be that of a client. A `use` of NULL means the client protocol; it is
 * borrowed. */
void sessions_accept(struct sessions *s, int take_fd, SSL_CTX *tls, enum tls_client_auth auth,
	bool local, const struct origin *from, const struct dialect_use *use);
/* Takes over a connection whose other end is in this process, and speaks under that name. */
void sessions_accept_inside(struct sessions *s, int take_fd, const char *identity);

/* Charges what a request of the client has cost in addition to what was charged when it was handed
 * over. The unit is one simple request. */
void sessions_charge(struct sessions *s, uint64_t client, int64_t cost);

/* A request of the client brings or asks for values of this number of bytes, which the node will
 * send or copy later. This turn is shorter for that. The requests of a client that has much under
 * way wait until sessions_value_done has said the same of some of them. */
void sessions_value_begun(struct sessions *s, uint64_t client, uint64_t bytes);
/* The request is answered. The client may be gone. */
void sessions_value_done(struct sessions *s, uint64_t client, uint64_t bytes);

/* Returns the buffer to which to append the answer to one request of the client, or NULL if the
 * client is gone. Counts the request as answered. */
struct buffer *sessions_answer(struct sessions *s, uint64_t client);

/* Says who the client is. Returns false if the client is gone, or its connection is closed and
 * waits for its end. The result is valid until the client is gone. */
bool sessions_who(const struct sessions *s, uint64_t client, struct session_who *out);
/* Writes the address at which the client has reached the node (stream_reached_at); an empty text if
 * it is gone. */
void sessions_reached_at(const struct sessions *s, uint64_t client, char out[ADDRESS_TEXT_BYTES]);

/* Returns the buffer to which to append what answers no request, or NULL if the client is gone. */
struct buffer *sessions_notify(struct sessions *s, uint64_t client);

/* Returns whether more than `most` bytes have not left yet. Then nothing should be added before
 * drained(), which is called only for clients that were found crowded. */
bool sessions_crowded(struct sessions *s, uint64_t client, size_t most);

/* Says how many watches the client has, and how many bytes they take. A connection with watches is
 * not closed for its silence. */
void sessions_watches(struct sessions *s, uint64_t client, uint32_t watches, size_t bytes);

/* Returns the allocator for what the owner keeps for the client. Until it is given back, it counts
 * as memory of the client. NULL means that the client is gone. */
const struct allocator *sessions_alloc(const struct sessions *s, uint64_t client);

/* Returns how many bytes more a large answer to the client may take. */
uint64_t sessions_room(const struct sessions *s, uint64_t client);
/* Says what refuses an answer that needs more than sessions_room. */
void sessions_say_full(const struct sessions *s, uint64_t client, struct share_quota *out);

/* Returns the shares that the client counts for, or NULL if the client is gone. */
const struct share_pair *sessions_share(const struct sessions *s, uint64_t client);

/* Ends the connection, as if it was closed: at once, or over some turns if much ends with it. Calls
 * gone(). */
void sessions_drop(struct sessions *s, uint64_t client);

/* Ends the connections whose certificate the context would refuse as revoked, and those over TLS
 * that have not finished their handshake, because they began under the previous context. Calls
 * trouble() and gone(). */
void sessions_end_revoked(struct sessions *s, SSL_CTX *now);

/* To be called once a turn of the loop, after the readable sockets have been read. Hands over the
 * requests that wait, with turns for every identity and every connection, for as long as one turn
 * may take. Returns true if some are left for the next turn. */
bool sessions_serve(struct sessions *s);
/* Returns whether turns are short, for a connection that asks for little. */
bool sessions_turns_are_short(const struct sessions *s);

/* The client that has cost most in one turn of the loop. */
struct session_cost {
	struct session_who who;
	/* The method of its last request in this turn; NULL: it made none. */
	const char *method;
	/* What it has cost, in simple requests. */
	int64_t cost;
};
/* To be called at the end of each turn of the loop. Returns false if no client has cost anything
 * in it. *out is valid until the next turn; NULL: nobody wants to know. */
bool sessions_costliest(struct sessions *s, struct session_cost *out);

/* To be called once a turn of the loop. Makes one write for each client that has answers. May call
 * gone(). */
void sessions_flush(struct sessions *s);

/* Returns the number of connections: of all, and of those that came by the listener with this
 * number (origin.h). */
uint32_t sessions_count(const struct sessions *s);
uint32_t sessions_count_at(const struct sessions *s, unsigned listener);
/* Returns how many connections were refused because there were too many, since the start. */
uint64_t sessions_full(const struct sessions *s);
/* Returns the numbers of the strangers on the ports of clients. */
struct strangers_counts sessions_strangers(const struct sessions *s);

/* Returns how many bytes all connections take; 0 without a counter. */
uint64_t sessions_memory(const struct sessions *s);
/* Returns the largest number of bytes that all connections took since this was last asked. */
uint64_t sessions_memory_most(struct sessions *s);
/* Returns the number of requests and connections that were refused for a limit, since the start. */
uint64_t sessions_refused(const struct sessions *s);
/* The owner has refused a request or a connection for a limit. */
void sessions_count_refused(struct sessions *s);

/* One connection as operators see it. Its slices and pointers are borrowed from the connection. */
struct session_view {
	uint64_t client;
	struct session_who who;
	/* The connection has shown no certificate and made no request. Its place goes to a newcomer
	 * as soon as one needs it. */
	bool stranger;
	/* How long the connection has existed, and how long it has been silent. */
	span_ns age, silent;
	/* The number of requests since its beginning, and the number of those that are not answered
	 * yet. */
	uint64_t requests;
	uint32_t open;
	/* Bytes on the network since its beginning, and bytes that the other side has not read
	 * yet. */
	uint64_t received, sent;
	size_t unsent;
	/* The bytes of this node's memory that count for its identity and its address. */
	uint64_t memory;
};
/* Called by sessions_each for each connection. Returns false to stop. It must not call anything
 * here that changes the connections. */
typedef bool sessions_visit(void *ctx, const struct session_view *view);

/* Returns the first share whose number is above `number`, or NULL if there is none. */
const struct share *sessions_share_after(const struct sessions *s, uint64_t number);
/* Visits the connections whose number is above `after`, in the order of their numbers, which is
 * that of their age. */
void sessions_each(const struct sessions *s, uint64_t after, sessions_visit *visit, void *ctx);

#endif
