/* test_memcached_meta.c: which requests the meta commands make, and how their answers look. The
 * replies are those of memcached 1.6.18. */
#include "unit.h"

#include "memcached_rig.h"

static void test_mg_shows_what_its_flags_ask_for(void **state) {
	assert_int_equal(rig_command(*state, "mg k v f c t k Oxx s"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "hi", "memcached flags=7", 30100), DIALECT_DONE);
	rig_assert_said(*state, "VA 2 f7 c42 t30 kk Oxx s2\r\nhi\r\n");
	assert_int_equal(rig_command(*state, "mg k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "hi", "memcached", 30100), DIALECT_DONE);
	rig_assert_said(*state, "HD\r\n");
	assert_int_equal(rig_command(*state, "mg k q v k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "hi", "memcached", 30100), DIALECT_DONE);
	rig_assert_said(*state, "VA 2 kk\r\nhi\r\n");
}

static void test_mg_of_a_free_key(void **state) {
	assert_int_equal(rig_command(*state, "mg k v k Oab"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "EN kk Oab\r\n");
	assert_int_equal(rig_command(*state, "mg k v q"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "");
}

static void test_mg_with_a_time_renews(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "mg k T30 t v"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "hi", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, RIG_LEASE(30100 * SPAN_MS));
	assert_int_equal(rig_extended(c), DIALECT_DONE);
	rig_assert_said(c, "VA 2 t30\r\nhi\r\n");
	assert_int_equal(rig_command(c, "mg k T30 v"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "hi", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_DONE);
	rig_assert_said(c, "EN\r\n");
}

static void test_ms_has_the_modes_of_the_classic_commands(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "ms k 2 ME T10 F3 Oq k c\r\nhi"), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, RIG_LEASE(10100 * SPAN_MS));
	assert_true(slice_equal(c->request->core.value, slice_str("hi")));
	assert_true(slice_equal(client_label_unpack(c->request->core.label).text,
		slice_str("memcached flags=3")));
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "HD Oq kk c42\r\n");
	assert_int_equal(rig_command(c, "ms k 2 Me T10 Oq c q\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_DONE);
	rig_assert_said(c, "NS Oq\r\n");
	assert_int_equal(rig_command(c, "ms k 2 T10 q\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "hi", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_extended(c), DIALECT_DONE);
	rig_assert_said(c, "");
	assert_int_equal(rig_command(c, "ms k 2 T10 MR\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(c, "NS\r\n");
	assert_int_equal(rig_command(c, "ms k 2 T10 MS\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "ho", "memcached", 5000), DIALECT_DONE);
	rig_assert_said(c, "SERVER_ERROR the key is held: Pawl does not overwrite a lock "
		"([memcached] overwrite of this node). Take it with add; renew it with the value "
		"that it has, or change that by cas\r\n");
}

static void test_ms_compares_the_token(void **state) {
	assert_int_equal(rig_command(*state, "ms k 2 T10 C42 c\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "ho", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_updated(*state), DIALECT_ASK);
	assert_int_equal(rig_extended(*state), DIALECT_DONE);
	rig_assert_said(*state, "HD c50\r\n");
	assert_int_equal(rig_command(*state, "ms k 2 T10 C41 k\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "ho", "memcached", 5000), DIALECT_DONE);
	rig_assert_said(*state, "EX kk\r\n");
	assert_int_equal(rig_command(*state, "ms k 2 T10 C41\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "NF\r\n");
}

static void test_md_releases(void **state) {
	assert_int_equal(rig_command(*state, "md k C41 k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 5000), DIALECT_DONE);
	rig_assert_said(*state, "EX kk\r\n");
	assert_int_equal(rig_command(*state, "md k C42 Oz"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_released(*state), DIALECT_DONE);
	rig_assert_said(*state, "HD Oz\r\n");
	assert_int_equal(rig_command(*state, "md k q"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "NF\r\n");
}

static void test_mn_and_me(void **state) {
	assert_int_equal(rig_command(*state, "mn"), DIALECT_DONE);
	rig_assert_said(*state, "MN\r\n");
	assert_int_equal(rig_command(*state, "me k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 5100), DIALECT_DONE);
	rig_assert_said(*state, "ME k exp=5 cas=42 size=1\r\n");
	assert_int_equal(rig_command(*state, "me k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "EN\r\n");
}

/* The flags of one command do not stay for the next one. */
static void test_a_classic_command_after_a_quiet_one(void **state) {
	assert_int_equal(rig_command(*state, "ms k 2 T10 q k\r\nhi"), DIALECT_ASK);
	assert_int_equal(rig_refused(*state, PAWL_ENOQUORUM), DIALECT_DONE);
	rig_assert_said(*state, "SERVER_ERROR no_quorum: so it is\r\n");
	assert_int_equal(rig_command(*state, "delete k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_released(*state), DIALECT_DONE);
	rig_assert_said(*state, "DELETED\r\n");
}

UNIT(memcached_meta) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_connect, rig_disconnect)
		TEST(test_mg_shows_what_its_flags_ask_for),
		TEST(test_mg_of_a_free_key),
		TEST(test_mg_with_a_time_renews),
		TEST(test_ms_has_the_modes_of_the_classic_commands),
		TEST(test_ms_compares_the_token),
		TEST(test_md_releases),
		TEST(test_mn_and_me),
		TEST(test_a_classic_command_after_a_quiet_one),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
