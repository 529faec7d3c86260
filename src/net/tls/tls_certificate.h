/* tls_certificate.h: whom a certificate stands for, what it lets a node be, and how messages name
 * it.
 *
 * A node's certificate carries the URI `pawl:node:NAME` among its alternative names, and a client's
 * carries `pawl:client:NAME`. Neither stands for the other: a client's certificate cannot speak as
 * a peer.
 *
 * `pawl:node:NAME?role=replica` (or `embedded`) restricts what the node may be. The role stands
 * inside the URI and not in another field, so that a version that knows of no roles does not find a
 * certificate of NAME in it and refuses it, instead of taking it for an unrestricted one.
 * `pawl:node:NAME` and `?role=master` restrict nothing.
 */
#ifndef PAWL_NET_TLS_CERTIFICATE_H
#define PAWL_NET_TLS_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest size of a name in a certificate, in bytes. */
#define TLS_NAME_MAX 255
/* The size of a sentence that says why something is refused, in bytes. */
#define TLS_WHY_BYTES 512
/* The size of a description of a certificate, in bytes. */
#define TLS_WHO_BYTES 320
/* The size of a serial number in hex digits, with the terminating 0. A serial number has at most 20
 * bytes. */
#define TLS_SERIAL_BYTES 41
/* An operator is warned when a certificate ends in less than this many seconds. */
#define TLS_ENDS_SOON_S ((int64_t)30 * 24 * 3600)

/* What a certificate stands for: nobody, a node, or a client. */
enum tls_kind { TLS_NAME_NONE, TLS_NAME_NODE, TLS_NAME_CLIENT };

/* The most that a node may be. Each role includes those before it. */
enum node_role {
	/* The certificate is not that node's, or its role is one that this version does not
	 * know. */
	NODE_ROLE_NONE,
	/* A replica inside a program. */
	NODE_ROLE_EMBEDDED,
	NODE_ROLE_REPLICA,
	/* There is no restriction. Without TLS, a node that shows no certificate has this role,
	 * too. */
	NODE_ROLE_MASTER
};
/* Returns the role as it stands in the URI, or "none". */
const char *node_role_name(enum node_role role);

/* What is remembered of the certificate of a node. */
struct tls_identity {
	/* Empty if there is no TLS. */
	char serial[TLS_SERIAL_BYTES];
	/* When the certificate ends, in seconds since 1970. */
	int64_t ends;
	enum node_role role;
};

/* Returns the role that the certificate gives to the node with this name. If several URIs have that
 * name, the strictest role counts. */
enum node_role tls_certificate_role(X509 *cert, const char *node_name);
/* Gives the name in the first URI of this kind. Returns false, and "" in `name`, if there is
 * none. */
bool tls_certificate_name(X509 *cert, enum tls_kind kind, char name[TLS_NAME_MAX + 1]);
/* Returns whether one of the URIs of this kind has the name, with any role. */
bool tls_certificate_has_name(X509 *cert, enum tls_kind kind, const char *name);
/* Collects what is remembered of the certificate of the node with this name. */
void tls_certificate_identity(X509 *cert, const char *node_name, struct tls_identity *out);

/* Writes the serial number in capital hex digits, or "" if it cannot be read. */
void tls_certificate_serial(X509 *cert, char out[TLS_SERIAL_BYTES]);
/* Describes a certificate, for example "node b (serial 4A3F)", "client billing (serial 4B)" or "CN
 * = x (serial 4C)". */
void tls_certificate_describe(X509 *cert, char out[TLS_WHO_BYTES]);
/* Writes the command that makes a new certificate in place of this one, for example "pawl cert node
 * b --role replica". */
void tls_certificate_remake(X509 *cert, char out[TLS_WHO_BYTES]);

/* Returns seconds since 1970; 0 if the time cannot be read. */
int64_t tls_time_seconds(const ASN1_TIME *time);
/* Writes a time such as 2026-11-23 12:00 UTC; "" if it cannot be read. */
void tls_time_text(const ASN1_TIME *time, char out[32]);

#endif
