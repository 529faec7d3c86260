/* These tests are about names and files of endpoints while a client runs: each address is a node of
 * its own, names are looked up again in the background, and a look-up that hangs stops nothing. */
#include "unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_rig.h"
#include "look_up.h"

static const struct pawl_request get = { .method = PAWL_GET, .key = { "k", 1 } };

/* ---- the name server ---- */

/* What the threads of look-ups find. The test changes it while none of them is at work, or with the
 * mutex. */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* Look-ups of this host do not end. */
	const char *hangs;
	struct look_up_found found;
	/* How many look-ups have begun. */
	unsigned asked;
} names = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void look(const struct look_up_wanted *wanted, struct look_up_found *out) {
	pthread_mutex_lock(&names.mutex);
	names.asked++;
	pthread_cond_broadcast(&names.changed);
	while (names.hangs && strcmp(names.hangs, wanted->host) == 0) {
		pthread_cond_wait(&names.changed, &names.mutex);
	}
	*out = names.found;
	pthread_mutex_unlock(&names.mutex);
}

static void hang(const char *host) {
	pthread_mutex_lock(&names.mutex);
	names.hangs = host;
	pthread_cond_broadcast(&names.changed);
	pthread_mutex_unlock(&names.mutex);
}

/* Waits until so many look-ups have begun, and checks that there were no more. */
static void begun(unsigned count) {
	pthread_mutex_lock(&names.mutex);
	while (names.asked < count) {
		pthread_cond_wait(&names.changed, &names.mutex);
	}
	assert_int_equal(names.asked, count);
	pthread_mutex_unlock(&names.mutex);
}

static void add(struct rig *r, size_t node) {
	pthread_mutex_lock(&names.mutex);
	struct look_up_place *p = &names.found.places[names.found.count++];
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001),
		.sin_port = htons((uint16_t)r->nodes[node].port) };
	*p = (struct look_up_place){ .host = "127.0.0.1", .size = sizeof(addr) };
	(void)snprintf(p->port, sizeof(p->port), "%u", r->nodes[node].port);
	memcpy(&p->addr, &addr, sizeof(addr));
	pthread_mutex_unlock(&names.mutex);
}

static void nothing(const char *problem) {
	pthread_mutex_lock(&names.mutex);
	names.found = (struct look_up_found){ 0 };
	(void)snprintf(names.found.problem, sizeof(names.found.problem), "%s", problem);
	pthread_mutex_unlock(&names.mutex);
}

/* ---- the client ---- */

static void open_with(struct rig *r, const char *endpoints) {
	const char *problem = NULL;
	nothing("the host name cannot be resolved");
	names.asked = 0;
	rig_open(r, NULL);
	pawl_free(r->client);
	r->env.look_up = look;
	struct pawl_options options = { .endpoints = endpoints, .base = r->base,
		.prefer_first = true };
	assert_int_equal(client_core_new(&options, &r->env, &r->client, &problem), 0);
}

static bool looking(const struct rig *r) {
	const struct endpoint_list *list = &r->client->endpoints;
	bool any = false;
	for (size_t i = 0; i < list->source_count; i++) {
		any = any || list->sources[i].look_up;
	}
	return any;
}

/* Waits for the threads, and for what follows. */
static void looked_up(struct rig *r) {
	while (looking(r)) {
		assert_int_equal(event_base_loop(r->base, EVLOOP_ONCE), 0);
	}
	rig_settle(r);
}

static struct pawl_result *ask(struct rig *r) {
	static struct pawl_result *result;
	result = NULL;
	assert_int_equal(pawl_start(r->client, &get, rig_done, &result, NULL), 0);
	rig_settle(r);
	looked_up(r);
	/* After a round in which all have failed the client pauses. */
	for (int i = 0; i < 20 && !result; i++) {
		rig_pass(r, 10 * SPAN_MS);
		looked_up(r);
	}
	return result;
}

static void ask_of(struct rig *r, size_t node) {
	struct pawl_result *result = ask(r);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r->nodes[node].endpoint);
	pawl_result_free(result);
}

/* ---- the tests ---- */

static void a_node_of_a_name_that_refuses_is_left_for_the_next_one(void **state) {
	(void)state;
	struct rig r;
	open_with(&r, "srv:s");
	for (size_t i = 0; i < RIG_NODES; i++) {
		add(&r, i);
	}
	r.nodes[0].error = r.nodes[1].error = PAWL_ERECOVERING;
	ask_of(&r, 2);
	assert_int_equal(r.nodes[0].asked[CLIENT_GET], 1);
	assert_int_equal(r.nodes[1].asked[CLIENT_GET], 1);
	rig_close(&r);
}

static void a_node_of_a_name_that_hangs_is_left_for_the_next_one(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	open_with(&r, "srv:s");
	add(&r, 0);
	add(&r, 1);
	r.nodes[0].mood = FAKE_SILENT;
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	rig_settle(&r);
	looked_up(&r);
	rig_creep(&r, 500 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_name_is_looked_up_again_for_a_new_connection(void **state) {
	(void)state;
	struct rig r;
	open_with(&r, "srv:s");
	add(&r, 0);
	add(&r, 1);
	ask_of(&r, 0);
	begun(1);
	/* Soon after a look-up there is none. */
	fake_hang_up(&r.nodes[0]);
	ask_of(&r, 1);
	begun(1);
	/* Both nodes are replaced by a third one. */
	rig_pass(&r, 2 * SPAN_S);
	nothing("");
	add(&r, 2);
	for (size_t i = 0; i < 2; i++) {
		r.nodes[i].mood = FAKE_HANGS_UP;
		fake_hang_up(&r.nodes[i]);
	}
	rig_settle(&r);
	ask_of(&r, 2);
	begun(2);
	assert_int_equal(r.client->endpoints.count, 1);
	rig_close(&r);
}

static void addresses_that_are_known_stay_when_the_name_servers_fail(void **state) {
	(void)state;
	struct rig r;
	open_with(&r, "srv:s");
	add(&r, 0);
	ask_of(&r, 0);
	nothing("the host name cannot be resolved");
	rig_pass(&r, 2 * SPAN_S);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	ask_of(&r, 0);
	begun(2);
	/* Nor does a connection wait for a look-up that hangs. */
	hang("s");
	rig_pass(&r, 2 * SPAN_S);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	rig_pass(&r, 200 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	assert_true(looking(&r));
	begun(3);
	rig_close(&r);
	hang(NULL);
}

static void a_look_up_that_hangs_stops_no_other_endpoint(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	open_with(&r, "a:1,srv:b");
	add(&r, 0);
	hang("a");
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	rig_settle(&r);
	assert_null(result);
	rig_pass(&r, 1100 * SPAN_MS);
	/* The thread for "a" stays, so this waits for the other one's address. */
	while (!result) {
		assert_int_equal(event_base_loop(r.base, EVLOOP_ONCE), 0);
	}
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	begun(2);
	rig_close(&r);
	hang(NULL);
}

static void a_name_without_an_address_is_named(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	open_with(&r, "a:1,srv:b");
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	for (int i = 0; i < 8; i++) {
		rig_settle(&r);
		looked_up(&r);
		rig_pass(&r, SPAN_S);
	}
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNREACHABLE);
	assert_non_null(strstr(result->message, ": the host name cannot be resolved"));
	pawl_result_free(result);
	rig_close(&r);
}

#define FILE_PATH "/tmp/pawl-names-XXXXXX"

static void write_file(const char *path, const char *one, const char *two) {
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "%s\n%s\n", one, two);
	assert_int_equal(fclose(out), 0);
}

/* The client has other endpoints: those of a new file, after `others`. */
static void open_with_file(struct rig *r, char *path, const char *others) {
	char option[64];
	const char *problem = NULL;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	(void)snprintf(option, sizeof(option), "%sfile:%s", others, path);
	rig_open(r, NULL);
	r->env.look_up = look;
	write_file(path, r->nodes[0].endpoint, "slow:1, unix:/none");
	pawl_free(r->client);
	struct pawl_options options = { .endpoints = option, .base = r->base,
		.prefer_first = true };
	assert_int_equal(client_core_new(&options, &r->env, &r->client, &problem), 0);
}

/* A node of the new list has not been asked yet, so the call is not given up. */
static void a_list_that_has_changed_is_asked_from_the_beginning(void **state) {
	(void)state;
	struct rig r;
	char path[] = FILE_PATH;
	struct pawl_result *result = NULL;
	open_with_file(&r, path, "");
	r.nodes[0].mood = r.nodes[1].mood = FAKE_REFUSES;
	hang("slow");
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	rig_settle(&r);
	assert_null(result);
	write_file(path, r.nodes[2].endpoint, r.nodes[1].endpoint);
	rig_pass(&r, 1100 * SPAN_MS);
	rig_settle(&r);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(r.nodes[1].accepted, 1);
	pawl_result_free(result);
	rig_close(&r);
	hang(NULL);
	unlink(path);
}

static void a_file_is_read_again_for_a_new_connection(void **state) {
	(void)state;
	struct rig r;
	char path[] = FILE_PATH;
	open_with_file(&r, path, "unix:/none,");
	ask_of(&r, 0);
	write_file(path, "# new", r.nodes[1].endpoint);
	/* A connection that works goes on. */
	ask_of(&r, 0);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	ask_of(&r, 1);
	/* What the client was made without cannot come in by the file: certificates. */
	char tls[128];
	(void)snprintf(tls, sizeof(tls), "tls://%s", r.nodes[2].endpoint);
	write_file(path, tls, "");
	fake_hang_up(&r.nodes[1]);
	rig_settle(&r);
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_start(r.client, &get, rig_done, &result, NULL), 0);
	rig_pass(&r, 6 * SPAN_S);
	assert_int_equal(r.nodes[2].accepted, 0);
	assert_non_null(result);
	assert_int_not_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
	unlink(path);
}

UNIT(client_names) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_of_a_name_that_refuses_is_left_for_the_next_one),
		cmocka_unit_test(a_node_of_a_name_that_hangs_is_left_for_the_next_one),
		cmocka_unit_test(a_name_is_looked_up_again_for_a_new_connection),
		cmocka_unit_test(addresses_that_are_known_stay_when_the_name_servers_fail),
		cmocka_unit_test(a_look_up_that_hangs_stops_no_other_endpoint),
		cmocka_unit_test(a_name_without_an_address_is_named),
		cmocka_unit_test(a_file_is_read_again_for_a_new_connection),
		cmocka_unit_test(a_list_that_has_changed_is_asked_from_the_beginning),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
