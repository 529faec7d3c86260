/* config_finish.c: checks what must hold between the settings of a file, and fills in the defaults
 * that depend on other settings.
 */
#include <stdio.h>

#include "config_setting.h"
#include "pawl/error.h"

static int finish_names(struct config_reading *r) {
	const struct node_config *c = r->config;
	if (c->name[0] == '\0') {
		return config_wrong(r, r->section_line[SECTION_NODE],
			"[node] name is missing. Write `name = a`, with a name from "
			"[cluster.masters], or a new name for a node that will be added");
	}
	if (c->birth.cluster[0] == '\0') {
		return config_wrong(r, r->section_line[SECTION_CLUSTER],
			"[cluster] name is missing: write the same `name = ...` on every node");
	}
	if (c->birth.node_count == 0) {
		return config_wrong(r, r->section_line[SECTION_MASTERS],
			"[cluster.masters] is empty: write one line `name = "
			"host:port` for each master");
	}
	return 0;
}

/* Sorts the masters by name. The order of the lines must not matter: nodes that list the same
 * masters in another order are to form one cluster. */
static void finish_sort_masters(struct config_reading *r) {
	struct config *birth = &r->config->birth;
	for (uint32_t i = 1; i < birth->node_count; i++) {
		for (uint32_t k = i; k > 0
			&& strcmp(birth->nodes[k - 1].name, birth->nodes[k].name) > 0; k--) {
			struct config_node node = birth->nodes[k];
			birth->nodes[k] = birth->nodes[k - 1];
			birth->nodes[k - 1] = node;
			unsigned line = r->master_line[k];
			r->master_line[k] = r->master_line[k - 1];
			r->master_line[k - 1] = line;
		}
	}
}

static int finish_timing(struct config_reading *r) {
	const char *wrong = config_problem(&r->config->birth);
	wrong = wrong ? wrong : config_timing_problem(&r->config->birth, NULL);
	if (!wrong) {
		return 0;
	}
	unsigned line = r->section_line[SECTION_CLUSTER];
	for (enum setting s = SETTING_MAX_LEASE; s <= SETTING_CLOCK_DRIFT; s++) {
		line = r->setting_line[s] > line ? r->setting_line[s] : line;
	}
	return config_wrong(r, line, "[cluster] %s", wrong);
}

static int finish_tls(struct config_reading *r) {
	struct tls_config *tls = &r->config->tls;
	unsigned line = r->section_line[SECTION_TLS];
	if (line == 0) {
		return 0;
	}
	const char *missing = !tls->ca[0] ? "ca" : !tls->cert[0] ? "cert" : !tls->key[0]
		? "key" : NULL;
	if (missing) {
		return config_wrong(r, line,
			"[tls] %s is missing: ca, cert and key are needed together. To run without "
			"TLS, remove the section", missing);
	}
	tls->on = true;
	return 0;
}

/* Checks one address to listen at. A listener that strangers can reach must not use clear text by
 * an oversight. */
static int finish_listen(struct config_reading *r, enum setting setting, const char *text,
	struct listen_address *out) {
	unsigned line = r->setting_line[setting];
	const char *key = setting == SETTING_LISTEN_PEER ? "[node] listen_peer"
		: setting == SETTING_LISTEN_REDIS ? "[node] listen_redis"
		: setting == SETTING_LISTEN_MEMCACHED ? "[node] listen_memcached"
		: "[node] listen_client";
	const char *wrong = listen_address_parse(text, r->config->tls.on, out);
	if (wrong) {
		return config_wrong(r, line, "%s = %s: %s", key, text, wrong);
	}
	if (setting == SETTING_LISTEN_PEER && out->kind == LISTEN_UNIX) {
		return config_wrong(r, line,
			"%s = %s: other nodes cannot reach a Unix "
			"socket: write host:port", key, text);
	}
	if (setting == SETTING_LISTEN_PEER && out->kind == LISTEN_PLAIN && r->config->tls.on) {
		return config_wrong(r, line,
			"%s = %s: with [tls], all nodes use TLS: remove `plain:`", key,
			text);
	}
	if (out->kind == LISTEN_PLAIN && !listen_address_loopback(out) && !r->config->insecure) {
		return config_wrong(r, line,
			"%s = %s is outside loopback and without TLS: add [tls], or write "
			"`insecure = yes` in [node] if the network itself is safe", key, text);
	}
	return 0;
}

/* An initial master has the address that the other nodes list for it. A node that is to be added
 * says its own. */
static int finish_advertise(struct config_reading *r) {
	struct node_config *c = r->config;
	int self = config_find_name(&c->birth, c->name);
	if (self < 0) {
		struct listen_address address;
		const char *wrong = c->advertise[0]
			? listen_address_parse(c->advertise, true, &address) : NULL;
		if (wrong
			|| (c->advertise[0] && (address.kind != LISTEN_TLS || address.port == 0))) {
			return config_wrong(r, r->setting_line[SETTING_ADVERTISE],
				"[node] advertise = %s: write the host:port at which the other "
				"nodes reach this node", c->advertise);
		}
		if (!c->advertise[0] && !r->listen_peer[0]) {
			return config_wrong(r, r->setting_line[SETTING_NODE_NAME],
				"[node] name = %s is not in [cluster.masters]. If this node will "
				"be added later, write listen_peer = host:port below it; if it is "
				"an initial master, add the line `%s = host:port` to "
				"[cluster.masters] on every node",
				c->name, c->name);
		}
		return 0;
	}
	const char *own = c->birth.nodes[self].address;
	if (c->advertise[0] == '\0') {
		memcpy(c->advertise, own, sizeof c->advertise);
	}
	if (strcmp(c->advertise, own) != 0) {
		return config_wrong(r, r->setting_line[SETTING_ADVERTISE],
			"[node] advertise = %s differs from this node's address in "
			"[cluster.masters], %s: make them the same, or remove advertise",
			c->advertise, own);
	}
	return 0;
}

static int finish_peer(struct config_reading *r) {
	struct node_config *c = r->config;
	for (uint32_t i = 0; i < c->birth.node_count && !c->tls.on && !c->insecure; i++) {
		struct listen_address peer;
		if (listen_address_parse(c->birth.nodes[i].address, false, &peer) == NULL
			&& !listen_address_loopback(&peer)) {
			return config_wrong(r, r->master_line[i],
				"[cluster.masters] %s = %s is outside loopback and without TLS: "
				"add [tls], or write `insecure = yes` in [node] if the network "
				"itself is safe", c->birth.nodes[i].name,
				c->birth.nodes[i].address);
		}
	}
	return finish_listen(r, SETTING_LISTEN_PEER,
		r->listen_peer[0] ? r->listen_peer : c->advertise, &c->listen_peer);
}

/* Takes a list of addresses for clients apart. */
static int finish_list(struct config_reading *r, enum setting setting, const char *list) {
	struct node_config *c = r->config;
	char text[INI_VALUE_MAX + 1], *rest = NULL;
	snprintf(text, sizeof text, "%s", list);
	for (char *one = strtok_r(text, ", \t", &rest); one; one = strtok_r(NULL, ", \t", &rest)) {
		if (c->listen_client_count == LISTEN_CLIENT_MAX) {
			return config_wrong(r, r->setting_line[setting],
				"[node] listen_client, listen_redis and listen_memcached: at most "
				"%d addresses", LISTEN_CLIENT_MAX);
		}
		struct listen_address *address = &c->listen_client[c->listen_client_count];
		int error = finish_listen(r, setting, one, address);
		if (error) {
			return error;
		}
		address->redis = setting == SETTING_LISTEN_REDIS;
		address->memcached = setting == SETTING_LISTEN_MEMCACHED;
		c->listen_client_count++;
	}
	return 0;
}

static int finish_client(struct config_reading *r) {
	const struct node_config *c = r->config;
	if (r->no_clients && !r->listen_client[0]) {
		return 0;
	}
	int error = finish_list(r, SETTING_LISTEN_CLIENT,
		r->listen_client[0] ? r->listen_client : "127.0.0.1:7117");
	if (error) {
		return error;
	}
	if (c->listen_client_count == 0) {
		return config_wrong(r, r->setting_line[SETTING_LISTEN_CLIENT],
			"[node] listen_client: write host:port; separate several "
			"addresses with commas");
	}
	error = finish_list(r, SETTING_LISTEN_REDIS, r->listen_redis);
	return error ? error : finish_list(r, SETTING_LISTEN_MEMCACHED, r->listen_memcached);
}

static int finish_limits(struct config_reading *r) {
	const struct node_config *c = r->config;
	if (c->limits.core.lease_min > c->birth.max_lease) {
		return config_wrong(r, r->setting_line[SETTING_LIMIT_LEASE_MIN],
			"[limits] lease_min is longer than [cluster] max_lease, so no lease would "
			"be possible: shorten lease_min");
	}
	if (r->section_line[SECTION_ACL] && !c->acl_file[0]) {
		return config_wrong(r, r->section_line[SECTION_ACL],
			"[acl] file is missing: write file = "
			"/etc/pawl/rights.conf, or remove [acl]");
	}
	return 0;
}

static int finish_audit(struct config_reading *r) {
	const struct node_config *c = r->config;
	const unsigned only_check = r->setting_line[SETTING_AUDIT_CHECK];
	bool file_wanted = r->section_line[SECTION_AUDIT] && !only_check;
	for (int s = SETTING_AUDIT_MAX_BYTES; s <= SETTING_AUDIT_STRICT; s++) {
		file_wanted = file_wanted || r->setting_line[s];
	}
	if (file_wanted && !c->audit_file[0]) {
		return config_wrong(r, r->section_line[SECTION_AUDIT],
			"[audit] file is missing: write file = /var/lib/pawl/audit.log, or leave "
			"nothing but check in [audit]");
	}
	if (c->audit.keep > AUDIT_KEEP_MAX) {
		return config_wrong(r, r->setting_line[SETTING_AUDIT_KEEP],
			"[audit] keep: at most %d older files", AUDIT_KEEP_MAX);
	}
	return 0;
}

int config_finish(struct config_reading *r) {
	int error = finish_names(r);
	finish_sort_masters(r);
	error = error ? error : finish_timing(r);
	error = error ? error : finish_tls(r);
	error = error ? error : finish_advertise(r);
	error = error ? error : finish_peer(r);
	error = error ? error : finish_client(r);
	error = error ? error : config_finish_redis(r);
	error = error ? error : config_finish_admin(r);
	error = error ? error : finish_audit(r);
	return error ? error : finish_limits(r);
}

static bool listen_same(const struct listen_address *a, const struct listen_address *b) {
	return a->kind == b->kind && a->port == b->port && strcmp(a->host, b->host) == 0
		&& strcmp(a->path, b->path) == 0;
}

static bool clients_same(const struct node_config *a, const struct node_config *b) {
	bool same = a->listen_client_count == b->listen_client_count;
	for (uint32_t i = 0; same && i < a->listen_client_count; i++) {
		same = listen_same(&a->listen_client[i], &b->listen_client[i]);
	}
	return same;
}

static bool groups_same(const struct key_groups *a, const struct key_groups *b) {
	bool same = a->count == b->count;
	for (uint32_t i = 0; same && i < a->count; i++) {
		same = strcmp(a->prefixes[i], b->prefixes[i]) == 0;
	}
	return same;
}

static bool limits_same(const struct core_limits *a, const struct core_limits *b) {
	return a->keys == b->keys && a->memory_bytes == b->memory_bytes
		&& a->log_bytes == b->log_bytes && a->value_bytes == b->value_bytes
		&& a->waiters == b->waiters && a->waiters_per_key == b->waiters_per_key
		&& a->waiters_per_client == b->waiters_per_client
		&& a->holders_per_key == b->holders_per_key && a->released == b->released
		&& a->rounds == b->rounds && a->catching_up == b->catching_up
		&& a->lease_min == b->lease_min;
}

const char *node_config_reload_problem(const struct node_config *running,
	const struct node_config *wanted) {
	if (strcmp(running->name, wanted->name) != 0
		|| strcmp(running->state_dir, wanted->state_dir) != 0) {
		return "[node] name and state_dir can only be changed by a restart";
	}
	if (!listen_same(&running->listen_peer, &wanted->listen_peer)
		|| !clients_same(running, wanted)) {
		return "[node] listen_peer, listen_client, listen_redis and listen_memcached can "
			"only be changed by a restart";
	}
	if (running->tls.on != wanted->tls.on) {
		return "[tls] can only be turned on or off by a restart";
	}
	if (!listen_same(&running->admin_listen, &wanted->admin_listen)
		|| !groups_same(&running->admin.groups, &wanted->admin.groups)) {
		return "[admin] listen and groups can only be changed by a restart";
	}
	if (strcmp(running->audit_file, wanted->audit_file) != 0
		|| running->audit.check != wanted->audit.check) {
		return "[audit] file and check can only be changed by a restart";
	}
	if (running->auto_replace != wanted->auto_replace
		|| running->replication_interval != wanted->replication_interval) {
		return "[cluster] auto_replace and replication_interval can only be "
			"changed by a restart";
	}
	if (strcmp(running->birth.cluster, wanted->birth.cluster) != 0) {
		return "[cluster] name cannot be changed";
	}
	if (!limits_same(&running->limits.core, &wanted->limits.core)) {
		return "[limits] keys, memory, log, value_bytes, waiters*, holders_per_key, "
			"released, rounds, lingering and lease_min can only be changed by a "
			"restart";
	}
	return NULL;
}
