/* x509.c: makes keys and certificates with OpenSSL. It writes no files. */
#include "x509.h"

#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* The clocks of those who check the certificate may be behind by this, in s. */
#define BACKDATE_S 3600

bool x509_name_valid(const char *name) {
	size_t n = strspn(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
	return n > 0 && n < 64 && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

static ASN1_OCTET_STRING *host_address(const char *host) {
	return a2i_IPADDRESS(host);
}

bool x509_host_valid(const char *host) {
	ASN1_OCTET_STRING *address = host_address(host);
	if (address) {
		ASN1_OCTET_STRING_free(address);
		return true;
	}
	const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
	size_t n = strspn(name,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_");
	return n > 0 && n < 254 && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

EVP_PKEY *x509_key_new(const char *type) {
	if (strcmp(type, "ec") == 0) {
		return EVP_EC_gen("P-256");
	}
	return strcmp(type, "ed25519") == 0 ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519") : NULL;
}

/* ---- subject alternative names ---- */

static bool push_name(GENERAL_NAMES *names, int type, ASN1_STRING *take_value) {
	GENERAL_NAME *name = GENERAL_NAME_new();
	if (!name || !take_value) {
		GENERAL_NAME_free(name);
		ASN1_STRING_free(take_value);
		return false;
	}
	GENERAL_NAME_set0_value(name, type, take_value);
	if (!sk_GENERAL_NAME_push(names, name)) {
		GENERAL_NAME_free(name);
		return false;
	}
	return true;
}

static bool push_text(GENERAL_NAMES *names, int type, const char *text) {
	ASN1_IA5STRING *value = ASN1_IA5STRING_new();
	if (value && !ASN1_STRING_set(value, text, -1)) {
		ASN1_IA5STRING_free(value);
		value = NULL;
	}
	return push_name(names, type, value);
}

static bool push_all(GENERAL_NAMES *names, const struct x509_wanted *wanted) {
	char uri[128];
	snprintf(uri, sizeof uri, "pawl:%s:%s%s%s", wanted->kind == X509_NODE ? "node" : "client",
		wanted->name, wanted->role ? "?role=" : "", wanted->role ? wanted->role : "");
	bool good = push_text(names, GEN_URI, uri);
	for (size_t i = 0; i < wanted->host_count && good; i++) {
		ASN1_OCTET_STRING *address = host_address(wanted->hosts[i]);
		good = address ? push_name(names, GEN_IPADD, address)
			: push_text(names, GEN_DNS, wanted->hosts[i]);
	}
	return good;
}

static bool add_names(X509 *x, const struct x509_wanted *wanted) {
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	bool good = names && push_all(names, wanted)
		&& X509_add1_ext_i2d(x, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
	GENERAL_NAMES_free(names);
	return good;
}

/* ---- the certificate ---- */

static bool add_extension(X509 *x, X509V3_CTX *context, int nid, const char *value) {
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, context, nid, value);
	bool good = extension && X509_add_ext(x, extension, -1);
	X509_EXTENSION_free(extension);
	return good;
}

static bool add_extensions(X509 *x, X509 *issuer, const struct x509_wanted *wanted) {
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
	bool ca = wanted->kind == X509_CA;
	return add_extension(x, &context, NID_basic_constraints,
		ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE")
		&& add_extension(x, &context, NID_key_usage,
			ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature")
		&& add_extension(x, &context, NID_subject_key_identifier, "hash")
		&& (ca
			|| (add_extension(x, &context, NID_authority_key_identifier, "keyid")
				&& add_extension(x, &context, NID_ext_key_usage,
					wanted->kind == X509_NODE ? "serverAuth,clientAuth"
						: "clientAuth")
				&& add_names(x, wanted)));
}

static bool set_serial(X509 *x) {
	unsigned char bytes[16];
	if (RAND_bytes(bytes, sizeof bytes) != 1) {
		return false;
	}
	/* This makes the number positive, and all numbers equally long. */
	bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40);
	BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
	bool good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
	BN_free(number);
	return good;
}

static bool set_times(X509 *x, const X509 *issuer, long days) {
	if (!X509_time_adj_ex(X509_getm_notBefore(x), 0, -BACKDATE_S, NULL) ||
		!X509_time_adj_ex(X509_getm_notAfter(x), (int)days, 0, NULL)) {
		return false;
	}
	/* A certificate that outlives its issuer would only look valid. */
	if (issuer && ASN1_TIME_compare(X509_get0_notAfter(x), X509_get0_notAfter(issuer)) > 0) {
		return X509_set1_notAfter(x, X509_get0_notAfter(issuer)) == 1;
	}
	return true;
}

static bool fill(X509 *x, const struct x509_wanted *wanted, EVP_PKEY *key, X509 *issuer) {
	X509_NAME *subject = X509_get_subject_name(x);
	const unsigned char *name = (const unsigned char *)wanted->name;
	return X509_set_version(x, X509_VERSION_3) && set_serial(x)
		&& set_times(x, issuer, wanted->days)
		&& X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, name, -1, -1,
			0)
		&& X509_set_issuer_name(x, issuer ? X509_get_subject_name(issuer) : subject)
		&& X509_set_pubkey(x, key) && add_extensions(x, issuer ? issuer : x, wanted);
}

X509 *x509_issue(const struct x509_wanted *wanted, EVP_PKEY *key, X509 *issuer,
	EVP_PKEY *issuer_key) {
	X509 *x = X509_new();
	EVP_PKEY *signer = issuer ? issuer_key : key;
	const EVP_MD *digest = EVP_PKEY_is_a(signer, "ED25519") ? NULL : EVP_sha256();
	if (!x || !fill(x, wanted, key, issuer) || X509_sign(x, signer, digest) == 0) {
		X509_free(x);
		return NULL;
	}
	return x;
}
