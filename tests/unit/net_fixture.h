/* net_fixture.h: for tests of connections: a loop that runs until something has happened, and
 * certificates made on the spot. */
#ifndef PAWL_TESTS_NET_FIXTURE_H
#define PAWL_TESTS_NET_FIXTURE_H

#include <event2/event.h>
#include <stdbool.h>

#include "net_loop.h"
#include "tls_context.h"

struct net_fixture {
	struct event_base *base;
	struct allocator alloc;
	struct net_loop loop;
	/* of certificates */
	char dir[64];
	EVP_PKEY *ca_key;
	X509 *ca;
};

void net_fixture_init(struct net_fixture *f);
void net_fixture_done(struct net_fixture *f);

/* Runs the loop until the condition holds; false after ten seconds. */
bool net_fixture_until(struct net_fixture *f, bool (*holds)(void *ctx), void *ctx);
/* Runs what is ready now, and what follows from it at once. */
void net_fixture_settle(struct net_fixture *f);

/* Makes an authority, DIR/ca.pem; and DIR/NAME.pem with DIR/NAME.key, signed by it, for a URI. */
void net_fixture_certificate(struct net_fixture *f, const char *name, const char *uri);
/* The contexts of a node or client with that certificate. */
int net_fixture_contexts(struct net_fixture *f, const char *name, const char *node_name,
	enum tls_client_auth auth, struct tls_contexts *out, char why[TLS_WHY_BYTES]);
/* A context that shows the certificate without checking that it is a node's: for those who should
 * be refused. */
SSL_CTX *net_fixture_bare_context(struct net_fixture *f, const char *name);

/* two connected sockets, non-blocking */
void net_fixture_pair(int fds[2]);

#endif
