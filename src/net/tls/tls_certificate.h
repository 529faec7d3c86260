/* tls_certificate.h: whom a certificate stands for, what it lets a node be, and how messages name it.
 *
 * A node's certificate carries the URI `pawl:node:NAME` among its alternative names, a client's `pawl:client:NAME`. Neither
 * stands for the other: a client's certificate cannot speak as a peer.
 *
 * `pawl:node:NAME?role=replica` (or embedded) restricts what the node may be. The role stands inside the URI and not beside it:
 * a version that knows of no roles finds no certificate of NAME in it and refuses it, instead of taking it for an unrestricted
 * one. `pawl:node:NAME` and `?role=master` restrict nothing.
 */
#ifndef PAWL_NET_TLS_CERTIFICATE_H
#define PAWL_NET_TLS_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_NAME_MAX 255
#define TLS_WHY_BYTES 512
#define TLS_WHO_BYTES 320   /* a description of a certificate */
#define TLS_SERIAL_BYTES 41 /* hex digits; a serial number has at most 20 bytes */
#define TLS_ENDS_SOON_S ((int64_t)30 * 24 * 3600) /* an operator is warned when less than this is left */

enum tls_kind { TLS_NOBODY, TLS_NODE, TLS_PERSON }; /* what a certificate stands for */

/* The most that a node may be. Each includes those before it. */
enum node_role {
	NODE_ROLE_NONE,     /* the certificate is not that node's, or its role is one that this version does not know */
	NODE_ROLE_EMBEDDED, /* a replica inside a program */
	NODE_ROLE_REPLICA,
	NODE_ROLE_MASTER    /* no restriction; also of a node that shows no certificate, where there is no TLS */
};
const char *node_role_name(enum node_role role); /* as in the URI; "none" */

/* What is remembered of the certificate of a node. */
struct tls_identity {
	char serial[TLS_SERIAL_BYTES]; /* empty: no TLS */
	int64_t ends;                  /* s since 1970 */
	enum node_role role;
};

/* The certificate's role for the node of this name. Of several URIs for the name the strictest counts. */
enum node_role tls_certificate_role(X509 *cert, const char *node_name);
/* The name in the first URI of this kind. False: there is none; name gets "". */
bool tls_certificate_name(X509 *cert, enum tls_kind kind, char name[TLS_NAME_MAX + 1]);
/* Whether one of its URIs of this kind has the name, with whatever role. */
bool tls_certificate_has_name(X509 *cert, enum tls_kind kind, const char *name);
void tls_certificate_identity(X509 *cert, const char *node_name, struct tls_identity *out);

void tls_certificate_serial(X509 *cert, char out[TLS_SERIAL_BYTES]);
/* Such as "node b (serial 4A3F)", "client billing (serial 4B)" or "CN = x (serial 4C)". */
void tls_certificate_describe(X509 *cert, char out[TLS_WHO_BYTES]);
/* The command that makes another one in its place, such as "pawl cert node b --role replica". */
void tls_certificate_remake(X509 *cert, char out[TLS_WHO_BYTES]);

int64_t tls_time_seconds(const ASN1_TIME *time);               /* s since 1970; 0: it cannot be read */
void tls_time_text(const ASN1_TIME *time, char out[32]);       /* such as 2026-11-23 12:00 UTC */

#endif
