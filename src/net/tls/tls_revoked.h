/* tls_revoked.h: certificates that are no good any more, although an authority signed them and their time is not over.
 *
 * Two sources, of which either may be missing:
 * - a list: a text file, one line each of `node:NAME`, `client:NAME` (every certificate of that name) or `serial:HEX` (colons and
 *   leading zeros do not matter); lines that begin with # are comments;
 * - CRLs (RFC 5280): a PEM file with one or more, each complete and signed by an authority of the `ca` file.
 * A set never changes after it was loaded.
 */
#ifndef PAWL_NET_TLS_REVOKED_H
#define PAWL_NET_TLS_REVOKED_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "tls_certificate.h"

struct tls_revoked;

/* `list` and `crl` may be NULL or empty; `authorities` sign the CRLs. 0 and a set with one reference, or PAWL_ETLS or PAWL_ENOMEM
 * with a sentence in `why` that names the file, and the line of a list. A CRL whose time is over is an error. */
int tls_revoked_load(const char *list, const char *crl, X509_STORE *authorities, struct tls_revoked **out, char why[TLS_WHY_BYTES]);
struct tls_revoked *tls_revoked_keep(struct tls_revoked *r); /* one more reference; returns r */
void tls_revoked_free(struct tls_revoked *r);                /* one less; accepts NULL */

/* True, and a sentence in `why`: whose certificate, by which line or CRL, and the remedy. A NULL set has none. */
bool tls_revoked_has(const struct tls_revoked *r, X509 *cert, char why[TLS_WHY_BYTES]);

/* When the first of the CRLs ends, in s since 1970; 0: none does. */
int64_t tls_revoked_ends(const struct tls_revoked *r);

#endif
