/* tls_revoked.c: loads the list and the CRLs, and looks certificates up in them. */
#include "tls_revoked.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/error.h"

#define LIST_BYTES_MAX (1u << 20)
#define LINE_BYTES 512

enum revoked_kind { REVOKED_NODE, REVOKED_CLIENT, REVOKED_SERIAL };

static const char *const revoked_prefix[] = { [REVOKED_NODE] = "node:",
	[REVOKED_CLIENT] = "client:", [REVOKED_SERIAL] = "serial:" };

struct revoked_entry {
	enum revoked_kind kind;
	/* The number of the line in the list. */
	unsigned line;
	/* A name, or a serial number in capital hex digits without leading zeros. */
	char text[TLS_NAME_MAX + 1];
};

struct tls_revoked {
	unsigned references;
	struct revoked_entry *entries;
	size_t count, room;
	STACK_OF(X509_CRL) *crls;
	int64_t ends;
	/* The names of the files, for messages. */
	char *list, *crl;
};

__attribute__((format(printf, 2, 3))) static int revoked_fail(char why[TLS_WHY_BYTES],
	const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(why, TLS_WHY_BYTES, format, args);
	va_end(args);
	ERR_clear_error();
	return PAWL_ETLS;
}

static int revoked_no_memory(char why[TLS_WHY_BYTES]) {
	revoked_fail(why, "[tls] out of memory");
	return PAWL_ENOMEM;
}

/* ---- the list ---- */

/* Reads a serial number. Two ways to write the same number give the same text. */
static bool revoked_read_serial(const char *from, char out[TLS_NAME_MAX + 1]) {
	size_t used = 0;
	for (; *from; from++) {
		if (*from == ':' || (*from == '0' && used == 0)) {
			continue;
		}
		const char *digits = "0123456789ABCDEFabcdef", *digit = strchr(digits, *from);
		if (!digit || used == TLS_SERIAL_BYTES - 1) {
			return false;
		}
		out[used++] = digit - digits < 16 ? *digit : digits[digit - digits - 6];
	}
	out[used] = '\0';
	return used > 0;
}

/* Reads a line without its end. Returns false if it is none of the three kinds. */
static bool revoked_read_line(const char *line, struct revoked_entry *out) {
	for (enum revoked_kind kind = REVOKED_NODE; kind <= REVOKED_SERIAL; kind++) {
		size_t prefix = strlen(revoked_prefix[kind]);
		if (strncmp(line, revoked_prefix[kind], prefix) != 0) {
			continue;
		}
		out->kind = kind;
		if (kind == REVOKED_SERIAL) {
			return revoked_read_serial(line + prefix, out->text);
		}
		int size = snprintf(out->text, sizeof out->text, "%s", line + prefix);
		return size > 0 && (size_t)size < sizeof out->text;
	}
	return false;
}

static int revoked_add(struct tls_revoked *r, const struct revoked_entry *entry) {
	if (r->count == r->room) {
		size_t room = r->room ? r->room * 2 : 16;
		struct revoked_entry *more = realloc(r->entries, room * sizeof *more);
		if (!more) {
			return PAWL_ENOMEM;
		}
		r->entries = more;
		r->room = room;
	}
	r->entries[r->count++] = *entry;
	return 0;
}

static char *revoked_trim(char *line) {
	line += strspn(line, " \t");
	size_t size = strlen(line);
	while (size > 0 && strchr(" \t\r\n", line[size - 1])) {
		size--;
	}
	line[size] = '\0';
	return line;
}

static int revoked_read_lines(struct tls_revoked *r, FILE *file, char why[TLS_WHY_BYTES]) {
	char buffer[LINE_BYTES];
	size_t total = 0;
	for (unsigned number = 1; fgets(buffer, sizeof buffer, file); number++) {
		size_t size = strlen(buffer);
		bool whole = size > 0 && (buffer[size - 1] == '\n' || feof(file));
		struct revoked_entry entry = { .line = number };
		char *line = revoked_trim(buffer);
		total += size;
		if (whole && (*line == '\0' || *line == '#')) {
			continue;
		}
		if (!whole || !revoked_read_line(line, &entry)) {
			return revoked_fail(why,
				"%s:%u: '%.80s' does not name a certificate: write node:NAME, "
				"client:NAME or serial:HEX, one per line", r->list, number, line);
		}
		if (total > LIST_BYTES_MAX) {
			return revoked_fail(why,
				"[tls] revoked: %s is larger than 1 MiB. Is this the right file? "
				"For a long list use a CRL", r->list);
		}
		if (revoked_add(r, &entry) != 0) {
			return revoked_no_memory(why);
		}
	}
	return ferror(file) ? revoked_fail(why, "[tls] revoked: cannot read %s", r->list) : 0;
}

static int revoked_load_list(struct tls_revoked *r, char why[TLS_WHY_BYTES]) {
	FILE *file = fopen(r->list, "re");
	if (!file) {
		char reason[128];
		return revoked_fail(why, "[tls] revoked: cannot read %s: %s", r->list,
			strerror_r(errno, reason, sizeof reason));
	}
	int error = revoked_read_lines(r, file, why);
	fclose(file);
	return error;
}

/* ---- CRLs ---- */

/* Returns whether an authority of the `ca` file has signed the CRL. *out_known says whether its
 * issuer is such an authority at all. */
static bool revoked_signed(X509_CRL *crl, X509_STORE *authorities, bool *out_known) {
	STACK_OF(X509) *all = X509_STORE_get1_all_certs(authorities);
	bool good = false;
	*out_known = false;
	for (int i = 0; !good && i < sk_X509_num(all); i++) {
		X509 *cert = sk_X509_value(all, i);
		if (X509_NAME_cmp(X509_get_subject_name(cert), X509_CRL_get_issuer(crl)) == 0
			&& X509_check_ca(cert) != 0) {
			*out_known = true;
			good = (X509_get_key_usage(cert) & KU_CRL_SIGN)
				&& X509_CRL_verify(crl, X509_get0_pubkey(cert)) == 1;
		}
	}
	sk_X509_pop_free(all, X509_free);
	ERR_clear_error();
	return good;
}

static int revoked_check_crl(struct tls_revoked *r, X509_CRL *crl, X509_STORE *authorities,
	char why[TLS_WHY_BYTES]) {
	const ASN1_TIME *from = X509_CRL_get0_lastUpdate(crl),
		*until = X509_CRL_get0_nextUpdate(crl);
	char issuer[192] = "", at[32];
	bool known;
	X509_NAME_oneline(X509_CRL_get_issuer(crl), issuer, sizeof issuer);
	if (!revoked_signed(crl, authorities, &known)) {
		return revoked_fail(why, "[tls] crl: the CRL of %s in %s is %s", issuer, r->crl,
			known ? "not signed by that authority's key: make a new one with "
				"pawl cert revoke" : "not from an authority in the ca file: remove "
					"the CRL, or add that authority");
	}
	if (X509_CRL_get_ext_by_critical(crl, 1, -1) >= 0) {
		return revoked_fail(why,
			"[tls] crl: the CRL of %s in %s is partial, or has an extension that this "
			"version does not know: use a complete CRL", issuer, r->crl);
	}
	if (X509_cmp_current_time(from) >= 0) {
		tls_time_text(from, at);
		return revoked_fail(why,
			"[tls] crl: the CRL of %s in %s is not valid before %s: check the "
			"clock of this machine", issuer, r->crl, at);
	}
	if (until && X509_cmp_current_time(until) <= 0) {
		tls_time_text(until, at);
		return revoked_fail(why,
			"[tls] crl: the CRL of %s in %s expired on %s: make a new one with pawl "
			"cert revoke, and copy it here", issuer, r->crl, at);
	}
	int64_t ends = tls_time_seconds(until);
	r->ends = ends && (!r->ends || ends < r->ends) ? ends : r->ends;
	return 0;
}

static int revoked_read_crls(struct tls_revoked *r, BIO *file, X509_STORE *authorities,
	char why[TLS_WHY_BYTES]) {
	X509_CRL *crl;
	while ((crl = PEM_read_bio_X509_CRL(file, NULL, NULL, NULL)) != NULL) {
		int error = revoked_check_crl(r, crl, authorities, why);
		if (error) {
			X509_CRL_free(crl);
			return error;
		}
		if (!sk_X509_CRL_push(r->crls, crl)) {
			X509_CRL_free(crl);
			return revoked_no_memory(why);
		}
	}
	bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	if (!end || sk_X509_CRL_num(r->crls) == 0) {
		return revoked_fail(why,
			"[tls] crl: %s contains no CRL in PEM format, or a damaged one (to convert "
			"one from DER: openssl crl -inform DER -in FILE)", r->crl);
	}
	ERR_clear_error();
	return 0;
}

static int revoked_load_crls(struct tls_revoked *r, X509_STORE *authorities,
	char why[TLS_WHY_BYTES]) {
	ERR_clear_error();
	BIO *file = BIO_new_file(r->crl, "re");
	if (!file) {
		char reason[128];
		return revoked_fail(why, "[tls] crl: cannot read %s: %s", r->crl,
			strerror_r(errno, reason, sizeof reason));
	}
	int error = revoked_read_crls(r, file, authorities, why);
	BIO_free(file);
	return error;
}

/* ---- the set ---- */

int tls_revoked_load(const char *list, const char *crl, X509_STORE *authorities,
	struct tls_revoked **out, char why[TLS_WHY_BYTES]) {
	struct tls_revoked *r = calloc(1, sizeof *r);
	if (!r) {
		return revoked_no_memory(why);
	}
	*r = (struct tls_revoked){ .references = 1, .list = strdup(list ? list : ""),
		.crl = strdup(crl ? crl : ""), .crls = sk_X509_CRL_new_null() };
	int error = r->list && r->crl && r->crls ? 0 : revoked_no_memory(why);
	error = !error && *r->list ? revoked_load_list(r, why) : error;
	error = !error && *r->crl ? revoked_load_crls(r, authorities, why) : error;
	if (error) {
		tls_revoked_free(r);
		return error;
	}
	*out = r;
	return 0;
}

struct tls_revoked *tls_revoked_keep(struct tls_revoked *r) {
	r->references++;
	return r;
}

void tls_revoked_free(struct tls_revoked *r) {
	if (!r || --r->references > 0) {
		return;
	}
	sk_X509_CRL_pop_free(r->crls, X509_CRL_free);
	free(r->entries);
	free(r->list);
	free(r->crl);
	free(r);
}

/* ---- asking ---- */

static bool revoked_matches(const struct revoked_entry *entry, X509 *cert, const char *serial) {
	switch (entry->kind) {
	case REVOKED_NODE:
		return tls_certificate_has_name(cert, TLS_NAME_NODE, entry->text);
	case REVOKED_CLIENT:
		return tls_certificate_has_name(cert, TLS_NAME_CLIENT, entry->text);
	case REVOKED_SERIAL:
		return strcmp(entry->text, serial) == 0;
	}
	return false;
}

static const struct revoked_entry *revoked_find(const struct tls_revoked *r, X509 *cert) {
	/* A serial number that is not positive leaves this empty. */
	char shown[TLS_SERIAL_BYTES], serial[TLS_NAME_MAX + 1] = "";
	tls_certificate_serial(cert, shown);
	revoked_read_serial(shown, serial);
	for (size_t i = 0; i < r->count; i++) {
		if (revoked_matches(&r->entries[i], cert, serial)) {
			return &r->entries[i];
		}
	}
	return NULL;
}

static bool revoked_in_crl(const struct tls_revoked *r, X509 *cert) {
	for (int i = 0; i < sk_X509_CRL_num(r->crls); i++) {
		X509_CRL *crl = sk_X509_CRL_value(r->crls, i);
		X509_REVOKED *found;
		if (X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_issuer_name(cert)) == 0
			&& X509_CRL_get0_by_cert(crl, &found, cert) == 1) {
			return true;
		}
	}
	return false;
}

bool tls_revoked_has(const struct tls_revoked *r, X509 *cert, char why[TLS_WHY_BYTES]) {
	char who[TLS_WHO_BYTES], remake[TLS_WHO_BYTES];
	const struct revoked_entry *entry = r ? revoked_find(r, cert) : NULL;
	if (!r || (!entry && !revoked_in_crl(r, cert))) {
		return false;
	}
	tls_certificate_describe(cert, who);
	tls_certificate_remake(cert, remake);
	if (!entry) {
		revoked_fail(why,
			"the certificate of %.160s is revoked by the CRL %s; if it is still "
			"wanted, give it a new certificate: %.160s", who, r->crl, remake);
	} else if (entry->kind == REVOKED_SERIAL) {
		revoked_fail(why,
			"the certificate of %.160s is revoked by %s:%u; if it is still wanted, "
			"give it a new certificate: %.160s", who, r->list, entry->line, remake);
	} else {
		revoked_fail(why,
			"the certificate of %.160s is revoked by name in %s:%u; if it is still "
			"wanted, give it a new certificate and revoke the old ones by their serial "
			"numbers instead", who, r->list, entry->line);
	}
	return true;
}

int64_t tls_revoked_ends(const struct tls_revoked *r) {
	return r ? r->ends : 0;
}
