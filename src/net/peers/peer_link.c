/* peer_link.c: judges the hello of the other side, and takes packets apart. It does not decide
 * which link a peer has; peers.c does.
 */
#include "peer_link.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"
#include "tls_context.h"

/* If more bytes than this are unsent, the other side has not read for so long that it must be
 * stopped or very slow, and it is better to lose the link. */
#define OUT_BYTES_MAX (8u * FRAME_BYTES_MAX)
/* The frames of a link may take so much time in one turn of the loop. */
#define FRAMES_A_TURN (SPAN_MS / 8)

static void peer_link_destroy(struct peer_link *link) {
	stream_free(link->stream);
	if (link->deadline) {
		event_free(link->deadline);
	}
	alloc_free(link->loop->alloc, link, sizeof *link);
}

static void peer_link_close(struct peer_link *link, const char *why) {
	if (!link->doomed) {
		link->handlers->closed(link->ctx, link, why);
	}
}

/* ---- what arrives ---- */

/* Writes the sentence for an operator in the middle of an upgrade: which node is too old, and for
 * which versions. */
static const char *peer_link_versions(struct peer_link *link, const struct peer_hello *theirs) {
	const struct peer_hello *ours = link->hello;
	bool they_are_older = theirs->version_max < ours->version_min;
	snprintf(link->why, sizeof link->why,
		"node %s speaks versions %u to %u of the protocol between nodes, and this node %u "
		"to %u: upgrade %s (at most one release at a time)",
		theirs->node, theirs->version_min, theirs->version_max, ours->version_min,
		ours->version_max, they_are_older ? theirs->node : "this node");
	return link->why;
}

/* Returns what the first bytes of the other side are, if they are no packet. A port for clients
 * answers a hello with an error in the protocol of clients, which is an array. */
static const char *peer_link_garbage(const struct peer_link *link, struct slice bytes) {
	bool array = bytes.data[0] == 0x94;
	return link->dialled && !link->up && array
		? "this is a port for clients: give the address at which that node listens for "
			"other nodes ([node] listen_peer, usually port 7118)"
		: "it sent something that is not a packet";
}

/* Writes the sentence for a node that has another [cluster] name in its file. */
static const char *peer_link_clusters(struct peer_link *link, const struct peer_hello *theirs) {
	snprintf(link->why, sizeof link->why,
		"the two nodes belong to different clusters: [cluster] name is %s at %s, and %s at "
		"this node",
		theirs->cluster, theirs->node, link->hello->cluster);
	return link->why;
}

/* Returns whether the certificate of the other side is that of the node that it says it is. */
static bool peer_link_certified(struct peer_link *link, const struct peer_hello *theirs) {
	SSL *ssl = stream_ssl(link->stream);
	if (!ssl) {
		link->certificate = (struct tls_identity){ .role = NODE_ROLE_MASTER };
		return true;
	}
	if (tls_peer_identity(ssl, theirs->node, &link->certificate)) {
		return true;
	}
	char who[TLS_WHO_BYTES];
	tls_peer_describe(ssl, who);
	snprintf(link->why, sizeof link->why,
		"it says it is node %s, but it shows the certificate of %.160s: give it its own "
		"certificate (pawl cert node %s)",
		theirs->node, who, theirs->node);
	return false;
}

static const char *peer_link_judge(struct peer_link *link, struct slice body,
	struct peer_hello *theirs) {
	struct peer_agreement agreement;
	if (peer_hello_decode(body, theirs) != 0) {
		return "its first packet is not a hello";
	}
	if (!peer_versions_meet(link->hello, theirs)) {
		return peer_link_versions(link, theirs);
	}
	if (strcmp(link->hello->cluster, theirs->cluster) != 0) {
		return peer_link_clusters(link, theirs);
	}
	const char *problem = peer_hello_problem(link->hello, theirs, &agreement);
	if (problem) {
		return problem;
	}
	link->features = agreement.features;
	memcpy(link->release, theirs->release, sizeof link->release);
	if (!peer_link_certified(link, theirs)) {
		return link->why;
	}
	return link->handlers->greeted(link->ctx, link, theirs);
}

/* Returns 0, or an error after which the link must not be touched. */
static int peer_link_on_hello(struct peer_link *link, struct slice body) {
	struct peer_hello theirs;
	const char *problem = peer_link_judge(link, body, &theirs);
	if (link->doomed) {
		return PAWL_ECLOSED;
	}
	if (problem) {
		peer_link_close(link, problem);
		return PAWL_EPROTOCOL;
	}
	link->up = true;
	event_del(link->deadline);
	link->handlers->up(link->ctx, link, &theirs);
	return link->doomed ? PAWL_ECLOSED : 0;
}

/* Handles a piece of a frame. The time that it takes begins with `now`, unless that was before the
 * end of another piece. Returns 0, or an error after which the link must not be touched. */
static int peer_link_on_frame(struct peer_link *link, struct slice body, struct instant now) {
	const struct instant begun = instant_later(link->measured, now);
	int error = link->handlers->frame(link->ctx, link, body, &link->progress, now);
	if (error) {
		peer_link_close(link, "it sent something that is not a frame");
		return error;
	}
	link->measured = time_source_now();
	link->used += instant_elapsed_short(link->measured, begun);
	return link->doomed ? PAWL_ECLOSED : 0;
}

/* Handles packets until there are no more, or their time in this turn is over. Returns how many
 * bytes were dealt with. */
static size_t peer_link_take(struct peer_link *link, struct slice bytes, struct instant now) {
	size_t taken = 0;
	if (link->used_in != link->loop->turn) {
		link->used_in = link->loop->turn;
		link->used = 0;
	}
	link->waits = false;
	for (;;) {
		struct slice rest = slice_of(bytes.data + taken, bytes.size - taken), body;
		size_t body_max = link->up ? PEER_BODY_BYTES_MAX : PEER_HELLO_BYTES_MAX;
		switch (peer_scan(rest, body_max, &body, NULL)) {
		case PEER_SCAN_MORE:
			return taken;
		case PEER_SCAN_COMPLETE:
			if (link->used >= FRAMES_A_TURN) {
				link->waits = true;
				return taken;
			}
			if ((link->up ? peer_link_on_frame(link, body, now)
				: peer_link_on_hello(link, body)) != 0) {
				return bytes.size;
			}
			if (link->progress.left == 0) {
				link->progress.begun = false;
				taken += PEER_PREFIX_BYTES + body.size;
			}
			break;
		case PEER_SCAN_GARBAGE:
			peer_link_close(link, peer_link_garbage(link, rest));
			return bytes.size;
		}
	}
}

/* ---- the stream's events ---- */

static void peer_link_on_ready(void *ctx) {
	struct peer_link *link = ctx;
	if (peer_hello_encode(link->hello, stream_out(link->stream)) != 0
		|| stream_flush(link->stream) != 0) {
		peer_link_close(link, "the connection broke");
	}
}

static ssize_t peer_link_on_data(void *ctx, struct slice bytes, struct instant now) {
	struct peer_link *link = ctx;
	link->busy++;
	ssize_t taken = (ssize_t)peer_link_take(link, bytes, now);
	if (link->waits && !link->doomed) {
		stream_hold(link->stream);
		link->waits_newly = true;
		link->unread_since = now;
		link->handlers->waits(link->ctx, link);
	}
	if (--link->busy == 0 && link->doomed) {
		peer_link_destroy(link);
	}
	return taken;
}

/* The socket is read again only in the turn after the one in which no frame waits any more. */
bool peer_link_go_on(struct peer_link *link) {
	bool newly = link->waits_newly;
	link->waits_newly = false;
	if (newly || !stream_is_held(link->stream)) {
		link->unread_since = newly ? link->unread_since : (struct instant){ 0, 0 };
		return newly;
	}
	link->busy++;
	size_t taken = peer_link_take(link, stream_input(link->stream), time_source_now());
	if (!link->doomed) {
		stream_take(link->stream, taken);
		if (!link->waits) {
			stream_release(link->stream);
		}
	}
	if (--link->busy == 0 && link->doomed) {
		peer_link_destroy(link);
	}
	return true;
}

static void peer_link_on_closed(void *ctx, int error, const char *why) {
	struct peer_link *link = ctx;
	if (!why) {
		why = error == PAWL_EUNREACHABLE
			? "it cannot be reached" : pawl_error_message(error);
	}
	if (error == PAWL_ETLS) {
		snprintf(link->why, sizeof link->why, "%s", why);
	}
	peer_link_close(link, why);
}

static void peer_link_on_deadline(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	peer_link_close(ctx, "no hello came in time");
}

static const struct stream_handlers peer_link_stream_handlers = { .ready = peer_link_on_ready,
	.data = peer_link_on_data, .closed = peer_link_on_closed };

int peer_link_new(const struct peer_link_options *o, struct peer_link **out) {
	static const struct timeval greeting = { PEER_LINK_GREETING_MS / 1000,
		PEER_LINK_GREETING_MS % 1000 * 1000 };
	struct peer_link *link = alloc_new(o->loop->alloc, sizeof *link);
	struct stream_options stream = { .loop = o->loop, .take_fd = o->take_fd, .tls = o->tls,
		.role = o->role, .urgent = o->urgent,
		.in_max = PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX, .out_max = OUT_BYTES_MAX,
		.handlers = &peer_link_stream_handlers, .ctx = link };
	struct stream *made;
	/* stream_new takes over the socket, whatever happens. */
	int error = stream_new(&stream, &made);
	if (!link || error) {
		alloc_free(o->loop->alloc, link, sizeof *link);
		if (!error) {
			stream_free(made);
		}
		return PAWL_ENOMEM;
	}
	*link = (struct peer_link){ .peer = o->peer, .dialled = o->role == TLS_CLIENT,
		.loop = o->loop, .handlers = o->handlers, .ctx = o->ctx, .hello = o->hello,
		.stream = made };
	snprintf(link->from, sizeof link->from, "%s", o->from);
	link->deadline = event_new(o->loop->base, -1, 0, peer_link_on_deadline, link);
	if (!link->deadline || event_add(link->deadline, &greeting) != 0) {
		peer_link_destroy(link);
		return PAWL_ENOMEM;
	}
	*out = link;
	return 0;
}

void peer_link_free(struct peer_link *link) {
	if (!link || link->doomed) {
		return;
	}
	link->doomed = true;
	if (link->busy == 0) {
		peer_link_destroy(link);
	} else {
		event_del(link->deadline);
	}
}
