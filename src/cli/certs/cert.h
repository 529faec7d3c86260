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
	const char *crl_file, *list_file; /* NULL: not named */
	bool force;
	const char *base; /* the files' name without its end */
	uint64_t days;    /* CERT_DAYS_DEFAULT: not named */
};
#define CERT_DAYS_DEFAULT UINT64_MAX

/* Says so and ends the program with CLI_REFUSED. */
_Noreturn void cert_fail(const struct cert *c, const char *what, const char *which, const char *why);
const char *cert_openssl_reason(void);

/* The four in a row, in memory of its own. */
char *cert_join(const char *a, const char *b, const char *c, const char *d);

/* These end the program when they fail. */
X509 *cert_read(const struct cert *c, const char *path); /* any certificate */
X509 *cert_read_authority(const struct cert *c);
EVP_PKEY *cert_read_authority_key(const struct cert *c, const X509 *authority);
X509_CRL *cert_read_crl(const struct cert *c, const char *path); /* NULL: there is no such file */
/* The whole file as text, in memory of its own; NULL: there is no such file. */
char *cert_read_text(const struct cert *c, const char *path);

/* A file appears whole or not at all, and with its mode from the first moment on. `put` returns 1, or what is not 1 for failed. */
void cert_write(const struct cert *c, const char *path, mode_t mode, bool replace, int (*put)(FILE *to, const void *what),
	const void *what);

/* DIR/ca.crl unless --crl says otherwise; in memory of its own. */
char *cert_crl_path(const struct cert *c);

int cert_show(struct cert *c, char **files, int count);
int cert_revoke(struct cert *c, char **operands, int count);

#endif
