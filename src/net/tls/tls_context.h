/* tls_context.h: what a node shows of itself over TLS, and whom it lets in. TLS 1.3 only, both sides signed by the cluster's CA.
 *
 * Whom a certificate stands for: tls_certificate.h. Which ones are no good any more: tls_revoked.h.
 */
#ifndef PAWL_NET_TLS_CONTEXT_H
#define PAWL_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "tls_certificate.h"
#include "tls_revoked.h"

enum tls_client_auth { TLS_CLIENT_REQUIRED, TLS_CLIENT_OPTIONAL, TLS_CLIENT_OFF };

struct tls_files {
	const char *ca, *cert, *key;   /* PEM: the CA, the node's chain, its key */
	const char *revoked, *crl;     /* which certificates are no good any more: a list, CRLs; NULL or empty: none */
	enum tls_client_auth client_auth;
	bool any_key_mode;             /* the key's owner and mode are not looked at */
	bool only_checked;             /* by root, the key's owner is taken for the node's user */
	bool embedded;                 /* the node is inside a program */
};

struct tls_contexts {
	SSL_CTX *peer;   /* links between nodes, either end */
	SSL_CTX *client; /* the client listeners */
	struct tls_identity own; /* of the node's certificate */
	int64_t crl_ends;        /* when the first CRL ends, s since 1970; 0: none does */
};

/* 0 or PAWL_ETLS with a sentence in `why` that names the file; *out only on success. Checks that nobody else may read the key, that
 * it belongs to the certificate, that the CA signed that, that it is valid today and not revoked, and that it is node_name's. */
int tls_contexts_load(const struct tls_files *files, const char *node_name, struct tls_contexts *out, char why[TLS_WHY_BYTES]);
void tls_contexts_free(struct tls_contexts *contexts);

/* What is to be remembered of the other side's certificate. False: it is not that node's, or there is none. */
bool tls_peer_identity(SSL *ssl, const char *node_name, struct tls_identity *out);
/* The name in the other side's first URI of this kind. False: no certificate, or none of this kind; name gets "". */
bool tls_peer_name(SSL *ssl, enum tls_kind kind, char name[TLS_NAME_MAX + 1]);
bool tls_peer_has_certificate(SSL *ssl);
void tls_peer_describe(SSL *ssl, char out[TLS_WHO_BYTES]); /* "nobody": it shows none */

/* True, and a sentence: the context `now` would refuse a connection that was made before it was loaded, because a certificate of
 * the other side is revoked. One whose handshake is not over has shown none yet; see SSL_is_init_finished. */
bool tls_peer_objection(SSL *ssl, SSL_CTX *now, char why[TLS_WHY_BYTES]);

#endif
