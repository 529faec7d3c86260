/* The limits that can be kept with the files that pawld may open. */
#include "unit.h"

#include <string.h>

#include "descriptors.h"
#include "http_server.h"
#include "types.h"

#define MASTER "[node]\nname = a\n[cluster]\nname = t\n[cluster.masters]\na = 127.0.0.1:1\n"
#define ADMIN "[admin]\nlisten = 127.0.0.1:2\n"

static struct node_config *parse(const char *text) {
	struct node_config *c = NULL;
	struct problem problem;
	assert_int_equal(node_config_parse(slice_str(text), "f", &c, &problem), 0);
	return c;
}

/* Everything that may be open at once, without what the node needs for itself. */
static uint64_t open_at_most(const struct node_config *c) {
	const struct node_limits *l = &c->limits;
	bool admin = c->admin_listen.kind != LISTEN_NONE;
	return (uint64_t)l->clients + l->admin_clients + 2 * (uint64_t)l->handshakes + NODES_MAX
		+ (admin ? HTTP_READERS_MAX + HTTP_NEWCOMERS_MAX : 0);
}

static void limits_stay_if_there_are_files_enough(void **state) {
	(void)state;
	struct node_config *c = parse(MASTER ADMIN);
	struct problem problem = { "" };
	assert_true(descriptors_fit(c, 65536, &problem));
	assert_true(descriptors_fit(c, UINT64_MAX, &problem));
	assert_int_equal(c->limits.clients, 10000);
	assert_int_equal(c->limits.handshakes, 256);
	assert_string_equal(problem.text, "");
	node_config_free(c);
}

static void what_is_open_at_once_fits_with_any_number_of_files(void **state) {
	(void)state;
	for (uint64_t files = 256; files < 12000; files += 7) {
		struct node_config *c = parse(MASTER ADMIN);
		struct problem problem = { "" };
		bool fits = descriptors_fit(c, files, &problem);
		assert_int_equal(fits, problem.text[0] == '\0');
		assert_true(open_at_most(c) < files);
		assert_true(c->limits.clients >= 8 && c->limits.handshakes >= 8);
		assert_int_equal(c->limits.admin_clients, 16);
		/* What was lowered once stays. */
		assert_true(descriptors_fit(c, files, &problem));
		node_config_free(c);
	}
}

static void few_clients_leave_the_rest_to_handshakes(void **state) {
	(void)state;
	struct node_config *c = parse(MASTER "[limits]\nclients = 10\n");
	struct problem problem = { "" };
	assert_false(descriptors_fit(c, 400, &problem));
	assert_int_equal(c->limits.clients, 10);
	assert_int_equal(c->limits.handshakes, (400 - 48 - NODES_MAX - 16 - 10) / 2);
	assert_non_null(strstr(problem.text, "may open 400 files"));
	node_config_free(c);
}

static void too_few_files_for_anybody_are_told(void **state) {
	(void)state;
	struct node_config *c = parse(MASTER ADMIN);
	struct problem problem = { "" };
	assert_false(descriptors_fit(c, 64, &problem));
	assert_int_equal(c->limits.clients, 1);
	assert_int_equal(c->limits.handshakes, 1);
	assert_non_null(strstr(problem.text, "nobody's place is certain"));
	node_config_free(c);
}

UNIT(descriptors) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_stay_if_there_are_files_enough),
		cmocka_unit_test(what_is_open_at_once_fits_with_any_number_of_files),
		cmocka_unit_test(few_clients_leave_the_rest_to_handshakes),
		cmocka_unit_test(too_few_files_for_anybody_are_told),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
