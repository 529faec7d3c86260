/* tls_context.h: certificates: who may speak to whom, and who somebody is.
 *
 * A node's certificate carries the URI `pawl:node:NAME` among its alternative names, a client's `pawl:client:NAME`. Neither
 * stands for the other: a client's certificate cannot speak as a peer. TLS 1.3 only, both sides signed by the cluster's CA.
 */
#ifndef PAWL_NET_TLS_CONTEXT_H
#define PAWL_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

enum tls_client_auth { TLS_CLIENT_REQUIRED, TLS_CLIENT_OPTIONAL, TLS_CLIENT_OFF };

#define TLS_NAME_MAX 255
#define TLS_WHY_BYTES 512

struct tls_files {
	const char *ca, *cert, *key; /* PEM: the CA, the node's chain, its key */
	enum tls_client_auth client_auth;
};

struct tls_contexts {
	SSL_CTX *peer;   /* links between nodes, either end */
	SSL_CTX *client; /* the client listeners */
};

/* 0 or PAWL_ETLS with a sentence in `why` that names the file; *out only on success. Checks that the key belongs to the
 * certificate, that the CA signed it, that it is valid today, and that it is node_name's. */
int tls_contexts_load(const struct tls_files *files, const char *node_name, struct tls_contexts *out, char why[TLS_WHY_BYTES]);
void tls_contexts_free(struct tls_contexts *contexts);

enum tls_kind { TLS_NOBODY, TLS_NODE, TLS_PERSON }; /* what a certificate stands for */

/* Whether the other side's certificate carries exactly the URI of this kind and name. */
bool tls_peer_is(SSL *ssl, enum tls_kind kind, const char *name);
/* The name in the other side's first URI of this kind. False: no certificate, or none of this kind; name gets "". */
bool tls_peer_name(SSL *ssl, enum tls_kind kind, char name[TLS_NAME_MAX + 1]);
bool tls_peer_has_certificate(SSL *ssl);

#endif
