/* These tests are about the list of endpoints of a client: what may be written, what files and
 * look-ups make of it, and where an endpoint is after the list has changed. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint_list.h"
#include "env.h"
#include "failing.h"
#include "pawl/error.h"

static int parse(struct endpoint_list *list, const char *text, const char **problem) {
	return endpoint_list_parse(list, env_system()->alloc, NULL, text, problem);
}

static void open_list(struct endpoint_list *list, const char *text) {
	const char *problem = NULL;
	if (parse(list, text, &problem) != 0) {
		fail_msg("%s: %s", text, problem);
	}
}

static void endpoints_of_every_kind_are_understood(void **state) {
	(void)state;
	struct endpoint_list list;
	open_list(&list, "a.example:7000, tls://b:1 ,unix:/run/pawl.sock,[::1]:7117,"
		"tls://[2001:db8::1]:65535,tls://c.example:5@10.0.0.1,d:6@fd00::1,"
		"srv:_pawl._tcp.example.org,tls://srv:_pawl._tcp.example.org");
	const struct {
		const char *text, *host, *port;
		enum endpoint_kind kind;
		bool tls, located;
	} rows[] = {
		{ "a.example:7000", "a.example", "7000", ENDPOINT_NAME, false, false },
		{ "tls://b:1", "b", "1", ENDPOINT_NAME, true, false },
		{ "unix:/run/pawl.sock", "/run/pawl.sock", "", ENDPOINT_UNIX, false, true },
		{ "[::1]:7117", "::1", "7117", ENDPOINT_ADDRESS, false, true },
		{ "tls://[2001:db8::1]:65535", "2001:db8::1", "65535", ENDPOINT_ADDRESS, true,
			true },
		{ "tls://c.example:5@10.0.0.1", "c.example", "5", ENDPOINT_ADDRESS, true, true },
		{ "d:6@fd00::1", "d", "6", ENDPOINT_ADDRESS, false, true },
		{ "srv:_pawl._tcp.example.org", "_pawl._tcp.example.org", "", ENDPOINT_SRV, false,
			false },
		{ "tls://srv:_pawl._tcp.example.org", "_pawl._tcp.example.org", "", ENDPOINT_SRV,
			true, false },
	};
	assert_int_equal(list.count, sizeof(rows) / sizeof(rows[0]));
	for (size_t i = 0; i < list.count; i++) {
		const struct endpoint *e = &list.items[i];
		assert_string_equal(e->text, rows[i].text);
		assert_string_equal(e->host, rows[i].host);
		assert_string_equal(e->port, rows[i].port);
		assert_int_equal(e->kind, rows[i].kind);
		assert_int_equal(e->tls, rows[i].tls);
		assert_int_equal(endpoint_located(e), rows[i].located);
	}
	endpoint_list_done(&list);
}

static void endpoints_that_cannot_be_are_refused_with_a_reason(void **state) {
	(void)state;
	char long_host[600], many[300] = "a:1";
	memset(long_host, 'a', sizeof(long_host));
	(void)snprintf(long_host + sizeof(long_host) - 4, 4, ":77");
	for (int i = 0; i < ENDPOINTS_MAX; i++) {
		memcpy(many + 3 + (size_t)i * 4, ",a:1", 5);
	}
	const char *bad[] = { NULL, "", "a", "a:", ":7", "a:0", "a:65536", "a:7x", "a:123456",
		"::1:7", "[::1]", "[]:7", "[::1:7", "http://a:1", "tls://", "tls://a", "unix:",
		"a:1,", ",a:1", "a:1,,b:2", "a:1 b:2", "a:1@", "a:1@b", "@10.0.0.1", "srv:",
		"tls://srv:", "file:", "file:/nonexistent", "file:/", long_host, many };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct endpoint_list list;
		const char *problem = NULL;
		assert_int_equal(parse(&list, bad[i], &problem), PAWL_EINVAL);
		assert_non_null(problem);
		assert_null(list.items);
	}
	const char *apart[] = { "a:1;b:2", "a:1 b:2", "tls://a:1; b:2" };
	for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
		struct endpoint_list list;
		const char *problem = NULL;
		assert_int_equal(parse(&list, apart[i], &problem), PAWL_EINVAL);
		assert_non_null(strstr(problem, "separated by commas"));
	}
}

/* ---- files ---- */

struct file {
	char path[64], option[80];
};

static void file_open(struct file *f) {
	(void)snprintf(f->path, sizeof(f->path), "/tmp/pawl-endpoints-XXXXXX");
	int fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	(void)snprintf(f->option, sizeof(f->option), "file:%s", f->path);
}

/* Puts a new file in its place, as an administrator does. */
static void file_write(const struct file *f, const char *text, size_t size) {
	char fresh[80];
	(void)snprintf(fresh, sizeof(fresh), "%s.new", f->path);
	FILE *out = fopen(fresh, "w");
	assert_non_null(out);
	assert_int_equal(fwrite(text, 1, size, out), size);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(fresh, f->path), 0);
}

static void write_text(const struct file *f, const char *text) {
	file_write(f, text, strlen(text));
}

static void assert_texts(const struct endpoint_list *list, const char *const *texts, size_t count) {
	assert_int_equal(list->count, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(list->items[i].text, texts[i]);
	}
}
#define ASSERT_TEXTS(list, ...) \
	assert_texts(list, (const char *const[]){ __VA_ARGS__ }, \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static void a_file_has_one_endpoint_a_line_or_several(void **state) {
	(void)state;
	struct endpoint_list list;
	struct file f;
	char text[128];
	file_open(&f);
	write_text(&f, "# Our cluster\n127.0.0.1:1, 127.0.0.1:2,\r\n\n\t[::1]:3 # the third\n"
		"127.0.0.1:2\nunix:/x");
	(void)snprintf(text, sizeof(text), "127.0.0.9:9,%s,127.0.0.1:2", f.option);
	open_list(&list, text);
	/* What is written twice is there once. */
	ASSERT_TEXTS(&list, "127.0.0.9:9", "127.0.0.1:1", "127.0.0.1:2", "[::1]:3", "unix:/x");
	endpoint_list_done(&list);
	unlink(f.path);
}

static void what_is_wrong_in_a_file_is_named_with_its_line(void **state) {
	(void)state;
	static const char with_nul[] = "a:1\n\0b:2";
	char many[600] = "";
	for (int i = 0; i <= ENDPOINTS_MAX; i++) {
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "a:%d,", i + 1);
	}
	const struct {
		const char *text;
		size_t size;
		const char *says;
	} rows[] = {
		{ "", 0, ": it has no endpoint" },
		{ "# a:1\n,\n", 8, ": it has no endpoint" },
		{ "a:1\n\nb\n", 7, ", line 3: an endpoint lacks a port: write host:port" },
		{ "file:/x\n", 8, ", line 1: a file of endpoints names no other file" },
		{ many, strlen(many), ", line 1: at most 64 endpoints are allowed" },
		{ with_nul, sizeof(with_nul) - 1, ": it is no text" },
	};
	struct file f;
	file_open(&f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint_list list;
		const char *problem = NULL;
		char says[256];
		file_write(&f, rows[i].text, rows[i].size);
		(void)snprintf(says, sizeof(says), "file of endpoints %s%s", f.path, rows[i].says);
		assert_int_equal(parse(&list, f.option, &problem), PAWL_EINVAL);
		assert_string_equal(problem, says);
	}
	static char large[65537];
	memset(large, '#', sizeof(large));
	file_write(&f, large, sizeof(large));
	struct endpoint_list list;
	const char *problem = NULL;
	assert_int_equal(parse(&list, f.option, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem, "it is longer than 64 KiB"));
	unlink(f.path);
	assert_int_equal(parse(&list, f.option, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem, "No such file or directory"));
}

static void a_file_that_has_changed_is_read_again(void **state) {
	(void)state;
	struct endpoint_list list;
	struct file f;
	file_open(&f);
	write_text(&f, "127.0.0.1:1\n127.0.0.1:2\n");
	open_list(&list, f.option);
	const struct endpoint second = list.items[1];
	const struct endpoint *items = list.items;
	endpoint_list_read_again(&list);
	assert_ptr_equal(list.items, items);
	write_text(&f, "127.0.0.1:3\n127.0.0.1:4\n127.0.0.1:2\n");
	endpoint_list_read_again(&list);
	ASSERT_TEXTS(&list, "127.0.0.1:3", "127.0.0.1:4", "127.0.0.1:2");
	assert_int_equal(endpoint_list_find(&list, &second, 0), 2);
	write_text(&f, "127.0.0.1:3\n");
	endpoint_list_read_again(&list);
	assert_int_equal(endpoint_list_find(&list, &second, 7), 0);
	/* A file with a fault changes nothing, and is told. */
	write_text(&f, "127.0.0.1:5\nnonsense\n");
	endpoint_list_read_again(&list);
	ASSERT_TEXTS(&list, "127.0.0.1:3");
	assert_non_null(strstr(list.problem, "line 2"));
	unlink(f.path);
	endpoint_list_read_again(&list);
	ASSERT_TEXTS(&list, "127.0.0.1:3");
	assert_non_null(strstr(list.problem, "No such file"));
	write_text(&f, "127.0.0.1:5\n");
	endpoint_list_read_again(&list);
	ASSERT_TEXTS(&list, "127.0.0.1:5");
	assert_string_equal(list.problem, "");
	endpoint_list_done(&list);
	unlink(f.path);
}

/* ---- look-ups ---- */

static void find_place(struct look_up_found *found, const char *host, const char *port,
	const char *address, unsigned rank, unsigned weight) {
	struct look_up_place *p = &found->places[found->count++];
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
	assert_int_equal(inet_pton(AF_INET, address, &addr.sin_addr), 1);
	*p = (struct look_up_place){ .size = sizeof(addr), .rank = rank, .weight = weight };
	(void)snprintf(p->host, sizeof(p->host), "%s", host);
	(void)snprintf(p->port, sizeof(p->port), "%s", port);
	memcpy(&p->addr, &addr, sizeof(addr));
}

static void find_addresses(struct look_up_found *found, const char *const *addresses,
	size_t count) {
	*found = (struct look_up_found){ 0 };
	for (size_t i = 0; i < count; i++) {
		find_place(found, "n", "7", addresses[i], 0, 1);
	}
}
#define FIND(found, ...) \
	find_addresses(found, (const char *const[]){ __VA_ARGS__ }, \
		sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static void each_address_of_a_name_is_an_endpoint(void **state) {
	(void)state;
	static struct look_up_found found;
	struct endpoint_list list;
	open_list(&list, "127.0.0.9:9,tls://n:7,127.0.0.8:8");
	struct endpoint_source *s = &list.sources[1];
	FIND(&found, "10.0.0.1");
	endpoint_list_found(&list, s, &found);
	ASSERT_TEXTS(&list, "127.0.0.9:9", "tls://n:7", "127.0.0.8:8");
	assert_true(endpoint_located(&list.items[1]));
	const struct endpoint first = list.items[1], last = list.items[2];
	FIND(&found, "10.0.0.2", "10.0.0.1", "10.0.0.3", "10.0.0.2");
	endpoint_list_found(&list, s, &found);
	/* Those that were known are first, and each is there once. */
	ASSERT_TEXTS(&list, "127.0.0.9:9", "tls://n:7@10.0.0.1", "tls://n:7@10.0.0.2",
		"tls://n:7@10.0.0.3", "127.0.0.8:8");
	assert_string_equal(list.items[3].host, "n");
	assert_int_equal(endpoint_list_find(&list, &first, 0), 1);
	assert_int_equal(endpoint_list_find(&list, &last, 0), 4);
	/* What is written can be used as an endpoint, and leads to the same address. */
	struct endpoint again;
	assert_null(endpoint_parse(slice_str(list.items[3].text), &again));
	again.source = list.items[3].source;
	assert_true(endpoint_same(&again, &list.items[3]));
	FIND(&found, "10.0.0.3", "10.0.0.4");
	endpoint_list_found(&list, s, &found);
	ASSERT_TEXTS(&list, "127.0.0.9:9", "tls://n:7@10.0.0.3", "tls://n:7@10.0.0.4",
		"127.0.0.8:8");
	/* Its address is gone, and the next one of that name takes its turn. */
	assert_int_equal(endpoint_list_find(&list, &first, 0), 1);
	/* A look-up that fails changes nothing. */
	found.count = 0;
	endpoint_list_found(&list, s, &found);
	assert_int_equal(list.count, 4);
	endpoint_list_done(&list);
}

static void a_host_with_one_address_of_each_family_is_written_as_it_is(void **state) {
	(void)state;
	static struct look_up_found found;
	struct endpoint_list list;
	const struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_port = htons(7),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	open_list(&list, "n:7");
	FIND(&found, "127.0.0.1");
	struct look_up_place *p = &found.places[found.count++];
	*p = found.places[0];
	memcpy(&p->addr, &addr, sizeof(addr));
	p->size = sizeof(addr);
	endpoint_list_found(&list, &list.sources[0], &found);
	ASSERT_TEXTS(&list, "n:7", "n:7");
	find_place(&found, "n", "7", "127.0.0.2", 0, 1);
	endpoint_list_found(&list, &list.sources[0], &found);
	ASSERT_TEXTS(&list, "n:7@127.0.0.1", "n:7@::1", "n:7@127.0.0.2");
	endpoint_list_done(&list);
}

static void without_memory_the_list_stays_as_it_is(void **state) {
	(void)state;
	static struct look_up_found found;
	struct file f;
	file_open(&f);
	for (uint64_t fails = 1; fails <= 6; fails++) {
		struct failing failing = { 0 };
		const struct allocator alloc = { failing_resize, &failing };
		struct endpoint_list list;
		const char *problem = NULL;
		write_text(&f, "n:7\n127.0.0.1:1\n");
		assert_int_equal(endpoint_list_parse(&list, &alloc, NULL, f.option, &problem), 0);
		FIND(&found, "10.0.0.1", "10.0.0.2");
		write_text(&f, "127.0.0.1:2\nn:7\n");
		failing.calls = 0;
		failing.fail_first = fails;
		failing.fail_count = 1;
		endpoint_list_found(&list, &list.sources[0], &found);
		assert_true(list.count == 2 || list.count == 3);
		endpoint_list_read_again(&list);
		assert_true(list.count == 2 || list.count == 3);
		/* What failed is done the next time. */
		endpoint_list_read_again(&list);
		assert_string_equal(list.items[0].text, "127.0.0.1:2");
		assert_string_equal(list.problem, "");
		endpoint_list_done(&list);
		assert_int_equal(failing.used, 0);
	}
	unlink(f.path);
}

static void the_list_is_bounded_and_every_name_has_its_share(void **state) {
	(void)state;
	static struct look_up_found found;
	struct endpoint_list list;
	open_list(&list, "a:1,b:1,c:1,127.0.0.1:1");
	for (unsigned i = 0; i < LOOK_UP_PLACES_MAX; i++) {
		char address[16];
		(void)snprintf(address, sizeof(address), "10.0.0.%u", i);
		find_place(&found, "a", "1", address, 0, 1);
	}
	for (size_t i = 0; i < 3; i++) {
		endpoint_list_found(&list, &list.sources[i], &found);
	}
	assert_int_equal(list.count, ENDPOINTS_MAX);
	assert_int_equal(list.items[ENDPOINTS_MAX - 2].source, list.sources[2].given.source);
	assert_string_equal(list.items[ENDPOINTS_MAX - 1].text, "127.0.0.1:1");
	endpoint_list_done(&list);
}

static void records_of_a_service_are_taken_by_priority_and_weight(void **state) {
	(void)state;
	static struct look_up_found found;
	unsigned heavy = 0;
	struct prng prng;
	prng_init(&prng, 7);
	found = (struct look_up_found){ 0 };
	find_place(&found, "z", "3", "10.0.0.3", 40, 1);
	find_place(&found, "y", "2", "10.0.0.2", 20, 10);
	find_place(&found, "x", "1", "10.0.0.1", 20, 90);
	for (int i = 0; i < 200; i++) {
		struct endpoint_list list;
		const char *problem;
		assert_int_equal(endpoint_list_parse(&list, env_system()->alloc, &prng,
			"tls://srv:_pawl._tcp.x", &problem), 0);
		endpoint_list_found(&list, &list.sources[0], &found);
		assert_string_equal(list.items[2].text, "tls://z:3");
		heavy += strcmp(list.items[0].text, "tls://x:1") == 0;
		endpoint_list_done(&list);
	}
	assert_in_range(heavy, 160, 196);
}

static void a_name_keeps_its_addresses_when_the_file_changes(void **state) {
	(void)state;
	static struct look_up_found found;
	struct endpoint_list list;
	struct file f;
	file_open(&f);
	write_text(&f, "m:7\nn:7\n");
	open_list(&list, f.option);
	FIND(&found, "10.0.0.1", "10.0.0.2");
	endpoint_list_found(&list, &list.sources[1], &found);
	const struct endpoint second = list.items[2];
	write_text(&f, "n:7\no:7\n");
	endpoint_list_read_again(&list);
	ASSERT_TEXTS(&list, "n:7@10.0.0.1", "n:7@10.0.0.2", "o:7");
	assert_int_equal(endpoint_list_find(&list, &second, 0), 1);
	endpoint_list_done(&list);
	unlink(f.path);
}

UNIT(client_endpoints) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_of_every_kind_are_understood),
		cmocka_unit_test(endpoints_that_cannot_be_are_refused_with_a_reason),
		cmocka_unit_test(a_file_has_one_endpoint_a_line_or_several),
		cmocka_unit_test(what_is_wrong_in_a_file_is_named_with_its_line),
		cmocka_unit_test(a_file_that_has_changed_is_read_again),
		cmocka_unit_test(each_address_of_a_name_is_an_endpoint),
		cmocka_unit_test(a_host_with_one_address_of_each_family_is_written_as_it_is),
		cmocka_unit_test(without_memory_the_list_stays_as_it_is),
		cmocka_unit_test(the_list_is_bounded_and_every_name_has_its_share),
		cmocka_unit_test(records_of_a_service_are_taken_by_priority_and_weight),
		cmocka_unit_test(a_name_keeps_its_addresses_when_the_file_changes),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
