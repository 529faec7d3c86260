/* peers_impl.h: what peers.c (links) and peers_table.c (who is in the table) share. Internal. */
#ifndef PAWL_NET_PEERS_IMPL_H
#define PAWL_NET_PEERS_IMPL_H

#include "peers.h"

#include "dialer.h"
#include "job.h"
#include "peer_link.h"
#include "prng.h"
#include "types.h"

#define BACKOFF_MIN_MS 50
#define PEERS_KNOWN_MAX 8 /* addresses of one node */

struct peers_slot {
	struct peers *peers;
	bool used;
	uint32_t index; /* in the owner's table */
	char name[NODE_NAME_MAX + 1];
	char address[ADDRESS_MAX + 1];
	bool dial; /* it is for us to dial */
	bool master; /* in the configuration */
	int64_t backoff_ms;
	unsigned attempts;
	struct dialer *dialer;
	struct peer_link *dialling; /* not up yet */
	struct peer_link *link;     /* up */
	struct id128 id;            /* who is at its other end */
	struct id128 expected;      /* who should be; zero: whoever */
	uint64_t boot;
	struct event *again;
	struct stranger_address known[PEERS_KNOWN_MAX]; /* where connections of this node come from */
	uint32_t known_count;
	struct job *lookup; /* of the same, while it is under way */
	bool was_linked; /* by a connection that it made ... */
	struct stranger_address linked_from; /* ... from here, the latest time */
	char told[PEER_LINK_WHY_BYTES]; /* the last trouble */
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
	struct strangers strangers, members; /* members: from addresses of nodes in the table */
	uint64_t evicted, refused;
	struct instant looked_up; /* when the addresses of nodes were looked up last; zero: never */
	char stranger_told[PEER_LINK_WHY_BYTES]; /* the last refusal that comes again every second */
	uint32_t count;
	struct peers_slot *table[NODES_MAX]; /* by index */
	struct peers_slot slots[NODES_MAX];  /* where they stay while the table changes */
};

struct peers_slot *peers_find(struct peers *p, const char *name); /* or NULL */
void peers_stop_dialling(struct peers_slot *slot);
void peers_drop(struct peers_slot *slot); /* its link and its place */
/* slot: NULL: it is accepted. from: the address of the other end. first: its handshake goes before others. */
int peers_link_new(struct peers *p, int take_fd, const struct peers_slot *slot, const char *from, bool first, struct peer_link **out);
void peers_forget(struct peers *p, struct peer_link *link);

/* peers_strangers.c */
void peers_know(struct peers_slot *slot); /* its address has changed */
bool peers_no_stranger(struct peers *p, struct peer_link *link); /* from now on; false: it was none */
void peers_strangers_free(struct peers *p);

#endif
