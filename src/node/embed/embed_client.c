/* embed_client.c: a client of the node in the same process. One end of a pair of sockets is a
 * session of the node, and the other end belongs to libpawl.
 */
#include "embed.h"

#include <sys/socket.h>

#include "pawl/dial.h"
#include "sessions.h"

static int embed_dial(void *arg) {
	struct pawl_node *node = arg;
	struct sessions *sessions = node_sessions(node->node);
	int fds[2];
	if (!sessions || node->doomed || !node->started) {
		return PAWL_EUNREACHABLE;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
		return PAWL_EUNREACHABLE;
	}
	sessions_accept_inside(sessions, fds[0], node->identity);
	return fds[1];
}

int pawl_node_client(struct pawl_node *node, const struct pawl_options *options,
	struct pawl **out_client) {
	struct pawl_options o = { 0 };
	if (options) {
		o = *options;
	}
	if (!node || node->doomed || o.base || o.endpoints || o.ca_file || o.cert_file || o.key_file
		|| o.server_name) {
		return PAWL_EINVAL;
	}
	o.base = node->base;
	o.owner = o.owner.size
		? o.owner : (struct pawl_bytes){ node->config->name, strlen(node->config->name) };
	return pawl_new_dialled(&o, embed_dial, node, out_client, NULL);
}
