/* tls_context.h: what a node shows of itself over TLS, and whom it lets in. It speaks TLS 1.3 only,
 * and both sides are signed by the cluster's CA.
 *
 * tls_certificate.h says whom a certificate stands for, and tls_revoked.h which certificates are
 * revoked.
 */
#ifndef PAWL_NET_TLS_CONTEXT_H
#define PAWL_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "tls_certificate.h"
#include "tls_revoked.h"

/* Whether a client must show a certificate, may show one, or is not asked. */
enum tls_client_auth { TLS_CLIENT_REQUIRED, TLS_CLIENT_OPTIONAL, TLS_CLIENT_OFF };

/* The files of a node, and how they are checked. */
struct tls_files {
	/* PEM files: the CA, the node's certificate chain, and its key. */
	const char *ca, *cert, *key;
	/* Files that say which certificates are revoked: a list, and CRLs. NULL and "" mean
	 * none. */
	const char *revoked, *crl;
	enum tls_client_auth client_auth;
	/* The owner and the mode of the key are not checked. */
	bool any_key_mode;
	/* The files are only checked. If root does that, the owner of the key is taken for the
	 * node's user. */
	bool only_checked;
	/* The node is inside a program. */
	bool embedded;
};

/* The contexts that are made from these files. */
struct tls_contexts {
	/* For links between nodes, at either end. */
	SSL_CTX *peer;
	/* For the listeners of clients. */
	SSL_CTX *client;
	/* What is remembered of the node's own certificate. */
	struct tls_identity own;
	/* When the first CRL ends, in seconds since 1970; 0 if none does. */
	int64_t crl_ends;
};

/* Loads the files. Returns 0; or PAWL_ETLS with a sentence in `why` that names the file, and `out`
 * is not changed. It checks that nobody else may read the key, that the key belongs to the
 * certificate, that the CA signed the certificate, that the certificate is valid today and not
 * revoked, and that it belongs to node_name. */
int tls_contexts_load(const struct tls_files *files, const char *node_name,
	struct tls_contexts *out, char why[TLS_WHY_BYTES]);
void tls_contexts_free(struct tls_contexts *contexts);

/* Collects what is remembered of the other side's certificate. Returns false if the certificate is
 * not that of node_name, or there is none. */
bool tls_peer_identity(SSL *ssl, const char *node_name, struct tls_identity *out);
/* Gives the name in the first URI of this kind in the other side's certificate. Returns false, and
 * "" in `name`, if there is no certificate, or no such URI. */
bool tls_peer_name(SSL *ssl, enum tls_kind kind, char name[TLS_NAME_MAX + 1]);

bool tls_peer_has_certificate(SSL *ssl);
/* Writes the SHA-256 of the other side's certificate, or zeros if there is none. */
#define TLS_DIGEST_BYTES 32
void tls_peer_digest(SSL *ssl, uint8_t out[TLS_DIGEST_BYTES]);
/* Writes "nobody" if the other side shows no certificate. */
void tls_peer_describe(SSL *ssl, char out[TLS_WHO_BYTES]);

/* Returns true, and a sentence in `why`, if the context `now` would refuse a connection that was
 * made before `now` was loaded, because a certificate of the other side is revoked. A connection
 * whose handshake is not over has shown no certificate yet; see SSL_is_init_finished. */
bool tls_peer_objection(SSL *ssl, SSL_CTX *now, char why[TLS_WHY_BYTES]);

#endif
