/* cert_files.c: the files of pawl cert: keys, certificates, CRLs and lists of revoked
 * certificates. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cert.h"
#include "output.h"

#define TEXT_BYTES_MAX ((size_t)1 << 20)

_Noreturn void cert_fail(const struct cert *c, const char *what, const char *which,
	const char *why) {
	if (c->line->json) {
		json_t *error = json_object(), *object = json_object();
		output_json_set(error, "code", json_string(pawl_error_code(PAWL_EIO)));
		output_json_set(error, "message", json_pack("s++", what, ": ", why));
		output_json_bytes(error, "file", pawl_str(which));
		output_json_set(object, "error", error);
		output_json(object);
	}
	output_line(stderr, "pawl cert: %s %s: %s", what, which, why);
	exit(CLI_REFUSED);
}

const char *cert_openssl_reason(void) {
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	return reason ? reason : "OpenSSL failed";
}

char *cert_join(const char *a, const char *b, const char *c, const char *d) {
	char *path;
	if (asprintf(&path, "%s%s%s%s", a, b, c, d) < 0) {
		fprintf(stderr, "pawl cert: out of memory\n");
		exit(CLI_REFUSED);
	}
	return path;
}

/* ---- reading ---- */

static FILE *open_to_read(const struct cert *c, const char *path, const char *missing) {
	FILE *f = fopen(path, "re");
	if (!f) {
		cert_fail(c, "cannot read", path,
			errno == ENOENT && missing ? missing : strerror(errno));
	}
	return f;
}

static X509 *read_certificate(const struct cert *c, const char *path, const char *missing) {
	FILE *f = open_to_read(c, path, missing);
	X509 *x = PEM_read_X509(f, NULL, NULL, NULL);
	fclose(f);
	if (!x) {
		cert_fail(c, "cannot use", path, "it contains no certificate in PEM format");
	}
	return x;
}

static const char no_authority[] = "no such file: make an authority first with pawl cert ca";

X509 *cert_read(const struct cert *c, const char *path) {
	return read_certificate(c, path, NULL);
}

X509 *cert_read_authority(const struct cert *c) {
	char *standard = cert_join(c->dir, "/", "ca", ".crt");
	const char *path = c->ca_file ? c->ca_file : standard;
	X509 *x = read_certificate(c, path, no_authority);
	if (X509_check_ca(x) != 1) {
		cert_fail(c, "cannot use", path, "it is not the certificate of an authority");
	}
	free(standard);
	return x;
}

EVP_PKEY *cert_read_authority_key(const struct cert *c, const X509 *authority) {
	char *standard = cert_join(c->dir, "/", "ca", ".key");
	const char *path = c->ca_key_file ? c->ca_key_file : standard;
	FILE *f = open_to_read(c, path, no_authority);
	EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	fclose(f);
	if (!key) {
		cert_fail(c, "cannot use", path, "it contains no private key in PEM format");
	}
	if (X509_check_private_key(authority, key) != 1) {
		cert_fail(c, "cannot use", path, "it is not the key of that certificate");
	}
	free(standard);
	return key;
}

X509_CRL *cert_read_crl(const struct cert *c, const char *path) {
	FILE *f = fopen(path, "re");
	if (!f && errno == ENOENT) {
		return NULL;
	}
	if (!f) {
		cert_fail(c, "cannot read", path, strerror(errno));
	}
	X509_CRL *crl = PEM_read_X509_CRL(f, NULL, NULL, NULL);
	fclose(f);
	if (!crl) {
		cert_fail(c, "cannot use", path, "it contains no CRL in PEM format");
	}
	return crl;
}

char *cert_read_text(const struct cert *c, const char *path) {
	FILE *f = fopen(path, "re");
	if (!f && errno == ENOENT) {
		return NULL;
	}
	char *text = f ? malloc(TEXT_BYTES_MAX + 1) : NULL;
	if (!text) {
		cert_fail(c, "cannot read", path, strerror(errno));
	}
	size_t size = fread(text, 1, TEXT_BYTES_MAX, f);
	bool whole = !ferror(f) && fgetc(f) == EOF;
	fclose(f);
	text[size] = '\0';
	if (!whole || strlen(text) != size) {
		cert_fail(c, "cannot use", path,
			"it is not a list of lines of text, or is larger than 1 MiB");
	}
	return text;
}

/* ---- writing ---- */

void cert_write(const struct cert *c, const char *path, mode_t mode, bool replace,
	int (*put)(FILE *to, const void *what), const void *what) {
	char *partial = cert_join(path, ".part", "", "");
	unlink(partial);
	int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		cert_fail(c, "cannot write", path, strerror(errno));
	}
	if (put(f, what) != 1) {
		unlink(partial);
		cert_fail(c, "cannot write", path, cert_openssl_reason());
	}
	if (fchmod(fd, mode) != 0 || fflush(f) != 0 || fsync(fd) != 0 || fclose(f) != 0
		|| renameat2(AT_FDCWD, partial, AT_FDCWD, path, replace ? 0U : RENAME_NOREPLACE)
			!= 0) {
		int error = errno;
		unlink(partial);
		cert_fail(c, "cannot write", path, strerror(error));
	}
	free(partial);
}

char *cert_crl_path(const struct cert *c) {
	return c->crl_file ? cert_join(c->crl_file, "", "", "")
		: cert_join(c->dir, "/", "ca", ".crl");
}
