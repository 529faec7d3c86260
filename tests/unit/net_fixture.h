/* net_fixture.h: what tests of connections share: a loop that runs until something has happened,
 * and certificates that are made on the spot. */
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
	/* The directory of the certificates. */
	char dir[64];
	EVP_PKEY *ca_key;
	X509 *ca;
};

void net_fixture_init(struct net_fixture *f);
void net_fixture_done(struct net_fixture *f);

/* Runs the loop until the condition holds. Returns false after ten seconds. */
bool net_fixture_until(struct net_fixture *f, bool (*holds)(void *ctx), void *ctx);
/* Runs what is ready now, and what follows from it at once. */
void net_fixture_settle(struct net_fixture *f);

/* Makes an authority, DIR/ca.pem, and DIR/NAME.pem with DIR/NAME.key, which it signs for a URI. */
void net_fixture_certificate(struct net_fixture *f, const char *name, const char *uri);
/* Makes the TLS contexts of a node or client that has this certificate. */
int net_fixture_contexts(struct net_fixture *f, const char *name, const char *node_name,
	enum tls_client_auth auth, struct tls_contexts *out, char why[TLS_WHY_BYTES]);
/* Makes a context that shows the certificate without checking that it is a node's. It is for those
 * who should be refused. */
SSL_CTX *net_fixture_bare_context(struct net_fixture *f, const char *name);

/* Makes two connected sockets, which do not block. */
void net_fixture_pair(int fds[2]);

#endif
