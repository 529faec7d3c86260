/* x509_read.c: reads certificates and lines of lists with OpenSSL, and turns them into text. It
 * opens no files. */
#include "x509_read.h"

#include <openssl/bn.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* This is enough for 20 bytes. */
#define SERIAL_DIGITS_MAX 40

void x509_serial(X509 *x, char out[X509_SERIAL_BYTES]) {
	BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
	char *text = number ? BN_bn2hex(number) : NULL;
	snprintf(out, X509_SERIAL_BYTES, "%s", text ? text : "");
	OPENSSL_free(text);
	BN_free(number);
}

void x509_subject(const X509_NAME *name, char *out, size_t size) {
	BIO *memory = BIO_new(BIO_s_mem());
	int used = memory && X509_NAME_print_ex(memory, name, 0, XN_FLAG_ONELINE) >= 0
		? BIO_read(memory, out, (int)size - 1)
		: 0;
	out[used > 0 ? used : 0] = '\0';
	BIO_free(memory);
}

void x509_names(X509 *x, char out[X509_NAMES_BYTES]) {
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	BIO *memory = BIO_new(BIO_s_mem());
	for (int i = 0; memory && i < sk_GENERAL_NAME_num(names); i++) {
		BIO_puts(memory, i ? ", " : "");
		GENERAL_NAME_print(memory, sk_GENERAL_NAME_value(names, i));
	}
	int used = memory ? BIO_read(memory, out, X509_NAMES_BYTES - 1) : 0;
	out[used > 0 ? used : 0] = '\0';
	BIO_free(memory);
	GENERAL_NAMES_free(names);
}

/* Reads the i-th name as a URI. Gives "" if it is no URI, or has a zero byte. */
static void read_uri(const GENERAL_NAMES *names, int i, char out[256]) {
	const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
	out[0] = '\0';
	if (name->type == GEN_URI) {
		const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
		const unsigned char *data = ASN1_STRING_get0_data(uri);
		int size = ASN1_STRING_length(uri);
		if (size < 256 && !memchr(data, 0, (size_t)size)) {
			memcpy(out, data, (size_t)size);
			out[size] = '\0';
		}
	}
}

static bool has_prefix(const char *text, const char *prefix) {
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns "node:b" or "client:backup", without the role of a node, which stands behind a question
 * mark; "" if the URI is of another kind. */
static const char *uri_name(char uri[256], const char **out_role) {
	char *mark = has_prefix(uri, "pawl:node:") ? strchr(uri, '?') : NULL;
	*out_role = mark ? mark + 1 : "";
	if (mark) {
		*mark = '\0';
	}
	return has_prefix(uri, "pawl:") ? uri + strlen("pawl:") : "";
}

void x509_kind(X509 *x, char out[X509_KIND_BYTES]) {
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	char uri[256];
	const char *role;
	snprintf(out, X509_KIND_BYTES, "%s",
		X509_check_ca(x) == 1 ? "authority" : "neither a node's nor a client's");
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		read_uri(names, i, uri);
		const char *name = uri_name(uri, &role);
		if (has_prefix(name, "client:")) {
			snprintf(out, X509_KIND_BYTES, "client %.63s", name + strlen("client:"));
			break;
		}
		if (has_prefix(name, "node:")) {
			snprintf(out, X509_KIND_BYTES, "node %.63s%s%.32s", name + strlen("node:"),
				*role ? ", at most " : "",
				has_prefix(role, "role=") ? role + strlen("role=") : role);
			break;
		}
	}
	GENERAL_NAMES_free(names);
}

void x509_time(const ASN1_TIME *at, char out[32]) {
	struct tm tm;
	out[0] = '\0';
	if (at && ASN1_TIME_to_tm(at, &tm) == 1) {
		strftime(out, 32, "%Y-%m-%d %H:%M UTC", &tm);
	}
}

int64_t x509_days_left(const ASN1_TIME *at) {
	int days = 0, seconds = 0;
	if (!at || ASN1_TIME_diff(&days, &seconds, NULL, at) != 1) {
		return 0;
	}
	return seconds < 0 || days < 0 ? (int64_t)days - 1 : days;
}

bool x509_serial_read(const char *from, char out[X509_SERIAL_BYTES]) {
	static const char digits[] = "0123456789ABCDEFabcdef";
	size_t used = 0;
	for (; *from; from++) {
		if (*from == ':' || (*from == '0' && used == 0)) {
			continue;
		}
		const char *digit = strchr(digits, *from);
		if (!digit || used == SERIAL_DIGITS_MAX) {
			return false;
		}
		out[used++] = digit - digits < 16 ? *digit : digits[digit - digits - 6];
	}
	out[used] = '\0';
	return used > 0;
}

/* Returns whether one line of a list, which has been trimmed, revokes the certificate. */
static bool line_revokes(X509 *x, const GENERAL_NAMES *names, const char *line) {
	char uri[256], shown[X509_SERIAL_BYTES], own[X509_SERIAL_BYTES], wanted[X509_SERIAL_BYTES];
	if (has_prefix(line, "serial:")) {
		x509_serial(x, shown);
		return x509_serial_read(shown, own)
			&& x509_serial_read(line + strlen("serial:"), wanted)
			&& strcmp(own, wanted) == 0;
	}
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const char *role;
		read_uri(names, i, uri);
		const char *name = uri_name(uri, &role);
		if (*name && strcmp(name, line) == 0) {
			return true;
		}
	}
	return false;
}

unsigned x509_listed(X509 *x, char *text) {
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	unsigned number = 0, found = 0;
	char *line;
	while (!found && (line = strsep(&text, "\n")) != NULL) {
		number++;
		line += strspn(line, " \t");
		line[strcspn(line, " \t\r")] = '\0';
		found = *line && *line != '#' && line_revokes(x, names, line) ? number : 0;
	}
	GENERAL_NAMES_free(names);
	return found;
}
