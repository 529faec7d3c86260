/* x509.h: keys and certificates of a cluster.
 *
 * A node's certificate carries the URI pawl:node:NAME, which peers check, and its hosts, which clients check; a client's
 * carries pawl:client:NAME. The URI is what keeps a client from speaking as a node. A node that must not be a master has
 * ?role=replica or ?role=embedded behind its name; versions that know of no roles then refuse it altogether.
 */
#ifndef PAWL_CLI_X509_H
#define PAWL_CLI_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>

enum x509_kind { X509_CA, X509_NODE, X509_CLIENT };

struct x509_wanted {
	enum x509_kind kind;
	const char *role;        /* of a node: "replica", "embedded"; NULL: whatever the cluster makes of it */
	const char *name;        /* common name, and NAME of the URI */
	const char *const *hosts; /* DNS names and IP addresses */
	size_t host_count;
	long days; /* from now; not beyond the issuer's own end */
};

bool x509_name_valid(const char *name); /* 1 to 63 letters, digits, '.', '_', '-' */
bool x509_host_valid(const char *host); /* an IP address or a DNS name, also "*.example.org" */

/* A new key: "ec" (P-256) or "ed25519". NULL: no such type, or OpenSSL failed. */
EVP_PKEY *x509_key_new(const char *type);
/* A certificate for `key`, issued by issuer with issuer_key, or by itself when they are NULL. NULL: OpenSSL failed. */
X509 *x509_issue(const struct x509_wanted *wanted, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key);

#endif
