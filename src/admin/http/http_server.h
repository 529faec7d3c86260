/* http_server.h: the connections of the admin port. None of them can delay the node: requests are
 * short, connections are few and have deadlines, an answer is made at once in one bounded buffer,
 * and all answers together take a small share of the thread.
 *
 *   READING --request--> READY --its turn--> WRITING --all has left--> READING, or the end
 *
 * An answer that the owner does not know yet comes later, and meanwhile nothing is read. A stream
 * of events becomes READY again each second, if all before it has left.
 *
 * Whoever watches over the node has to reach it however many others read. So probes of its health,
 * which are short, have a line of their own for their turn, with as much of the thread as all other
 * requests; and a connection that has asked for nothing else, or for nothing yet, does not compete
 * with readers for a place. Without this a node whose readers are busy is taken for dead, and
 * started again.
 *
 * If a connection comes and there is no room, another newcomer goes: one whose client may not read,
 * or is not known yet; if there is none, the one that has been silent for longest. Readers make
 * room for one another. */
#ifndef PAWL_ADMIN_HTTP_SERVER_H
#define PAWL_ADMIN_HTTP_SERVER_H

#include "http_request.h"
#include "net_loop.h"
#include "origin.h"
#include "page.h"
#include "tls_context.h"

/* The largest answer in bytes, without its header. */
#define HTTP_BODY_BYTES_MAX (1u << 20)
/* The largest number of connections that have asked for more than probes; of all others; and of
 * those that get a stream of events. */
#define HTTP_READERS_MAX 32
#define HTTP_NEWCOMERS_MAX 32
#define HTTP_LIVE_MAX 8
/* The largest path with its query of a stream of events, in bytes. */
#define HTTP_LIVE_TARGET_BYTES 256

struct http_server;

/* An answer, which the owner fills in. At the beginning the status is 404 and the body is empty. */
struct http_answer {
	enum http_status status;
	/* The type of the body, and more header fields with the ends of their lines. Both are in
	 * static storage. */
	const char *type, *fields;
	struct page body;
	/* Not 0: the answer is not known yet, and the owner gives it under this number by
	 * http_server_finish. */
	uint64_t later;
	/* The answer is one line, and the first of a stream of events: the owner is asked for the
	 * next one after a second, and so on. */
	bool live;
};

/* Who asks. */
struct http_caller {
	const struct origin *from;
	/* The connection has TLS; and the name in the certificate of the client, or "". */
	bool tls;
	const char *name;
	/* The digest of that certificate, of TLS_DIGEST_BYTES; 0 if it has shown none. */
	const uint8_t *certificate;
};

/* What the owner is told, on the loop. */
struct http_handlers {
	/* Fills in the answer to a GET, HEAD or POST. After a POST with another status than 200 the
	 * connection ends. */
	void (*answer)(void *ctx, const struct http_caller *caller,
		const struct http_request *request, struct http_answer *out);
	/* Returns whether this is a probe of the node's health, whose answer is short. */
	bool (*is_probe)(const struct http_request *request);
	/* Returns whether a client whose certificate has this name may read. `name` is empty if it
	 * has shown no certificate of a client. This is asked for connections over TLS only. */
	bool (*may)(void *ctx, struct slice name);
	/* A connection was refused. The owner logs it. */
	void (*trouble)(void *ctx, const struct origin *from, const char *why);
};

struct http_options {
	/* Borrowed. */
	struct net_loop *loop;
	/* Borrowed and static. */
	const struct http_handlers *handlers;
	void *ctx;
};

/* Returns 0 or PAWL_ENOMEM. */
int http_server_new(const struct http_options *options, struct http_server **out);
/* Closes all connections. Accepts NULL. */
void http_server_free(struct http_server *s);

/* Takes over a connection. A `tls` of NULL means a plain one. */
void http_server_accept(struct http_server *s, int take_fd, SSL_CTX *tls,
	const struct origin *from);
/* Gives an answer that was to come later, unless its connection is gone. */
void http_server_finish(struct http_server *s, uint64_t later,
	void (*fill)(void *ctx, struct http_answer *out), void *ctx);
/* Closes all connections, because other certificates or rules count from now on. */
void http_server_end_all(struct http_server *s);

#endif
