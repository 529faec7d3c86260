/* These tests ask what certificates let nodes be, and which ones are revoked. */
#include "peers_pair.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY 86400

struct files {
	char ca[128], cert[128], key[128], revoked[128], crl[128];
};

static struct files files_of(const struct net_fixture *f, const char *name) {
	struct files p;
	snprintf(p.ca, sizeof p.ca, "%s/ca.pem", f->dir);
	snprintf(p.cert, sizeof p.cert, "%s/%s.pem", f->dir, name);
	snprintf(p.key, sizeof p.key, "%s/%s.key", f->dir, name);
	snprintf(p.revoked, sizeof p.revoked, "%s/revoked", f->dir);
	snprintf(p.crl, sizeof p.crl, "%s/crl.pem", f->dir);
	return p;
}

static void write_text(const char *path, const char *text) {
	FILE *file = fopen(path, "w");
	assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static X509 *read_cert(const struct net_fixture *f, const char *name) {
	struct files p = files_of(f, name);
	FILE *file = fopen(p.cert, "r");
	assert_non_null(file);
	X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
	fclose(file);
	assert_non_null(cert);
	return cert;
}

/* Loads a certificate, with the list and with the CRLs that have been written where `list` and
 * `crl` say so. */
static int load(struct net_fixture *f, const char *name, bool list, bool crl,
	struct tls_contexts *out, char why[TLS_WHY_BYTES]) {
	struct files p = files_of(f, name);
	const struct tls_files files = { .ca = p.ca, .cert = p.cert, .key = p.key,
		.revoked = list ? p.revoked : NULL, .crl = crl ? p.crl : NULL,
		.client_auth = TLS_CLIENT_REQUIRED };
	why[0] = '\0';
	return tls_contexts_load(&files, name, out, why);
}

/* ---- roles ---- */

static enum node_role role_of(struct net_fixture *f, const char *uri) {
	net_fixture_certificate(f, "x", uri);
	X509 *cert = read_cert(f, "x");
	enum node_role role = tls_certificate_role(cert, "r");
	X509_free(cert);
	return role;
}

static void a_role_restricts_and_what_is_not_understood_allows_nothing(void **state) {
	static const struct {
		const char *uri;
		enum node_role role;
	} cases[] = {
		{ "pawl:node:r", NODE_ROLE_MASTER }, { "pawl:node:r?role=master",
			NODE_ROLE_MASTER }, { "pawl:node:r?role=replica", NODE_ROLE_REPLICA },
		{ "pawl:node:r?role=embedded", NODE_ROLE_EMBEDDED },
			{ "pawl:node:r?role=king", NODE_ROLE_NONE },
			{ "pawl:node:r?", NODE_ROLE_NONE },
		{ "pawl:node:r?role=", NODE_ROLE_NONE }, { "pawl:node:r?rank=replica",
			NODE_ROLE_NONE }, { "pawl:node:rr", NODE_ROLE_NONE },
		{ "pawl:node:rr?role=replica", NODE_ROLE_NONE }, { "pawl:client:r",
			NODE_ROLE_NONE }, { "pawl:node:?role=master", NODE_ROLE_NONE },
		{ "pawl:node:r,URI:pawl:node:r?role=replica", NODE_ROLE_REPLICA },
			{ "pawl:node:r?role=replica,URI:pawl:node:r", NODE_ROLE_REPLICA },
		{ "pawl:node:r,URI:pawl:node:r?role=king", NODE_ROLE_NONE },
			{ "pawl:node:q,URI:pawl:node:r?role=replica", NODE_ROLE_REPLICA },
	};
	struct net_fixture f;
	(void)state;
	net_fixture_init(&f);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(role_of(&f, cases[i].uri), cases[i].role);
	}
	net_fixture_done(&f);
}

static void a_client_may_have_a_question_mark_in_its_name(void **state) {
	struct net_fixture f;
	char name[TLS_NAME_MAX + 1];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "x", "pawl:client:who?");
	X509 *cert = read_cert(&f, "x");
	assert_true(tls_certificate_name(cert, TLS_NAME_CLIENT, name));
	assert_string_equal(name, "who?");
	assert_false(tls_certificate_name(cert, TLS_NAME_NODE, name));
	assert_string_equal(name, "");
	X509_free(cert);
	net_fixture_done(&f);
}

static void a_certificate_for_a_program_is_not_for_pawld(void **state) {
	struct net_fixture f;
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "x", "pawl:node:x?role=embedded");
	assert_int_equal(load(&f, "x", false, false, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "pawl cert node x --role replica"));
	struct files p = files_of(&f, "x");
	const struct tls_files files = { .ca = p.ca, .cert = p.cert, .key = p.key,
		.embedded = true };
	assert_int_equal(tls_contexts_load(&files, "x", &c, why), 0);
	assert_int_equal(c.own.role, NODE_ROLE_EMBEDDED);
	tls_contexts_free(&c);
	net_fixture_certificate(&f, "x", "pawl:node:x?role=king");
	assert_int_equal(load(&f, "x", false, false, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "an unknown role"));
	net_fixture_done(&f);
}

/* ---- the key's file ---- */

static void a_key_that_others_may_read_is_refused_with_what_to_do(void **state) {
	struct net_fixture f;
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	struct files p = files_of(&f, "a");
	assert_int_equal(chmod(p.key, 0644), 0);
	assert_int_equal(load(&f, "a", false, false, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "mode 0644"));
	assert_non_null(strstr(why, getuid() == 0 ? "chmod 0640 " : "chmod 0600 "));
	assert_non_null(strstr(why, "any_key_mode = yes"));
	const struct tls_files files = { .ca = p.ca, .cert = p.cert, .key = p.key,
		.any_key_mode = true };
	assert_int_equal(tls_contexts_load(&files, "a", &c, why), 0);
	tls_contexts_free(&c);
	assert_int_equal(chmod(p.key, 0400), 0);
	assert_int_equal(load(&f, "a", false, false, &c, why), 0);
	tls_contexts_free(&c);
	net_fixture_done(&f);
}

/* ---- lists ---- */

static bool listed(struct net_fixture *f, const char *text, const char *name,
	char why[TLS_WHY_BYTES]) {
	struct files p = files_of(f, name);
	struct tls_revoked *r;
	write_text(p.revoked, text);
	assert_int_equal(tls_revoked_load(p.revoked, NULL, NULL, &r, why), 0);
	X509 *cert = read_cert(f, name);
	bool has = tls_revoked_has(r, cert, why);
	X509_free(cert);
	tls_revoked_free(r);
	return has;
}

static void a_list_names_certificates_by_name_or_number(void **state) {
	struct net_fixture f;
	char why[TLS_WHY_BYTES], serial[TLS_SERIAL_BYTES], text[256];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "b", "pawl:node:b?role=replica");
	net_fixture_certificate(&f, "c", "pawl:client:b");
	X509 *cert = read_cert(&f, "b");
	tls_certificate_serial(cert, serial);
	X509_free(cert);
	assert_true(listed(&f, "# who left\n\n  node:b \r\n", "b", why));
	assert_non_null(strstr(why, "the certificate of node b (serial "));
	assert_non_null(strstr(why, "/revoked:3;"));
	assert_false(listed(&f, "node:b", "c", why));
	assert_false(listed(&f, "client:b\n", "b", why));
	assert_true(listed(&f, "client:x\nclient:b\n", "c", why));
	assert_false(listed(&f, "", "b", why));
	snprintf(text, sizeof text, "serial:00:%s\n", serial);
	assert_true(listed(&f, text, "b", why));
	assert_non_null(strstr(why, "pawl cert node b --role replica"));
	assert_false(listed(&f, text, "c", why));
	net_fixture_done(&f);
}

static void a_line_that_says_nothing_is_told_by_its_number(void **state) {
	static const char *const wrong[] = { "node:a\nb\n", "node:a\nserial:\n",
		"node:a\nserial:0x12\n", "node:a\nserial:12 34\n", "node:a\nnode:\n",
		"node:a\nNODE:b\n",
		"node:a\nserial:0123456789012345678901234567890123456789012345\n" };
	struct net_fixture f;
	struct tls_contexts c = { .crl_ends = 77 };
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "b", "pawl:node:b");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		write_text(files_of(&f, "b").revoked, wrong[i]);
		assert_int_equal(load(&f, "b", true, false, &c, why), PAWL_ETLS);
		assert_non_null(strstr(why, "/revoked:2: "));
		assert_non_null(strstr(why, "node:NAME, client:NAME or serial:HEX"));
	}
	/* What was there before is untouched. */
	assert_true(c.crl_ends == 77 && !c.peer);
	write_text(files_of(&f, "b").revoked, "node:b\n");
	/* The list names the node's own certificate. */
	assert_int_equal(load(&f, "b", true, false, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "[tls] cert: the certificate of node b"));
	assert_int_equal(remove(files_of(&f, "b").revoked), 0);
	assert_int_equal(load(&f, "b", true, false, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "cannot read"));
	net_fixture_done(&f);
}

/* ---- CRLs ---- */

/* Writes a CRL that is signed with `key`, in the name of `issuer`, and valid from `from` until
 * `until`, in seconds from now. It has one serial number if `cert` is given. */
static void write_crl(const struct net_fixture *f, X509 *issuer, EVP_PKEY *key, long from,
	long until, X509 *cert, const char *mode) {
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *start = X509_gmtime_adj(NULL, from), *end = X509_gmtime_adj(NULL, until);
	assert_true(crl && X509_CRL_set_version(crl, 1) == 1 &&
		X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer)) == 1);
	assert_true(X509_CRL_set1_lastUpdate(crl, start) == 1 &&
		X509_CRL_set1_nextUpdate(crl, end) == 1);
	if (cert) {
		X509_REVOKED *entry = X509_REVOKED_new();
		assert_true(X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(cert)) == 1);
		assert_true(X509_REVOKED_set_revocationDate(entry, start) == 1 &&
			X509_CRL_add0_revoked(crl, entry) == 1);
	}
	assert_true(X509_CRL_sort(crl) == 1 && X509_CRL_sign(crl, key, EVP_sha256()) > 0);
	FILE *file = fopen(files_of(f, "x").crl, mode);
	assert_true(file && PEM_write_X509_CRL(file, crl) == 1 && fclose(file) == 0);
	ASN1_TIME_free(start);
	ASN1_TIME_free(end);
	X509_CRL_free(crl);
}

static void refuses_crl(struct net_fixture *f, const char *expected) {
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	assert_int_equal(load(f, "b", false, true, &c, why), PAWL_ETLS);
	if (!strstr(why, expected)) {
		fail_msg("%s", why);
	}
	assert_non_null(strstr(why, "/crl.pem"));
}

static void a_crl_that_cannot_be_relied_on_is_refused(void **state) {
	struct net_fixture f, other;
	(void)state;
	net_fixture_init(&f);
	net_fixture_init(&other);
	net_fixture_certificate(&f, "b", "pawl:node:b");
	net_fixture_certificate(&other, "b", "pawl:node:b");
	refuses_crl(&f, "cannot read");
	write_text(files_of(&f, "b").crl, "garbage\n");
	refuses_crl(&f, "contains no CRL in PEM format");
	write_text(files_of(&f, "b").crl,
		"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n");
	refuses_crl(&f, "contains no CRL in PEM format");
	write_crl(&f, f.ca, f.ca_key, -60, -30, NULL, "w");
	refuses_crl(&f, "expired on");
	write_crl(&f, f.ca, f.ca_key, 2 * DAY, 3 * DAY, NULL, "w");
	refuses_crl(&f, "is not valid before");
	/* The CRL has the authority's name, but is signed with another key. */
	write_crl(&f, f.ca, other.ca_key, -60, DAY, NULL, "w");
	refuses_crl(&f, "not signed by that authority's key");
	X509 *leaf = read_cert(&f, "b");
	/* The CRL has another name. */
	write_crl(&f, leaf, f.ca_key, -60, DAY, NULL, "w");
	refuses_crl(&f, "not from an authority in the ca file");
	X509_free(leaf);
	write_crl(&f, f.ca, f.ca_key, -60, DAY, NULL, "w");
	/* This is the second of two. */
	write_crl(&f, f.ca, f.ca_key, -60, -30, NULL, "a");
	refuses_crl(&f, "expired on");
	net_fixture_done(&other);
	net_fixture_done(&f);
}

static void a_crl_revokes_by_number_and_tells_when_it_ends(void **state) {
	struct net_fixture f;
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&f, "b", "pawl:node:b");
	X509 *a = read_cert(&f, "a");
	write_crl(&f, f.ca, f.ca_key, -60, DAY, NULL, "w");
	write_crl(&f, f.ca, f.ca_key, -60, 2 * DAY, a, "a");
	assert_int_equal(load(&f, "b", false, true, &c, why), 0);
	int64_t now = tls_time_seconds(X509_get0_notBefore(a)) + 3600;
	assert_true(c.crl_ends > now + DAY - 120 && c.crl_ends < now + DAY + 120);
	tls_contexts_free(&c);
	assert_int_equal(load(&f, "a", false, true, &c, why), PAWL_ETLS);
	assert_non_null(strstr(why, "the certificate of node a"));
	assert_non_null(strstr(why, "is revoked by the CRL"));
	X509_free(a);
	net_fixture_done(&f);
}

/* ---- links ---- */

static void use(struct net_fixture *f, struct party *p, const char *name, bool list) {
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	if (load(f, name, list, false, &c, why) != 0) {
		fail_msg("%s", why);
	}
	peers_set_tls(p->peers, c.peer);
	tls_contexts_free(&c);
}

static bool a_lost_it(void *ctx) {
	return ((struct pair *)ctx)->a.downs > 0;
}

static void a_revoked_node_loses_its_link_and_gets_no_other(void **state) {
	struct pair p;
	char why[TLS_WHY_BYTES];
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use(&p.f, &p.a, "a", false);
	use(&p.f, &p.b, "b", false);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_false(peers_objection(p.b.peers, 0, why));
	assert_non_null(peers_certificate(p.b.peers, 0));
	write_text(files_of(&p.f, "b").revoked, "node:a\n");
	use(&p.f, &p.b, "b", true);
	assert_true(peers_objection(p.b.peers, 0, why));
	assert_non_null(strstr(why, "the certificate of node a (serial "));
	peers_reset(p.b.peers, 0);
	peers_reset_unfinished(p.b.peers);
	assert_false(peers_objection(p.b.peers, 0, why));
	assert_null(peers_certificate(p.b.peers, 0));
	assert_true(net_fixture_until(&p.f, a_lost_it, &p));
	/* a dials again. */
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	/* Anybody can show the certificate, even without its key. */
	assert_true(strstr(p.b.why, "is revoked by name in") && p.b.stranger);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	assert_non_null(strstr(p.a.why, "refuses this node's certificate as revoked"));
	assert_int_equal(p.b.ups, 1);
	net_fixture_settle(&p.f);
	/* This is told once, though a comes again and again. */
	assert_int_equal(p.b.troubles, 1);
	pair_close(&p);
}

static bool b_up_again(void *ctx) {
	return ((struct pair *)ctx)->b.ups > 0;
}

static void a_master_must_have_a_masters_certificate(void **state) {
	const struct peers_node masters[2] = { { "a", "", false, { { 0 } }, true, false },
		{ "b", "", false, { { 0 } }, true, false } };
	const struct peers_node replica[2] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", "", false, { { 0 } }, true, false } };
	struct pair p;
	char why[TLS_WHY_BYTES];
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a?role=replica");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use(&p.f, &p.a, "a", false);
	use(&p.f, &p.b, "b", false);
	peers_set_nodes(p.b.peers, masters, 2);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_non_null(strstr(p.b.why,
		"a is a master in the configuration, but its certificate (serial "));
	assert_non_null(strstr(p.b.why, "only allows it to be a replica"));
	/* The node has proven who it is. */
	assert_false(p.b.stranger);
	assert_int_equal(p.b.ups, 0);
	peers_set_nodes(p.b.peers, replica, 2);
	assert_true(net_fixture_until(&p.f, b_up_again, &p));
	assert_int_equal(peers_certificate(p.b.peers, 0)->role, NODE_ROLE_REPLICA);
	assert_false(peers_objection(p.b.peers, 0, why));
	/* The node is promoted nevertheless. */
	peers_set_nodes(p.b.peers, masters, 2);
	assert_true(peers_objection(p.b.peers, 0, why));
	assert_non_null(strstr(why, "pawl cluster demote a"));
	pair_close(&p);
}

static void what_began_before_a_reload_is_dropped_and_dialled_again(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use(&p.f, &p.a, "a", false);
	use(&p.f, &p.b, "b", false);
	pair_start(&p);
	while (p.b.accepted == 0) {
		assert_true(event_base_loop(p.f.base, EVLOOP_ONCE) >= 0);
	}
	peers_reset_unfinished(p.a.peers);
	peers_reset_unfinished(p.b.peers);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	pair_close(&p);
}

UNIT(net_certificates) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_role_restricts_and_what_is_not_understood_allows_nothing),
		cmocka_unit_test(a_client_may_have_a_question_mark_in_its_name),
		cmocka_unit_test(a_certificate_for_a_program_is_not_for_pawld),
		cmocka_unit_test(a_key_that_others_may_read_is_refused_with_what_to_do),
		cmocka_unit_test(a_list_names_certificates_by_name_or_number),
		cmocka_unit_test(a_line_that_says_nothing_is_told_by_its_number),
		cmocka_unit_test(a_crl_that_cannot_be_relied_on_is_refused),
		cmocka_unit_test(a_crl_revokes_by_number_and_tells_when_it_ends),
		cmocka_unit_test(a_revoked_node_loses_its_link_and_gets_no_other),
		cmocka_unit_test(a_master_must_have_a_masters_certificate),
		cmocka_unit_test(what_began_before_a_reload_is_dropped_and_dialled_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
