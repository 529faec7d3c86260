/* peer_link.h: one connection between two nodes: hello each way, then frames.
 *
 *   CONNECTING --ready--> GREETING --hello, accepted by the owner--> UP
 *        +--------------------+---------------------------------------+---> closed(), once
 */
#ifndef PAWL_NET_PEER_LINK_H
#define PAWL_NET_PEER_LINK_H

#include "address.h"
#include "clock.h"
#include "list.h"
#include "peer.h"
#include "strangers.h"
#include "stream.h"
#include "tls_certificate.h"

#define PEER_LINK_GREETING_MS 3000 /* connect, handshake and hello together */
#define PEER_LINK_WHY_BYTES 512

struct peer_link;

struct peer_link_handlers { /* each may free the link */
	/* The other side's hello, compatible with ours. NULL: the link is up. Else a sentence why it is refused. */
	const char *(*greeted)(void *ctx, struct peer_link *link, const struct peer_hello *theirs);
	void (*up)(void *ctx, struct peer_link *link, const struct peer_hello *theirs);
	/* `now` was read after the frame's last byte was received. Not 0: the link is closed for it. */
	int (*frame)(void *ctx, struct peer_link *link, struct slice body, struct instant now);
	/* The owner frees the link. `why` may be in it. */
	void (*closed)(void *ctx, struct peer_link *link, const char *why);
};

struct peer_link {
	struct stranger stranger; /* the owner's */
	bool member;              /* a stranger from an address of a node in the table; set by the owner */
	int peer;          /* the owner's, or -1: not known yet */
	bool dialled;      /* by this node */
	bool up;

	struct net_loop *loop;
	const struct peer_link_handlers *handlers;
	void *ctx;
	const struct peer_hello *hello; /* ours */
	struct stream *stream;
	struct event *deadline;
	unsigned busy;
	bool doomed;
	char why[PEER_LINK_WHY_BYTES]; /* a refusal that names versions or certificates: it comes again with every attempt; else empty */
	struct tls_identity certificate; /* of the other side, once it has said hello */
	char from[ADDRESS_TEXT_BYTES]; /* the address of the other end */
	uint64_t features;             /* that both sides have */
	struct peer_note note;         /* what the other side has told */
	bool told;                     /* it was told what this side has to tell */
};

struct peer_link_options {
	struct net_loop *loop; /* borrowed, as all below */
	int take_fd;           /* taken also on failure */
	SSL_CTX *tls;
	enum tls_role role;
	bool first; /* as in stream_options */
	const struct peer_hello *hello;
	const struct peer_link_handlers *handlers;
	void *ctx;
	int peer;
	const char *from;
};

int peer_link_new(const struct peer_link_options *options, struct peer_link **out); /* 0 or PAWL_ENOMEM */
void peer_link_free(struct peer_link *link); /* all bytes unread and unsent are dropped; accepts NULL */

#endif
