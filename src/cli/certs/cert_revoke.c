/* cert_revoke.c: pawl cert revoke: rewrites the authority's CRL with more entries, or adds lines to
 * a list. */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "cert.h"
#include "output.h"
#include "x509_read.h"

/* The clocks of those who check the CRL may be behind by this, in s. */
#define BACKDATE_S 3600

/* What is to be revoked, in the form that it has in a list: serial:HEX, node:NAME or client:NAME.
 * The memory of `line` is owned by this structure. */
struct wanted {
	char *line;
	/* The file from which it was taken, or "". */
	const char *comment;
};

static bool has_prefix(const char *text, const char *prefix) {
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static char *line_of_serial(const char *serial) {
	return cert_join("serial:", serial, "", "");
}

static char *line_of_file(const struct cert *c, const char *path, X509 *authority) {
	char serial[X509_SERIAL_BYTES];
	X509 *x = cert_read(c, path);
	if (authority && X509_verify(x, X509_get0_pubkey(authority)) != 1) {
		cert_fail(c, "cannot revoke", path,
			"it was not signed by this authority: give the one that signed it with "
			"--dir, or with --ca and --ca-key");
	}
	if (X509_check_ca(x) == 1) {
		cert_fail(c, "cannot revoke", path,
			"it is an authority: remove it from every CA file instead");
	}
	x509_serial(x, serial);
	X509_free(x);
	return line_of_serial(serial);
}

/* Reads what is to be revoked. `authority` is that of the CRL; NULL means that it is for a list. */
static void read_wanted(const struct cert *c, const char *what, X509 *authority,
	struct wanted *out) {
	char serial[X509_SERIAL_BYTES];
	bool node = has_prefix(what, "node:"), client = has_prefix(what, "client:");
	*out = (struct wanted){ .comment = "" };
	if (has_prefix(what, "serial:")) {
		if (!x509_serial_read(what + strlen("serial:"), serial)) {
			cli_misuse(c->line,
				"'%s': write serial: and at most 40 hexadecimal digits, as pawl "
				"cert show prints them",
				what);
		}
		out->line = line_of_serial(serial);
	} else if (!node && !client) {
		out->line = line_of_file(c, what, authority);
		out->comment = what;
	} else if (authority) {
		cli_misuse(c->line,
			"'%s': a CRL contains only serial numbers: give the certificate's file, or "
			"use --list FILE",
			what);
	} else {
		const char *name = what + strlen(node ? "node:" : "client:");
		if (node ? !x509_name_valid(name)
			: !*name || strlen(name) > 255 || strpbrk(name, " \t\r\n")) {
			cli_misuse(c->line, "'%s': this is not a valid name", what);
		}
		out->line = cert_join(what, "", "", "");
	}
}

static json_t *told(struct wanted *all, size_t count) {
	json_t *lines = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(lines, json_string(all[i].line));
	}
	return lines;
}

/* ---- a list ---- */

static int put_text(FILE *to, const void *text) {
	return fputs(text, to) >= 0;
}

static bool listed(const char *text, const char *line) {
	for (const char *at = text; (at = strstr(at, line)) != NULL; at++) {
		char after = at[strlen(line)];
		if ((at == text || at[-1] == '\n')
			&& (after == '\0' || after == '\n' || after == '\r')) {
			return true;
		}
	}
	return false;
}

static int revoke_by_list(const struct cert *c, struct wanted *all, size_t count) {
	char *text = cert_read_text(c, c->list_file);
	if (!text) {
		text = cert_join("# Revoked certificates, one per line: node:NAME, client:NAME or "
			"serial:HEX.\n",
			"", "", "");
	}
	for (size_t i = 0; i < count; i++) {
		if (!listed(text, all[i].line)) {
			size_t size = strlen(text);
			char *comment = *all[i].comment ? cert_join("# ", all[i].comment, "\n", "")
				: cert_join("", "", "", "");
			char *more = cert_join(text, size && text[size - 1] != '\n' ? "\n" : "",
				comment, all[i].line);
			free(text);
			free(comment);
			text = cert_join(more, "\n", "", "");
			free(more);
		}
	}
	cert_write(c, c->list_file, 0644, true, put_text, text);
	free(text);
	if (c->line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "list", pawl_str(c->list_file));
		output_json_set(object, "revoked", told(all, count));
		output_json(object);
	} else {
		output_field("list", "%s", c->list_file);
		for (size_t i = 0; i < count; i++) {
			output_field("revoked", "%s", all[i].line);
		}
		printf("next: copy it to every node ([tls] revoked) and reload: systemctl reload "
			"pawld\n");
	}
	return CLI_DONE;
}

/* ---- a CRL ---- */

static int put_crl(FILE *to, const void *crl) {
	return PEM_write_X509_CRL(to, crl);
}

static bool add_serial(X509_CRL *crl, ASN1_INTEGER *serial) {
	ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
	X509_REVOKED *already, *entry = X509_REVOKED_new();
	if (X509_CRL_get0_by_serial(crl, &already, serial) == 1) {
		X509_REVOKED_free(entry);
		ASN1_TIME_free(now);
		return true;
	}
	bool good = entry && now && X509_REVOKED_set_serialNumber(entry, serial) == 1
		&& X509_REVOKED_set_revocationDate(entry, now) == 1
		&& X509_CRL_add0_revoked(crl, entry) == 1;
	ASN1_TIME_free(now);
	if (!good) {
		X509_REVOKED_free(entry);
	}
	return good;
}

static bool add_wanted(X509_CRL *crl, const struct wanted *w) {
	BIGNUM *number = NULL;
	ASN1_INTEGER *serial = BN_hex2bn(&number, w->line + strlen("serial:")) > 0
		? BN_to_ASN1_INTEGER(number, NULL)
		: NULL;
	bool good = serial && add_serial(crl, serial);
	ASN1_INTEGER_free(serial);
	BN_free(number);
	return good;
}

/* Adds the number of the CRL. Every CRL has a higher number than the one before it. */
static bool add_number(X509_CRL *crl, const X509_CRL *before) {
	ASN1_INTEGER *last = before ? X509_CRL_get_ext_d2i(before, NID_crl_number, NULL, NULL)
		: NULL;
	BIGNUM *number = last ? ASN1_INTEGER_to_BN(last, NULL) : BN_new();
	ASN1_INTEGER *next = number && BN_add_word(number, 1) == 1
		? BN_to_ASN1_INTEGER(number, NULL)
		: NULL;
	bool good = next
		&& X509_CRL_add1_ext_i2d(crl, NID_crl_number, next, 0, X509V3_ADD_DEFAULT) == 1;
	ASN1_INTEGER_free(last);
	ASN1_INTEGER_free(next);
	BN_free(number);
	return good;
}

static bool set_times(const struct cert *c, X509_CRL *crl, const X509 *authority) {
	ASN1_TIME *from = X509_time_adj_ex(NULL, 0, -BACKDATE_S, NULL), *until = NULL;
	const ASN1_TIME *end = X509_get0_notAfter(authority);
	if (c->days != CERT_DAYS_DEFAULT) {
		until = X509_time_adj_ex(NULL, (int)c->days, 0, NULL);
		end = until && ASN1_TIME_compare(until, end) < 0 ? until : end;
	}
	bool good = from && X509_CRL_set1_lastUpdate(crl, from) == 1
		&& X509_CRL_set1_nextUpdate(crl, end) == 1;
	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
	return good;
}

static bool copy_entries(X509_CRL *crl, X509_CRL *before) {
	STACK_OF(X509_REVOKED) *entries = before ? X509_CRL_get_REVOKED(before) : NULL;
	bool good = true;
	for (int i = 0; good && i < sk_X509_REVOKED_num(entries); i++) {
		X509_REVOKED *copy = X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i));
		good = copy && X509_CRL_add0_revoked(crl, copy) == 1;
	}
	return good;
}

static bool sign_crl(X509_CRL *crl, X509 *authority, EVP_PKEY *key) {
	X509V3_CTX context;
	X509V3_set_ctx(&context, authority, NULL, NULL, crl, 0);
	X509_EXTENSION *keyid = X509V3_EXT_conf_nid(NULL, &context, NID_authority_key_identifier,
		"keyid");
	bool good = keyid && X509_CRL_add_ext(crl, keyid, -1) == 1 && X509_CRL_sort(crl) == 1 &&
		X509_CRL_sign(crl, key, EVP_PKEY_is_a(key, "ED25519") ? NULL : EVP_sha256()) > 0;
	X509_EXTENSION_free(keyid);
	return good;
}

static X509_CRL *make_crl(const struct cert *c, X509 *authority, X509_CRL *before,
	const struct wanted *all, size_t count) {
	X509_CRL *crl = X509_CRL_new();
	bool good = crl && X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1
		&& X509_CRL_set_issuer_name(crl, X509_get_subject_name(authority)) == 1
		&& set_times(c, crl, authority) && copy_entries(crl, before);
	for (size_t i = 0; good && i < count; i++) {
		good = add_wanted(crl, &all[i]);
	}
	if (!good || !add_number(crl, before)) {
		cert_fail(c, "cannot make", "a CRL", cert_openssl_reason());
	}
	return crl;
}

static void report_crl(const struct cert *c, const char *path, X509_CRL *crl, struct wanted *all,
	size_t count) {
	char until[32];
	int entries = sk_X509_REVOKED_num(X509_CRL_get_REVOKED(crl));
	x509_time(X509_CRL_get0_nextUpdate(crl), until);
	if (c->line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "crl", pawl_str(path));
		output_json_set(object, "revoked", told(all, count));
		output_json_set(object, "count", json_integer(entries > 0 ? entries : 0));
		output_json_set(object, "valid_until", json_string(until));
		output_json(object);
		return;
	}
	output_field("crl", "%s, %d certificate%s", path, entries > 0 ? entries : 0,
		entries == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++) {
		output_field("revoked", "%s", all[i].line);
	}
	output_field("valid until", "%s", until);
	printf("next: copy it to every node ([tls] crl) and reload: systemctl reload pawld\n");
}

static int revoke_by_crl(const struct cert *c, X509 *authority, struct wanted *all, size_t count) {
	EVP_PKEY *key = cert_read_authority_key(c, authority);
	char *path = cert_crl_path(c);
	X509_CRL *before = cert_read_crl(c, path);
	if (before && X509_CRL_verify(before, key) != 1) {
		cert_fail(c, "cannot add to", path,
			"it is another authority's CRL: give another file with --crl");
	}
	X509_CRL *crl = make_crl(c, authority, before, all, count);
	if (!sign_crl(crl, authority, key)) {
		cert_fail(c, "cannot sign", path, cert_openssl_reason());
	}
	cert_write(c, path, 0644, true, put_crl, crl);
	report_crl(c, path, crl, all, count);
	X509_CRL_free(crl);
	X509_CRL_free(before);
	EVP_PKEY_free(key);
	free(path);
	return CLI_DONE;
}

int cert_revoke(struct cert *c, char **operands, int count) {
	struct wanted *all = calloc((size_t)count + 1, sizeof *all);
	if (c->list_file && (c->crl_file || count == 0)) {
		cli_misuse(c->line, count ? "--list and --crl exclude each other"
			: "--list needs WHAT to revoke");
	}
	if (!all) {
		cert_fail(c, "cannot make", "a list", "out of memory");
	}
	X509 *authority = c->list_file ? NULL : cert_read_authority(c);
	for (int i = 0; i < count; i++) {
		read_wanted(c, operands[i], authority, &all[i]);
	}
	int status = c->list_file ? revoke_by_list(c, all, (size_t)count)
		: revoke_by_crl(c, authority, all, (size_t)count);
	for (int i = 0; i < count; i++) {
		free(all[i].line);
	}
	free(all);
	X509_free(authority);
	return status;
}
