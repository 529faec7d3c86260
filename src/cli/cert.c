/* pawl cert: a certificate authority and certificates for a cluster, without any other tool. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "x509.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define HOSTS_MAX 32
#define DAYS_DEFAULT UINT64_MAX /* --days was not named */

static const char cert_help[] =
	"usage: pawl cert ca [--name NAME]\n"
	"       pawl cert node NAME --host HOST[,HOST...]\n"
	"       pawl cert client NAME\n"
	"\n"
	"Makes the keys and certificates of a cluster: first an authority, then with it one certificate for each node (under\n"
	"the node's name in its configuration) and for each client. Writes NAME.crt and NAME.key (ca.crt and ca.key), keys\n"
	"with mode 0600. Nodes and clients need ca.crt and their own two files; keep ca.key elsewhere.\n"
	"\n"
	"  --host HOST,...      node: the names and addresses under which clients reach it\n"
	"  --dir DIR            where the files are (default: here)\n"
	"  --ca FILE            the authority's certificate (default DIR/ca.crt)\n"
	"  --ca-key FILE        and its key (default DIR/ca.key)\n"
	"  --days N             how long it is valid (default: ca 3650, node 825, client 365), not beyond the authority\n"
	"  --type ec|ed25519    kind of key (default ec: P-256)\n"
	"  --name NAME          ca: what the authority is called (default: Pawl CA)\n"
	"  --force              replace files that exist\n"
	"\n"
	"Example:\n"
	"  pawl cert ca --dir certs\n"
	"  pawl cert node a --host a.example.org,10.0.0.1 --dir certs\n"
	"  pawl cert client backup --dir certs\n";

struct cert {
	struct cli_command_line *line;
	struct x509_wanted wanted;
	const char *hosts[HOSTS_MAX];
	const char *dir, *type, *ca_file, *ca_key_file;
	bool force;
	const char *base; /* the files' name without its end */
};

_Noreturn static void fail(const struct cert *c, const char *what, const char *which, const char *why) {
	if (c->line->json) {
		json_t *error = json_object(), *object = json_object();
		output_json_set(error, "code", json_string(pawl_error_code(PAWL_EIO)));
		output_json_set(error, "message", json_pack("s++", what, ": ", why));
		output_json_bytes(error, "file", pawl_str(which));
		output_json_set(object, "error", error);
		output_json(object);
	}
	fprintf(stderr, "pawl cert: %s %s: %s\n", what, which, why);
	exit(CLI_REFUSED);
}

static const char *openssl_reason(void) {
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	return reason ? reason : "OpenSSL failed";
}

/* The four in a row, in memory of its own. */
static char *join(const char *a, const char *b, const char *c, const char *d) {
	char *path;
	if (asprintf(&path, "%s%s%s%s", a, b, c, d) < 0) {
		fprintf(stderr, "pawl cert: out of memory\n");
		exit(CLI_REFUSED);
	}
	return path;
}

/* ---- reading the authority ---- */

static FILE *open_to_read(const struct cert *c, const char *path) {
	FILE *f = fopen(path, "re");
	if (!f) {
		fail(c, "cannot read", path, errno == ENOENT ? "no such file: make an authority first with pawl cert ca" : strerror(errno));
	}
	return f;
}

static X509 *read_certificate(const struct cert *c, const char *path) {
	FILE *f = open_to_read(c, path);
	X509 *x = PEM_read_X509(f, NULL, NULL, NULL);
	fclose(f);
	if (!x) {
		fail(c, "cannot use", path, "it holds no certificate in PEM format");
	}
	if (X509_check_ca(x) != 1) {
		fail(c, "cannot use", path, "it is no authority's certificate");
	}
	return x;
}

static EVP_PKEY *read_key(const struct cert *c, const char *path, const X509 *certificate) {
	FILE *f = open_to_read(c, path);
	EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	fclose(f);
	if (!key) {
		fail(c, "cannot use", path, "it holds no private key in PEM format");
	}
	if (X509_check_private_key(certificate, key) != 1) {
		fail(c, "cannot use", path, "it is not the key of that certificate");
	}
	return key;
}

/* ---- writing ---- */

/* A file appears whole or not at all, and with its mode from the first moment on. */
static void write_file(const struct cert *c, const char *path, mode_t mode, X509 *certificate, EVP_PKEY *key) {
	char *partial = join(path, ".part", "", "");
	unlink(partial);
	int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		fail(c, "cannot write", path, strerror(errno));
	}
	int good = key ? PEM_write_PKCS8PrivateKey(f, key, NULL, NULL, 0, NULL, NULL) : PEM_write_X509(f, certificate);
	if (good != 1) {
		unlink(partial);
		fail(c, "cannot write", path, openssl_reason());
	}
	if (fchmod(fd, mode) != 0 || fflush(f) != 0 || fsync(fd) != 0 || fclose(f) != 0 ||
		renameat2(AT_FDCWD, partial, AT_FDCWD, path, c->force ? 0U : RENAME_NOREPLACE) != 0) {
		int error = errno;
		unlink(partial);
		fail(c, "cannot write", path, strerror(error));
	}
	free(partial);
}

static void refuse_existing(const struct cert *c, const char *path) {
	if (!c->force && access(path, F_OK) == 0) {
		fail(c, "will not replace", path, "it exists; --force replaces it");
	}
}

static void report(const struct cert *c, const char *certificate_path, const char *key_path, const X509 *x) {
	struct tm end;
	char text[32] = "";
	if (ASN1_TIME_to_tm(X509_get0_notAfter(x), &end) == 1) {
		strftime(text, sizeof text, "%Y-%m-%d", &end);
	}
	if (c->line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "certificate", pawl_str(certificate_path));
		output_json_bytes(object, "key", pawl_str(key_path));
		output_json_set(object, "valid_until", json_string(text));
		output_json(object);
	} else {
		output_field("certificate", "%s", certificate_path);
		output_field("key", "%s", key_path);
		output_field("valid until", "%s", text);
	}
}

static void make(struct cert *c) {
	char *certificate_path = join(c->dir, "/", c->base, ".crt"), *key_path = join(c->dir, "/", c->base, ".key");
	refuse_existing(c, certificate_path);
	refuse_existing(c, key_path);
	X509 *issuer = NULL;
	EVP_PKEY *issuer_key = NULL;
	if (c->wanted.role != X509_ROLE_CA) {
		char *ca = join(c->dir, "/", "ca", ".crt"), *ca_key = join(c->dir, "/", "ca", ".key");
		issuer = read_certificate(c, c->ca_file ? c->ca_file : ca);
		issuer_key = read_key(c, c->ca_key_file ? c->ca_key_file : ca_key, issuer);
		free(ca);
		free(ca_key);
	}
	EVP_PKEY *key = x509_key_new(c->type);
	if (!key) {
		fail(c, "cannot make", "a key", openssl_reason());
	}
	X509 *x = x509_issue(&c->wanted, key, issuer, issuer_key);
	if (!x) {
		fail(c, "cannot make", "a certificate", openssl_reason());
	}
	if (mkdir(c->dir, 0777) != 0 && errno != EEXIST) {
		fail(c, "cannot make", c->dir, strerror(errno));
	}
	write_file(c, key_path, 0600, NULL, key);
	write_file(c, certificate_path, 0644, x, NULL);
	report(c, certificate_path, key_path, x);
	X509_free(x);
	X509_free(issuer);
	EVP_PKEY_free(key);
	EVP_PKEY_free(issuer_key);
	free(certificate_path);
	free(key_path);
}

/* ---- the command ---- */

static void split_hosts(struct cert *c, char *list) {
	char *host;
	while (list && (host = strsep(&list, ",")) != NULL) {
		if (!x509_host_valid(host)) {
			cli_misuse(c->line, "--host: '%s' is neither a DNS name nor an IP address", host);
		}
		if (c->wanted.host_count == HOSTS_MAX) {
			cli_misuse(c->line, "--host: more than %d", HOSTS_MAX);
		}
		c->hosts[c->wanted.host_count++] = host;
	}
	c->wanted.hosts = c->hosts;
}

/* Which of the three, and for whom; returns the default of --days. */
static long read_operands(struct cert *c, char **operands, int count, const char *name) {
	static const struct {
		const char *text;
		enum x509_role role;
		int operands;
		long days;
	} kinds[] = { { "ca", X509_ROLE_CA, 1, 3650 }, { "node", X509_ROLE_NODE, 2, 825 }, { "client", X509_ROLE_CLIENT, 2, 365 } };
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (strcmp(operands[0], kinds[i].text) != 0) {
			continue;
		}
		if (count != kinds[i].operands) {
			cli_misuse(c->line, count < kinds[i].operands ? "whose? pawl cert %s NAME" : "pawl cert %s takes no name; --name does",
				kinds[i].text);
		}
		c->wanted.role = kinds[i].role;
		c->base = count > 1 ? operands[1] : "ca";
		c->wanted.name = count > 1 ? operands[1] : name;
		if (count > 1 && (!x509_name_valid(c->base) || strcmp(c->base, "ca") == 0)) {
			cli_misuse(c->line, "'%s' cannot be a name: up to 63 letters, digits, '.', '_' and '-', and not 'ca'", c->base);
		}
		return kinds[i].days;
	}
	cli_misuse(c->line, "'%s': there are ca, node and client", operands[0]);
}

static int cert_run(struct cli_command_line *line) {
	struct cert c = { .line = line, .dir = ".", .type = "ec" };
	const char *name = "Pawl CA", *hosts = NULL;
	uint64_t days = DAYS_DEFAULT;
	const struct cli_option options[] = {
		{ "host", CLI_TEXT, &hosts }, { "dir", CLI_TEXT, &c.dir }, { "ca", CLI_TEXT, &c.ca_file },
		{ "ca-key", CLI_TEXT, &c.ca_key_file }, { "days", CLI_NUMBER, &days }, { "type", CLI_TEXT, &c.type },
		{ "name", CLI_TEXT, &name }, { "force", CLI_FLAG, &c.force },
	};
	int count;
	char **operands = cli_options(line, options, COUNT(options), 1, 2, &count);
	long days_default = read_operands(&c, operands, count, name);
	if (days != DAYS_DEFAULT && (days == 0 || days > 36500)) {
		cli_misuse(line, "--days: 1 to 36500");
	}
	c.wanted.days = days != DAYS_DEFAULT ? (long)days : days_default;
	if (strcmp(c.type, "ec") != 0 && strcmp(c.type, "ed25519") != 0) {
		cli_misuse(line, "--type: '%s' is neither ec nor ed25519", c.type);
	}
	if ((c.wanted.role == X509_ROLE_NODE) != (hosts != NULL)) {
		cli_misuse(line, hosts ? "--host is for nodes" : "under which names do clients reach it? --host HOST[,HOST...]");
	}
	char *list = hosts ? strdup(hosts) : NULL;
	split_hosts(&c, list);
	make(&c);
	free(list);
	return CLI_DONE;
}

const struct cli_command cli_cert = { "cert", "a certificate authority and certificates for nodes and clients", cert_help,
	cert_run };
