/* descriptors.c: shares the files that this process may open among those who need them. */
#include "descriptors.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "http_server.h"
#include "types.h"

/* What the node needs for itself: its listeners, its loop, its log and its state take some 20, and
 * there are files that it opens for a moment. */
#define FILES_OWN 48

uint64_t descriptors_most(void) {
	struct rlimit limit;
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : UINT64_MAX;
}

void descriptors_raise(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Returns how many groups of strangers have a limit of their own beside that of clients: on the
 * peer port those from nodes of the cluster, and all others. Strangers on the listeners for clients
 * count as clients. */
static uint64_t fit_groups(const struct node_config *c) {
	return c->listen_peer.kind == LISTEN_NONE ? 0 : 2;
}

/* Returns what is needed before there is one client or one stranger. */
static uint64_t fit_kept(const struct node_config *c) {
	uint64_t links = c->listen_peer.kind == LISTEN_NONE ? 0 : NODES_MAX;
	uint64_t http = c->admin_listen.kind == LISTEN_NONE
		? 0 : HTTP_READERS_MAX + HTTP_NEWCOMERS_MAX;
	return FILES_OWN + links + http + c->limits.admin_clients;
}

/* Returns the lower number, but at least 1. */
static uint32_t fit_lower(uint32_t wanted, uint64_t most) {
	return most >= wanted ? wanted : most > 0 ? (uint32_t)most : 1;
}

bool descriptors_fit(struct node_config *c, uint64_t files, struct problem *problem) {
	struct node_limits *limits = &c->limits;
	const uint64_t groups = fit_groups(c), kept = fit_kept(c);
	const uint64_t needed = kept + limits->clients + groups * limits->handshakes;
	if (files >= needed) {
		return true;
	}
	/* Strangers of the peer port get half of what is left, or more if clients leave more. */
	const uint64_t left = files > kept ? files - kept : 0;
	const uint64_t rest = left > limits->clients ? left - limits->clients : 0;
	const uint64_t strangers = rest > left / 2 ? rest : left / 2;
	const uint32_t handshakes = groups > 0
		? fit_lower(limits->handshakes, strangers / groups) : limits->handshakes;
	const uint64_t taken = groups * handshakes;
	const uint32_t clients = fit_lower(limits->clients, left > taken ? left - taken : 0);
	const bool kept_holds = kept + clients + taken <= files;
	problem_set(problem,
		"this process may open %" PRIu64 " files, and [limits] needs %" PRIu64
		", of which %" PRIu64 " are kept for administrators (admin_clients), other nodes, "
		"the admin port and the node itself: clients is %u instead of %u, and handshakes "
		"%u instead of %u%s", files, needed, kept, clients, limits->clients, handshakes,
		limits->handshakes, kept_holds
		? "" : "; even so there are too few, and nobody's place is certain");
	limits->clients = clients;
	limits->handshakes = handshakes;
	return false;
}
