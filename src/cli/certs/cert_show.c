/* cert_show.c: pawl cert show: says whose a certificate is, what it allows, until when, and whether
 * it is revoked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cert.h"
#include "output.h"
#include "x509_read.h"

struct shown {
	char subject[256], issuer[256], kind[X509_KIND_BYTES], names[X509_NAMES_BYTES],
		serial[X509_SERIAL_BYTES], from[32], until[32];
	int64_t days_left;
	/* What has revoked the certificate, in memory that the caller frees; NULL if nothing
	 * has. */
	char *revoked_by;
	/* There was a list or a CRL to look into. */
	bool checked;
};

/* Looks into the CRL. If it is not that of the authority which the certificate names, it says
 * nothing about the certificate. */
static void look_into_crl(const struct cert *c, X509 *x, struct shown *s) {
	char *path = cert_crl_path(c);
	X509_CRL *crl = cert_read_crl(c, path);
	X509_REVOKED *found;
	if (!crl && c->crl_file) {
		cert_fail(c, "cannot read", path, "no such file");
	}
	if (crl && X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_issuer_name(x)) == 0) {
		s->checked = true;
		if (X509_CRL_get0_by_cert(crl, &found, x) == 1) {
			s->revoked_by = cert_join(path, "", "", "");
		}
	}
	X509_CRL_free(crl);
	free(path);
}

static void look_into_list(const struct cert *c, X509 *x, struct shown *s) {
	char number[16];
	if (!c->list_file || s->revoked_by) {
		return;
	}
	char *text = cert_read_text(c, c->list_file);
	if (!text) {
		cert_fail(c, "cannot read", c->list_file, "no such file");
	}
	unsigned line = x509_listed(x, text);
	s->checked = true;
	if (line) {
		snprintf(number, sizeof number, "%u", line);
		s->revoked_by = cert_join(c->list_file, ":", number, "");
	}
	free(text);
}

static void read_one(const struct cert *c, const char *path, struct shown *s) {
	X509 *x = cert_read(c, path);
	x509_subject(X509_get_subject_name(x), s->subject, sizeof s->subject);
	x509_subject(X509_get_issuer_name(x), s->issuer, sizeof s->issuer);
	x509_kind(x, s->kind);
	x509_names(x, s->names);
	x509_serial(x, s->serial);
	x509_time(X509_get0_notBefore(x), s->from);
	x509_time(X509_get0_notAfter(x), s->until);
	s->days_left = x509_days_left(X509_get0_notAfter(x));
	look_into_crl(c, x, s);
	look_into_list(c, x, s);
	X509_free(x);
}

static void print_one(const char *path, const struct shown *s) {
	output_field("certificate", "%s", path);
	output_field("subject", "%s", s->subject);
	output_field("kind", "%s", s->kind);
	output_field("names", "%s", *s->names ? s->names : "none");
	output_field("serial", "%s", s->serial);
	output_field("issuer", "%s", s->issuer);
	output_field("valid from", "%s", s->from);
	if (s->days_left < 0) {
		output_field("valid until", "%s: IT HAS EXPIRED: issue a new one", s->until);
	} else if (s->days_left < X509_ENDS_SOON_DAYS) {
		output_field("valid until",
			"%s: IT EXPIRES SOON (%" PRId64 " days left): issue a new one", s->until,
			s->days_left);
	} else {
		output_field("valid until", "%s, %" PRId64 " days are left", s->until,
			s->days_left);
	}
	if (s->revoked_by) {
		output_field("revoked", "YES, by %s", s->revoked_by);
	} else {
		output_field("revoked", "%s",
			s->checked ? "no"
				: "not known: there is no CRL and no list here (--crl, --list)");
	}
}

static void print_json(const char *path, const struct shown *s) {
	json_t *object = json_object();
	output_json_bytes(object, "certificate", pawl_str(path));
	output_json_bytes(object, "subject", pawl_str(s->subject));
	output_json_bytes(object, "kind", pawl_str(s->kind));
	output_json_bytes(object, "names", pawl_str(s->names));
	output_json_set(object, "serial", json_string(s->serial));
	output_json_bytes(object, "issuer", pawl_str(s->issuer));
	output_json_set(object, "valid_from", json_string(s->from));
	output_json_set(object, "valid_until", json_string(s->until));
	output_json_set(object, "days_left", json_integer(s->days_left));
	output_json_set(object, "ends_soon", json_boolean(s->days_left < X509_ENDS_SOON_DAYS));
	output_json_set(object, "revoked",
		s->checked || s->revoked_by ? json_boolean(s->revoked_by != NULL) : json_null());
	if (s->revoked_by) {
		output_json_bytes(object, "revoked_by", pawl_str(s->revoked_by));
	}
	output_json(object);
}

int cert_show(struct cert *c, char **files, int count) {
	if (count == 0) {
		cli_misuse(c->line, "show needs a FILE");
	}
	for (int i = 0; i < count; i++) {
		struct shown s = { .revoked_by = NULL };
		read_one(c, files[i], &s);
		if (c->line->json) {
			print_json(files[i], &s);
		} else {
			printf("%s", i > 0 ? "\n" : "");
			print_one(files[i], &s);
		}
		free(s.revoked_by);
	}
	return CLI_DONE;
}
