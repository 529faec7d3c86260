/* http_impl.h: what the files of the HTTP server share. */
#ifndef PAWL_ADMIN_HTTP_IMPL_H
#define PAWL_ADMIN_HTTP_IMPL_H

#include "http_server.h"
#include "list.h"
#include "stream.h"

/* Connections that share a number of places. */
struct http_places {
	/* The one that has been silent for longest is the first. */
	struct list all;
	unsigned count;
};

/* Requests that wait for their turn, and share some of the thread. */
struct http_line {
	struct http_server *server;
	struct list ready;
	/* Answers the first of them. */
	struct event *turn;
	/* When the share of the thread is used up to, by CLOCK_BOOTTIME in nanoseconds. */
	int64_t used_until;
	/* How much longer than until now that may be. */
	int64_t owed_max;
};

struct http_connection {
	/* In places->all: http_server.newcomers, and http_server.readers once it has read. */
	struct list among;
	struct http_places *places;
	/* In the ready requests of a line while the request waits for its turn. */
	struct list ready;
	struct http_server *server;
	struct stream *stream;
	struct event *deadline;
	struct origin from;
	/* There is TLS; and the name in the certificate of the client. */
	bool tls;
	char name[TLS_NAME_MAX + 1];
	uint8_t certificate[TLS_DIGEST_BYTES];
	/* The client is known, and may read. */
	bool welcome;
	/* The answer is the last one. */
	bool last;
	/* The answer has not left yet. */
	bool writing;
	/* The number of an answer that comes later, to a HEAD or a GET; 0 for none. */
	uint64_t later;
	bool later_head;
	/* The path and the query of a stream of events, with a '?' between them; its size is 0 for
	 * other connections. */
	char live[HTTP_LIVE_TARGET_BYTES];
	size_t live_size;
};

struct http_server {
	struct net_loop *loop;
	const struct http_handlers *handlers;
	void *ctx;
	struct http_places newcomers, readers;
	/* Probes and refusals, which are short; and all other requests. */
	struct http_line probes, reads;
	/* Begins the next events of the streams. */
	struct event *second;
	struct buffer body;
};

/* ---- http_answer.c ---- */

/* Makes the answer one of a status alone. */
void http_say(struct http_answer *answer, enum http_status status);
/* Asks the owner for an answer. */
void http_ask(const struct http_connection *c, const struct http_request *request,
	struct http_answer *answer);
/* Write an answer to what is sent, and an event of a stream. */
void http_write(struct http_connection *c, bool head, const struct http_answer *answer);
void http_write_event(struct http_connection *c, const struct http_answer *answer);
/* The connection becomes a stream of events, if there may be one more; otherwise the answer says
 * why not. */
void http_begin_live(struct http_connection *c, const struct http_request *request,
	struct http_answer *answer);

#endif
