/* peers.h: the links of a node to all other nodes. There is one connection for each pair of nodes.
 * The side that is told to dial does so, and dials again when the connection breaks, first after 50
 * ms and then after up to a second, with jitter.
 *
 *   IDLE --dial--> DIALLING --hello--> UP
 *    ^ backoff        |                 |
 *    |                |                 |
 *    +----------------+-----------------+
 *
 * On the other side, a connection is accepted, says hello, and is UP. It takes the place of an
 * older one of the same peer, unless that one has the expected identity and the new one has not.
 *
 * If both sides dial, both keep the link that was dialled by the node with the smaller name (by
 * strcmp).
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

/* What the owner is told. The handlers are called from the loop, never from within a call of the
 * owner. Each of them may call any function of this header but peers_free. */
struct peers_handlers {
	/* A link to the peer is up. */
	void (*up)(void *ctx, uint32_t peer, const struct peer_hello *theirs);
	/* The link to the peer is gone. `closed`: the other side has closed it. `since`: it may
	 * have ended at any time since then, because it was not read meanwhile; zero if it
	 * was. */
	void (*down)(void *ctx, uint32_t peer, const char *why, bool closed,
		struct instant since);
	/* A frame has come. A piece of it is handled, and *progress moved; as long as something is
	 * left, this is called again with the same frame. If the result is not 0, the link is
	 * dropped, and down() follows. */
	int (*frame)(void *ctx, uint32_t peer, struct slice body, struct peer_progress *progress,
		struct instant now);
	/* A connection did not become a link. `peer` is the node of the table that was dialled, or
	 * that has proven by its certificate to be at the other end; it is NULL if the connection
	 * was accepted and no node has proven that. `from` is the address of the other end. The
	 * same trouble of a peer is reported once. */
	void (*trouble)(void *ctx, const char *peer, const char *from, const char *why);
	/* A node whose name is not in the table has said hello. The owner makes room for it with
	 * peers_set_nodes and returns its index; up() follows. If the owner returns a negative
	 * PAWL_E..., the connection is refused. If the handler is NULL, all such nodes are
	 * refused. */
	int (*welcome)(void *ctx, const struct peer_hello *theirs);
};

/* One node of the table. */
struct peers_node {
	/* The address may be empty if this node does not dial. */
	const char *name, *address;
	/* This node dials the other one; otherwise it waits to be dialled. */
	bool dial;
	/* The identity of the node to which the name belongs. That node keeps its link while
	 * another one uses its name. All zeros: the name belongs to nobody yet. */
	struct id128 id;
	/* The configuration makes the node a master, so its certificate must let it be one. */
	bool master;
	/* The node is in no configuration, so little of what it sends is read in one turn. */
	bool outside;
};

/* What peers_new needs to know. */
struct peers_options {
	/* Borrowed. */
	struct net_loop *loop;
	/* This node's own hello. */
	struct peer_hello hello;
	/* The limits for connections that have not said hello yet. */
	struct strangers_limits strangers;
	/* The seed of the jitter. */
	uint64_t seed;
	/* Borrowed and static. */
	const struct peers_handlers *handlers;
	void *ctx;
};

/* Returns 0 or PAWL_ENOMEM. */
int peers_new(const struct peers_options *options, struct peers **out);
/* No handler is called any more. Accepts NULL. */
void peers_free(struct peers *p);

/* Sets the table, which is copied. Names are unique, and the place of a node in the table is its
 * index from now on. This node itself may be in the table; it is not dialled. Links belong to names
 * and move with them. The links of names that are gone are dropped without a call of down(). At
 * most NODES_MAX nodes are allowed. The call may come from within a handler. */
void peers_set_nodes(struct peers *p, const struct peers_node *nodes, uint32_t count);

/* Sets the context for connections to come; NULL means plain connections. `p` holds a reference to
 * the context. */
void peers_set_tls(struct peers *p, SSL_CTX *context);
/* Begins to dial. */
void peers_start(struct peers *p);
/* Takes over a connection from outside. Until it has said hello it is a stranger, and the limits
 * apply. Strangers from the addresses of nodes in the table have limits of their own, and their
 * handshakes go first, so that no other stranger can keep those nodes out. */
void peers_accept(struct peers *p, int take_fd, const char *from);
/* Sets the limits for connections to come. */
void peers_set_limits(struct peers *p, const struct strangers_limits *limits);

/* Returns the numbers of the strangers on the peer port. */
struct strangers_counts peers_strangers(const struct peers *p);

/* Returns the certificate at the other end of the link, or NULL if there is no link. It is valid
 * until the loop goes on. */
const struct tls_identity *peers_certificate(const struct peers *p, uint32_t peer);
/* Returns true, and a sentence in `why`, if an existing link would be refused now: by the context
 * of peers_set_tls (the certificate is revoked), or by the table (the peer has become a master and
 * its certificate does not let it be one). The owner then drops the link with peers_reset. */
bool peers_objection(const struct peers *p, uint32_t peer, char why[TLS_WHY_BYTES]);
/* Drops all connections that are not links yet, because they began under the previous context. They
 * are dialled again. */
void peers_reset_unfinished(struct peers *p);

/* Returns what the other side has told about itself outside of the frames, for the owner to fill
 * in; NULL if there is no link. It is gone with the link. */
struct peer_note *peers_note(struct peers *p, uint32_t peer);
/* Returns true if there is a link, and the node at its other end has this feature, too. */
bool peers_has(const struct peers *p, uint32_t peer, uint64_t feature);

/* Returns why there is no link, as far as is known; "" if there is one, or if nothing has failed
 * yet. It is valid until the loop goes on. */
const char *peers_trouble(const struct peers *p, uint32_t peer);
/* Returns the address of the other end of the link, or "" if there is no link. It is valid until
 * the link is gone. */
const char *peers_from(const struct peers *p, uint32_t peer);
/* Returns which release of Pawl the peer says it is, as printable ASCII; "" if there is no link, or
 * if it does not say. It is valid until the link is gone. */
const char *peers_release(const struct peers *p, uint32_t peer);
/* Returns the buffer for packets, or NULL if there is no link. Append packets, and then flush. */
struct buffer *peers_out(struct peers *p, uint32_t peer);
/* Sends what peers_out holds. If the result is not 0, the link broke and is gone, and down() is not
 * called. PAWL_ECLOSED means that the other side closed it. *out_since is as in down(). */
int peers_flush(struct peers *p, uint32_t peer, struct instant *out_since);
/* A new turn of the loop has come: handles frames that have waited for it, because those before
 * them took long. Returns whether there is more to do in the next turn. The owner calls it in each
 * turn in which something happens. */
bool peers_go_on(struct peers *p);
/* Drops the link with everything that is unread or unsent. down() is not called. */
void peers_reset(struct peers *p, uint32_t peer);

#endif
