/* The configuration file of pawld. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_file.h"
#include "pawl/error.h"

#define MASTERS "[cluster.masters]\na = 127.0.0.1:1\nb = 127.0.0.1:2\nc = 127.0.0.1:3\n"
#define BASE "[node]\nname = a\n[cluster]\nname = t\n" MASTERS
#define TLS "[tls]\nca = /ca\ncert = /cert\nkey = /key\n"

static struct node_config *parse_good(const char *text) {
	struct node_config *c = NULL;
	struct problem problem = { "" };
	if (node_config_parse(slice_str(text), "f", &c, &problem)) {
		fail_msg("refused: %s", problem.text);
	}
	return c;
}

static void a_small_file_gets_safe_defaults(void **state) {
	(void)state;
	struct node_config *c = parse_good(BASE);
	assert_string_equal(c->state_dir, "/var/lib/pawl");
	assert_int_equal(c->birth.max_lease, 60 * SPAN_S);
	assert_int_equal(c->birth.promise_timeout, 2 * SPAN_S);
	assert_int_equal(c->birth.request_timeout, SPAN_S);
	assert_int_equal(c->birth.drift_ppm, 10000);
	assert_int_equal(c->replication_interval, 5 * SPAN_MS);
	assert_int_equal(c->tls.client_auth, CLIENT_AUTH_REQUIRED);
	assert_false(c->insecure);
	assert_int_equal(c->listen_client_count, 1);
	assert_true(listen_address_loopback(&c->listen_client[0]));
	assert_int_equal(c->listen_client[0].port, CLIENT_PORT_DEFAULT);
	assert_int_equal(c->listen_peer.port, 1);
	assert_string_equal(c->advertise, "127.0.0.1:1");
	assert_int_equal(c->admin_listen.kind, LISTEN_NONE);
	node_config_free(c);
}

static void every_setting_arrives_where_it_belongs(void **state) {
	(void)state;
	struct node_config *c = parse_good("# comment\n; another\n\r\n[node]\r\n name=a \n"
		"state_dir = /s\nlisten_peer = 0.0.0.0:7\n"
		"listen_client = [::1]:8, plain:127.0.0.1:9 unix:/run/x\nadvertise = 10.0.0.1:1\n"
		"log_level = debug\nlog_format = json\ndeadlock = refuse\ndeadlock_after = 3s\n"
		"[cluster]\nname = t\n"
		"max_lease = 2m\npromise_timeout = 3s\nrequest_timeout = 500ms\nclock_drift "
		"= 0.5 %\nreplication_interval = 20us\n[cluster.masters]\na = 10.0.0.1:1\n"
		"[tls]\nca = /ca\ncert = /cert\nkey = /key\nclient_auth = optional\ncrl = /crl\n"
		"revoked = /list\nany_key_mode = yes\n[limits]\nkeys = 5\nmemory = 1g\n"
		"value_bytes = 64k\nclients = 7\nwaiters = 8\nidle_timeout = 0\nlease_min "
		"= 1s\nadmin_clients = 0\nkept_locks = 6\nlocks_per_identity = 9\n"
		"value_bytes_per_address = 2m\nrate_per_address = 0\n"
		"waits_per_identity = 0\nclient_memory = 64m\nclient_memory_per_identity = 10m\n"
		"[admin]\nlisten = 127.0.0.1:10\nreaders = prometheus, alice\n"
		"groups = billing/ cron/\ndrain_wait = 2s\n");
	assert_string_equal(c->state_dir, "/s");
	assert_string_equal(c->listen_peer.host, "0.0.0.0");
	assert_int_equal(c->listen_peer.kind, LISTEN_TLS);
	assert_int_equal(c->listen_client_count, 3);
	assert_string_equal(c->listen_client[0].host, "::1");
	assert_int_equal(c->listen_client[1].kind, LISTEN_PLAIN);
	assert_int_equal(c->listen_client[2].kind, LISTEN_UNIX);
	assert_string_equal(c->listen_client[2].path, "/run/x");
	assert_int_equal(c->log_level, LEVEL_DEBUG);
	assert_int_equal(c->deadlock, DEADLOCK_REFUSE);
	assert_int_equal(c->deadlock_after, 3 * SPAN_S);
	assert_int_equal(c->birth.max_lease, 120 * SPAN_S);
	assert_int_equal(c->birth.request_timeout, 500 * SPAN_MS);
	assert_int_equal(c->birth.drift_ppm, 5000);
	assert_int_equal(c->replication_interval, 20 * SPAN_US);
	assert_true(c->tls.on);
	assert_int_equal(c->tls.client_auth, CLIENT_AUTH_OPTIONAL);
	assert_string_equal(c->tls.crl, "/crl");
	assert_string_equal(c->tls.revoked, "/list");
	assert_true(c->tls.any_key_mode);
	assert_int_equal(c->limits.core.keys, 5);
	assert_int_equal(c->limits.core.memory_bytes, 1 << 30);
	assert_int_equal(c->limits.core.value_bytes, 65536);
	assert_int_equal(c->limits.core.waiters, 8);
	assert_int_equal(c->limits.core.lease_min, SPAN_S);
	assert_int_equal(c->limits.clients, 7);
	assert_int_equal(c->limits.idle_timeout, 0);
	assert_int_equal(c->limits.admin_clients, 0);
	assert_int_equal(c->limits.kept_locks, 6);
	assert_int_equal(c->limits.identity.max[SHARE_LOCKS], 9);
	assert_int_equal(c->limits.identity.max[SHARE_WAITS], 0);
	assert_int_equal(c->limits.identity.max[SHARE_RATE], 0);
	assert_int_equal(c->limits.address.max[SHARE_VALUES], 2 << 20);
	assert_int_equal(c->limits.client_memory, 64 << 20);
	assert_int_equal(c->limits.identity.max[SHARE_MEMORY], 10 << 20);
	assert_int_equal(c->limits.address.max[SHARE_MEMORY], 384 << 20);
	/* The others have their defaults. */
	assert_int_equal(c->limits.identity.max[SHARE_CLIENTS], 5000);
	assert_int_equal(c->limits.address.max[SHARE_CLIENTS], 7500);
	assert_int_equal(c->admin_listen.port, 10);
	/* On this machine nobody needs a certificate to read. */
	assert_int_equal(c->admin_listen.kind, LISTEN_PLAIN);
	assert_int_equal(c->admin.reader_count, 2);
	assert_string_equal(c->admin.readers[1], "alice");
	assert_int_equal(c->admin.groups.count, 2);
	assert_int_equal(key_groups_find(&c->admin.groups, slice_str("cron/x")), 1);
	assert_int_equal(key_groups_find(&c->admin.groups, slice_str("cron")), KEY_GROUPS_MAX);
	assert_int_equal(c->admin.drain_wait, 2 * SPAN_S);
	assert_int_equal(c->log_format, LOG_FORMAT_JSON);
	node_config_free(c);
}

static void the_order_of_the_masters_lines_does_not_matter(void **state) {
	(void)state;
	struct node_config *one = parse_good(BASE);
	struct node_config *two =
		parse_good("[cluster.masters]\nc = 127.0.0.1:3\na = 127.0.0.1:1\nb = 127.0.0.1:2\n"
		"[cluster]\nname = t\n[node]\nname = b\n");
	assert_int_equal(config_hash(&one->birth), config_hash(&two->birth));
	node_config_free(one);
	node_config_free(two);
}

/* The table says what is wrong with a file. The problem begins with file and line, and has both
 * texts: the culprit and the remedy. */
static const struct {
	const char *text, *where, *culprit, *remedy;
} wrong_files[] = {
	{ BASE "[node]\n", "f:9:", "[node] is given twice",
		"move these lines to the first one, on line 1" },
	{ BASE "[nodes]\n", "f:9:", "unknown section [nodes]", "[cluster.masters], [tls]" },
	{ BASE "[limits]\nvalues = 3\n", "f:10:", "[limits] has no setting values",
		"its settings are keys, memory" },
	{ BASE "[limits]\nkeys = 3\n\nkeys = 3\n", "f:12:", "keys is given twice",
		"first on line 10" },
	{ "name = a\n", "f:1:", "before the first section", "write [node]" },
	{ "[node]\nname\n", "f:2:", "neither", "# on a line of their own" },
	{ "[node\n", "f:1:", "without its closing ]", "write [section]" },
	{ "[]\n", "f:1:", "without a name", "write [section]" },
	{ "[node]\n= a\n", "f:2:", "no name", "name = value" },
	{ "[node]\nname =\n", "f:2:", "no value", "remove the line" },
	{ "[node]\nname = a # me\n", "f:2:", "comment after a value", "line of its own" },
	{ "[node]\nname = \"a\"\n", "f:2:", "quotes", "without" },
	{ "[node]\nname = a/b\n", "f:2:", "name = a/b", "letters, digits" },
	{ "[node]\nna\x01me = a\n", "f:2:", "control character", "text file" },
	{ "[node]\nstate_dir = x\n", "f:2:", "state_dir = x", "absolute path" },
	{ "[node]\ninsecure = true\n", "f:2:", "insecure = true", "yes or no" },
	{ "[node]\nlog_level = loud\n", "f:2:", "loud", "error, warning" },
	{ "[cluster]\nmax_lease = 60\n", "f:2:", "max_lease = 60", "5s or 2m" },
	{ "[cluster]\nmax_lease = 1.5s\n", "f:2:", "not a duration", "300ms" },
	{ "[cluster]\nmax_lease = 0\n", "f:2:", "must not be 0", "300ms" },
	{ "[cluster]\nmax_lease = 99999999999h\n", "f:2:", "too long", "290 years" },
	{ "[cluster]\nclock_drift = 1\n", "f:2:", "not a percentage", "0.5 %" },
	{ "[cluster]\nclock_drift = 11 %\n", "f:2:", "not a percentage", "10 %" },
	{ BASE "[limits]\nmemory = 3x\n", "f:10:", "not a size", "64k" },
	{ BASE "[limits]\nmemory = 99999999999999999999g\n", "f:10:", "not a size", "64k" },
	{ BASE "[limits]\nvalue_bytes = 2m\n", "f:10:", "value_bytes = 2m", "to 1m" },
	{ BASE "[limits]\nkeys = 0\n", "f:10:", "keys = 0", "from 1" },
	{ BASE "[limits]\nlocks_per_identity = many\n", "f:10:", "not a number", "1000" },
	{ BASE "[limits]\nrate_per_identity = 1000000001\n", "f:10:",
		"rate_per_identity = 1000000001", "0 for no limit" },
	{ BASE "[limits]\nvalue_bytes_per_identity = 3x\n", "f:10:", "not a size", "64k" },
	{ BASE "[limits]\nvalue_bytes_per_address = 16385g\n", "f:10:",
		"value_bytes_per_address = 16385g", "0 for no limit" },
	{ BASE "[limits]\nclient_memory = 15m\n", "f:10:", "client_memory = 15m", "from 16m" },
	{ BASE "[limits]\nclient_memory_per_address = much\n", "f:10:", "not a size", "64k" },
	{ BASE "[limits]\nadmin_clients = -1\n", "f:10:", "not a number", "1000" },
	{ BASE "[limits]\nkeys = 1k\n", "f:10:", "not a number", "1000" },
	{ BASE "[limits]\nlease_min = 2m\n", "f:10:", "lease_min is longer", "shorten" },
	{ "[tls]\ncrl = ca.crl\n", "f:2:", "crl = ca.crl", "an absolute path" },
	{ BASE "[tls]\nrevoked = /list\n", "f:9:", "ca is missing", "remove the section" },
	{ BASE "[admin]\nlisten = 10.0.0.1:9\n", "f:10:", "outside loopback and needs TLS",
		"write 127.0.0.1:7119" },
	{ BASE TLS "[admin]\nlisten = plain:10.0.0.1:9\nreaders = p\n", "f:14:", "needs TLS",
		"add [tls]" },
	{ BASE TLS "client_auth = off\n[admin]\nlisten = 10.0.0.1:9\nreaders = p\n", "f:15:",
		"shows a certificate", "client_auth = required" },
	{ BASE TLS "[admin]\nlisten = 10.0.0.1:9\n", "f:14:", "nobody may read there",
		"readers = NAME" },
	{ BASE "[admin]\nlisten = 7119\n", "f:10:", "listen = 7119", "write host:port" },
	{ BASE "[admin]\ngroups = a/ b/ a/\n", "f:10:", "a/ stands there twice", "groups" },
	{ "[node]\nlog_format = xml\n", "f:2:", "xml", "text or json" },
	{ "[tls]\nclient_auth = maybe\n", "f:2:", "maybe", "required, optional or off" },
	{ BASE "[tls]\nca = /ca\nkey = /key\n", "f:9:", "cert is missing",
		"remove the section" },
	{ BASE "x = 127.0.0.1:1\n", "f:9:", "x has the same address as a on line 6", "its own" },
	{ BASE "a = 127.0.0.1:9\n", "f:9:", "a is listed twice", "one line" },
	{ BASE "x = 127.0.0.1\n", "f:9:", "x = 127.0.0.1", "host:port" },
	{ BASE "x = unix:/x\n", "f:9:", "x = unix:/x", "host:port" },
	{ BASE "x = h:0\n", "f:9:", "x = h:0", "host:port" },
	{ "[node]\nname = z\n[cluster]\nname = t\n" MASTERS, "f:2:",
		"z is not in [cluster.masters]", "write listen_peer" },
	{ "[node]\nname = z\nadvertise = h\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"advertise = h", "write the host:port" },
	{ "[node]\n[cluster]\nname = t\n" MASTERS, "f:1:", "[node] name is missing", "Write" },
	{ "[node]\nname = a\n[cluster]\n" MASTERS, "f:3:", "[cluster] name is missing",
		"write the same" },
	{ "[node]\nname = a\n[cluster]\nname = t\n", "f:", "[cluster.masters] is empty",
		"host:port" },
	{ "[node]\nname = a\n[cluster]\nname = t\nrequest_timeout = 5s\n" MASTERS, "f:5:",
		"promise_timeout", "at least twice" },
	{ "[node]\nname = a\n[cluster]\nname = t\nrequest_timeout = 9ms\n" MASTERS, "f:5:",
		"request_timeout", "at least 10ms" },
	{ "[node]\nname = a\n[cluster]\nname = t\nmax_lease = 1900ms\n" MASTERS, "f:5:",
		"max_lease", "at least twice request_timeout" },
	{ "[node]\nname = a\nlisten_client = 0.0.0.0:1\n[cluster]\nname = t\n" MASTERS,
		"f:3:", "outside loopback", "insecure = yes" },
	{ "[node]\nname = a\nlisten_client = :1\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"listen_client = :1", "write host:port" },
	{ "[node]\nname = a\nlisten_client = ::1:1\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"listen_client = ::1:1", "[v6-address]" },
	{ "[node]\nname = a\nlisten_client = h:99999\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"h:99999", "0 to 65535" },
	{ "[node]\nname = a\nlisten_client = unix:x\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"unix:x", "begins with /" },
	{ "[node]\nname = a\nlisten_peer = unix:/x\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"listen_peer", "write host:port" },
	{ "[node]\nname = a\nlisten_peer = 10.0.0.1:1\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"outside loopback", "add [tls]" },
	{ "[node]\nname = a\nadvertise = 127.0.0.1:9\n[cluster]\nname = t\n" MASTERS, "f:3:",
		"advertise = 127.0.0.1:9", "make them the same" },
	{ "[node]\nname = a\nlisten_peer = plain:127.0.0.1:9\n[cluster]\nname = t\n"
		MASTERS TLS, "f:3:", "listen_peer", "remove `plain:`" },
	{ "[node]\nname = a\nlisten_client = plain:10.0.0.1:9\n[cluster]\nname = t\n"
		MASTERS TLS, "f:3:", "without TLS", "insecure = yes" },
	{ "[node]\nname = a\n[cluster]\nname = t\n[cluster.masters]\na = 10.0.0.1:1\n",
		"f:6:", "a = 10.0.0.1:1 is outside", "add [tls]" },
	{ BASE "[acl]\n", "f:9:", "[acl] file is missing", "remove [acl]" },
	{ BASE "[acl]\nfile = rights.conf\n", "f:10:", "[acl] file", "absolute path" },
	{ BASE "[acl]\nbilling = read x\n", "f:10:", "[acl] has no setting billing",
		"[billing] followed by allow" },
	{ BASE "[acl]\nfile = /a\nfile = /b\n", "f:11:", "file is given twice",
		"remove one of them" },
};

static void every_problem_names_line_culprit_and_remedy(void **state) {
	(void)state;
	for (size_t i = 0; i < sizeof wrong_files / sizeof *wrong_files; i++) {
		struct node_config *c = NULL;
		struct problem problem = { "" };
		int error = node_config_parse(slice_str(wrong_files[i].text), "f", &c, &problem);
		if (error != PAWL_EINVAL || strncmp(problem.text, wrong_files[i].where,
			strlen(wrong_files[i].where)) != 0 || !strstr(problem.text,
			wrong_files[i].culprit) || !strstr(problem.text, wrong_files[i].remedy)) {
			fail_msg("row %zu: error %d, \"%s\"", i, error, problem.text);
		}
		assert_null(c);
	}
}

static void a_line_that_is_too_long_is_refused_not_cut(void **state) {
	(void)state;
	char text[8000];
	int head = snprintf(text, sizeof text, "[node]\nname = a\nstate_dir = /");
	memset(text + head, 'x', 6000);
	text[head + 6000] = '\0';
	struct node_config *c = NULL;
	struct problem problem = { "" };
	assert_int_equal(node_config_parse(slice_str(text), "f", &c, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "f:3: the value is too long"));
}

static void a_file_that_is_not_there_is_named(void **state) {
	(void)state;
	struct node_config *c = NULL;
	struct problem problem = { "" };
	assert_int_equal(node_config_read("/nonexistent/x.conf", &c, &problem), PAWL_EIO);
	assert_non_null(strstr(problem.text,
		"/nonexistent/x.conf: cannot be opened: No such file"));
	assert_int_equal(node_config_read("/", &c, &problem), PAWL_EIO);
}

static void insecure_lets_plain_listeners_out(void **state) {
	(void)state;
	struct node_config *c = parse_good("[node]\nname = a\ninsecure = yes\nlisten_client "
		"= 0.0.0.0:1\n[cluster]\nname = t\n[cluster.masters]\na = 10.0.0.1:1\n");
	assert_int_equal(c->listen_client[0].kind, LISTEN_PLAIN);
	node_config_free(c);
}

static void a_node_that_is_to_be_added_says_where_it_listens(void **state) {
	(void)state;
	struct node_config *c = parse_good("[node]\nname = z\nlisten_peer = 127.0.0.1:9\n"
		"[cluster]\nname = t\nauto_replace = yes\nreplication_interval = 1ms\n" MASTERS
		"[limits]\nlog = 1m\n");
	assert_int_equal(c->listen_peer.port, 9);
	assert_string_equal(c->advertise, "");
	assert_true(c->auto_replace);
	assert_int_equal(c->replication_interval, SPAN_MS);
	assert_int_equal(c->limits.core.log_bytes, 1 << 20);
	node_config_free(c);
	c = parse_good("[node]\nname = z\nadvertise = 127.0.0.1:8\n[cluster]\nname = t\n" MASTERS);
	assert_int_equal(c->listen_peer.port, 8);
	assert_false(c->auto_replace);
	node_config_free(c);
}

#define SHA1 "00112233445566778899aabbccddeeff00112233"

static void clients_of_redis_have_settings(void **state) {
	(void)state;
	struct node_config *c = parse_good(BASE);
	assert_false(c->redis.keeps || c->redis.overwrites || c->redis.redlock || c->redis.dev);
	node_config_free(c);
	c = parse_good(BASE "[redis]\nslack = 50ms\npatience = 1s\nwithout_end = keep\n"
		"overwrite = break\nredlock = yes\nadvertise = locks.example:6379\n"
		"[redis.scripts]\n" SHA1 " = release value=1\n");
	assert_int_equal(c->redis.slack, 50 * SPAN_MS);
	assert_int_equal(c->redis.patience, SPAN_S);
	assert_true(c->redis.keeps && c->redis.overwrites && c->redis.redlock);
	assert_string_equal(c->redis.advertise, "locks.example:6379");
	assert_int_equal(c->redis_scripts.count, 1);
	node_config_free(c);
}

static void clients_of_redis_have_no_wrong_settings(void **state) {
	static const char *const wrong[][2] = {
		{ "[redis]\nwithout_end = yes\n", "refuse or keep" },
		{ "[redis]\noverwrite = keep\n", "refuse or break" },
		{ "[redis]\nadvertise = unix:/x\n", "write the host:port" },
		{ "[redis]\nadvertise = here\n", "write the host:port" },
		{ "[redis]\nadvertise = 0.0.0.0:6379\n", "write the host:port" },
		{ "[redis]\nadvertise = [::]:6379\n", "write the host:port" },
		{ "[redis.scripts]\n12 = read\n",
			"f:10: [redis.scripts] 12 = read: write the SHA1" },
		{ "[redis.scripts]\n" SHA1 " = read\n" SHA1 " = read\n", "first on line 10" },
		{ "[redis.scripts]\n8f4d42e76cbb4fad0f45e575441b8a269ebc173c = release value=1\n",
			"know this script already" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		char text[512];
		struct node_config *c = NULL;
		struct problem problem = { "" };
		snprintf(text, sizeof text, "%s%s", BASE, wrong[i][0]);
		assert_int_equal(node_config_parse(slice_str(text), "f", &c, &problem),
			PAWL_EINVAL);
		assert_non_null(strstr(problem.text, wrong[i][1]));
	}
}

static void only_so_many_scripts_are_mapped(void **state) {
	char text[8192];
	size_t size = (size_t)snprintf(text, sizeof text, "%s[redis.scripts]\n", BASE);
	struct node_config *c = NULL;
	struct problem problem = { "" };
	(void)state;
	for (int i = 0; i <= SCRIPTS_MAPPED_MAX; i++) {
		size += (size_t)snprintf(text + size, sizeof text - size, "%040d = read\n", i);
	}
	assert_int_equal(node_config_parse(slice_of(text, size), "f", &c, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "at most 64 scripts"));
}

static int dev(const char *listen, const char *redis, const char *memcached,
	struct node_config **out, struct problem *problem) {
	const struct dev_options options = { .listen = listen, .redis = redis,
		.memcached = memcached, .state_dir = "/tmp/x" };
	return node_config_dev(&options, out, problem);
}

static void dev_leaves_loopback_only_if_somebody_says_insecure(void **state) {
	(void)state;
	struct node_config *c = NULL;
	struct problem problem = { "" };
	struct dev_options options = { .listen = "127.0.0.1:0", .state_dir = "/tmp/x",
		.insecure = true };
	assert_int_equal(node_config_dev(&options, &c, &problem), 0);
	assert_false(c->insecure);
	node_config_free(c);
	options.redis = "0.0.0.0:0";
	assert_int_equal(node_config_dev(&options, &c, &problem), 0);
	assert_true(c->insecure);
	node_config_free(c);
}

static void dev_serves_clients_of_redis_as_redis_does(void **state) {
	struct node_config *c = NULL;
	struct problem problem = { "" };
	(void)state;
	assert_int_equal(dev(NULL, "127.0.0.1:0", NULL, &c, &problem), 0);
	assert_true(c->listen_client[1].redis && !c->listen_client[0].redis);
	assert_true(c->redis.dev && c->redis.keeps && c->redis.overwrites);
	node_config_free(c);
	assert_int_equal(dev(NULL, "0.0.0.0:1", NULL, &c, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "--listen-redis 0.0.0.0:1: --dev has no TLS"));
}

static void clients_of_memcached_have_settings(void **state) {
	(void)state;
	struct node_config *c = parse_good("[node]\nname = a\nlisten_memcached = 127.0.0.1:9\n"
		"[cluster]\nname = t\n" MASTERS "[memcached]\nslack = 50ms\npatience = 1s\n"
		"without_end = keep\noverwrite = break\n");
	assert_int_equal(c->listen_client_count, 2);
	assert_true(c->listen_client[1].memcached && !c->listen_client[0].memcached);
	assert_int_equal(c->memcached.slack, 50 * SPAN_MS);
	assert_int_equal(c->memcached.patience, SPAN_S);
	assert_true(c->memcached.keeps && c->memcached.overwrites && !c->memcached.dev);
	node_config_free(c);
	c = parse_good(BASE);
	assert_int_equal(c->memcached.slack, 100 * SPAN_MS);
	assert_false(c->memcached.keeps || c->memcached.overwrites || c->memcached.dev);
	node_config_free(c);
}

static void dev_serves_clients_of_memcached_as_memcached_does(void **state) {
	struct node_config *c = NULL;
	struct problem problem = { "" };
	(void)state;
	assert_int_equal(dev(NULL, NULL, "127.0.0.1:0", &c, &problem), 0);
	assert_true(c->listen_client[1].memcached && !c->listen_client[0].memcached);
	assert_true(c->memcached.dev && c->memcached.keeps && c->memcached.overwrites);
	node_config_free(c);
	assert_int_equal(dev(NULL, NULL, "0.0.0.0:1", &c, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "--listen-memcached 0.0.0.0:1: --dev has no TLS"));
}

static void dev_is_one_master_on_loopback(void **state) {
	(void)state;
	struct node_config *c = NULL;
	struct problem problem = { "" };
	assert_int_equal(dev("127.0.0.1:0", NULL, NULL, &c, &problem), 0);
	assert_int_equal(config_masters(&c->birth), 1);
	assert_int_equal(c->listen_peer.kind, LISTEN_NONE);
	assert_int_equal(c->listen_client[0].port, 0);
	node_config_free(c);
	assert_int_equal(dev("0.0.0.0:1", NULL, NULL, &c, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text,
		"--listen 0.0.0.0:1: --dev has no TLS and stays on loopback"));
}

static void a_reload_changes_only_what_can_change(void **state) {
	(void)state;
	struct node_config *c = parse_good(BASE TLS);
	struct node_config *good = parse_good(BASE "[tls]\nca = /x\ncert = /y\nkey = /z\ncrl "
		"= /c\nrevoked = /r\n[limits]\nclients = 9\n[acl]\nfile = /x\n");
	assert_string_equal(good->acl_file, "/x");
	assert_null(node_config_reload_problem(c, good));
	node_config_free(good);
	static const char *const refused[] = { BASE, BASE TLS "[limits]\nkeys = 9\n",
		"[node]\nname = b\n[cluster]\nname = t\n" MASTERS TLS,
		"[node]\nname = a\nlisten_client = 127.0.0.1:9\n[cluster]\nname = t\n" MASTERS TLS,
		"[node]\nname = a\n[cluster]\nname = u\n" MASTERS TLS };
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct node_config *bad = parse_good(refused[i]);
		assert_non_null(node_config_reload_problem(c, bad));
		node_config_free(bad);
	}
	node_config_free(c);
}

static void addresses_survive_being_written_and_read(void **state) {
	(void)state;
	static const char *const texts[] = { "127.0.0.1:1", "[::1]:65535", "localhost:0",
		"unix:/run/p.sock", "db.example:7117" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct listen_address a;
		char text[300];
		assert_null(listen_address_parse(texts[i], true, &a));
		listen_address_format(&a, text, sizeof text);
		assert_string_equal(text, texts[i]);
		assert_int_equal(listen_address_loopback(&a), i != 4);
	}
}

UNIT(config_file) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_file_gets_safe_defaults),
		cmocka_unit_test(every_setting_arrives_where_it_belongs),
		cmocka_unit_test(the_order_of_the_masters_lines_does_not_matter),
		cmocka_unit_test(every_problem_names_line_culprit_and_remedy),
		cmocka_unit_test(a_line_that_is_too_long_is_refused_not_cut),
		cmocka_unit_test(a_file_that_is_not_there_is_named),
		cmocka_unit_test(insecure_lets_plain_listeners_out),
		cmocka_unit_test(a_node_that_is_to_be_added_says_where_it_listens),
		cmocka_unit_test(clients_of_redis_have_settings),
		cmocka_unit_test(clients_of_redis_have_no_wrong_settings),
		cmocka_unit_test(only_so_many_scripts_are_mapped),
		cmocka_unit_test(dev_serves_clients_of_redis_as_redis_does),
		cmocka_unit_test(clients_of_memcached_have_settings),
		cmocka_unit_test(dev_serves_clients_of_memcached_as_memcached_does),
		cmocka_unit_test(dev_is_one_master_on_loopback),
		cmocka_unit_test(dev_leaves_loopback_only_if_somebody_says_insecure),
		cmocka_unit_test(a_reload_changes_only_what_can_change),
		cmocka_unit_test(addresses_survive_being_written_and_read),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
