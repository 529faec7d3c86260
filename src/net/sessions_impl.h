/* sessions_impl.h: what the parts of sessions share. Internal. */
#ifndef PAWL_NET_SESSIONS_IMPL_H
#define PAWL_NET_SESSIONS_IMPL_H

#include "sessions.h"

#include "list.h"
#include "map.h"
#include "stream.h"

struct session {
	struct sessions *all;
	struct list among, dirty;
	struct stranger stranger; /* until it has shown a certificate or made a request */
	struct map_node node;
	uint64_t id;
	struct stream *stream;
	struct client_scanner scanner;
	enum tls_client_auth auth;
	bool local, inside, greeted, closing, kept;
	uint32_t open; /* requests under way */
	uint64_t requests; /* since the beginning */
	struct instant since, heard;
	char identity[TLS_NAME_MAX + 1];
	struct origin from;
};

struct sessions {
	struct net_loop *loop;
	struct sessions_limits limits;
	const struct sessions_handlers *handlers;
	void *ctx;
	struct client_decoder decoder;
	struct list among, dirty;
	struct map by_id; /* ids count up: no hash needed */
	struct strangers strangers;
	uint64_t evicted, refused; /* of them */
	uint64_t last_id;
	struct event *sweep;
};

struct session *sessions_find(const struct sessions *s, uint64_t client); /* NULL: it is gone */
struct session_who session_who(const struct session *session);
void session_end(struct session *session, const char *why); /* frees it; why may be NULL: nothing to tell */

/* sessions_strangers.c */
void session_trouble(const struct session *session, const char *why);
void sessions_trouble(struct sessions *s, const struct origin *from, const char *why); /* of a connection that has not become a session */
/* False: all places are taken, and there is no stranger whose place the newcomer could have. */
bool sessions_make_room(struct sessions *s, const struct stranger *newcomer);

#endif
