/* net_fixture.c: the loop and the certificates of tests of connections, see net_fixture.h. */
#include "net_fixture.h"

#include <dirent.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "time_source.h"

#define PATIENCE (10 * SPAN_S)

void net_fixture_init(struct net_fixture *f) {
	*f = (struct net_fixture){ .base = event_base_new(), .alloc = alloc_libc(NULL) };
	CHECK(f->base && net_loop_init(&f->loop, f->base, &f->alloc) == 0);
	snprintf(f->dir, sizeof f->dir, "%s/pawl-net-XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	CHECK(mkdtemp(f->dir));
}

static void net_fixture_remove_dir(const char *path) {
	DIR *dir = opendir(path);
	CHECK(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (entry->d_name[0] != '.') {
			CHECK(unlinkat(dirfd(dir), entry->d_name, 0) == 0);
		}
	}
	closedir(dir);
	CHECK(rmdir(path) == 0);
}

void net_fixture_done(struct net_fixture *f) {
	net_fixture_remove_dir(f->dir);
	X509_free(f->ca);
	EVP_PKEY_free(f->ca_key);
	net_loop_done(&f->loop);
	event_base_free(f->base);
}

static void net_fixture_wake(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	(void)ctx;
}

bool net_fixture_until(struct net_fixture *f, bool (*holds)(void *ctx), void *ctx) {
	static const struct timeval often = { 0, 20000 };
	struct instant end = instant_add(time_source_now(), PATIENCE);
	struct event *wake = event_new(f->base, -1, EV_PERSIST, net_fixture_wake, NULL);
	CHECK(wake && event_add(wake, &often) == 0);
	bool ok;
	while (!(ok = holds(ctx)) && !instant_distrusted(time_source_now(), end)) {
		CHECK(event_base_loop(f->base, EVLOOP_ONCE) >= 0);
	}
	event_free(wake);
	return ok;
}

void net_fixture_settle(struct net_fixture *f) {
	for (int i = 0; i < 50; i++) {
		CHECK(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
	}
}

/* ---- certificates ---- */

static X509 *net_fixture_sign(const char *uri, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key) {
	static long serial;
	X509 *cert = X509_new();
	X509V3_CTX ctx;
	char text[300];
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
		(const unsigned char *)(uri ? uri : "authority"), -1, -1, 0);
	X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert));
	X509_set_pubkey(cert, key);
	X509V3_set_ctx(&ctx, issuer ? issuer : cert, cert, NULL, NULL, 0);
	snprintf(text, sizeof text, "URI:%s", uri ? uri : "");
	X509_EXTENSION *extension = uri ? X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name,
		text) : X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, "critical,CA:TRUE");
	CHECK(extension && X509_add_ext(cert, extension, -1) == 1);
	X509_EXTENSION_free(extension);
	CHECK(X509_sign(cert, issuer_key ? issuer_key : key, EVP_sha256()) > 0);
	return cert;
}

static void net_fixture_save(const struct net_fixture *f, const char *name, X509 *cert,
	EVP_PKEY *key) {
	char path[128];
	snprintf(path, sizeof path, "%s/%s.pem", f->dir, name);
	FILE *file = fopen(path, "w");
	CHECK(file && PEM_write_X509(file, cert) == 1);
	fclose(file);
	snprintf(path, sizeof path, "%s/%s.key", f->dir, name);
	file = fopen(path, "w");
	CHECK(file && fchmod(fileno(file), 0600) == 0 &&
		PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1);
	fclose(file);
}

void net_fixture_certificate(struct net_fixture *f, const char *name, const char *uri) {
	if (!f->ca) {
		f->ca_key = EVP_EC_gen("P-256");
		f->ca = net_fixture_sign(NULL, f->ca_key, NULL, NULL);
		net_fixture_save(f, "ca", f->ca, f->ca_key);
	}
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = net_fixture_sign(uri, key, f->ca, f->ca_key);
	net_fixture_save(f, name, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

struct net_fixture_paths {
	char ca[128], cert[128], key[128];
};

static struct net_fixture_paths net_fixture_paths(const struct net_fixture *f, const char *name) {
	struct net_fixture_paths p;
	snprintf(p.ca, sizeof p.ca, "%s/ca.pem", f->dir);
	snprintf(p.cert, sizeof p.cert, "%s/%s.pem", f->dir, name);
	snprintf(p.key, sizeof p.key, "%s/%s.key", f->dir, name);
	return p;
}

int net_fixture_contexts(struct net_fixture *f, const char *name, const char *node_name,
	enum tls_client_auth auth, struct tls_contexts *out, char why[TLS_WHY_BYTES]) {
	struct net_fixture_paths p = net_fixture_paths(f, name);
	const struct tls_files files = { .ca = p.ca, .cert = p.cert, .key = p.key,
		.client_auth = auth };
	return tls_contexts_load(&files, node_name, out, why);
}

SSL_CTX *net_fixture_bare_context(struct net_fixture *f, const char *name) {
	SSL_CTX *ctx = SSL_CTX_new(TLS_method());
	CHECK(ctx);
	if (name) {
		struct net_fixture_paths p = net_fixture_paths(f, name);
		CHECK(SSL_CTX_use_certificate_file(ctx, p.cert, SSL_FILETYPE_PEM) == 1);
		CHECK(SSL_CTX_use_PrivateKey_file(ctx, p.key, SSL_FILETYPE_PEM) == 1);
	}
	return ctx;
}

void net_fixture_pair(int fds[2]) {
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
}
