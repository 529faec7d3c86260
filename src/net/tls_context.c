#include "tls_context.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "slice.h"

#define NODE_PREFIX "pawl:node:"
#define PERSON_PREFIX "pawl:client:"

__attribute__((format(printf, 2, 3))) static int tls_fail(char why[TLS_WHY_BYTES], const char *format, ...) {
	va_list args;
	va_start(args, format);
	int used = vsnprintf(why, TLS_WHY_BYTES, format, args);
	va_end(args);
	char buffer[128];
	unsigned long cause = ERR_peek_error(); /* the first in the queue: for a file that cannot be opened the system's */
	const char *reason = ERR_SYSTEM_ERROR(cause) ? strerror_r(ERR_GET_REASON(cause), buffer, sizeof buffer)
		: ERR_reason_error_string(ERR_peek_last_error());
	if (reason && used >= 0 && used < TLS_WHY_BYTES) {
		snprintf(why + used, TLS_WHY_BYTES - (size_t)used, ": %s", reason);
	}
	ERR_clear_error();
	return PAWL_ETLS;
}

/* ---- who a certificate stands for ---- */

static const char *tls_prefix(enum tls_kind kind) {
	CHECK(kind != TLS_NOBODY);
	return kind == TLS_NODE ? NODE_PREFIX : PERSON_PREFIX;
}

/* The name behind the prefix of a URI, or a slice with no bytes. A zero byte inside would let two names look alike. */
static struct slice tls_uri_name(const GENERAL_NAME *name, enum tls_kind kind) {
	struct slice nothing = { NULL, 0 };
	if (name->type != GEN_URI) {
		return nothing;
	}
	const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
	struct slice text = slice_of(ASN1_STRING_get0_data(uri), (size_t)ASN1_STRING_length(uri));
	struct slice prefix = slice_str(tls_prefix(kind));
	if (!slice_has_prefix(text, prefix) || memchr(text.data, 0, text.size)) {
		return nothing;
	}
	struct slice rest = slice_of(text.data + prefix.size, text.size - prefix.size);
	return rest.size <= TLS_NAME_MAX ? rest : nothing;
}

/* Goes through the names of this kind until one equals `wanted` (NULL: the first). */
static bool tls_find_name(X509 *cert, enum tls_kind kind, const char *wanted, char found[TLS_NAME_MAX + 1]) {
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool ok = false;
	for (int i = 0; !ok && i < sk_GENERAL_NAME_num(names); i++) {
		struct slice name = tls_uri_name(sk_GENERAL_NAME_value(names, i), kind);
		if (name.size > 0 && (!wanted || slice_equal(name, slice_str(wanted)))) {
			memcpy(found, name.data, name.size);
			found[name.size] = 0;
			ok = true;
		}
	}
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return ok;
}

bool tls_peer_is(SSL *ssl, enum tls_kind kind, const char *name) {
	char found[TLS_NAME_MAX + 1];
	X509 *cert = SSL_get0_peer_certificate(ssl);
	return cert && tls_find_name(cert, kind, name, found);
}

bool tls_peer_name(SSL *ssl, enum tls_kind kind, char name[TLS_NAME_MAX + 1]) {
	X509 *cert = SSL_get0_peer_certificate(ssl);
	name[0] = 0;
	return cert && tls_find_name(cert, kind, NULL, name);
}

bool tls_peer_has_certificate(SSL *ssl) {
	return SSL_get0_peer_certificate(ssl) != NULL;
}

/* ---- loading ---- */

static int tls_load_files(SSL_CTX *ctx, const struct tls_files *f, char why[TLS_WHY_BYTES]) {
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1) {
		return tls_fail(why, "[tls] ca: cannot read a certificate from %s", f->ca);
	}
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1) {
		return tls_fail(why, "[tls] cert: cannot read a certificate from %s", f->cert);
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1) {
		return tls_fail(why, "[tls] key: cannot read %s, or it is not the key of %s", f->key, f->cert);
	}
	return 0;
}

/* The node's own certificate must be one that its peers will accept: better refused here than by all of them. */
static int tls_check_own(SSL_CTX *ctx, const struct tls_files *f, const char *node_name, char why[TLS_WHY_BYTES]) {
	X509 *own = SSL_CTX_get0_certificate(ctx);
	STACK_OF(X509) *chain = NULL;
	SSL_CTX_get0_chain_certs(ctx, &chain);
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	if (!verify || X509_STORE_CTX_init(verify, SSL_CTX_get_cert_store(ctx), own, chain) != 1) {
		X509_STORE_CTX_free(verify);
		return tls_fail(why, "[tls] out of memory");
	}
	bool valid = X509_verify_cert(verify) == 1;
	const char *reason = X509_verify_cert_error_string(X509_STORE_CTX_get_error(verify));
	X509_STORE_CTX_free(verify);
	ERR_clear_error();
	if (!valid) {
		return tls_fail(why, "[tls] cert: peers with ca %s would refuse %s: %s", f->ca, f->cert, reason);
	}
	char found[TLS_NAME_MAX + 1];
	if (!tls_find_name(own, TLS_NODE, node_name, found)) {
		return tls_fail(why, "[tls] cert: %s does not belong to node %s: it lacks the alternative name URI:" NODE_PREFIX
			"%s (make one with: pawl cert node %s)", f->cert, node_name, node_name, node_name);
	}
	return 0;
}

static int tls_verify_mode(enum tls_client_auth auth) {
	switch (auth) {
	case TLS_CLIENT_REQUIRED:
		return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	case TLS_CLIENT_OPTIONAL:
		return SSL_VERIFY_PEER;
	case TLS_CLIENT_OFF:
		return SSL_VERIFY_NONE;
	}
	CHECK(false);
}

static int tls_context_new(const struct tls_files *f, int verify_mode, SSL_CTX **out, char why[TLS_WHY_BYTES]) {
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1) {
		SSL_CTX_free(ctx);
		return tls_fail(why, "[tls] cannot be set up");
	}
	SSL_CTX_set_verify(ctx, verify_mode, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0); /* an identity is proven afresh on every connection */
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	int error = tls_load_files(ctx, f, why);
	if (error) {
		SSL_CTX_free(ctx);
		return error;
	}
	*out = ctx;
	return 0;
}

int tls_contexts_load(const struct tls_files *files, const char *node_name, struct tls_contexts *out, char why[TLS_WHY_BYTES]) {
	struct tls_contexts made = { 0 };
	ERR_clear_error();
	int error = tls_context_new(files, tls_verify_mode(TLS_CLIENT_REQUIRED), &made.peer, why);
	if (!error) {
		error = tls_check_own(made.peer, files, node_name, why);
	}
	if (!error) {
		error = tls_context_new(files, tls_verify_mode(files->client_auth), &made.client, why);
	}
	if (error) {
		tls_contexts_free(&made);
		return error;
	}
	*out = made;
	return 0;
}

void tls_contexts_free(struct tls_contexts *contexts) {
	SSL_CTX_free(contexts->peer);
	SSL_CTX_free(contexts->client);
	*contexts = (struct tls_contexts){ 0 };
}
