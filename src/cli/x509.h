/* x509.h: keys and certificates of a cluster.
 *
 * A node's certificate carries the URI pawl:node:NAME, which peers check, and its hosts, which clients check; a client's
 * carries pawl:client:NAME. The URI is what keeps a client from speaking as a node.
 */
#ifndef PAWL_CLI_X509_H
#define PAWL_CLI_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>

enum x509_role { X509_ROLE_CA, X509_ROLE_NODE, X509_ROLE_CLIENT };

struct x509_wanted {
	enum x509_role role;
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
