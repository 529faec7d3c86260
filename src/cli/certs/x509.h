/* x509.h: makes the keys and certificates of a cluster.
 *
 * The certificate of a node carries the URI pawl:node:NAME, which peers check, and the node's
 * hosts, which clients check. The certificate of a client carries pawl:client:NAME. The URI is what
 * keeps a client from speaking as a node. For a node that must not be a master, ?role=replica or
 * ?role=embedded follows the name; versions that know of no roles then refuse the certificate
 * altogether. */
#ifndef PAWL_CLI_X509_H
#define PAWL_CLI_X509_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>

enum x509_kind { X509_CA, X509_NODE, X509_CLIENT };

struct x509_wanted {
	enum x509_kind kind;

	/* For a node: "replica" or "embedded"; NULL means whatever the cluster makes of it. */
	const char *role;

	/* The common name, and the NAME of the URI. */
	const char *name;

	/* DNS names and IP addresses. */
	const char *const *hosts;
	size_t host_count;

	/* For how many days the certificate is valid from now; it never outlives its issuer. */
	long days;
};

/* Returns whether the name has 1 to 63 letters, digits, '.', '_' and '-', and begins with neither
 * '.' nor '-'. */
bool x509_name_valid(const char *name);
/* Returns whether this is an IP address or a DNS name; "*.example.org" is one, too. */
bool x509_host_valid(const char *host);

/* Makes a new key, "ec" (P-256) or "ed25519". Returns NULL if there is no such type, or if OpenSSL
 * has failed. */
EVP_PKEY *x509_key_new(const char *type);
/* Makes a certificate for `key`. `issuer` issues it with issuer_key; if these are NULL, it issues
 * itself. Returns NULL if OpenSSL has failed. */
X509 *x509_issue(const struct x509_wanted *wanted, EVP_PKEY *key, X509 *issuer,
	EVP_PKEY *issuer_key);

#endif
