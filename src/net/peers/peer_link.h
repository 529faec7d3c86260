/* peer_link.h: one connection between two nodes. Each side sends a hello, and then frames.
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

/* How long connecting, the handshake and the hello may take together, in milliseconds. */
#define PEER_LINK_GREETING_MS 3000
/* The size of a sentence that says why a link is refused or closed, in bytes. */
#define PEER_LINK_WHY_BYTES 512

struct peer_link;

/* What the owner of a link is told. Each handler may free the link. */
struct peer_link_handlers {
	/* The other side has said a hello that is compatible with ours. Returns NULL to accept the
	 * link, which is up then; otherwise a sentence that says why it is refused. */
	const char *(*greeted)(void *ctx, struct peer_link *link, const struct peer_hello *theirs);
	/* The link is up. */
	void (*up)(void *ctx, struct peer_link *link, const struct peer_hello *theirs);
	/* A frame has come. `now` was read after its last byte was received. The owner handles a
	 * piece of it and moves *progress; as long as something is left, it is called again with
	 * the same frame, perhaps in a later turn of the loop. If the result is not 0, the link is
	 * closed for it. */
	int (*frame)(void *ctx, struct peer_link *link, struct slice body,
		struct peer_progress *progress, struct instant now);
	/* Frames wait: from now on the owner calls peer_link_go_on in each turn of the loop, until
	 * that returns false. This does not free the link. */
	void (*waits)(void *ctx, const struct peer_link *link);
	/* The link is over, and the owner frees it. `why` may lie inside the link. */
	void (*closed)(void *ctx, struct peer_link *link, const char *why);
};

/* One connection between two nodes. */
struct peer_link {
	/* Belongs to the owner. */
	struct stranger stranger;
	/* The link is a stranger that comes from an address of a node in the table. The owner sets
	 * this. */
	bool member;
	/* Belongs to the owner: which peer this is, or -1 if it is not known yet. */
	int peer;
	/* This node has dialled the other one. */
	bool dialled;
	/* Both sides have said hello, and frames may be sent. */
	bool up;

	struct net_loop *loop;
	const struct peer_link_handlers *handlers;
	void *ctx;

	/* This node's own hello. */
	const struct peer_hello *hello;
	struct stream *stream;
	/* Ends the greeting if it takes longer than PEER_LINK_GREETING_MS. */
	struct event *deadline;

	/* How many calls are working on the link. If it is `doomed`, the last of them destroys
	 * it. */
	unsigned busy;
	bool doomed;

	/* A refusal that names versions or certificates, which comes again with every attempt;
	 * otherwise empty. */
	char why[PEER_LINK_WHY_BYTES];
	/* The certificate of the other side, once that side has said hello. */
	struct tls_identity certificate;

	/* The address of the other end. */
	char from[ADDRESS_TEXT_BYTES];
	/* The features that both sides have. */
	uint64_t features;
	/* The other side's release, as its hello says it; empty if it does not say. */
	char release[PEER_RELEASE_MAX + 1];
	/* What the other side has told about itself. */
	struct peer_note note;

	/* How far the frame is handled that stands first in what has arrived. */
	struct peer_progress progress;
	/* How much time the frames have taken in the turn of the loop with this number, and when
	 * that was measured last. */
	span_ns used;
	uint64_t used_in;
	struct instant measured;
	/* Frames wait for the next turn; and they have waited since this turn only. */
	bool waits, waits_newly;
	/* Since then the socket has not been read, because frames waited; or zero. Whether the link
	 * has ended is known as of then. */
	struct instant unread_since;
};

/* What peer_link_new needs to know. */
struct peer_link_options {
	/* Borrowed, as are all pointers below. */
	struct net_loop *loop;
	/* The link takes the socket over even when peer_link_new fails. */
	int take_fd;
	SSL_CTX *tls;
	enum tls_role role;
	/* As in struct stream_options. */
	bool urgent;
	const struct peer_hello *hello;
	const struct peer_link_handlers *handlers;
	void *ctx;
	/* The initial value of `peer` in the link. */
	int peer;
	/* The address of the other end; copied. */
	const char *from;
};

/* Returns 0 or PAWL_ENOMEM. */
int peer_link_new(const struct peer_link_options *options, struct peer_link **out);
/* A new turn of the loop has come: handles frames that have waited for it. Returns whether frames
 * still wait, or have waited until now. The link may be gone afterwards. */
bool peer_link_go_on(struct peer_link *link);
/* Closes at once; all bytes that are unread or unsent are dropped. Accepts NULL. */
void peer_link_free(struct peer_link *link);

#endif
