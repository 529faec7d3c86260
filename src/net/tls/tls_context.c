/* tls_context.c: loads and checks the files of [tls], and verifies the certificates of the other
 * side.
 */
#include "tls_context.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"
#include "tls_terms.h"

__attribute__((format(printf, 2, 3))) static int tls_fail(char why[TLS_WHY_BYTES],
	const char *format, ...) {
	va_list args;
	va_start(args, format);
	int used = vsnprintf(why, TLS_WHY_BYTES, format, args);
	va_end(args);
	char buffer[128];
	/* For a file that cannot be opened, the first error in the queue is the system's. */
	unsigned long cause = ERR_peek_error();
	const char *reason = ERR_SYSTEM_ERROR(cause)
		? strerror_r(ERR_GET_REASON(cause), buffer, sizeof buffer)
		: ERR_reason_error_string(ERR_peek_last_error());
	if (reason && used >= 0 && used < TLS_WHY_BYTES) {
		snprintf(why + used, TLS_WHY_BYTES - (size_t)used, ": %s", reason);
	}
	ERR_clear_error();
	return PAWL_ETLS;
}

/* ---- who is at the other end ---- */

bool tls_peer_identity(SSL *ssl, const char *node_name, struct tls_identity *out) {
	X509 *cert = SSL_get0_peer_certificate(ssl);
	*out = (struct tls_identity){ .role = NODE_ROLE_NONE };
	if (cert) {
		tls_certificate_identity(cert, node_name, out);
	}
	return out->role != NODE_ROLE_NONE;
}

bool tls_peer_name(SSL *ssl, enum tls_kind kind, char name[TLS_NAME_MAX + 1]) {
	X509 *cert = SSL_get0_peer_certificate(ssl);
	name[0] = 0;
	return cert && tls_certificate_name(cert, kind, name);
}

bool tls_peer_has_certificate(SSL *ssl) {
	return SSL_get0_peer_certificate(ssl) != NULL;
}

void tls_peer_digest(SSL *ssl, uint8_t out[TLS_DIGEST_BYTES]) {
	const X509 *cert = SSL_get0_peer_certificate(ssl);
	if (!cert || X509_digest(cert, EVP_sha256(), out, NULL) != 1) {
		memset(out, 0, TLS_DIGEST_BYTES);
	}
}

void tls_peer_describe(SSL *ssl, char out[TLS_WHO_BYTES]) {
	X509 *cert = SSL_get0_peer_certificate(ssl);
	snprintf(out, TLS_WHO_BYTES, "nobody");
	if (cert) {
		tls_certificate_describe(cert, out);
	}
}

/* ---- what is no good any more ---- */

static CRYPTO_ONCE tls_revoked_once = CRYPTO_ONCE_STATIC_INIT;
static int tls_revoked_index = -1;

static void tls_revoked_drop(void *parent, void *revoked, CRYPTO_EX_DATA *data, int index,
	long number, void *arg) {
	(void)parent;
	(void)data;
	(void)index;
	(void)number;
	(void)arg;
	tls_revoked_free(revoked);
}

static void tls_revoked_make_index(void) {
	tls_revoked_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, tls_revoked_drop);
}

static bool tls_set_revoked(SSL_CTX *ctx, struct tls_revoked *revoked) {
	return SSL_CTX_set_ex_data(ctx, tls_revoked_index, tls_revoked_keep(revoked)) == 1;
}

/* Returns NULL if the context was not made here. */
static const struct tls_revoked *tls_get_revoked(SSL_CTX *ctx) {
	return tls_revoked_index < 0 ? NULL : SSL_CTX_get_ex_data(ctx, tls_revoked_index);
}

bool tls_peer_objection(SSL *ssl, SSL_CTX *now, char why[TLS_WHY_BYTES]) {
	const struct tls_revoked *revoked = tls_get_revoked(now);
	X509 *cert = SSL_get0_peer_certificate(ssl);
	if (cert && tls_revoked_has(revoked, cert, why)) {
		return true;
	}
	STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
	for (int i = 1; i < sk_X509_num(chain); i++) {
		if (tls_revoked_has(revoked, sk_X509_value(chain, i), why)) {
			return true;
		}
	}
	return false;
}

/* ---- why a certificate is refused ---- */

static void tls_explain(X509 *cert, long error, char why[TLS_WHY_BYTES]) {
	char who[TLS_WHO_BYTES], remake[TLS_WHO_BYTES], at[32], issuer[160] = "";
	tls_certificate_describe(cert, who);
	tls_certificate_remake(cert, remake);
	X509_NAME_oneline(X509_get_issuer_name(cert), issuer, sizeof issuer);
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		tls_time_text(X509_get0_notAfter(cert), at);
		snprintf(why, TLS_WHY_BYTES,
			"the certificate of %.160s expired on %s: make a new one (%.160s), and "
			"reload that node or client", who, at, remake);
		return;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		tls_time_text(X509_get0_notBefore(cert), at);
		snprintf(why, TLS_WHY_BYTES,
			"the certificate of %.160s is not valid before %s: check the clocks "
			"of both machines", who, at);
		return;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		snprintf(why, TLS_WHY_BYTES,
			"the certificate of %.120s is not from an authority in this node's ca file "
			"(%.60s; its issuer is %.80s): make one with this cluster's authority "
			"(%.80s), or add that issuer there", who,
			X509_verify_cert_error_string(error), issuer, remake);
		return;
	default:
		snprintf(why, TLS_WHY_BYTES,
			"the certificate of %.160s is refused: %s; make a new one (%.160s)", who,
			X509_verify_cert_error_string(error), remake);
		return;
	}
}

/* Called once for each certificate of a chain. A refusal leaves its sentence with the connection
 * (tls_engine_why). */
static int tls_on_verify(int good, X509_STORE_CTX *store) {
	X509 *cert = X509_STORE_CTX_get_current_cert(store);
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	char why[TLS_WHY_BYTES];
	if (!cert) {
		return good;
	}
	if (!good) {
		tls_explain(cert, X509_STORE_CTX_get_error(store), why);
	} else if (tls_revoked_has(tls_get_revoked(SSL_get_SSL_CTX(ssl)), cert, why)) {
		X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
		good = 0;
	}
	char **verdict = SSL_get_app_data(ssl);
	if (!good && verdict && !*verdict) {
		*verdict = strdup(why);
	}
	return good;
}

/* ---- loading ---- */

/* Whoever can read the key can pretend to be this node. If the file belongs to root, its group may
 * read it, so that a service account can read the key without owning it. */
static int tls_check_key_file(const struct tls_files *f, char why[TLS_WHY_BYTES]) {
	struct stat st;
	if (f->any_key_mode || stat(f->key, &st) != 0) {
		/* If the file does not exist, the code that reads it says so. */
		return 0;
	}
	unsigned mode = st.st_mode & 0777;
	const unsigned others = st.st_uid == 0 ? 027 : 077;
	static const char instead[] = "or write any_key_mode = yes if this is intended";
	ERR_clear_error();
	bool by_root = f->only_checked && geteuid() == 0;
	if (st.st_uid != 0 && st.st_uid != geteuid() && !by_root) {
		return tls_fail(why,
			"[tls] key: %s belongs to another user (%u), who can read and change it: "
			"run chown %u %s, %s", f->key, (unsigned)st.st_uid, (unsigned)geteuid(),
			f->key, instead);
	}
	if (mode & others) {
		return tls_fail(why,
			"[tls] key: %s can be read or changed by others (mode %04o): run "
			"chmod %04o %s, %s", f->key, mode, mode & ~others & 0777, f->key, instead);
	}
	return 0;
}

static int tls_load_files(SSL_CTX *ctx, const struct tls_files *f, char why[TLS_WHY_BYTES]) {
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1) {
		return tls_fail(why, "[tls] ca: cannot read a certificate from %s", f->ca);
	}
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1) {
		return tls_fail(why, "[tls] cert: cannot read a certificate from %s", f->cert);
	}
	int error = tls_check_key_file(f, why);
	if (error) {
		return error;
	}
	if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1) {
		return tls_fail(why, "[tls] key: cannot read %s, or it is not the key of %s",
			f->key, f->cert);
	}
	return 0;
}

/* The node's own certificate must be one that its peers will accept. It is better to refuse it here
 * than to have all peers refuse it. */
static int tls_check_own(SSL_CTX *ctx, const struct tls_files *f, char why[TLS_WHY_BYTES]) {
	X509 *own = SSL_CTX_get0_certificate(ctx);
	STACK_OF(X509) *chain = NULL;
	SSL_CTX_get0_chain_certs(ctx, &chain);
	X509_STORE_CTX *verify = X509_STORE_CTX_new();
	if (!verify || X509_STORE_CTX_init(verify, SSL_CTX_get_cert_store(ctx), own, chain) != 1) {
		X509_STORE_CTX_free(verify);
		return tls_fail(why, "[tls] out of memory");
	}
	bool valid = X509_verify_cert(verify) == 1;
	X509 *wrong = X509_STORE_CTX_get_current_cert(verify);
	char reason[TLS_WHY_BYTES];
	if (!valid) {
		tls_explain(wrong ? wrong : own, X509_STORE_CTX_get_error(verify), reason);
	}
	X509_STORE_CTX_free(verify);
	ERR_clear_error();
	if (!valid) {
		return tls_fail(why, "[tls] cert: nodes that trust %s would refuse %s: %s", f->ca,
			f->cert, reason);
	}
	return 0;
}

/* Checks that the certificate belongs to this node, that its role fits, and that it is not
 * revoked. */
static int tls_check_identity(X509 *cert, const struct tls_files *f, const char *node_name,
	const struct tls_revoked *revoked, struct tls_identity *own, char why[TLS_WHY_BYTES]) {
	char refusal[TLS_WHY_BYTES];
	tls_certificate_identity(cert, node_name, own);
	if (own->role == NODE_ROLE_NONE &&
		tls_certificate_has_name(cert, TLS_NAME_NODE, node_name)) {
		return tls_fail(why,
			"[tls] cert: %s gives node %s an unknown role; the roles are master, "
			"replica and embedded (make a new certificate: pawl cert node %s)",
			f->cert, node_name, node_name);
	}
	if (own->role == NODE_ROLE_NONE) {
		return tls_fail(why,
			"[tls] cert: %s does not belong to node %s: it lacks the alternative name "
			"URI:pawl:node:%s (make one with: pawl cert node %s)", f->cert, node_name,
			node_name, node_name);
	}
	if (own->role == NODE_ROLE_EMBEDDED && !f->embedded) {
		return tls_fail(why,
			"[tls] cert: %s is for a node inside a program (role embedded), but this "
			"node is a process of its own: make another certificate with pawl cert "
			"node %s --role replica",
			f->cert, node_name);
	}
	return tls_revoked_has(revoked, cert, refusal)
		? tls_fail(why, "[tls] cert: %s", refusal) : 0;
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

static int tls_context_new(const struct tls_files *f, int verify_mode, SSL_CTX **out,
	char why[TLS_WHY_BYTES]) {
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1
		|| SSL_CTX_set1_groups_list(ctx, TLS_TERMS_GROUPS) != 1) {
		SSL_CTX_free(ctx);
		return tls_fail(why, "[tls] OpenSSL cannot be set up for TLS 1.3");
	}
	SSL_CTX_set_options(ctx, TLS_TERMS_OPTIONS);
	SSL_CTX_set_max_cert_list(ctx, TLS_TERMS_CHAIN_BYTES);
	SSL_CTX_set_verify_depth(ctx, TLS_TERMS_CHAIN_DEPTH);
	SSL_CTX_set_verify(ctx, verify_mode, tls_on_verify);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* Session tickets are off, so that an identity is proven afresh on every connection. */
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	int error = tls_load_files(ctx, f, why);
	if (error) {
		SSL_CTX_free(ctx);
		return error;
	}
	*out = ctx;
	return 0;
}

/* Makes both contexts, before anything is checked that needs them. */
static int tls_contexts_make(const struct tls_files *files, struct tls_contexts *made,
	char why[TLS_WHY_BYTES]) {
	int error = tls_context_new(files, tls_verify_mode(TLS_CLIENT_REQUIRED), &made->peer, why);
	return error ? error : tls_context_new(files, tls_verify_mode(files->client_auth),
		&made->client, why);
}

int tls_contexts_load(const struct tls_files *files, const char *node_name,
	struct tls_contexts *out, char why[TLS_WHY_BYTES]) {
	struct tls_contexts made = { 0 };
	struct tls_revoked *revoked = NULL;
	ERR_clear_error();
	CHECK(CRYPTO_THREAD_run_once(&tls_revoked_once, tls_revoked_make_index) == 1
		&& tls_revoked_index >= 0);
	int error = tls_contexts_make(files, &made, why);
	error = error ? error : tls_check_own(made.peer, files, why);
	error = error ? error : tls_revoked_load(files->revoked, files->crl,
		SSL_CTX_get_cert_store(made.peer), &revoked, why);
	error = error ? error : tls_check_identity(SSL_CTX_get0_certificate(made.peer), files,
		node_name, revoked, &made.own, why);
	if (!error
		&& (!tls_set_revoked(made.peer, revoked)
		|| !tls_set_revoked(made.client, revoked))) {
		error = tls_fail(why, "[tls] out of memory");
	}
	made.crl_ends = tls_revoked_ends(revoked);
	tls_revoked_free(revoked);
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
