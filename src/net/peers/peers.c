/* peers.c: dials peers, and decides which of several connections is the link of a peer. */
#include "peers_impl.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "dialer.h"
#include "pawl/error.h"
#include "time_source.h"
#include "tls_context.h"

/* The longest time until a peer is dialled again, in milliseconds. */
#define BACKOFF_MAX_MS 1000

/* Two nodes have dialled each other. That is no trouble, and nobody is told. */
static const char peers_crossed[] = "another link to it stays";

/* A name is used twice. The owner is told once, under that name. */
static const char peers_namesake[] = "a second node with another identity uses this "
	"name: stop that node";

/* Returns true if `why` differs from the last trouble, and remembers it. */
static bool peers_trouble_is_new(char last[PEER_LINK_WHY_BYTES], const char *why) {
	char before[PEER_LINK_WHY_BYTES];
	memcpy(before, last, sizeof before);
	snprintf(last, sizeof before, "%s", why);
	return strcmp(before, last) != 0;
}

static void peers_tell(struct peers_slot *slot, const char *from, const char *why) {
	if (peers_trouble_is_new(slot->last_trouble, why)) {
		slot->peers->handlers->trouble(slot->peers->ctx, slot->name, from, why);
	}
}

/* Finds out which node is at the other end of a connection that became no link: the node of the
 * table whose key has signed the handshake, whatever was said after that. Returns NULL if no node
 * has proven to be there. A node that shows a certificate that is refused, for example a revoked
 * one, has not signed anything yet. */
static struct peers_slot *peers_proven(struct peers *p, const struct peer_link *link) {
	SSL *ssl = stream_ssl(link->stream);
	struct tls_identity certificate;
	for (uint32_t i = 0; ssl && SSL_is_init_finished(ssl) && i < p->count; i++) {
		if (tls_peer_identity(ssl, p->table[i]->name, &certificate)) {
			return p->table[i];
		}
	}
	return NULL;
}

static void peers_tell_stranger(struct peers *p, bool comes_again, const char *from,
	const char *why) {
	if (!comes_again || peers_trouble_is_new(p->last_stranger_trouble, why)) {
		p->handlers->trouble(p->ctx, NULL, from, why);
	}
}

/* ---- dialling ---- */

/* Dials after the backoff, plus or minus half of it, so that nodes that started together do not
 * keep dialling at the same moments. Does nothing if the peer is already being dialled or
 * linked. */
static void peers_dial_later(struct peers_slot *slot) {
	if (!slot->dial || slot->dialer || slot->dialling || slot->link || !slot->peers->started) {
		return;
	}
	int64_t ms = slot->backoff_ms / 2 + prng_between(&slot->peers->prng, 0, slot->backoff_ms);
	struct timeval after = { ms / 1000, ms % 1000 * 1000 };
	slot->backoff_ms = slot->backoff_ms * 2 < BACKOFF_MAX_MS
		? slot->backoff_ms * 2 : BACKOFF_MAX_MS;
	event_add(slot->again, &after);
}

/* Returns the number by which a link knows its slot. */
static int peers_place(const struct peers_slot *slot) {
	return (int)(slot - slot->peers->slots);
}

static void peers_on_dialled(void *ctx, int take_fd) {
	struct peers_slot *slot = ctx;
	dialer_free(slot->dialer);
	slot->dialer = NULL;
	if (take_fd < 0) {
		peers_tell(slot, slot->address, "its address cannot be resolved, or "
			"cannot be reached");
	} else {
		peers_link_new(slot->peers, take_fd, slot, slot->address, false, &slot->dialling);
	}
	peers_dial_later(slot);
}

static void peers_on_again(evutil_socket_t fd, short what, void *ctx) {
	struct peers_slot *slot = ctx;
	(void)fd;
	(void)what;
	if (slot->link || slot->dialling || slot->dialer) {
		return;
	}
	int error = dialer_new(slot->peers->loop->base, slot->address, slot->attempts++,
		peers_on_dialled, slot, &slot->dialer);
	if (error) {
		peers_tell(slot, slot->address, pawl_error_message(error));
		peers_dial_later(slot);
	}
}

void peers_stop_dialling(struct peers_slot *slot) {
	event_del(slot->again);
	dialer_free(slot->dialer);
	slot->dialer = NULL;
	peer_link_free(slot->dialling);
	slot->dialling = NULL;
}

/* ---- links ---- */

struct peers_slot *peers_find(struct peers *p, const char *name) {
	uint32_t i = 0;
	while (i < p->count && strcmp(p->table[i]->name, name) != 0) {
		i++;
	}
	return i < p->count ? p->table[i] : NULL;
}

/* Returns the slot that a link belongs to; NULL if the connection was accepted and has not said
 * hello yet. */
static struct peers_slot *peers_slot_of(struct peers *p, const struct peer_link *link) {
	return link->peer < 0 ? NULL : &p->slots[link->peer];
}

void peers_forget(struct peers *p, struct peer_link *link) {
	struct peers_slot *slot = peers_slot_of(p, link);
	peers_no_stranger(p, link);
	if (slot && slot->dialling == link) {
		slot->dialling = NULL;
	}
	if (slot && slot->link == link) {
		slot->link = NULL;
	}
	peer_link_free(link);
}

static const char *peers_welcome(struct peers *p, const struct peer_hello *theirs,
	struct peers_slot **out) {
	int index = p->handlers->welcome ? p->handlers->welcome(p->ctx, theirs) : PAWL_ENOTFOUND;
	if (index < 0) {
		return index == PAWL_EFULL
			? "no room for another node" : "it is not a node of this cluster";
	}
	CHECK((uint32_t)index < p->count && strcmp(p->table[index]->name, theirs->node) == 0);
	*out = p->table[index];
	return NULL;
}

/* Two nodes that are well do not need more links than this. The owner is told once, under the name
 * of the peer. */
static const char peers_too_often[] = "it makes a link again and again: one a second must do. "
	"Either the network breaks connections, or this node lies";

/* Returns whether the peer may have another link now, and counts it. */
static bool peers_may_link(struct peers_slot *slot) {
	struct instant now = time_source_now();
	int64_t less = instant_elapsed_long(now, slot->links_at) / PEERS_LINK_AFTER;
	if (less > 0) {
		slot->links -= less < slot->links ? (uint32_t)less : slot->links;
		slot->links_at = now;
	}
	if (slot->links >= PEERS_LINKS_MOST) {
		return false;
	}
	slot->links++;
	return true;
}

/* If both sides have dialled, both decide in the same way, so that the same link stays. A node that
 * has restarted, or that dials again, has given up the older link. */
static bool peers_older_stays(const struct peers_slot *slot, const struct peer_link *link,
	const struct peer_hello *theirs) {
	if (slot->boot != theirs->boot || !id128_equal(slot->id, theirs->id)
		|| slot->link->dialled == link->dialled) {
		return false;
	}
	bool we_are_smaller = strcmp(slot->peers->hello.node, slot->name) < 0;
	return slot->link->dialled == we_are_smaller;
}

/* Two processes with one name must not push each other out again and again. The one with the
 * expected identity stays; when its link breaks or is silent, the other one may have the place. */
static bool peers_keeps_place(const struct peers_slot *slot, const struct peer_hello *theirs) {
	return !id128_zero(slot->expected) && id128_equal(slot->id, slot->expected)
		&& !id128_equal(theirs->id, slot->expected);
}

/* Returns true, and the sentence, if the certificate does not let the node be the master that the
 * configuration makes it. A vote counts by the link on which it came, so a node without the right
 * to vote must not even have a link. */
static bool peers_role_forbidden(const struct peers_slot *slot,
	const struct tls_identity *certificate, char *why, size_t size) {
	if (!slot->master || certificate->role >= NODE_ROLE_MASTER) {
		return false;
	}
	snprintf(why, size,
		"%s is a master in the configuration, but its certificate (serial %s) only allows "
		"it to be a %s: make another certificate (pawl cert node %s) and reload that node, "
		"or demote it (pawl cluster demote %s)", slot->name, certificate->serial,
		certificate->role == NODE_ROLE_EMBEDDED ? "replica inside a program" : "replica",
		slot->name, slot->name);
	return true;
}

static const char *peers_on_greeted(void *ctx, struct peer_link *link,
	const struct peer_hello *theirs) {
	struct peers *p = ctx;
	struct peers_slot *slot = peers_find(p, theirs->node);
	if (strcmp(theirs->node, p->hello.node) == 0) {
		return "it has the same name as this node";
	}
	if (link->peer >= 0 && slot != peers_slot_of(p, link)) {
		return "another node answers at its address";
	}
	if (slot && peers_role_forbidden(slot, &link->certificate, link->why, sizeof link->why)) {
		return link->why;
	}
	if (slot && slot->link) {
		if (peers_keeps_place(slot, theirs)) {
			peers_tell(slot, link->from, peers_namesake);
			return peers_namesake;
		}
		if (peers_older_stays(slot, link, theirs)) {
			return peers_crossed;
		}
	}
	if (slot && !peers_may_link(slot)) {
		peers_tell(slot, link->from, peers_too_often);
		return peers_too_often;
	}
	if (slot && slot->link) {
		uint32_t peer = slot->index;
		struct instant since = slot->link->unread_since;
		peers_forget(p, slot->link);
		p->handlers->down(p->ctx, peer, "a newer connection replaced it", false, since);
		/* A non-member leaves the table with its link. Then this link is gone, too, if it
		 * was dialled. */
		slot = peers_find(p, theirs->node);
	}
	const char *problem = slot || link->doomed ? NULL : peers_welcome(p, theirs, &slot);
	if (slot && !problem && !link->doomed) {
		link->peer = peers_place(slot);
	}
	return problem;
}

static void peers_on_up(void *ctx, struct peer_link *link, const struct peer_hello *theirs) {
	struct peers *p = ctx;
	struct peers_slot *slot = peers_slot_of(p, link);
	if (peers_no_stranger(p, link)) {
		slot->linked_from = link->stranger.address;
		slot->was_linked = true;
	}
	if (slot->dialling == link) {
		slot->dialling = NULL;
	} else if (strcmp(theirs->node, p->hello.node) < 0) {
		/* A connection that this node dialled would have to give way to this one. */
		peers_stop_dialling(slot);
	}
	slot->link = link;
	peers_pace(slot);
	slot->id = theirs->id;
	slot->boot = theirs->boot;
	slot->last_trouble[0] = p->last_stranger_trouble[0] = '\0';
	p->handlers->up(p->ctx, slot->index, theirs);
}

static int peers_on_frame(void *ctx, struct peer_link *link, struct slice body,
	struct peer_progress *progress, struct instant now) {
	struct peers *p = ctx;
	struct peers_slot *slot = &p->slots[link->peer];
	/* The backoff is reset here and not at the hello, because a node that is sent away after
	 * its hello should not come back at once. */
	slot->backoff_ms = BACKOFF_MIN_MS;
	return p->handlers->frame(p->ctx, slot->index, body, progress, now);
}

static void peers_on_waits(void *ctx, const struct peer_link *link) {
	struct peers *p = ctx;
	p->waiting |= (uint64_t)1 << link->peer;
}

static void peers_on_closed(void *ctx, struct peer_link *link, const char *why) {
	struct peers *p = ctx;
	struct peers_slot *slot = peers_slot_of(p, link), *proven = slot
		? NULL : peers_proven(p, link);
	bool up = slot && slot->link == link, closed = stream_closed_there(link->stream);
	bool crossed = why == peers_crossed || why == peers_namesake || why == peers_too_often,
		versions = link->why[0] != '\0';
	char text[PEER_LINK_WHY_BYTES], from[ADDRESS_TEXT_BYTES];
	struct instant since = link->unread_since;
	/* `why` may lie inside the link. */
	snprintf(text, sizeof text, "%s", why);
	memcpy(from, link->from, sizeof from);
	peers_forget(p, link);
	if (up) {
		p->handlers->down(p->ctx, slot->index, text, closed, since);
	} else if (slot && !slot->link && !crossed) {
		peers_tell(slot, from, text);
	} else if (!slot && !crossed) {
		p->refused++;
		if (proven) {
			peers_tell(proven, from, text);
		} else {
			peers_tell_stranger(p, versions, from, text);
		}
	}
	if (slot) {
		peers_dial_later(slot);
	}
}

static const struct peer_link_handlers peers_link_handlers = {
	peers_on_greeted, peers_on_up, peers_on_frame, peers_on_waits, peers_on_closed,
};

int peers_link_new(struct peers *p, int take_fd, const struct peers_slot *slot, const char *from,
	bool urgent, struct peer_link **out) {
	struct peer_link_options link = { .loop = p->loop, .take_fd = take_fd, .tls = p->tls,
		.role = slot ? TLS_CLIENT : TLS_SERVER, .hello = &p->hello,
		.handlers = &peers_link_handlers, .ctx = p, .peer = slot ? peers_place(slot) : -1,
		.from = from, .urgent = urgent };
	return peer_link_new(&link, out);
}

bool peers_go_on(struct peers *p) {
	bool more = false;
	p->loop->turn++;
	for (uint64_t left = p->waiting; left; left &= left - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(left);
		/* A frame may change the table, but no slot moves. */
		struct peer_link *link = p->slots[i].used ? p->slots[i].link : NULL;
		if (link && peer_link_go_on(link)) {
			more = true;
		} else {
			p->waiting &= ~((uint64_t)1 << i);
		}
	}
	return more;
}

/* ---- out ---- */

const char *peers_from(const struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? p->table[peer]->link->from : "";
}

const char *peers_trouble(const struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? "" : p->table[peer]->last_trouble;
}

const char *peers_release(const struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? p->table[peer]->link->release : "";
}

struct buffer *peers_out(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? stream_out(p->table[peer]->link->stream) : NULL;
}

int peers_flush(struct peers *p, uint32_t peer, struct instant *out_since) {
	CHECK(peer < p->count);
	struct peer_link *link = p->table[peer]->link;
	int error = link ? stream_flush(link->stream) : 0;
	if (error) {
		*out_since = link->unread_since;
		error = stream_closed_there(link->stream) ? PAWL_ECLOSED : PAWL_EIO;
		peers_reset(p, peer);
	}
	return error;
}

void peers_reset(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	struct peers_slot *slot = p->table[peer];
	if (slot->link) {
		peers_forget(p, slot->link);
		peers_dial_later(slot);
	}
}

/* ---- certificates ---- */

const struct tls_identity *peers_certificate(const struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? &p->table[peer]->link->certificate : NULL;
}

bool peers_objection(const struct peers *p, uint32_t peer, char why[TLS_WHY_BYTES]) {
	CHECK(peer < p->count);
	const struct peers_slot *slot = p->table[peer];
	SSL *ssl = slot->link ? stream_ssl(slot->link->stream) : NULL;
	return ssl && (peers_role_forbidden(slot, &slot->link->certificate, why, TLS_WHY_BYTES)
		|| tls_peer_objection(ssl, p->tls, why));
}

void peers_reset_unfinished(struct peers *p) {
	peers_strangers_free(p);
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->table[i]->dialling) {
			peers_forget(p, p->table[i]->dialling);
			peers_dial_later(p->table[i]);
		}
	}
}

/* ---- life ---- */

void peers_set_tls(struct peers *p, SSL_CTX *context) {
	if (context) {
		SSL_CTX_up_ref(context);
	}
	SSL_CTX_free(p->tls);
	p->tls = context;
}

void peers_start(struct peers *p) {
	p->started = true;
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->table[i]->dial) {
			event_active(p->table[i]->again, EV_TIMEOUT, 0);
		}
	}
}

int peers_new(const struct peers_options *o, struct peers **out) {
	struct peers *p = alloc_new(o->loop->alloc, sizeof *p);
	if (!p) {
		return PAWL_ENOMEM;
	}
	p->loop = o->loop;
	p->hello = o->hello;
	p->handlers = o->handlers;
	p->ctx = o->ctx;
	prng_init(&p->prng, o->seed);
	p->limits = o->strangers;
	strangers_init(&p->strangers, prng_next(&p->prng));
	strangers_init(&p->members, prng_next(&p->prng));
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		struct peers_slot *slot = &p->slots[i];
		slot->peers = p;
		slot->again = event_new(p->loop->base, -1, 0, peers_on_again, slot);
		if (!slot->again) {
			peers_free(p);
			return PAWL_ENOMEM;
		}
	}
	*out = p;
	return 0;
}

void peers_free(struct peers *p) {
	if (!p) {
		return;
	}
	p->started = false;
	peers_reset_unfinished(p);
	for (uint32_t i = 0; i < NODES_MAX && p->slots[i].again; i++) {
		peers_drop(&p->slots[i]);
		event_free(p->slots[i].again);
	}
	SSL_CTX_free(p->tls);
	alloc_free(p->loop->alloc, p, sizeof *p);
}
