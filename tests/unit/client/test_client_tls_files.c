/* These tests are about certificates that are renewed on disk while a client runs. */
#include "unit.h"

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tls_files.h"

static char cert_path[] = "/tmp/pawl-cert-XXXXXX", key_path[] = "/tmp/pawl-key-XXXXXX";

/* Writes a new key and a certificate that it has signed itself. */
static void put_pair(bool cert_only) {
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_gmtime_adj(X509_getm_notBefore(cert), 0);
	X509_gmtime_adj(X509_getm_notAfter(cert), 1000);
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
	FILE *file = fopen(cert_path, "w");
	assert_int_equal(PEM_write_X509(file, cert), 1);
	fclose(file);
	file = cert_only ? NULL : fopen(key_path, "w");
	if (file) {
		assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
		fclose(file);
	}
	X509_free(cert);
	EVP_PKEY_free(key);
}

static void renewed_files_are_read_and_a_half_written_pair_is_not_used(void **state) {
	(void)state;
	const char *const paths[TLS_FILES] = { cert_path, cert_path, key_path };
	const char *problem = NULL;
	struct allocator alloc = alloc_libc(NULL);
	struct tls_files f;
	close(mkstemp(cert_path));
	close(mkstemp(key_path));
	put_pair(false);
	assert_int_equal(tls_files_init(&f, &alloc, paths, &problem), 0);
	SSL_CTX *first = tls_files_context(&f);
	assert_non_null(first);
	assert_ptr_equal(tls_files_context(&f), first);
	put_pair(true);
	assert_ptr_equal(tls_files_context(&f), first);
	assert_non_null(strstr(f.problem, key_path));
	assert_true(SSL_CTX_up_ref(first));
	put_pair(false);
	assert_ptr_not_equal(tls_files_context(&f), first);
	assert_string_equal(f.problem, "");
	SSL_CTX_free(first);
	tls_files_done(&f, &alloc);
	unlink(cert_path);
	unlink(key_path);
}

UNIT(client_tls_files) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(renewed_files_are_read_and_a_half_written_pair_is_not_used),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
