/* config_setting.h: what is known while a configuration file is read, and the table of settings.
 * Only the code that reads configurations includes this.
 */
#ifndef PAWL_NODE_CONFIG_SETTING_H
#define PAWL_NODE_CONFIG_SETTING_H

#include "config_file.h"
#include "ini.h"

/* X(name, section, key, kind of value, member). The member is one of struct node_config, or of
 * struct config_reading for the kind RAW. The metric pawl_limit has the rows from LIMIT_KEYS to
 * LIMIT_IDLE. */
#define SETTING_TABLE(X) \
	X(NODE_NAME, "node", "name", NAME, name) \
	X(STATE_DIR, "node", "state_dir", PATH, state_dir) \
	X(LISTEN_PEER, "node", "listen_peer", RAW, listen_peer) \
	X(LISTEN_CLIENT, "node", "listen_client", RAW, listen_client) \
	X(LISTEN_REDIS, "node", "listen_redis", RAW, listen_redis) \
	X(LISTEN_MEMCACHED, "node", "listen_memcached", RAW, listen_memcached) \
	X(ADVERTISE, "node", "advertise", ADDRESS, advertise) \
	X(INSECURE, "node", "insecure", BOOL, insecure) \
	X(LOG_LEVEL, "node", "log_level", LEVEL, log_level) \
	X(LOG_FORMAT, "node", "log_format", FORMAT, log_format) \
	X(SLOW_MS, "node", "slow_ms", COUNT32_OR_0, slow_ms) \
	X(DEADLOCK, "node", "deadlock", DEADLOCK, deadlock) \
	X(DEADLOCK_AFTER, "node", "deadlock_after", SPAN, deadlock_after) \
	X(CLUSTER_NAME, "cluster", "name", NAME, birth.cluster) \
	X(MAX_LEASE, "cluster", "max_lease", SPAN, birth.max_lease) \
	X(PROMISE_TIMEOUT, "cluster", "promise_timeout", SPAN, birth.promise_timeout) \
	X(REQUEST_TIMEOUT, "cluster", "request_timeout", SPAN, birth.request_timeout) \
	X(CLOCK_DRIFT, "cluster", "clock_drift", PERCENT, birth.drift_ppm) \
	X(REPLICATION_INTERVAL, "cluster", "replication_interval", SPAN, replication_interval) \
	X(AUTO_REPLACE, "cluster", "auto_replace", BOOL, auto_replace) \
	X(TLS_CA, "tls", "ca", PATH, tls.ca) \
	X(TLS_CERT, "tls", "cert", PATH, tls.cert) \
	X(TLS_KEY, "tls", "key", PATH, tls.key) \
	X(TLS_REVOKED, "tls", "revoked", PATH, tls.revoked) \
	X(TLS_CRL, "tls", "crl", PATH, tls.crl) \
	X(ANY_KEY_MODE, "tls", "any_key_mode", BOOL, tls.any_key_mode) \
	X(CLIENT_AUTH, "tls", "client_auth", AUTH, tls.client_auth) \
	X(ADMIN_LISTEN, "admin", "listen", RAW, admin_listen) \
	X(ADMIN_READERS, "admin", "readers", RAW, admin_readers) \
	X(ADMIN_GROUPS, "admin", "groups", RAW, admin_groups) \
	X(ADMIN_DRAIN_WAIT, "admin", "drain_wait", SPAN_OR_0, admin.drain_wait) \
	X(ADMIN_ACTIONS, "admin", "actions", BOOL, admin.actions) \
	X(REDIS_SLACK, "redis", "slack", SPAN_OR_0, redis.slack) \
	X(REDIS_PATIENCE, "redis", "patience", SPAN_OR_0, redis.patience) \
	X(REDIS_WITHOUT_END, "redis", "without_end", KEEP, redis.keeps) \
	X(REDIS_OVERWRITE, "redis", "overwrite", BREAK, redis.overwrites) \
	X(REDIS_REDLOCK, "redis", "redlock", BOOL, redis.redlock) \
	X(REDIS_MASTER_NAME, "redis", "master_name", NAME, redis.master_name) \
	X(REDIS_ADVERTISE, "redis", "advertise", ADDRESS, redis.advertise) \
	X(MEMCACHED_SLACK, "memcached", "slack", SPAN_OR_0, memcached.slack) \
	X(MEMCACHED_PATIENCE, "memcached", "patience", SPAN_OR_0, memcached.patience) \
	X(MEMCACHED_WITHOUT_END, "memcached", "without_end", KEEP, memcached.keeps) \
	X(MEMCACHED_OVERWRITE, "memcached", "overwrite", BREAK, memcached.overwrites) \
	X(LIMIT_KEYS, "limits", "keys", COUNT64, limits.core.keys) \
	X(LIMIT_MEMORY, "limits", "memory", SIZE64, limits.core.memory_bytes) \
	X(LIMIT_LOG, "limits", "log", SIZE64, limits.core.log_bytes) \
	X(LIMIT_VALUE_BYTES, "limits", "value_bytes", VALUE_BYTES, limits.core.value_bytes) \
	X(LIMIT_WAITERS, "limits", "waiters", COUNT32, limits.core.waiters) \
	X(LIMIT_WAITERS_PER_KEY, "limits", "waiters_per_key", COUNT32, \
		limits.core.waiters_per_key) \
	X(LIMIT_HOLDERS_PER_KEY, "limits", "holders_per_key", COUNT32, \
		limits.core.holders_per_key) \
	X(LIMIT_WAITERS_PER_CLIENT, "limits", "waiters_per_client", COUNT32, \
		limits.core.waiters_per_client) \
	X(LIMIT_RELEASED, "limits", "released", COUNT32, limits.core.released) \
	X(LIMIT_ROUNDS, "limits", "rounds", COUNT32, limits.core.rounds) \
	X(LIMIT_LINGERING, "limits", "lingering", COUNT32, limits.core.catching_up) \
	X(LIMIT_LEASE_MIN, "limits", "lease_min", SPAN, limits.core.lease_min) \
	X(LIMIT_CLIENTS, "limits", "clients", COUNT32, limits.clients) \
	X(LIMIT_ADMIN_CLIENTS, "limits", "admin_clients", COUNT32_OR_0, limits.admin_clients) \
	X(LIMIT_CLIENT_MEMORY, "limits", "client_memory", SIZE_16M, limits.client_memory) \
	X(LIMIT_KEPT_LOCKS, "limits", "kept_locks", COUNT32, limits.kept_locks) \
	X(CLIENTS_IDENTITY, "limits", "clients_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_CLIENTS]) \
	X(REQUESTS_IDENTITY, "limits", "requests_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_REQUESTS]) \
	X(WAITS_IDENTITY, "limits", "waits_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_WAITS]) \
	X(WATCHES_IDENTITY, "limits", "watches_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_WATCHES]) \
	X(LOCKS_IDENTITY, "limits", "locks_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_LOCKS]) \
	X(VALUES_IDENTITY, "limits", "value_bytes_per_identity", SIZE_OR_0, \
		limits.identity.max[SHARE_VALUES]) \
	X(MEMORY_IDENTITY, "limits", "client_memory_per_identity", SIZE_OR_0, \
		limits.identity.max[SHARE_MEMORY]) \
	X(RATE_IDENTITY, "limits", "rate_per_identity", COUNT_OR_0, \
		limits.identity.max[SHARE_RATE]) \
	X(CLIENTS_ADDRESS, "limits", "clients_per_address", COUNT_OR_0, \
		limits.address.max[SHARE_CLIENTS]) \
	X(REQUESTS_ADDRESS, "limits", "requests_per_address", COUNT_OR_0, \
		limits.address.max[SHARE_REQUESTS]) \
	X(WAITS_ADDRESS, "limits", "waits_per_address", COUNT_OR_0, \
		limits.address.max[SHARE_WAITS]) \
	X(WATCHES_ADDRESS, "limits", "watches_per_address", COUNT_OR_0, \
		limits.address.max[SHARE_WATCHES]) \
	X(LOCKS_ADDRESS, "limits", "locks_per_address", COUNT_OR_0, \
		limits.address.max[SHARE_LOCKS]) \
	X(VALUES_ADDRESS, "limits", "value_bytes_per_address", SIZE_OR_0, \
		limits.address.max[SHARE_VALUES]) \
	X(MEMORY_ADDRESS, "limits", "client_memory_per_address", SIZE_OR_0, \
		limits.address.max[SHARE_MEMORY]) \
	X(RATE_ADDRESS, "limits", "rate_per_address", COUNT_OR_0, limits.address.max[SHARE_RATE]) \
	X(LIMIT_REQUESTS, "limits", "requests_per_client", COUNT32, limits.requests_per_client) \
	X(LIMIT_WATCHES, "limits", "watches_per_client", COUNT32, limits.watches_per_client) \
	X(LIMIT_HANDSHAKES, "limits", "handshakes", COUNT32, limits.handshakes) \
	X(LIMIT_HANDSHAKES_PER_ADDRESS, "limits", "handshakes_per_address", COUNT32, \
		limits.handshakes_per_address) \
	X(LIMIT_HANDSHAKE_MEMORY, "limits", "handshake_memory", SIZE64, limits.handshake_memory) \
	X(LIMIT_IDLE, "limits", "idle_timeout", SPAN_OR_0, limits.idle_timeout) \
	X(ACL_FILE, "acl", "file", PATH, acl_file) \
	X(AUDIT_FILE, "audit", "file", PATH, audit_file) \
	X(AUDIT_MAX_BYTES, "audit", "max_bytes", SIZE_1M, audit.max_bytes) \
	X(AUDIT_KEEP, "audit", "keep", COUNT32, audit.keep) \
	X(AUDIT_WHAT, "audit", "what", WHAT, audit.what) \
	X(AUDIT_STRICT, "audit", "strict", BOOL, audit.strict) \
	X(AUDIT_CHECK, "audit", "check", BOOL, audit.check)

enum setting {
#define SETTING_ENUM(name, section, key, kind, member) SETTING_##name,
	SETTING_TABLE(SETTING_ENUM)
#undef SETTING_ENUM
	SETTING_COUNT
};

enum config_section {
	SECTION_NODE,
	SECTION_CLUSTER,
	SECTION_MASTERS,
	SECTION_TLS,
	SECTION_ADMIN,
	SECTION_REDIS,
	SECTION_REDIS_SCRIPTS,
	SECTION_MEMCACHED,
	SECTION_LIMITS,
	SECTION_ACL,
	SECTION_AUDIT,
	SECTION_COUNT
};

/* What is known while a file is read. */
struct config_reading {
	struct node_config *config;
	struct problem *problem;
	const char *file;
	/* The line at which each setting stands; 0 means that it is not given. */
	unsigned setting_line[SETTING_COUNT];
	/* The line at which each section begins; 0 means that the file does not have it. */
	unsigned section_line[SECTION_COUNT];
	/* The line of each initial master, in the order of config->birth. */
	unsigned master_line[MASTERS_MAX];
	/* The line of each mapped script, in the order of config->redis_scripts. */
	unsigned script_line[SCRIPTS_MAPPED_MAX];
	/* Without listen_client, nobody listens for clients (a node inside a program). */
	bool no_clients;
	/* These addresses are parsed when it is known whether there is a section [tls]. */
	char listen_peer[INI_VALUE_MAX + 1], listen_client[INI_VALUE_MAX + 1],
		listen_redis[INI_VALUE_MAX + 1], listen_memcached[INI_VALUE_MAX + 1],
		admin_listen[INI_VALUE_MAX + 1];
	/* These lists are taken apart when all settings have been read. */
	char admin_readers[INI_VALUE_MAX + 1], admin_groups[INI_VALUE_MAX + 1];
};

extern const char *const config_section_name[SECTION_COUNT];

/* Returns PAWL_EINVAL, with "file:line: " in front of the text. */
__attribute__((format(printf, 3, 4))) int config_wrong(struct config_reading *r, unsigned line,
	const char *format, ...);

/* Returns the setting, or -1. */
int config_setting_find(enum config_section section, const char *key);
/* Writes the names that a section knows, for messages. */
void config_setting_names(enum config_section section, char *out, size_t size);
/* Returns NULL, or what the value should have been. */
const char *config_setting_set(struct config_reading *r, enum setting setting, const char *value);

/* Reads one initial master. Returns 0 or PAWL_EINVAL. */
int config_master_line(struct config_reading *r, unsigned line, const char *name,
	const char *value);

/* Reads one line of [redis.scripts] (config_redis.c), and checks [redis]. Both return 0 or
 * PAWL_EINVAL. */
int config_script_line(struct config_reading *r, unsigned line, const char *name,
	const char *value);
int config_finish_redis(struct config_reading *r);

/* Reads the section [admin] (config_admin.c). Returns 0 or PAWL_EINVAL. */
int config_finish_admin(struct config_reading *r);

/* Checks what must hold between the settings, and fills in the defaults that depend on other
 * settings. Returns 0 or PAWL_EINVAL. */
int config_finish(struct config_reading *r);

#endif
