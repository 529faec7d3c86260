/* These tests ask what certificates do to nodes that are linked: roles against changes of the
 * cluster, and lists that are read again. */
#include "embed_change.h"

#include <string.h>

#include "embed.h"

static void a_program_whose_certificate_says_embedded_is_no_master(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	r.tls = true;
	r.nodes[D].role = "embedded";
	embed_rig_start_all(&r);
	add_d(&r);
	const struct pawl_change promote = { .kind = PAWL_PROMOTE, .name = "d" };
	/* The master is asked, and the node itself. */
	for (size_t asked = A; asked <= D; asked += D) {
		struct embed_rig_answer a = change(&r, asked, promote);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.error, PAWL_EDENIED);
		assert_non_null(strstr(a.message, "d cannot be a master"));
	}
	const struct pawl_request nobody_waits = { .method = PAWL_CHANGE, .change = &promote };
	assert_int_equal(pawl_node_ask(r.nodes[D].node, &nobody_waits, NULL, NULL, NULL), 0);
	const struct pawl_change replace = { .kind = PAWL_REPLACE, .name = "c", .other = "d" };
	assert_int_equal(change(&r, A, replace).error, PAWL_EDENIED);
	assert_int_equal(embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }).error, 0);
	embed_rig_close(&r);
}

static bool d_is_no_voter_for_anybody(void *ctx) {
	struct embed_rig *r = ctx;
	bool none = true;
	for (size_t n = A; n <= C; n++) {
		struct pawl_node_peer peer;
		for (uint32_t i = 0; pawl_node_peer(r->nodes[n].node, i, &peer); i++) {
			none = none && (strcmp(peer.name, "d") != 0 ||
				(peer.master && !peer.linked && !peer.voting));
		}
	}
	return none;
}

/* a is told nothing of the role in the certificate, like a version that knows of no roles. */
static void a_is_told_of_no_role(struct embed_rig *r) {
	struct driver *d = node_driver(r->nodes[A].node->node);
	struct core_status there;
	core_status(node_driver(r->nodes[D].node->node)->core, d->last, &there);
	uint32_t slot = 0;
	while (strcmp(core_peer(d->core, slot)->name, "d") != 0) {
		slot++;
	}
	const struct core_event again = { .kind = CORE_PEER_UP, .peer = slot,
		.peer_id = core_peer(d->core, slot)->id, .peer_boot = there.boot };
	driver_step_now(d, &again);
}

/* The version of the coordinator knows of no roles, so that the links are what counts. */
static void a_promotion_that_nobody_checked_costs_the_node_its_links(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	r.tls = true;
	r.nodes[D].role = "replica";
	embed_rig_start_all(&r);
	add_d(&r);
	a_is_told_of_no_role(&r);
	const struct core_change promote = { .kind = CHANGE_PROMOTE, .name = slice_str("d") };
	const struct core_request request = { .id = DRIVER_OWN | 1, .op = CORE_CHANGE,
		.change = &promote, .admin = true };
	const struct core_event unchecked = { .kind = CORE_REQUEST, .request = &request };
	driver_step_now(node_driver(r.nodes[A].node->node), &unchecked);
	assert_true(net_fixture_until(&r.f, d_is_no_voter_for_anybody, &r));
	struct embed_rig_answer lock = embed_rig_ask(&r, A,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(lock.error, 0);
	assert_true(d_is_no_voter_for_anybody(&r));
	assert_int_equal(change(&r, A,
		(struct pawl_change){ .kind = PAWL_DEMOTE, .name = "d" }).error, 0);
	/* The node may be there as a replica. */
	assert_true(net_fixture_until(&r.f, d_shows_it, &r));
	embed_rig_close(&r);
}

/* Nobody has looked at the node's certificate before the core was asked, as for a node that is
 * linked only later. */
static void the_core_makes_no_master_of_one_whose_certificate_lets_it_be_none(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	r.tls = true;
	r.nodes[D].role = "replica";
	embed_rig_start_all(&r);
	add_d(&r);
	struct driver *a = node_driver(r.nodes[A].node->node);
	const struct core_change promote = { .kind = CHANGE_PROMOTE, .name = slice_str("d") };
	const struct core_request request = { .id = DRIVER_OWN | 1, .op = CORE_CHANGE,
		.change = &promote, .admin = true };
	const struct core_event asked = { .kind = CORE_REQUEST, .request = &request };
	driver_step_now(a, &asked);
	assert_int_equal(core_counts(a->core)[COUNT_role_refused], 1);
	embed_rig_close(&r);
}

static bool d_has_no_link(void *ctx) {
	struct pawl_node_peer peer;
	const struct pawl_node *d = ((struct embed_rig *)ctx)->nodes[D].node;
	for (uint32_t i = 0; pawl_node_peer(d, i, &peer); i++) {
		if (peer.linked && !peer.self) {
			return false;
		}
	}
	return true;
}

static void a_program_reads_its_list_of_revoked_certificates_again(void **state) {
	struct embed_rig r;
	char why[PAWL_NODE_WHY] = "";
	(void)state;
	embed_rig_open(&r, 3);
	r.tls = r.revoked = true;
	embed_rig_revoke(&r, "");
	embed_rig_start_all(&r);
	add_d(&r);
	embed_rig_revoke(&r, "node:d\n");
	for (size_t i = A; i <= C; i++) {
		assert_int_equal(pawl_node_reload(r.nodes[i].node, why), 0);
	}
	assert_true(net_fixture_until(&r.f, d_has_no_link, &r));
	assert_int_equal(pawl_node_reload(r.nodes[D].node, why), PAWL_ETLS);
	assert_non_null(strstr(why, "the certificate of node d"));
	embed_rig_revoke(&r, "node d\n");
	assert_int_equal(pawl_node_reload(r.nodes[A].node, why), PAWL_ETLS);
	assert_non_null(strstr(why, "revoked:1: "));
	assert_true(d_has_no_link(&r));
	embed_rig_revoke(&r, "");
	for (size_t i = A; i <= C; i++) {
		assert_int_equal(pawl_node_reload(r.nodes[i].node, why), 0);
	}
	assert_true(net_fixture_until(&r.f, d_knows_its_age, &r));
	embed_rig_close(&r);
}

UNIT(node_certificates) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_whose_certificate_says_embedded_is_no_master),
		cmocka_unit_test(the_core_makes_no_master_of_one_whose_certificate_lets_it_be_none),
		cmocka_unit_test(a_promotion_that_nobody_checked_costs_the_node_its_links),
		cmocka_unit_test(a_program_reads_its_list_of_revoked_certificates_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
