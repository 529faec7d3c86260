#include "peers.h"

#include <event2/event.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "dialer.h"
#include "pawl/error.h"
#include "peer_link.h"
#include "prng.h"
#include "types.h"

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 1000
#define STRANGERS_MAX 64 /* accepted connections that have not said hello */

struct peers_slot {
	struct peers *peers;
	uint32_t index;
	char name[NODE_NAME_MAX + 1];
	char address[ADDRESS_MAX + 1];
	bool dial; /* it is for us to dial */
	int64_t backoff_ms;
	unsigned attempts;
	struct dialer *dialer;
	struct peer_link *dialling; /* not up yet */
	struct peer_link *link;     /* up */
	struct event *again;
	const char *told; /* the last trouble */
};

struct peers {
	struct net_loop *loop;
	struct peer_hello hello;
	const struct peers_handlers *handlers;
	void *ctx;
	SSL_CTX *tls;
	struct prng prng;
	struct list strangers;
	uint32_t stranger_count;
	uint32_t count;
	struct peers_slot slots[];
};

static size_t peers_bytes(uint32_t count) {
	return sizeof(struct peers) + count * sizeof(struct peers_slot);
}

static void peers_tell(struct peers_slot *slot, const char *why) {
	if (!slot->told || strcmp(slot->told, why) != 0) {
		slot->told = why;
		slot->peers->handlers->trouble(slot->peers->ctx, slot->name, why);
	}
}

/* ---- dialling ---- */

/* Unless it is under way: after the backoff, give or take half of it, so that a cluster that starts together does not go on
 * knocking together. */
static void peers_dial_later(struct peers_slot *slot) {
	if (!slot->dial || slot->dialer || slot->dialling || slot->link) {
		return;
	}
	int64_t ms = slot->backoff_ms / 2 + prng_between(&slot->peers->prng, 0, slot->backoff_ms);
	struct timeval after = { ms / 1000, ms % 1000 * 1000 };
	slot->backoff_ms = slot->backoff_ms * 2 < BACKOFF_MAX_MS ? slot->backoff_ms * 2 : BACKOFF_MAX_MS;
	event_add(slot->again, &after);
}

static int peers_link_new(struct peers *p, int take_fd, enum tls_role role, int peer, struct peer_link **out);

static void peers_on_dialled(void *ctx, int take_fd) {
	struct peers_slot *slot = ctx;
	dialer_free(slot->dialer);
	slot->dialer = NULL;
	if (take_fd < 0) {
		peers_tell(slot, "its address cannot be found or reached");
	} else {
		peers_link_new(slot->peers, take_fd, TLS_CLIENT, (int)slot->index, &slot->dialling);
	}
	peers_dial_later(slot);
}

static void peers_on_again(evutil_socket_t fd, short what, void *ctx) {
	struct peers_slot *slot = ctx;
	(void)fd;
	(void)what;
	int error = dialer_new(slot->peers->loop->base, slot->address, slot->attempts++, peers_on_dialled, slot, &slot->dialer);
	if (error) {
		peers_tell(slot, pawl_error_message(error));
		peers_dial_later(slot);
	}
}

/* ---- links ---- */

static int peers_find(const struct peers *p, const char *name) {
	for (uint32_t i = 0; i < p->count; i++) {
		if (strcmp(p->slots[i].name, name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

/* Which slot a link belongs to, or NULL: it has not said hello and was accepted. */
static struct peers_slot *peers_slot_of(struct peers *p, const struct peer_link *link) {
	return link->peer < 0 ? NULL : &p->slots[link->peer];
}

static void peers_forget(struct peers *p, struct peer_link *link) {
	struct peers_slot *slot = peers_slot_of(p, link);
	if (list_linked(&link->among)) {
		list_remove(&link->among);
		p->stranger_count--;
	}
	if (slot && slot->dialling == link) {
		slot->dialling = NULL;
	}
	if (slot && slot->link == link) {
		slot->link = NULL;
	}
	peer_link_free(link);
}

static const char *peers_on_greeted(void *ctx, struct peer_link *link, const struct peer_hello *theirs) {
	struct peers *p = ctx;
	int peer = peers_find(p, theirs->node);
	if (peer < 0) {
		return "it is no node of this cluster";
	}
	if (strcmp(theirs->node, p->hello.node) == 0) {
		return "it has our own name";
	}
	if (link->peer >= 0) {
		return link->peer == peer ? NULL : "another node answers at its address";
	}
	if (p->slots[peer].dial) {
		return "it is for us to dial it";
	}
	link->peer = peer;
	return NULL;
}

static void peers_on_up(void *ctx, struct peer_link *link, const struct peer_hello *theirs) {
	struct peers *p = ctx;
	struct peers_slot *slot = peers_slot_of(p, link);
	uint32_t peer = slot->index;
	if (list_linked(&link->among)) {
		list_remove(&link->among);
		p->stranger_count--;
	}
	if (slot->link) { /* it has dialled anew: what it left behind is dead */
		peers_forget(p, slot->link);
		p->handlers->down(p->ctx, peer, "it has dialled anew");
	}
	slot->dialling = NULL;
	slot->link = link;
	slot->backoff_ms = BACKOFF_MIN_MS;
	slot->told = NULL;
	p->handlers->up(p->ctx, peer, theirs);
}

static int peers_on_frame(void *ctx, struct peer_link *link, struct slice body, struct instant now) {
	struct peers *p = ctx;
	return p->handlers->frame(p->ctx, (uint32_t)link->peer, body, now);
}

static void peers_on_closed(void *ctx, struct peer_link *link, const char *why) {
	struct peers *p = ctx;
	struct peers_slot *slot = peers_slot_of(p, link);
	bool up = slot && slot->link == link;
	peers_forget(p, link);
	if (up) {
		p->handlers->down(p->ctx, slot->index, why);
	} else if (slot) {
		peers_tell(slot, why);
	} else {
		p->handlers->trouble(p->ctx, "a stranger", why);
	}
	if (slot) {
		peers_dial_later(slot);
	}
}

static const struct peer_link_handlers peers_link_handlers = {
	peers_on_greeted, peers_on_up, peers_on_frame, peers_on_closed,
};

static int peers_link_new(struct peers *p, int take_fd, enum tls_role role, int peer, struct peer_link **out) {
	struct peer_link_options link = { .loop = p->loop, .take_fd = take_fd, .tls = p->tls, .role = role,
		.hello = &p->hello, .handlers = &peers_link_handlers, .ctx = p, .peer = peer };
	return peer_link_new(&link, out);
}

void peers_accept(struct peers *p, int take_fd, const char *from) {
	struct peer_link *link;
	if (p->stranger_count >= STRANGERS_MAX) {
		close(take_fd);
		p->handlers->trouble(p->ctx, from, "too many connections that have not said hello");
		return;
	}
	if (peers_link_new(p, take_fd, TLS_SERVER, -1, &link) != 0) {
		p->handlers->trouble(p->ctx, from, "out of memory");
		return;
	}
	list_append(&p->strangers, &link->among);
	p->stranger_count++;
}

/* ---- out ---- */

struct buffer *peers_out(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->slots[peer].link ? stream_out(p->slots[peer].link->stream) : NULL;
}

int peers_flush(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	struct peer_link *link = p->slots[peer].link;
	int error = link ? stream_flush(link->stream) : 0;
	if (error) {
		peers_reset(p, peer);
	}
	return error;
}

void peers_reset(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	struct peers_slot *slot = &p->slots[peer];
	if (slot->link) {
		peers_forget(p, slot->link);
		peers_dial_later(slot);
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
	for (uint32_t i = 0; i < p->count; i++) {
		if (p->slots[i].dial) {
			event_active(p->slots[i].again, EV_TIMEOUT, 0);
		}
	}
}

static int peers_slot_init(struct peers *p, uint32_t index, const struct peers_node *node) {
	struct peers_slot *slot = &p->slots[index];
	CHECK(strlen(node->name) <= NODE_NAME_MAX && strlen(node->address) <= ADDRESS_MAX);
	*slot = (struct peers_slot){ .peers = p, .index = index, .dial = strcmp(p->hello.node, node->name) < 0,
		.backoff_ms = BACKOFF_MIN_MS };
	memcpy(slot->name, node->name, strlen(node->name) + 1);
	memcpy(slot->address, node->address, strlen(node->address) + 1);
	slot->again = event_new(p->loop->base, -1, 0, peers_on_again, slot);
	return slot->again ? 0 : PAWL_ENOMEM;
}

int peers_new(const struct peers_options *o, struct peers **out) {
	struct peers *p = alloc_new(o->loop->alloc, peers_bytes(o->count));
	if (!p) {
		return PAWL_ENOMEM;
	}
	p->loop = o->loop;
	p->hello = o->hello;
	p->handlers = o->handlers;
	p->ctx = o->ctx;
	p->count = o->count;
	prng_init(&p->prng, o->seed);
	list_init(&p->strangers);
	for (uint32_t i = 0; i < o->count; i++) {
		int error = peers_slot_init(p, i, &o->nodes[i]);
		if (error) {
			peers_free(p);
			return error;
		}
	}
	*out = p;
	return 0;
}

void peers_free(struct peers *p) {
	if (!p) {
		return;
	}
	struct list *stranger;
	while ((stranger = list_first(&p->strangers)) != NULL) {
		peers_forget(p, CONTAINER_OF(stranger, struct peer_link, among));
	}
	for (uint32_t i = 0; i < p->count; i++) {
		dialer_free(p->slots[i].dialer);
		peer_link_free(p->slots[i].dialling);
		peer_link_free(p->slots[i].link);
		if (p->slots[i].again) {
			event_free(p->slots[i].again);
		}
	}
	SSL_CTX_free(p->tls);
	alloc_free(p->loop->alloc, p, peers_bytes(p->count));
}
