/* peers_impl.h: what peers.c (links), peers_table.c (who is in the table) and peers_strangers.c
 * (connections before their hello) share. Nobody else includes this.
 */
#ifndef PAWL_NET_PEERS_IMPL_H
#define PAWL_NET_PEERS_IMPL_H

#include "peers.h"

#include "dialer.h"
#include "job.h"
#include "peer_link.h"
#include "prng.h"
#include "types.h"

/* How many links of a peer may come up at once, and after what time there may be one more. What
 * follows from a new link, and from the end of the one before it, is work for each operation under
 * way. */
#define PEERS_LINKS_MOST 16
#define PEERS_LINK_AFTER SPAN_S
/* How long after the first failure a peer is dialled again, in milliseconds. */
#define BACKOFF_MIN_MS 50
/* The largest number of known addresses of one node. */
#define PEERS_KNOWN_MAX 8

/* One peer. */
struct peers_slot {
	struct peers *peers;
	/* The table has a peer in this place. */
	bool used;
	/* The peer's index in the owner's table. */
	uint32_t index;

	char name[NODE_NAME_MAX + 1];
	/* As host:port. */
	char address[ADDRESS_MAX + 1];
	/* This node dials the peer. */
	bool dial;
	/* The configuration makes the peer a master. */
	bool master;
	/* Little of what the peer sends is read in one turn. */
	bool outside;

	/* How long until the peer is dialled again, in milliseconds. */
	int64_t backoff_ms;
	/* How often the peer has been dialled. */
	unsigned attempts;
	/* Looks up the peer's address, or is NULL. */
	struct dialer *dialer;

	/* The connection that this node has dialled and that is not up yet, or NULL. */
	struct peer_link *dialling;
	/* The link that is up, or NULL. */
	struct peer_link *link;
	/* The identity of the node at the other end of the link. */
	struct id128 id;
	/* The identity that the peer should have; all zeros mean that any identity will do. */
	struct id128 expected;
	/* The boot of the node at the other end of the link. */
	uint64_t boot;
	/* How many links came up lately, and when this was last made one less. */
	uint32_t links;
	struct instant links_at;

	/* Dials again. */
	struct event *again;

	/* The addresses from which the peer's connections come. */
	struct stranger_address known[PEERS_KNOWN_MAX];
	uint32_t known_count;
	/* Looks up these addresses; NULL when no look-up is under way. */
	struct job *lookup;
	/* A connection that the peer made has become a link. */
	bool was_linked;
	/* The address from which such a connection came the last time. */
	struct stranger_address linked_from;

	/* The last trouble that the owner was told of. */
	char last_trouble[PEER_LINK_WHY_BYTES];
};

struct peers {
	struct net_loop *loop;
	struct peer_hello hello;
	const struct peers_handlers *handlers;
	void *ctx;
	SSL_CTX *tls;
	struct prng prng;
	bool started;

	struct strangers_limits limits;
	/* Connections that have not said hello yet; `members` are those from the addresses of nodes
	 * in the table. */
	struct strangers strangers, members;
	/* Totals since the start; see struct strangers_counts. */
	uint64_t evicted, refused;
	/* When the addresses of the nodes were looked up last; zero if never. */
	struct instant looked_up;
	/* The last refusal of a stranger that the owner was told of and that comes again with every
	 * attempt. */
	char last_stranger_trouble[PEER_LINK_WHY_BYTES];

	/* How many peers `table` has. */
	uint32_t count;
	/* The peers by index; they point into `slots`. */
	struct peers_slot *table[NODES_MAX];
	/* The peers in places that do not change when the table does. No place from `slots_used` on
	 * has ever had one. */
	uint32_t slots_used;
	struct peers_slot slots[NODES_MAX];
	/* The places whose links may have something to do in the next turn of the loop, because
	 * frames wait or have waited: a set. */
	uint64_t waiting;
};

_Static_assert(NODES_MAX <= 64, "sets of places are 64 bits");

/* Returns NULL if no peer has this name. */
struct peers_slot *peers_find(struct peers *p, const char *name);
/* Stops dialling the peer, and drops a connection that is being dialled. */
void peers_stop_dialling(struct peers_slot *slot);
/* Sets how much of what the peer sends is read in one turn. */
void peers_pace(const struct peers_slot *slot);
/* Drops the peer's link and its place. */
void peers_drop(struct peers_slot *slot);
/* Makes a link. A `slot` of NULL means that the connection was accepted. `from` is the address of
 * the other end. With `urgent`, its handshake has its turn before others. Returns 0 or
 * PAWL_ENOMEM. */
int peers_link_new(struct peers *p, int take_fd, const struct peers_slot *slot, const char *from,
	bool urgent, struct peer_link **out);
/* Frees a link, after removing it from its slot and from the strangers. */
void peers_forget(struct peers *p, struct peer_link *link);

/* The peer's address has changed (peers_strangers.c). */
void peers_know(struct peers_slot *slot);
/* Stops counting a connection as a stranger. Returns false if it was none (peers_strangers.c). */
bool peers_no_stranger(struct peers *p, struct peer_link *link);
/* Drops all connections that are strangers (peers_strangers.c). */
void peers_strangers_free(struct peers *p);

#endif
