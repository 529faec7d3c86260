/* tls_revoked.h: certificates that are revoked although an authority signed them and their time is
 * not over.
 *
 * There are two sources, of which either may be missing:
 *
 *   - a list: a text file whose lines are `node:NAME` or `client:NAME` (every certificate of that
 *     name) or `serial:HEX` (colons and leading zeros do not matter); lines that begin with # are
 *     comments;
 *   - CRLs (RFC 5280): a PEM file with one or more CRLs, each complete and signed by an authority
 *     of the `ca` file.
 *
 * A set never changes after it was loaded.
 */
#ifndef PAWL_NET_TLS_REVOKED_H
#define PAWL_NET_TLS_REVOKED_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "tls_certificate.h"

struct tls_revoked;

/* Loads a set. `list` and `crl` may be NULL or empty; `authorities` sign the CRLs. Returns 0 and a
 * set with one reference; or PAWL_ETLS or PAWL_ENOMEM with a sentence in `why` that names the file
 * and, for a list, the line. A CRL whose time is over is an error. */
int tls_revoked_load(const char *list, const char *crl, X509_STORE *authorities,
	struct tls_revoked **out, char why[TLS_WHY_BYTES]);
/* Adds a reference and returns r. */
struct tls_revoked *tls_revoked_keep(struct tls_revoked *r);
/* Drops a reference; the last one frees the set. Accepts NULL. */
void tls_revoked_free(struct tls_revoked *r);

/* Returns true if the certificate is revoked, and a sentence in `why` that says whose certificate
 * it is, by which line or CRL it is revoked, and what to do. A NULL set revokes nothing. */
bool tls_revoked_has(const struct tls_revoked *r, X509 *cert, char why[TLS_WHY_BYTES]);

/* Returns when the first of the CRLs ends, in seconds since 1970; 0 if none does. */
int64_t tls_revoked_ends(const struct tls_revoked *r);

#endif
