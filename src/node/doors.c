#include "doors.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "listener.h"
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

int doors_reload(struct doors *d, const struct node_config *config, char why[NODE_WHY_BYTES]) {
	if (!config->tls.on) {
		return 0;
	}
	const struct tls_files files = { .ca = config->tls.ca, .cert = config->tls.cert, .key = config->tls.key,
		.client_auth = doors_client_auth(config->tls.client_auth) };
	struct tls_contexts fresh;
	int error = tls_contexts_load(&files, config->name, &fresh, why);
	if (error) {
		return error;
	}
	tls_contexts_free(&d->tls); /* connections keep what they were opened with */
	d->tls = fresh;
	d->client_auth = files.client_auth;
	if (d->driver->peers) {
		peers_set_tls(d->driver->peers, fresh.peer);
	}
	return 0;
}

/* ---- listeners ---- */

static void doors_on_peer(void *ctx, int take_fd, bool local, const char *from) {
	struct door *door = ctx;
	(void)local;
	peers_accept(door->doors->driver->peers, take_fd, from);
}

/* A plain connection from this machine is trusted as its operator is; one over TLS is who its certificate says. */
static void doors_on_client(void *ctx, int take_fd, bool local, const char *from) {
	struct door *door = ctx;
	struct doors *d = door->doors;
	sessions_accept(d->driver->sessions, take_fd, door->tls ? d->tls.client : NULL, d->client_auth, local && !door->tls, from);
}

static void doors_address(const struct listen_address *a, char out[LISTEN_TEXT_BYTES]) {
	if (a->kind == LISTEN_UNIX) {
		snprintf(out, LISTEN_TEXT_BYTES, "unix:%s", a->path);
	} else {
		snprintf(out, LISTEN_TEXT_BYTES, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, (unsigned)a->port);
	}
}

static int doors_listen(struct doors *d, struct door *door, const struct listen_address *a, void (*accepted)(void *, int, bool,
	const char *), char why[NODE_WHY_BYTES]) {
	char text[LISTEN_TEXT_BYTES];
	doors_address(a, text);
	*door = (struct door){ .doors = d, .tls = a->kind == LISTEN_TLS };
	return listener_new(d->loop, text, accepted, door, &door->listener, why);
}

int doors_open(struct doors *d, struct net_loop *loop, struct driver *driver, const struct node_config *config,
	char why[NODE_WHY_BYTES]) {
	*d = (struct doors){ .loop = loop, .driver = driver };
	int error = doors_reload(d, config, why);
	if (!error && config->listen_peer.kind != LISTEN_NONE && driver->peers) {
		error = doors_listen(d, &d->peer, &config->listen_peer, doors_on_peer, why);
	}
	for (size_t i = 0; !error && i < config->listen_client_count; i++) {
		error = doors_listen(d, &d->clients[i], &config->listen_client[i], doors_on_client, why);
		d->client_count = i + 1;
	}
	return error;
}

void doors_close(struct doors *d) {
	listener_free(d->peer.listener);
	for (size_t i = 0; i < d->client_count; i++) {
		listener_free(d->clients[i].listener);
	}
	tls_contexts_free(&d->tls);
	*d = (struct doors){ 0 };
}
