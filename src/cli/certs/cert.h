/* cert.h: what the parts of pawl cert share. */
#ifndef PAWL_CLI_CERT_H
#define PAWL_CLI_CERT_H

#include <stdio.h>
#include <sys/types.h>

#include "cli.h"
#include "x509.h"

#define CERT_HOSTS_MAX 32
#define CERT_OPERANDS_MAX 256

struct cert {
	struct cli_command_line *line;
	struct x509_wanted wanted;
	const char *hosts[CERT_HOSTS_MAX];
	const char *dir, *type, *ca_file, *ca_key_file;

	/* NULL if they are not given. */
	const char *crl_file, *list_file;
	bool force;

	/* The name of the files without ".crt" and ".key". */
	const char *base;

	/* CERT_DAYS_DEFAULT if it is not given. */
	uint64_t days;
};
#define CERT_DAYS_DEFAULT UINT64_MAX

/* Says what has failed, and ends the program with CLI_REFUSED. */
_Noreturn void cert_fail(const struct cert *c, const char *what, const char *which,
	const char *why);
const char *cert_openssl_reason(void);

/* Joins the four strings, in memory that the caller frees. */
char *cert_join(const char *a, const char *b, const char *c, const char *d);

/* The functions below end the program if they fail. */

/* Reads any certificate. */
X509 *cert_read(const struct cert *c, const char *path);
X509 *cert_read_authority(const struct cert *c);
EVP_PKEY *cert_read_authority_key(const struct cert *c, const X509 *authority);
/* Returns NULL if there is no such file. */
X509_CRL *cert_read_crl(const struct cert *c, const char *path);
/* Reads the whole file as text, in memory that the caller frees. Returns NULL if there is no such
 * file. */
char *cert_read_text(const struct cert *c, const char *path);

/* Writes a file so that it appears whole or not at all, and has its mode from the first moment on.
 * `put` returns 1, or anything else if it has failed. */
void cert_write(const struct cert *c, const char *path, mode_t mode, bool replace,
	int (*put)(FILE *to, const void *what), const void *what);

/* Returns DIR/ca.crl, or the file of --crl, in memory that the caller frees. */
char *cert_crl_path(const struct cert *c);

int cert_show(struct cert *c, char **files, int count);
int cert_revoke(struct cert *c, char **operands, int count);

#endif
