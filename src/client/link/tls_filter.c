/* tls_filter.c: TLS 1.3 between plain and encrypted bytes, and texts about what is wrong with it.
 * It touches no socket. */
#include "tls_filter.h"

#include <arpa/inet.h>
#include <limits.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"

#define TLS_FILTER_READ_BYTES ((size_t)16384)

/* The first error in the queue is the cause. For a file that cannot be opened it is an error of the
 * system. */
static void context_problem(const char *what, const char *file, const char **out_problem) {
	static _Thread_local char text[512];
	char buffer[128];
	unsigned long cause = ERR_peek_error();
	const char *reason = ERR_SYSTEM_ERROR(cause)
		? strerror_r(ERR_GET_REASON(cause), buffer, sizeof(buffer))
		: ERR_reason_error_string(ERR_peek_last_error());
	(void)snprintf(text, sizeof(text), "%s %s: %s", what, file ? file : "",
		reason ? reason : "OpenSSL cannot use it");
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
	if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1) {
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
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
	SSL_set_bio(f->ssl, f->from_net, f->to_net);
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
		return "the node's certificate does not contain the endpoint's host name: issue "
			"one that does (pawl cert node NAME --host ...), or set server_name to a "
			"name in it";
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "the node's certificate has expired: issue a new one (pawl cert node NAME)";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "the node's certificate is not valid yet: check the clocks of both machines";
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return "the node's certificate is not signed by an authority in the CA file: is "
			"this the CA file of this cluster?";
	default:
		return "therefore the node's certificate is rejected";
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
			"NAME)";
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

const char *tls_filter_problem(const struct tls_filter *f) {
	static _Thread_local char text[512];
	long verdict = SSL_get_verify_result(f->ssl);
	unsigned long cause = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(cause), *remedy = alert_remedy(cause);
	if (verdict != X509_V_OK) {
		reason = X509_verify_cert_error_string(verdict);
		remedy = verdict_remedy(verdict);
	} else if (ERR_GET_LIB(cause) == ERR_LIB_SSL
		&& ERR_GET_REASON(cause) == SSL_R_WRONG_VERSION_NUMBER) {
		return "the server there does not speak TLS 1.3";
	}
	if (reason && remedy) {
		(void)snprintf(text, sizeof(text), "%s: %s", reason, remedy);
		return text;
	}
	return reason ? reason : "the connection was closed during the handshake";
}
