#include "doors.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "listener.h"
#include "log.h"
#include "pawl/error.h"

_Static_assert(NODE_WHY_BYTES >= LISTENER_WHY_BYTES && NODE_WHY_BYTES >= TLS_WHY_BYTES, "their sentences fit into ours");

#define LISTEN_TEXT_BYTES (ADDRESS_MAX + 32)

/* ---- certificates ---- */

static enum tls_client_auth doors_client_auth(enum client_auth auth) {
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

/* Days until then, 0 once it is over; negative: there is still time, or no end. */
static int64_t doors_days_left(int64_t ends) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t left = ends - (int64_t)now.tv_sec;
	return ends == 0 || left >= TLS_ENDS_SOON_S ? -1 : left > 0 ? left / (24 * 3600) : 0;
}

static void doors_tell_ends(const struct doors *d) {
	int64_t certificate = doors_days_left(d->tls.own.ends), crl = doors_days_left(d->tls.crl_ends);
	if (certificate >= 0) {
		log_to(d->driver->log, LEVEL_WARNING, "certificate_ends", LOG_TEXT("file", d->config->tls.cert), LOG_NUMBER("days", certificate),
			LOG_TEXT("remedy", "make a new one, pawl cert node, put it there and reload"));
	}
	if (crl >= 0) {
		log_to(d->driver->log, LEVEL_WARNING, "crl_ends", LOG_TEXT("file", d->config->tls.crl), LOG_NUMBER("days", crl),
			LOG_TEXT("remedy", "make it anew, pawl cert revoke, put it there and reload: with one that has ended no node starts"));
	}
}

static void doors_on_day(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	doors_tell_ends(ctx);
}

/* ---- certificates as they are named and loaded ---- */

struct tls_files doors_tls_files(const struct node_config *config) {
	const struct tls_config *c = &config->tls;
	return (struct tls_files){ .ca = c->ca, .cert = c->cert, .key = c->key, .revoked = c->revoked, .crl = c->crl,
		.client_auth = doors_client_auth(c->client_auth), .any_key_mode = c->any_key_mode, .embedded = c->embedded };
}

/* A node whose certificate does not let it vote would be refused by all others: so it does not begin. */
static int doors_check_role(const struct doors *d, const struct node_config *config, const struct tls_identity *own,
	char why[NODE_WHY_BYTES]) {
	const struct core *core = d->driver->core;
	if (own->role >= NODE_ROLE_MASTER || !core_peer(core, core_self(core))->master) {
		return 0;
	}
	snprintf(why, NODE_WHY_BYTES, "[tls] cert: %.120s lets node %s be a %s only, and it is a master of the cluster: give it one without a role "
		"(pawl cert node %s), or make another node the master first (pawl cluster demote %s)", config->tls.cert, config->name,
		node_role_name(own->role), config->name, config->name);
	return PAWL_ETLS;
}

/* Of what stays: a connection whose certificate is revoked now. */
static void doors_end_revoked(struct doors *d) {
	driver_check_links(d->driver);
	if (d->driver->peers) {
		peers_reset_unfinished(d->driver->peers);
	}
	if (d->driver->sessions) {
		sessions_end_revoked(d->driver->sessions, d->tls.client);
	}
}

int doors_reload(struct doors *d, const struct node_config *config, char why[NODE_WHY_BYTES]) {
	if (!config->tls.on) {
		return 0;
	}
	const struct tls_files files = doors_tls_files(config);
	struct tls_contexts fresh;
	int error = tls_contexts_load(&files, config->name, &fresh, why);
	if (error) {
		return error;
	}
	error = doors_check_role(d, config, &fresh.own, why);
	if (error) {
		tls_contexts_free(&fresh);
		return error;
	}
	tls_contexts_free(&d->tls); /* connections keep what they were opened with */
	d->tls = fresh;
	d->config = config;
	d->client_auth = files.client_auth;
	d->driver->own_certificate = fresh.own;
	if (d->driver->peers) {
		peers_set_tls(d->driver->peers, fresh.peer);
	}
	if (config->tls.revoked[0] || config->tls.crl[0]) {
		doors_end_revoked(d);
	}
	doors_tell_ends(d);
	return 0;
}

/* ---- listeners ---- */

static void doors_on_peer(void *ctx, int take_fd, const struct origin *from) {
	struct door *door = ctx;
	peers_accept(door->doors->driver->peers, take_fd, from->address);
}

/* A plain connection from this machine is known by its account, or as plain; one over TLS is who its certificate says. */
static void doors_on_client(void *ctx, int take_fd, const struct origin *from) {
	struct door *door = ctx;
	struct doors *d = door->doors;
	sessions_accept(d->driver->sessions, take_fd, door->tls ? d->tls.client : NULL, d->client_auth, from->local && !door->tls, from);
}

static void doors_address(const struct listen_address *a, char out[LISTEN_TEXT_BYTES]) {
	if (a->kind == LISTEN_UNIX) {
		snprintf(out, LISTEN_TEXT_BYTES, "unix:%s", a->path);
	} else {
		snprintf(out, LISTEN_TEXT_BYTES, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, (unsigned)a->port);
	}
}

static int doors_listen(struct doors *d, struct door *door, const struct listen_address *a, listener_accepted *accepted,
	char why[NODE_WHY_BYTES]) {
	char text[LISTEN_TEXT_BYTES];
	doors_address(a, text);
	*door = (struct door){ .doors = d, .tls = a->kind == LISTEN_TLS };
	return listener_new(d->loop, text, accepted, door, &door->listener, why);
}

int doors_open(struct doors *d, struct net_loop *loop, struct driver *driver, const struct node_config *config,
	char why[NODE_WHY_BYTES]) {
	static const struct timeval day = { 24 * 3600, 0 };
	*d = (struct doors){ .loop = loop, .driver = driver };
	d->ends = event_new(loop->base, -1, EV_PERSIST, doors_on_day, d);
	if (!d->ends || event_add(d->ends, &day) != 0) {
		snprintf(why, NODE_WHY_BYTES, "out of memory");
		return PAWL_ENOMEM;
	}
	int error = doors_reload(d, config, why);
	if (!error && config->listen_peer.kind != LISTEN_NONE && driver->peers) {
		error = doors_listen(d, &d->peer, &config->listen_peer, doors_on_peer, why);
	}
	for (size_t i = 0; !error && i < config->listen_client_count; i++) {
		error = doors_listen(d, &d->clients[i], &config->listen_client[i], doors_on_client, why);
		d->client_count = i + 1;
		if (!error && d->clients[i].tls) {
			listener_pace(d->clients[i].listener, &loop->handshakes);
		}
	}
	return error;
}

void doors_close(struct doors *d) {
	if (d->ends) {
		event_free(d->ends);
	}
	listener_free(d->peer.listener);
	for (size_t i = 0; i < d->client_count; i++) {
		listener_free(d->clients[i].listener);
	}
	tls_contexts_free(&d->tls);
	*d = (struct doors){ 0 };
}
