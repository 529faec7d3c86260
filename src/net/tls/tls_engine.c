/* tls_engine.c: OpenSSL over two memory buffers. */
#include "tls_engine.h"

#include <limits.h>
#include <openssl/err.h>
#include <stdlib.h>

#include "check.h"
#include "pawl/error.h"

/* How many records take as long to read as one late message does, because the keys are derived
 * anew. */
#define RECORDS_A_MESSAGE 16

struct tls_engine {
	SSL *ssl;
	/* Owned by `ssl`. */
	BIO *in, *out;
	/* How many bytes of what `out` holds have gone to the socket. */
	size_t sent;
	bool ready;
	/* See tls_engine_records. */
	uint64_t records;
	/* How many late messages have come that were not forgiven. */
	unsigned late;
	const char *why;
	/* Why the other side's certificate is refused, or NULL. The context sets it
	 * (tls_context.c). */
	char *verdict;
};

/* A handshake message after the handshake: a key update, or a session ticket. One call of SSL_read
 * would handle all that it can read, so above the limit it finds nothing more to read. */
static void tls_engine_on_late(struct tls_engine *e) {
	e->records += RECORDS_A_MESSAGE;
	if (++e->late > TLS_LATE_MAX) {
		(void)BIO_reset(e->in);
	}
}

/* OpenSSL calls this for the header of each record, and for each message of the handshake. */
static void tls_engine_on_message(int is_write, int version, int type, const void *bytes,
	size_t size, SSL *ssl, void *ctx) {
	struct tls_engine *e = ctx;
	(void)version;
	(void)bytes;
	(void)size;
	(void)ssl;
	if (!is_write && type == SSL3_RT_HEADER) {
		e->records++;
	} else if (!is_write && type == SSL3_RT_HANDSHAKE && e->ready) {
		tls_engine_on_late(e);
	}
}

struct tls_engine *tls_engine_new(SSL_CTX *context, enum tls_role role) {
	struct tls_engine *e = calloc(1, sizeof *e);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL *ssl = SSL_new(context);
	if (!e || !in || !out || !ssl) {
		BIO_free(in);
		BIO_free(out);
		SSL_free(ssl);
		free(e);
		ERR_clear_error();
		return NULL;
	}
	/* An empty buffer means that more bytes will come, not the end. */
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(ssl, in, out);
	if (role == TLS_SERVER) {
		SSL_set_accept_state(ssl);
	} else {
		SSL_set_connect_state(ssl);
	}
	*e = (struct tls_engine){ .ssl = ssl, .in = in, .out = out };
	SSL_set_app_data(ssl, &e->verdict);
	SSL_set_msg_callback(ssl, tls_engine_on_message);
	SSL_set_msg_callback_arg(ssl, e);
	return e;
}

void tls_engine_free(struct tls_engine *e) {
	if (e) {
		SSL_free(e->ssl);
		free(e->verdict);
		free(e);
	}
}

/* Says what the other side does not like about our certificate, or that it speaks no TLS; returns
 * NULL for everything else. */
static const char *tls_engine_alert(unsigned long cause) {
	if (ERR_GET_LIB(cause) != ERR_LIB_SSL) {
		return NULL;
	}
	if (ERR_GET_REASON(cause) == SSL_R_WRONG_VERSION_NUMBER
		|| ERR_GET_REASON(cause) == SSL_R_HTTP_REQUEST) {
		return "the other side does not speak TLS, or only a version that is too old";
	}
	switch (ERR_GET_REASON(cause) - SSL_AD_REASON_OFFSET) {
	case SSL_AD_CERTIFICATE_REVOKED:
		return "the other side refuses this node's certificate as revoked: if the node is "
			"still wanted, give it a new one (pawl cert node)";
	case SSL_AD_CERTIFICATE_EXPIRED:
		return "the other side refuses this node's certificate as expired: make a new one "
			"(pawl cert node) and reload, or check the clock on the other side";
	case SSL_AD_UNKNOWN_CA:
		return "the other side does not know the authority of this node's certificate "
			"(unknown ca): add the authority to the ca file there";
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_UNKNOWN:
		return "the other side refuses this node's certificate: see the log there";
	default:
		return NULL;
	}
}

/* Says why an operation on the connection did not go on; 0 means that it waits for bytes. The error
 * queue belongs to the thread and must be left empty; otherwise the next connection would read the
 * errors of this one. */
static int tls_engine_result(struct tls_engine *e, int result) {
	int reason = SSL_get_error(e->ssl, result);
	int error = PAWL_ETLS;
	if (e->late > TLS_LATE_MAX) {
		e->why = "it changes its keys too often (TLS KeyUpdate)";
	} else if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
		error = 0;
	} else if (reason == SSL_ERROR_ZERO_RETURN) {
		error = PAWL_ECLOSED;
	} else {
		long verified = SSL_get_verify_result(e->ssl);
		const char *text = e->verdict ? e->verdict
			: verified != X509_V_OK ? X509_verify_cert_error_string(verified)
			: tls_engine_alert(ERR_peek_error());
		text = text ? text : ERR_reason_error_string(ERR_peek_error());
		e->why = text ? text : "the connection is broken";
	}
	ERR_clear_error();
	return error;
}

static int tls_engine_handshake(struct tls_engine *e) {
	int r = SSL_do_handshake(e->ssl);
	if (r == 1) {
		e->ready = true;
		return 0;
	}
	int error = tls_engine_result(e, r);
	return error == PAWL_ECLOSED ? PAWL_ETLS : error;
}

int tls_engine_feed(struct tls_engine *e, struct slice bytes) {
	CHECK(bytes.size <= INT_MAX);
	if (bytes.size > 0 && BIO_write(e->in, bytes.data, (int)bytes.size) != (int)bytes.size) {
		ERR_clear_error();
		return PAWL_ENOMEM;
	}
	return e->ready ? 0 : tls_engine_handshake(e);
}

bool tls_engine_ready(const struct tls_engine *e) {
	return e->ready;
}

int tls_engine_read(struct tls_engine *e, uint8_t *out, size_t size) {
	CHECK(e->ready && size <= INT_MAX);
	size_t total = 0;
	/* One call of SSL_read gives at most one record. */
	while (total < size) {
		int r = SSL_read(e->ssl, out + total, (int)(size - total));
		if (r <= 0) {
			int error = tls_engine_result(e, r);
			return total > 0 ? (int)total : error;
		}
		total += (size_t)r;
	}
	return (int)total;
}

uint64_t tls_engine_records(const struct tls_engine *e) {
	return e->records;
}

unsigned tls_engine_late(const struct tls_engine *e) {
	return e->late;
}

void tls_engine_forgive(struct tls_engine *e, uint64_t count) {
	e->late = count < e->late ? e->late - (unsigned)count : 0;
}

int tls_engine_write(struct tls_engine *e, struct slice bytes) {
	CHECK(e->ready && bytes.size <= INT_MAX);
	if (bytes.size == 0) {
		return 0;
	}
	/* A memory BIO takes everything. */
	int r = SSL_write(e->ssl, bytes.data, (int)bytes.size);
	if (r == (int)bytes.size) {
		return 0;
	}
	tls_engine_result(e, r);
	return PAWL_ETLS;
}

struct slice tls_engine_outgoing(const struct tls_engine *e) {
	char *data = NULL;
	long size = BIO_get_mem_data(e->out, &data);
	CHECK(size >= 0 && (size_t)size >= e->sent);
	return size == 0 ? slice_of(NULL, 0) : slice_of((uint8_t *)data + e->sent,
		(size_t)size - e->sent);
}

void tls_engine_sent(struct tls_engine *e, size_t size) {
	e->sent += size;
	if (tls_engine_outgoing(e).size == 0) {
		(void)BIO_reset(e->out);
		e->sent = 0;
	}
}

static size_t tls_buffer_bytes(BIO *bio) {
	BUF_MEM *bytes = NULL;
	return BIO_get_mem_ptr(bio, &bytes) > 0 && bytes ? bytes->max : 0;
}

size_t tls_engine_bytes(const struct tls_engine *e) {
	return tls_buffer_bytes(e->in) + tls_buffer_bytes(e->out);
}

/* Without memory, the buffer stays as it is. */
static void tls_buffer_renew(BIO *bio) {
	BUF_MEM *empty = BIO_pending(bio) == 0 ? BUF_MEM_new() : NULL;
	if (empty && BIO_set_mem_buf(bio, empty, BIO_CLOSE) <= 0) {
		BUF_MEM_free(empty);
	}
}

void tls_engine_tidy(struct tls_engine *e, size_t keep) {
	if (tls_engine_bytes(e) > keep) {
		tls_buffer_renew(e->in);
		if (tls_engine_outgoing(e).size == 0) {
			tls_buffer_renew(e->out);
		}
	}
}

void tls_engine_close(struct tls_engine *e) {
	if (e->ready) {
		SSL_shutdown(e->ssl);
		ERR_clear_error();
	}
}

const char *tls_engine_why(const struct tls_engine *e) {
	return e->why ? e->why : "TLS failed";
}

SSL *tls_engine_ssl(const struct tls_engine *e) {
	return e->ssl;
}
