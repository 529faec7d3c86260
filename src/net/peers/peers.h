/* peers.h: the links of a node to all others: one connection per pair, dialled by who is told to, and dialled again when it
 * breaks, after 50 ms at first, then up to a second, with jitter.
 *
 *   IDLE --dial--> DIALLING --hello--> UP       the other side: a connection is accepted, says hello, and is UP;
 *    ^ backoff        |                 |        it takes the place of an older one of the same peer, unless that
 *    |                |                 |        one has the identity that is expected and this one has not
 *    +----------------+-----------------+
 *
 * Where both dial, the link that the node with the smaller name (by strcmp) dialled stays, on both sides.
 */
#ifndef PAWL_NET_PEERS_H
#define PAWL_NET_PEERS_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "buffer.h"
#include "clock.h"
#include "net_loop.h"
#include "peer.h"
#include "strangers.h"
#include "tls_certificate.h"

struct peers;

struct peers_handlers { /* from the loop, never from within a call of the owner; each may call anything here but peers_free */
	void (*up)(void *ctx, uint32_t peer, const struct peer_hello *theirs);
	/* `closed`: the other side did it. */
	void (*down)(void *ctx, uint32_t peer, const char *why, bool closed);
	int (*frame)(void *ctx, uint32_t peer, struct slice body, struct instant now); /* not 0: the link is dropped, down() follows */
	/* A connection that did not become a link. `peer`: the node of the table that was dialled, or that has proven to be at the other end by
	 * its certificate; NULL: it was accepted, and nobody has. `from`: the address. The same trouble of a peer is told once. */
	void (*trouble)(void *ctx, const char *peer, const char *from, const char *why);
	/* A node said hello whose name is not in the table: the owner makes room for it with peers_set_nodes and returns its
	 * index, or a negative PAWL_E...: the connection is refused. up() follows. NULL: strangers are refused. */
	int (*welcome)(void *ctx, const struct peer_hello *theirs);
};

struct peers_node {
	const char *name, *address; /* address: may be empty where nobody dials */
	bool dial;                  /* this node dials it; else it waits to be dialled */
	struct id128 id;            /* who has a link by right: keeps it while another one uses the name; zero: nobody */
	bool master;                /* the configuration makes it one: then its certificate must let it be one */
};

struct peers_options {
	struct net_loop *loop; /* borrowed */
	struct peer_hello hello; /* ours */
	struct strangers_limits strangers;
	uint64_t seed; /* for the jitter */
	const struct peers_handlers *handlers; /* borrowed, static */
	void *ctx;
};

int peers_new(const struct peers_options *options, struct peers **out); /* 0 or PAWL_ENOMEM */
void peers_free(struct peers *p); /* no handler is called any more; accepts NULL */

/* The table: copied, names are unique; the place in it is the peer's index from now on. The node itself may be among them and
 * is skipped. Links belong to names and move with them; those of names that are gone are dropped, down() is not called.
 * May be called from within a handler. At most NODES_MAX nodes. */
void peers_set_nodes(struct peers *p, const struct peers_node *nodes, uint32_t count);

void peers_set_tls(struct peers *p, SSL_CTX *context); /* for connections to come; NULL: plain. Holds a reference */
void peers_start(struct peers *p);                     /* begins to dial */
/* A connection from outside. Until it has said hello it is a stranger, within the limits; strangers from the addresses of the nodes in
 * the table have limits of their own and go first, so that no others can keep those nodes out. */
void peers_accept(struct peers *p, int take_fd, const char *from);
void peers_set_limits(struct peers *p, const struct strangers_limits *limits); /* for connections to come */

struct strangers_counts peers_strangers(const struct peers *p);

/* The certificate at the other end of the link; NULL: no link. Valid until the loop goes on. */
const struct tls_identity *peers_certificate(const struct peers *p, uint32_t peer);
/* True, and a sentence: a link that is there would be refused now, by the context of peers_set_tls (the certificate is revoked) or by
 * the table (the peer has become a master, which its certificate does not let it be). The owner drops it with peers_reset. */
bool peers_objection(const struct peers *p, uint32_t peer, char why[TLS_WHY_BYTES]);
/* Drops all connections that are not links yet: they began under the context before. They are dialled again. */
void peers_reset_unfinished(struct peers *p);

/* What the other side told beside the frames, for the owner to fill in; gone with the link. NULL: no link. */
struct peer_note *peers_note(struct peers *p, uint32_t peer);
/* Whether the other side is still to be told this node's note, and takes notes; from then on it counts as told. */
bool peers_note_due(struct peers *p, uint32_t peer);
void peers_note_changed(struct peers *p); /* all are to be told anew */

/* The address of the other end of the link, "" without one. Valid until the link is gone. */
const char *peers_from(const struct peers *p, uint32_t peer);
/* NULL: no link. Append packets, then flush. */
struct buffer *peers_out(struct peers *p, uint32_t peer);
/* Not 0: the link broke and is gone; down() is not called. PAWL_ECLOSED: the other side closed it. */
int peers_flush(struct peers *p, uint32_t peer);
/* Drops the link with all that is unread and unsent; down() is not called. */
void peers_reset(struct peers *p, uint32_t peer);

#endif
