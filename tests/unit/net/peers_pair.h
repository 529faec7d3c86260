/* peers_pair.h: what tests of links share: two nodes on one loop, each with a listener, and what
 * their links told them. */
#ifndef PAWL_TESTS_PEERS_PAIR_H
#define PAWL_TESTS_PEERS_PAIR_H

#include "unit.h"

/* This one comes before unistd.h. */
#include "peers.h"

#include "listener.h"
#include "net_fixture.h"
#include "pawl/error.h"

/* A node of the test, and what its links told it. */
struct party {
	const char *name;
	struct peers *peers;
	struct listener *listener;
	unsigned ups, downs, closed, frames, troubles, accepted;
	size_t bytes;
	/* Its handler of frames handles one frame in one piece more than `pieces`, each of which
	 * takes `takes`, and counts them all. */
	size_t pieces, pieces_done;
	span_ns takes;
	/* What it was told with the end of the last link. */
	struct instant since;
	/* What its handler of frames returns. */
	int refuse;
	/* How many nodes that are not in its table it welcomes. */
	int non_members;
	/* The table of three nodes that it has once it welcomes one. */
	const struct peers_node *non_member_table;
	/* The peer index of the link that came up last. */
	uint32_t last_up;
	bool dials_all;
	/* What its identity is made of; 0: its name. */
	uint8_t identity;
	/* Its last trouble was with a connection that had not said who it is. */
	bool stranger;
	/* The only version of the protocol that it speaks; 0: the version of this program. */
	uint32_t version;
	char why[512], who[256];
};

struct pair {
	struct net_fixture f;
	struct party a, b;
};

/* `claim` is the name that the party says it has. */
void party_make_with(struct net_fixture *f, struct party *p, const char *claim,
	const struct peers_node nodes[2]);
void party_accepted(void *ctx, int take_fd, const struct origin *from);
/* Opens the nodes "a" and "b" of the cluster "test". Either a dials, or both do. */
void pair_open_with(struct pair *p, bool both_dial);
void pair_open(struct pair *p);
void pair_open_versions(struct pair *p, uint32_t version_of_b);
void pair_close(struct pair *p);
void pair_start(struct pair *p);

bool both_up(void *ctx);
bool both_up_twice(void *ctx);
bool b_up_twice(void *ctx);
bool b_troubled(void *ctx);
bool a_troubled(void *ctx);
bool b_got_frames(void *ctx);
void send_frames(struct party *from, uint32_t to, int count);

#endif
