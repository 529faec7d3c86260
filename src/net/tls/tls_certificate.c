/* tls_certificate.c: reads names and roles from a certificate, and describes it for people. It does
 * not verify anything.
 */
#include "tls_certificate.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "slice.h"

#define NODE_PREFIX "pawl:node:"
#define CLIENT_PREFIX "pawl:client:"
#define ROLE_PREFIX "role="

const char *node_role_name(enum node_role role) {
	switch (role) {
	case NODE_ROLE_NONE:
		return "none";
	case NODE_ROLE_EMBEDDED:
		return "embedded";
	case NODE_ROLE_REPLICA:
		return "replica";
	case NODE_ROLE_MASTER:
		return "master";
	}
	return "none";
}

/* ---- names ---- */

/* One name of a certificate. The query is what follows the question mark in a node's URI. */
struct certificate_name {
	enum tls_kind kind;
	struct slice name, query;
	bool has_query;
};

/* Reads one name. A name with a zero byte inside is refused, because two different names could look
 * alike. */
static bool certificate_read_name(const GENERAL_NAME *general, struct certificate_name *out) {
	if (general->type != GEN_URI) {
		return false;
	}
	const ASN1_IA5STRING *uri = general->d.uniformResourceIdentifier;
	struct slice text = slice_of(ASN1_STRING_get0_data(uri), (size_t)ASN1_STRING_length(uri));
	bool node = slice_has_prefix(text, slice_str(NODE_PREFIX));
	if ((!node && !slice_has_prefix(text, slice_str(CLIENT_PREFIX)))
		|| memchr(text.data, 0, text.size)) {
		return false;
	}
	size_t prefix = node ? strlen(NODE_PREFIX) : strlen(CLIENT_PREFIX);
	struct slice rest = slice_of(text.data + prefix, text.size - prefix);
	*out = (struct certificate_name){ .kind = node ? TLS_NAME_NODE : TLS_NAME_CLIENT,
		.name = rest };
	const uint8_t *mark = node && rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL;
	/* No name of a node contains a question mark. */
	if (mark) {
		out->has_query = true;
		out->name.size = (size_t)(mark - rest.data);
		out->query = slice_of(mark + 1, rest.size - out->name.size - 1);
	}
	return out->name.size > 0 && out->name.size <= TLS_NAME_MAX;
}

/* Calls `visit` for each name until it returns false. */
static void certificate_each_name(X509 *cert,
	bool (*visit)(void *ctx, const struct certificate_name *name), void *ctx) {
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool more = true;
	for (int i = 0; more && i < sk_GENERAL_NAME_num(names); i++) {
		struct certificate_name name;
		if (certificate_read_name(sk_GENERAL_NAME_value(names, i), &name)) {
			more = visit(ctx, &name);
		}
	}
	GENERAL_NAMES_free(names);
	ERR_clear_error();
}

static enum node_role certificate_role_of(const struct certificate_name *name) {
	static const enum node_role known[] = { NODE_ROLE_EMBEDDED, NODE_ROLE_REPLICA,
		NODE_ROLE_MASTER };
	if (!name->has_query) {
		return NODE_ROLE_MASTER;
	}
	if (!slice_has_prefix(name->query, slice_str(ROLE_PREFIX))) {
		return NODE_ROLE_NONE;
	}
	struct slice role = slice_of(name->query.data + strlen(ROLE_PREFIX),
		name->query.size - strlen(ROLE_PREFIX));
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (slice_equal(role, slice_str(node_role_name(known[i])))) {
			return known[i];
		}
	}
	return NODE_ROLE_NONE;
}

struct certificate_question {
	enum tls_kind kind;
	struct slice wanted;
	bool found;
	enum node_role role;
	/* Takes the first name: TLS_NAME_MAX + 1 bytes. */
	char *name;
};

static bool certificate_ask_role(void *ctx, const struct certificate_name *name) {
	struct certificate_question *q = ctx;
	if (name->kind == q->kind && slice_equal(name->name, q->wanted)) {
		enum node_role role = certificate_role_of(name);
		q->role = !q->found || role < q->role ? role : q->role;
		q->found = true;
	}
	return true;
}

static bool certificate_ask_first(void *ctx, const struct certificate_name *name) {
	struct certificate_question *q = ctx;
	if (name->kind == q->kind) {
		memcpy(q->name, name->name.data, name->name.size);
		q->name[name->name.size] = '\0';
		q->found = true;
	}
	return !q->found;
}

enum node_role tls_certificate_role(X509 *cert, const char *node_name) {
	struct certificate_question q = { .kind = TLS_NAME_NODE, .wanted = slice_str(node_name),
		.role = NODE_ROLE_NONE };
	certificate_each_name(cert, certificate_ask_role, &q);
	return q.role;
}

bool tls_certificate_has_name(X509 *cert, enum tls_kind kind, const char *name) {
	struct certificate_question q = { .kind = kind, .wanted = slice_str(name) };
	certificate_each_name(cert, certificate_ask_role, &q);
	return q.found;
}

bool tls_certificate_name(X509 *cert, enum tls_kind kind, char name[TLS_NAME_MAX + 1]) {
	struct certificate_question q = { .kind = kind, .name = name };
	name[0] = '\0';
	certificate_each_name(cert, certificate_ask_first, &q);
	return q.found;
}

/* ---- for people ---- */

void tls_certificate_serial(X509 *cert, char out[TLS_SERIAL_BYTES]) {
	BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
	char *text = number ? BN_bn2hex(number) : NULL;
	snprintf(out, TLS_SERIAL_BYTES, "%s", text ? text : "");
	OPENSSL_free(text);
	BN_free(number);
	ERR_clear_error();
}

void tls_certificate_describe(X509 *cert, char out[TLS_WHO_BYTES]) {
	char serial[TLS_SERIAL_BYTES], name[TLS_NAME_MAX + 1];
	tls_certificate_serial(cert, serial);
	if (tls_certificate_name(cert, TLS_NAME_NODE, name)) {
		snprintf(out, TLS_WHO_BYTES, "node %s (serial %s)", name, serial);
	} else if (tls_certificate_name(cert, TLS_NAME_CLIENT, name)) {
		snprintf(out, TLS_WHO_BYTES, "client %s (serial %s)", name, serial);
	} else {
		char subject[192] = "";
		X509_NAME_oneline(X509_get_subject_name(cert), subject, sizeof subject);
		snprintf(out, TLS_WHO_BYTES, "%s (serial %s)", subject, serial);
	}
}

void tls_certificate_remake(X509 *cert, char out[TLS_WHO_BYTES]) {
	char name[TLS_NAME_MAX + 1];
	if (tls_certificate_name(cert, TLS_NAME_NODE, name)) {
		enum node_role role = tls_certificate_role(cert, name);
		bool restricted = role == NODE_ROLE_REPLICA || role == NODE_ROLE_EMBEDDED;
		snprintf(out, TLS_WHO_BYTES, "pawl cert node %s%s%s", name,
			restricted ? " --role " : "", restricted ? node_role_name(role) : "");
	} else if (tls_certificate_name(cert, TLS_NAME_CLIENT, name)) {
		snprintf(out, TLS_WHO_BYTES, "pawl cert client %s", name);
	} else {
		snprintf(out, TLS_WHO_BYTES, "pawl cert");
	}
}

int64_t tls_time_seconds(const ASN1_TIME *at) {
	struct tm tm;
	return at && ASN1_TIME_to_tm(at, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

void tls_time_text(const ASN1_TIME *at, char out[32]) {
	struct tm tm;
	out[0] = '\0';
	if (at && ASN1_TIME_to_tm(at, &tm) == 1) {
		strftime(out, 32, "%Y-%m-%d %H:%M UTC", &tm);
	}
}

void tls_certificate_identity(X509 *cert, const char *node_name, struct tls_identity *out) {
	tls_certificate_serial(cert, out->serial);
	out->ends = tls_time_seconds(X509_get0_notAfter(cert));
	out->role = tls_certificate_role(cert, node_name);
}
