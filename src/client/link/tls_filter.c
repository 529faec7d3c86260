/* tls_filter.c: TLS 1.3 between plain and encrypted bytes, and texts about what is wrong with it.
 * It touches no socket. */
#include "tls_filter.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "tls_terms.h"

#define TLS_FILTER_READ_BYTES ((size_t)16384)
/* The first byte of an answer of a node without TLS: an array of four in MessagePack. */
#define PLAIN_ANSWER 0x94

/* Appends to f->shown as far as there is room. */
static void show(struct tls_filter *f, const char *before, const char *text, size_t size) {
	size_t used = strlen(f->shown);
	(void)snprintf(f->shown + used, sizeof(f->shown) - used, "%s%.*s", before, (int)size, text);
}

static void show_hosts(struct tls_filter *f, X509 *certificate) {
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	const char *before = ", for the hosts ";
	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
		int kind;
		const ASN1_STRING *text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i),
			&kind);
		char address[INET6_ADDRSTRLEN];
		if (kind == GEN_DNS) {
			show(f, before, (const char *)ASN1_STRING_get0_data(text),
				(size_t)ASN1_STRING_length(text));
		} else if (kind == GEN_IPADD
			&& inet_ntop(ASN1_STRING_length(text) == 4 ? AF_INET : AF_INET6,
				ASN1_STRING_get0_data(text), address, sizeof(address))) {
			show(f, before, address, strlen(address));
		} else {
			continue;
		}
		before = ", ";
	}
	GENERAL_NAMES_free(names);
}

/* OpenSSL calls this for each certificate of the chain. What a certificate says is not to be
 * trusted when it is not accepted, and is shown to people only. */
static int on_verified(int accepted, X509_STORE_CTX *context) {
	SSL *ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls_filter *f = ssl ? SSL_get_app_data(ssl) : NULL;
	X509 *certificate = X509_STORE_CTX_get0_cert(context);
	if (accepted || !f || !certificate || f->shown[0]) {
		return accepted;
	}
	char name[64] = "", issuer[64] = "";
	(void)X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
		sizeof(name));
	(void)X509_NAME_get_text_by_NID(X509_get_issuer_name(certificate), NID_commonName, issuer,
		sizeof(issuer));
	show(f, "'", name, strlen(name));
	show(f, "', signed by '", issuer, strlen(issuer));
	show(f, "'", "", 0);
	show_hosts(f, certificate);
	for (char *c = f->shown; *c; c++) {
		/* Nothing in it may steer a terminal. */
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
	}
	return 0;
}

/* Says what is wrong with a file. */
static const char *file_problem(unsigned long cause, const char *otherwise) {
	int library = ERR_GET_LIB(cause), reason = ERR_GET_REASON(cause);
	if ((library == ERR_LIB_PEM && reason == PEM_R_NO_START_LINE)
		|| (library == ERR_LIB_X509 && reason == X509_R_NO_CERTIFICATE_OR_CRL_FOUND)) {
		return "it has no such thing in PEM (-----BEGIN ...-----)";
	}
	if (library == ERR_LIB_X509
		&& (reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH)) {
		return "it is the key of another certificate";
	}
	return otherwise ? otherwise : "it cannot be used";
}

/* The first error in the queue is the cause. For a file that cannot be opened it is an error of the
 * system. */
static void context_problem(const char *what, const char *file, const char **out_problem) {
	static _Thread_local char text[512];
	char buffer[128];
	unsigned long cause = ERR_peek_error();
	const char *reason = ERR_SYSTEM_ERROR(cause)
		? strerror_r(ERR_GET_REASON(cause), buffer, sizeof(buffer))
		: ERR_reason_error_string(ERR_peek_last_error());
	if (!ERR_SYSTEM_ERROR(cause)) {
		reason = file_problem(ERR_peek_last_error(), reason);
	}
	(void)snprintf(text, sizeof(text), "%s %s: %s", what, file, reason);
	ERR_clear_error();
	*out_problem = text;
}

static int context_load(SSL_CTX *context, const char *ca, const char *cert, const char *key,
	const char **out_problem) {
	if (!ca) {
		*out_problem = "tls:// endpoints need a CA file with the authorities that may sign "
			"node certificates";
		return PAWL_ETLS;
	}
	if (SSL_CTX_load_verify_locations(context, ca, NULL) != 1) {
		context_problem("CA file", ca, out_problem);
		return PAWL_ETLS;
	}
	if (!cert != !key) {
		*out_problem = "a certificate and its key must be given together";
		return PAWL_ETLS;
	}
	if (cert && SSL_CTX_use_certificate_chain_file(context, cert) != 1) {
		context_problem("certificate file", cert, out_problem);
		return PAWL_ETLS;
	}
	if (key && (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1
			|| SSL_CTX_check_private_key(context) != 1)) {
		context_problem("key file", key, out_problem);
		return PAWL_ETLS;
	}
	return 0;
}

int tls_filter_context_new(const char *ca_file, const char *cert_file, const char *key_file,
	SSL_CTX **out, const char **out_problem) {
	ERR_clear_error();
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	if (!context) {
		return PAWL_ENOMEM;
	}
	int error = PAWL_ETLS;
	*out_problem = "TLS 1.3 is not available";
	if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1
		&& SSL_CTX_set1_groups_list(context, TLS_TERMS_GROUPS) == 1) {
		SSL_CTX_set_options(context, TLS_TERMS_OPTIONS);
		SSL_CTX_set_max_cert_list(context, TLS_TERMS_CHAIN_BYTES);
		SSL_CTX_set_verify_depth(context, TLS_TERMS_CHAIN_DEPTH);
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, on_verified);
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
		error = context_load(context, ca_file, cert_file, key_file, out_problem);
	}
	if (error) {
		SSL_CTX_free(context);
		return error;
	}
	*out = context;
	return 0;
}

void tls_filter_context_free(SSL_CTX *context) {
	SSL_CTX_free(context);
}

static bool is_address(const char *host) {
	struct in6_addr any;
	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

static bool expect_host(SSL *ssl, const char *host) {
	if (is_address(host)) {
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	}
	/* This copy is needed because OpenSSL's macro for the requested name does not take a const
	 * pointer. */
	char name[256];
	(void)snprintf(name, sizeof(name), "%s", host);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

int tls_filter_init(struct tls_filter *f, SSL_CTX *context, const char *host) {
	*f = (struct tls_filter){ .ssl = SSL_new(context), .from_net = BIO_new(BIO_s_mem()),
		.to_net = BIO_new(BIO_s_mem()) };
	if (!f->ssl || !f->from_net || !f->to_net) {
		BIO_free(f->from_net);
		BIO_free(f->to_net);
		SSL_free(f->ssl);
		*f = (struct tls_filter){ 0 };
		return PAWL_ENOMEM;
	}
	(void)snprintf(f->wanted, sizeof(f->wanted), "%s", host);
	SSL_set_bio(f->ssl, f->from_net, f->to_net);
	SSL_set_app_data(f->ssl, f);
	SSL_set_connect_state(f->ssl);
	if (!expect_host(f->ssl, host)) {
		tls_filter_done(f);
		return PAWL_ENOMEM;
	}
	return 0;
}

void tls_filter_done(struct tls_filter *f) {
	SSL_free(f->ssl);
	*f = (struct tls_filter){ 0 };
}

/* Returns 0 if OpenSSL only waits for more bytes, or if the other side has closed. */
static int ssl_outcome(struct tls_filter *f, int result) {
	int why = SSL_get_error(f->ssl, result);
	if (why == SSL_ERROR_ZERO_RETURN) {
		f->closed = true;
		return 0;
	}
	return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : PAWL_ETLS;
}

static int open_all(struct tls_filter *f, struct buffer *plain) {
	for (;;) {
		uint8_t *room = buffer_reserve(plain, TLS_FILTER_READ_BYTES);
		if (!room) {
			return plain->max - plain->size < TLS_FILTER_READ_BYTES ? PAWL_ETOOLARGE
				: PAWL_ENOMEM;
		}
		int n = SSL_read(f->ssl, room, (int)TLS_FILTER_READ_BYTES);
		if (n <= 0) {
			return ssl_outcome(f, n);
		}
		buffer_commit(plain, (size_t)n);
	}
}

int tls_filter_take(struct tls_filter *f, struct slice encrypted, struct buffer *plain) {
	ERR_clear_error();
	CHECK(encrypted.size <= INT_MAX);
	if (encrypted.size
		&& BIO_write(f->from_net, encrypted.data, (int)encrypted.size)
			!= (int)encrypted.size) {
		return PAWL_ENOMEM;
	}
	if (f->first == 0 && encrypted.size) {
		f->first = ((const uint8_t *)encrypted.data)[0];
	}
	if (!f->ready) {
		int result = SSL_do_handshake(f->ssl);
		if (result != 1) {
			return ssl_outcome(f, result);
		}
		f->ready = true;
	}
	return open_all(f, plain);
}

int tls_filter_give(struct tls_filter *f, struct slice plain) {
	CHECK(f->ready && plain.size <= INT_MAX);
	ERR_clear_error();
	/* The other end is memory that grows, so everything is written at once. */
	return plain.size == 0 || SSL_write(f->ssl, plain.data, (int)plain.size) == (int)plain.size
		? 0
		: PAWL_ETLS;
}

int tls_filter_drain(struct tls_filter *f, struct buffer *out) {
	char *data;
	long size = BIO_get_mem_data(f->to_net, &data);
	if (size > 0) {
		int error = buffer_append(out, data, (size_t)size);
		if (error) {
			return error;
		}
		(void)BIO_reset(f->to_net);
	}
	return 0;
}

/* Says what is wrong with the node's certificate, and how to mend it. */
static const char *verdict_remedy(long verdict) {
	switch (verdict) {
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return "it does not contain this host: write one of its hosts in the endpoint or "
			"as server_name (--server-name), or issue one that has the host (pawl "
			"cert node NAME --host ...)";
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "it has expired: issue a new one (pawl cert node NAME)";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "it is not valid yet: check the clocks of both machines";
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return "it is not signed by an authority in the CA file: is this the CA file of "
			"this cluster?";
	case X509_V_ERR_INVALID_PURPOSE:
		return "it is not the certificate of a node";
	default:
		return X509_verify_cert_error_string(verdict);
	}
}

/* Says what the node has against this client's certificate. Returns NULL if the error is about
 * something else. */
static const char *alert_remedy(unsigned long cause) {
	if (ERR_GET_LIB(cause) != ERR_LIB_SSL) {
		return NULL;
	}
	switch (ERR_GET_REASON(cause) - SSL_AD_REASON_OFFSET) {
	case SSL_AD_CERTIFICATE_REVOKED:
		return "the node rejects this client's certificate, which is revoked: use another "
			"one (pawl cert client NAME)";
	case SSL_AD_CERTIFICATE_EXPIRED:
		return "this client's certificate has expired: issue a new one (pawl cert client "
			"NAME), or check the clock of the node";
	case SSL_AD_UNKNOWN_CA:
		return "this client's certificate is not signed by an authority that the node "
			"trusts: does it belong to this cluster?";
	case SSL_AD_CERTIFICATE_REQUIRED:
		return "the node requires a client certificate: give one and its key";
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_UNKNOWN:
		return "the node rejects this client's certificate: the node's log says why";
	default:
		return NULL;
	}
}

/* What a server sends first if it speaks TLS: a record of the handshake, or an alert. */
static bool speaks_tls(const struct tls_filter *f) {
	return f->first == 0x16 || f->first == 0x15;
}

const char *tls_filter_problem(const struct tls_filter *f) {
	static _Thread_local char text[768];
	long verdict = SSL_get_verify_result(f->ssl);
	unsigned long cause = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(cause), *remedy = alert_remedy(cause);
	if (verdict != X509_V_OK) {
		(void)snprintf(text, sizeof(text),
			"wanted '%s', and the certificate there is that of %s; %s", f->wanted,
			f->shown[0] ? f->shown : "somebody", verdict_remedy(verdict));
		return text;
	}
	if (f->first == PLAIN_ANSWER) {
		return "this is a port without TLS: leave out tls://";
	}
	if (f->first && !speaks_tls(f)) {
		return "the server there does not speak TLS";
	}
	if (ERR_GET_LIB(cause) == ERR_LIB_SSL
		&& ERR_GET_REASON(cause) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION) {
		return "the server there does not speak TLS 1.3";
	}
	return remedy ? remedy : reason ? reason : "the connection was closed during the handshake";
}
