/* cert.c: pawl cert: makes a certificate authority and the certificates of a cluster, and revokes
 * them, without any other tool. */
#include <errno.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cert.h"
#include "certs.h"
#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char cert_help[] =
	"usage: pawl cert ca [--name NAME]\n"
	"       pawl cert node NAME --host HOST[,HOST...] [--role ROLE]\n"
	"       pawl cert client NAME\n"
	"       pawl cert show FILE...\n"
	"       pawl cert revoke WHAT...\n"
	"\n"
	"Makes the keys and certificates of a cluster: first an authority, then a\n"
	"certificate for each node (with the node's name from its configuration) and for\n"
	"each client. Writes NAME.crt and NAME.key (ca.crt and ca.key), keys with mode\n"
	"0600. Nodes and clients need ca.crt and their own two files; keep ca.key\n"
	"elsewhere.\n"
	"\n"
	"show tells whose a certificate is, what it allows, until when, and whether it is\n"
	"revoked.\n"
	"\n"
	"revoke adds WHAT to the authority's CRL, DIR/ca.crl; copy the CRL to every node\n"
	"([tls] crl) and reload. WHAT is the file of a certificate, or serial:HEX.\n"
	"Without WHAT, only the validity of the CRL is renewed. With --list, WHAT is\n"
	"added to a text file instead ([tls] revoked), without the authority's key; then\n"
	"WHAT may also be node:NAME or client:NAME.\n"
	"\n"
	"  --host HOST,...      node: the names and addresses at which clients reach it;\n"
	"                       may be given again, for more of them\n"
	"  --role master|replica|embedded\n"
	"                       node: the highest role that it may have: master (the\n"
	"                       default), replica (never a master, so it never votes), or\n"
	"                       embedded (a replica inside a program; needs no --host)\n"
	"  --dir DIR            the folder of the files (default: this folder)\n"
	"  --ca FILE            the authority's certificate (default DIR/ca.crt)\n"
	"  --ca-key FILE        the authority's key (default DIR/ca.key)\n"
	"  --crl FILE           show, revoke: the CRL (default DIR/ca.crl)\n"
	"  --list FILE          show, revoke: a list of what is revoked, one per line\n"
	"  --days N             days of validity (default: ca 3650, node 825, client 365,\n"
	"                       a CRL as long as the authority); never longer than the\n"
	"                       authority's\n"
	"  --type ec|ed25519    the kind of key (default ec: P-256)\n"
	"  --name NAME          ca: the authority's name (default: Pawl CA)\n"
	"  --force              replace existing files\n"
	"\n"
	"Example:\n"
	"  pawl cert ca --dir certs\n"
	"  pawl cert node a --host a.example.org,10.0.0.1 --dir certs\n"
	"  pawl cert client backup --dir certs\n"
	"  pawl cert revoke certs/backup.crt --dir certs\n";

/* ---- making ---- */

static int put_certificate(FILE *to, const void *certificate) {
	return PEM_write_X509(to, certificate);
}

static int put_key(FILE *to, const void *key) {
	return PEM_write_PKCS8PrivateKey(to, key, NULL, NULL, 0, NULL, NULL);
}

static void refuse_existing(const struct cert *c, const char *path) {
	if (!c->force && access(path, F_OK) == 0) {
		cert_fail(c, "will not replace", path,
			"it already exists: use --force to replace it");
	}
}

static void report(const struct cert *c, const char *certificate_path, const char *key_path,
	const X509 *x) {
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
	char *certificate_path = cert_join(c->dir, "/", c->base, ".crt"),
	     *key_path = cert_join(c->dir, "/", c->base, ".key");
	refuse_existing(c, certificate_path);
	refuse_existing(c, key_path);
	X509 *issuer = NULL;
	EVP_PKEY *issuer_key = NULL;
	if (c->wanted.kind != X509_CA) {
		issuer = cert_read_authority(c);
		issuer_key = cert_read_authority_key(c, issuer);
	}
	EVP_PKEY *key = x509_key_new(c->type);
	if (!key) {
		cert_fail(c, "cannot make", "a key", cert_openssl_reason());
	}
	X509 *x = x509_issue(&c->wanted, key, issuer, issuer_key);
	if (!x) {
		cert_fail(c, "cannot make", "a certificate", cert_openssl_reason());
	}
	if (mkdir(c->dir, 0777) != 0 && errno != EEXIST) {
		cert_fail(c, "cannot make", c->dir, strerror(errno));
	}
	cert_write(c, key_path, 0600, c->force, put_key, key);
	cert_write(c, certificate_path, 0644, c->force, put_certificate, x);
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
			cli_misuse(c->line, "--host: '%s' is neither a DNS name nor an IP address",
				host);
		}
		if (c->wanted.host_count == CERT_HOSTS_MAX) {
			cli_misuse(c->line, "--host: at most %d hosts may be given",
				CERT_HOSTS_MAX);
		}
		c->hosts[c->wanted.host_count++] = host;
	}
	c->wanted.hosts = c->hosts;
}

/* Reads which of the three kinds is wanted, and for whom. Returns the default of --days. */
static long read_operands(struct cert *c, char **operands, int count, const char *name) {
	static const struct {
		const char *text;
		enum x509_kind kind;
		int operands;
		long days;
	} kinds[] = { { "ca", X509_CA, 1, 3650 }, { "node", X509_NODE, 2, 825 },
		{ "client", X509_CLIENT, 2, 365 } };
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (strcmp(operands[0], kinds[i].text) != 0) {
			continue;
		}
		if (count != kinds[i].operands) {
			cli_misuse(c->line,
				count < kinds[i].operands ? "%s needs a NAME"
					: i == 0 ? "%s takes no NAME: use --name"
					: "%s makes one certificate at a time",
				kinds[i].text);
		}
		c->wanted.kind = kinds[i].kind;
		c->base = count > 1 ? operands[1] : "ca";
		c->wanted.name = count > 1 ? operands[1] : name;
		if (count > 1 && (!x509_name_valid(c->base) || strcmp(c->base, "ca") == 0)) {
			cli_misuse(c->line,
				"'%s' cannot be a name: up to 63 letters, digits, '.', '_' and "
				"'-', and not 'ca'",
				c->base);
		}
		return kinds[i].days;
	}
	cli_misuse(c->line, "unknown subcommand '%s': use ca, node, client, show or revoke",
		operands[0]);
}

/* Reads the role. NULL stands for a master, whose certificate needs no mark. */
static void read_role(struct cert *c, const char *role) {
	if (role && c->wanted.kind != X509_NODE) {
		cli_misuse(c->line, "--role is for nodes");
	}
	if (role && strcmp(role, "master") != 0 && strcmp(role, "replica") != 0
		&& strcmp(role, "embedded") != 0) {
		cli_misuse(c->line, "--role: '%s' is not master, replica or embedded", role);
	}
	c->wanted.role = role && strcmp(role, "master") != 0 ? role : NULL;
}

static int make_one(struct cert *c, char **operands, int count, const char *name, const char *hosts,
	const char *role) {
	long days_default = read_operands(c, operands, count, name);
	read_role(c, role);
	c->wanted.days = c->days != CERT_DAYS_DEFAULT ? (long)c->days : days_default;
	if (strcmp(c->type, "ec") != 0 && strcmp(c->type, "ed25519") != 0) {
		cli_misuse(c->line, "--type: '%s' is neither ec nor ed25519", c->type);
	}
	if (c->crl_file || c->list_file) {
		cli_misuse(c->line, "--crl and --list are for show and revoke");
	}
	if (c->wanted.kind != X509_NODE && hosts) {
		cli_misuse(c->line, "--host is for nodes");
	}
	if (c->wanted.kind == X509_NODE && !hosts
		&& !(c->wanted.role && strcmp(c->wanted.role, "embedded") == 0)) {
		cli_misuse(c->line, "--host HOST[,HOST...] is missing: the names and addresses at "
			"which clients reach the node");
	}
	char *list = hosts ? strdup(hosts) : NULL;
	split_hosts(c, list);
	make(c);
	free(list);
	return CLI_DONE;
}

static int cert_run(struct cli_command_line *line) {
	struct cert c = { .line = line, .dir = ".", .type = "ec", .days = CERT_DAYS_DEFAULT };
	const char *name = "Pawl CA", *hosts = NULL, *role = NULL;
	const struct cli_option options[] = {
		{ "host", CLI_LIST, &hosts },
		{ "role", CLI_TEXT, &role },
		{ "dir", CLI_TEXT, &c.dir },
		{ "ca", CLI_TEXT, &c.ca_file },
		{ "ca-key", CLI_TEXT, &c.ca_key_file },
		{ "crl", CLI_TEXT, &c.crl_file },
		{ "list", CLI_TEXT, &c.list_file },
		{ "days", CLI_NUMBER, &c.days },
		{ "type", CLI_TEXT, &c.type },
		{ "name", CLI_TEXT, &name },
		{ "force", CLI_FLAG, &c.force },
	};
	int count;
	char **operands = cli_options(line, options, COUNT(options), 1, CERT_OPERANDS_MAX, &count);
	bool show = strcmp(operands[0], "show") == 0, revoke = strcmp(operands[0], "revoke") == 0;
	if (c.days != CERT_DAYS_DEFAULT && (c.days == 0 || c.days > 36500)) {
		cli_misuse(line, "--days must be from 1 to 36500");
	}
	if ((show || revoke) && (hosts || role)) {
		cli_misuse(line, "--host and --role are for pawl cert node");
	}
	if (show) {
		return cert_show(&c, operands + 1, count - 1);
	}
	return revoke ? cert_revoke(&c, operands + 1, count - 1)
		: make_one(&c, operands, count, name, hosts, role);
}

const struct cli_command cli_cert = { "cert",
	"make, show or revoke the certificates of a cluster", cert_help, cert_run };
