/* embed_rig.h: what tests of libpawl-node share: nodes in this process, on one loop, on ports that
 * were free a moment ago. */
#ifndef PAWL_TESTS_EMBED_RIG_H
#define PAWL_TESTS_EMBED_RIG_H

#include "unit.h"

#include "net_fixture.h"
#include "pawl/node.h"

#define EMBED_RIG_NODES 4

struct embed_rig;

struct embed_rig_node {
	struct embed_rig *rig;
	struct pawl_node *node;
	const char *name;
	char dir[128], address[64];
	/* The role in its certificate; NULL: none. */
	const char *role;
	/* The node is no initial master, but listens at `address` nevertheless. */
	bool fixed;
	unsigned lines, changes;
	/* The last line of its log, and the last one that contains `wanted`, unless that is
	 * NULL. */
	char line[512], found[512];
	const char *wanted;
	/* The first line that contains this takes 150 ms of processor time to log; NULL: none. */
	const char *slow;
};

struct embed_rig {
	struct net_fixture f;
	struct pawl_node_master masters[EMBED_RIG_NODES];
	size_t master_count;
	/* What follows is set before a start. */
	bool tls;
	/* Clients come by a Unix socket, embed_rig_endpoint, and have the rights of
	 * embed_rig_rules. */
	bool ruled;
	/* With TLS: the configuration names a list of revoked certificates (embed_rig_revoke). */
	bool revoked;
	/* The nodes a, b, c and d. */
	struct embed_rig_node nodes[EMBED_RIG_NODES];
};

/* Makes a directory and an address for each node. The first `masters` of them are the initial
 * masters. Starts none. */
void embed_rig_open(struct embed_rig *r, size_t masters);
/* Sets what the list of revoked certificates says from the next reload on. */
void embed_rig_revoke(struct embed_rig *r, const char *lines);
/* Sets what the node's file of rules says from its start or its next reload on. */
void embed_rig_rules(struct embed_rig *r, size_t n, const char *text);
void embed_rig_endpoint(const struct embed_rig *r, size_t n, char out[160]);
void embed_rig_close(struct embed_rig *r);
void embed_rig_start(struct embed_rig *r, size_t n);
/* Starts the masters, and returns when all of them vote. */
void embed_rig_start_all(struct embed_rig *r);
void embed_rig_await_state(struct embed_rig *r, size_t n, enum pawl_node_state state);

/* A copy of what a callback saw. */
struct embed_rig_answer {
	unsigned calls;
	int error;
	uint64_t token;
	struct pawl_id lock_id;
	struct pawl_node_deadline deadline;
	bool released, held;
	size_t count;
	char value[64], owner[64], message[128];
};
void embed_rig_done(struct pawl_node *node, const struct pawl_node_result *result, void *answer);
/* Asks, and runs the loop until the answer is there. */
struct embed_rig_answer embed_rig_ask(struct embed_rig *r, size_t n,
	const struct pawl_request *request);
bool embed_rig_answered(void *answer);

#endif
