/* listeners.c: loads the certificates of a node, opens its listeners, and warns before a
 * certificate or a CRL ends.
 */
#include "listeners.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "listener.h"
#include "log.h"
#include "pawl/error.h"

_Static_assert(NODE_WHY_BYTES >= LISTENER_WHY_BYTES && NODE_WHY_BYTES >= TLS_WHY_BYTES,
	"their sentences fit into ours");

#define LISTEN_TEXT_BYTES (ADDRESS_MAX + 32)

/* ---- certificates ---- */

static enum tls_client_auth listeners_client_auth(enum client_auth auth) {
	switch (auth) {
	case CLIENT_AUTH_REQUIRED:
		return TLS_CLIENT_REQUIRED;
	case CLIENT_AUTH_OPTIONAL:
		return TLS_CLIENT_OPTIONAL;
	case CLIENT_AUTH_OFF:
		return TLS_CLIENT_OFF;
	}
	CHECK(false);
}

/* ---- what ends soon ---- */

/* Returns the days until then, and 0 once it is over. A negative number means that there is still
 * enough time, or no end. */
static int64_t listeners_days_left(int64_t ends) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t left = ends - (int64_t)now.tv_sec;
	return ends == 0 || left >= TLS_ENDS_SOON_S ? -1 : left > 0 ? left / (24 * 3600) : 0;
}

static void listeners_tell_ends(const struct listeners *l) {
	int64_t certificate = listeners_days_left(l->tls.own.ends),
		crl = listeners_days_left(l->tls.crl_ends);
	if (certificate >= 0) {
		log_to(l->service->driver->log, LEVEL_WARNING, "certificate_ends",
			LOG_TEXT("file", l->config->tls.cert), LOG_NUMBER("days", certificate),
			LOG_TEXT("remedy",
				"make a new certificate with pawl cert node, replace the "
				"file, and reload"));
	}
	if (crl >= 0) {
		log_to(l->service->driver->log, LEVEL_WARNING, "crl_ends",
			LOG_TEXT("file", l->config->tls.crl), LOG_NUMBER("days", crl),
			LOG_TEXT("remedy",
				"make a new CRL with pawl cert revoke, replace the file, and "
				"reload; no node starts with an expired CRL"));
	}
}

static void listeners_on_day(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	listeners_tell_ends(ctx);
}

/* ---- certificates as they are named and loaded ---- */

struct tls_files listeners_tls_files(const struct node_config *config) {
	const struct tls_config *c = &config->tls;
	return (struct tls_files){ .ca = c->ca, .cert = c->cert, .key = c->key,
		.revoked = c->revoked, .crl = c->crl,
		.client_auth = listeners_client_auth(c->client_auth),
		.any_key_mode = c->any_key_mode, .embedded = c->embedded };
}

/* A node whose certificate does not let it vote would be refused by all other nodes, so it does not
 * start. */
static int listeners_check_role(const struct listeners *l, const struct node_config *config,
	const struct tls_identity *own, char why[NODE_WHY_BYTES]) {
	const struct core *core = l->service->driver->core;
	if (own->role >= NODE_ROLE_MASTER || !core_peer(core, core_self(core))->master) {
		return 0;
	}
	snprintf(why, NODE_WHY_BYTES,
		"[tls] cert: with %.120s, node %s may only be a %s, but it is a master of the "
		"cluster: make a certificate without a role (pawl cert node %s), or first demote "
		"the node (pawl cluster demote %s)", config->tls.cert, config->name,
		node_role_name(own->role), config->name, config->name);
	return PAWL_ETLS;
}

/* Ends those of the existing connections whose certificate is revoked now. */
static void listeners_end_revoked(struct listeners *l) {
	driver_check_links(l->service->driver);
	if (l->service->driver->peers) {
		peers_reset_unfinished(l->service->driver->peers);
	}
	if (l->service->sessions) {
		sessions_end_revoked(l->service->sessions, l->tls.client);
	}
}

/* Those who read the admin port show their certificates again, and the new rules judge them. */
static void listeners_end_admin(const struct listeners *l) {
	if (l->admin.tls && l->monitor->http) {
		http_server_end_all(l->monitor->http);
	}
}

int listeners_reload(struct listeners *l, const struct node_config *config,
	char why[NODE_WHY_BYTES]) {
	if (!config->tls.on) {
		return 0;
	}
	const struct tls_files files = listeners_tls_files(config);
	struct tls_contexts fresh;
	int error = tls_contexts_load(&files, config->name, &fresh, why);
	if (error) {
		return error;
	}
	error = listeners_check_role(l, config, &fresh.own, why);
	if (error) {
		tls_contexts_free(&fresh);
		return error;
	}
	/* Connections keep the context with which they were opened. */
	tls_contexts_free(&l->tls);
	l->tls = fresh;
	l->config = config;
	l->client_auth = files.client_auth;
	l->service->driver->own_certificate = fresh.own;
	if (l->service->driver->peers) {
		peers_set_tls(l->service->driver->peers, fresh.peer);
	}
	if (config->tls.revoked[0] || config->tls.crl[0]) {
		listeners_end_revoked(l);
	}
	listeners_end_admin(l);
	listeners_tell_ends(l);
	return 0;
}

/* ---- listeners ---- */

static void listeners_on_peer(void *ctx, int take_fd, const struct origin *from) {
	struct node_listener *one = ctx;
	peers_accept(one->listeners->service->driver->peers, take_fd, from->address);
}

/* A plain connection from this machine is known by its account, or as plain. On a connection over
 * TLS, the certificate says who the client is. */
static void listeners_on_client(void *ctx, int take_fd, const struct origin *from) {
	struct node_listener *one = ctx;
	struct listeners *l = one->listeners;
	struct origin numbered = *from;
	numbered.listener = one->number;
	sessions_accept(l->service->sessions, take_fd, one->tls ? l->tls.client : NULL,
		l->client_auth, from->local && !one->tls, &numbered,
		one->redis ? &l->dialects->use_redis
		: one->memcached ? &l->dialects->use_memcached : NULL);
}

static void listeners_on_admin(void *ctx, int take_fd, const struct origin *from) {
	struct node_listener *one = ctx;
	struct listeners *l = one->listeners;
	http_server_accept(l->monitor->http, take_fd, one->tls ? l->tls.client : NULL, from);
}

static void listeners_address(const struct listen_address *a, char out[LISTEN_TEXT_BYTES]) {
	if (a->kind == LISTEN_UNIX) {
		snprintf(out, LISTEN_TEXT_BYTES, "unix:%s", a->path);
	} else {
		snprintf(out, LISTEN_TEXT_BYTES, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u",
			a->host, (unsigned)a->port);
	}
}

static int listeners_listen(struct listeners *l, struct net_loop *loop, struct node_listener *one,
	const struct listen_address *a, listener_accepted *accepted, char why[NODE_WHY_BYTES]) {
	char text[LISTEN_TEXT_BYTES];
	listeners_address(a, text);
	*one = (struct node_listener){ .listeners = l, .tls = a->kind == LISTEN_TLS,
		.redis = a->redis, .memcached = a->memcached };
	return listener_new(loop, text, accepted, one, &one->listener, why);
}

int listeners_open(struct listeners *l, struct net_loop *loop, struct service *service,
	const struct dialects *dialects, const struct node_config *config,
	char why[NODE_WHY_BYTES]) {
	static const struct timeval day = { 24 * 3600, 0 };
	*l = (struct listeners){ .loop = loop, .service = service, .dialects = dialects };
	l->ends = event_new(loop->base, -1, EV_PERSIST, listeners_on_day, l);
	if (!l->ends || event_add(l->ends, &day) != 0) {
		snprintf(why, NODE_WHY_BYTES, "out of memory");
		return PAWL_ENOMEM;
	}
	int error = listeners_reload(l, config, why);
	if (!error && config->listen_peer.kind != LISTEN_NONE && service->driver->peers) {
		error = listeners_listen(l, loop, &l->peer, &config->listen_peer,
			listeners_on_peer, why);
	}
	for (size_t i = 0; !error && i < config->listen_client_count; i++) {
		error = listeners_listen(l, loop, &l->clients[i], &config->listen_client[i],
			listeners_on_client, why);
		l->clients[i].number = (uint8_t)i;
		l->client_count = i + 1;
		if (!error && l->clients[i].tls) {
			listener_pace(l->clients[i].listener, &loop->handshakes);
		}
	}
	return error;
}

int listeners_open_admin(struct listeners *l, struct net_loop *loop, struct monitor *monitor,
	const struct node_config *config, char why[NODE_WHY_BYTES]) {
	if (config->admin_listen.kind == LISTEN_NONE) {
		return 0;
	}
	for (size_t i = 0; i < l->client_count; i++) {
		monitor->listeners[i] = listener_address(l->clients[i].listener);
	}
	monitor->listener_count = (uint32_t)l->client_count;
	if (monitor_start(monitor, loop) != 0) {
		snprintf(why, NODE_WHY_BYTES, "out of memory");
		return PAWL_ENOMEM;
	}
	l->monitor = monitor;
	int error = listeners_listen(l, loop, &l->admin, &config->admin_listen, listeners_on_admin,
		why);
	if (!error && l->admin.tls) {
		listener_pace(l->admin.listener, &loop->handshakes);
	}
	return error;
}

void listeners_close(struct listeners *l) {
	if (l->ends) {
		event_free(l->ends);
	}
	listener_free(l->peer.listener);
	listener_free(l->admin.listener);
	for (size_t i = 0; i < l->client_count; i++) {
		listener_free(l->clients[i].listener);
	}
	tls_contexts_free(&l->tls);
	*l = (struct listeners){ 0 };
}
