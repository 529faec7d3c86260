/* config_file.h: pawld's configuration file, as plain values.
 *
 * The format is INI: [section], `name = value`, and comments from # or ; at the start of a line.
 * Unknown and repeated sections and names are errors that say file, line and remedy. Nothing is
 * kept of a file that has an error.
 */
#ifndef PAWL_NODE_CONFIG_FILE_H
#define PAWL_NODE_CONFIG_FILE_H

#include "admin_config.h"
#include "audit_config.h"
#include "core.h"
#include "log.h"
#include "memcached.h"
#include "problem.h"
#include "redis.h"
#include "rights.h"

/* The size of a path with the terminating 0. */
#define CONFIG_PATH_MAX 1024
/* The largest number of addresses in listen_client, listen_redis and listen_memcached together. */
#define LISTEN_CLIENT_MAX 8
#define CLIENT_PORT_DEFAULT 7117
#define PEER_PORT_DEFAULT 7118

/* The kinds of listeners. */
enum listen_kind {
	/* The listener is not configured. */
	LISTEN_NONE,
	/* host:port with TLS 1.3. */
	LISTEN_TLS,
	/* host:port without TLS; loopback only, unless `insecure` is set. */
	LISTEN_PLAIN,
	/* A socket in the file system. */
	LISTEN_UNIX
};

/* An address to listen at. */
struct listen_address {
	enum listen_kind kind;
	/* For TLS and PLAIN: a name or an address, without the brackets of IPv6. */
	char host[ADDRESS_MAX + 1];
	/* 0 means any free port. */
	uint16_t port;
	/* For UNIX: the path of the socket. */
	char path[108];
	/* Clients of Redis connect here; or those of memcached. */
	bool redis, memcached;
};

/* Whether clients show certificates. */
enum client_auth {
	/* A client must show a certificate of the CA. */
	CLIENT_AUTH_REQUIRED,
	/* A client may show a certificate; without one it has no name. */
	CLIENT_AUTH_OPTIONAL,
	/* A client is not asked for a certificate. */
	CLIENT_AUTH_OFF
};

/* The section [tls]. */
struct tls_config {
	/* All three files are named. */
	bool on;
	/* The paths of PEM files; empty means that the file is not named. */
	char ca[CONFIG_PATH_MAX], cert[CONFIG_PATH_MAX], key[CONFIG_PATH_MAX];
	/* The files of tls_revoked.h; empty means that there is none. */
	char revoked[CONFIG_PATH_MAX], crl[CONFIG_PATH_MAX];
	/* Others may be able to read the key. */
	bool any_key_mode;
	/* The node is inside a program. */
	bool embedded;
	/* Whether clients show a certificate; peers always show theirs. */
	enum client_auth client_auth;
};

/* The section [limits]. */
struct node_limits {
	struct core_limits core;
	/* The number of connections of clients. */
	uint32_t clients;
	/* The number of further connections, for administrators alone. */
	uint32_t admin_clients;
	/* The limits of one identity, or of one address for connections without an identity. */
	struct share_limits identity;
	/* The limits of all identities together that come from one address. */
	struct share_limits address;
	/* The memory of all connections, in bytes. */
	uint64_t client_memory;
	/* The number of locks without an end that the node keeps. */
	uint32_t kept_locks;
	/* The number of requests under way on one connection. */
	uint32_t requests_per_client;
	/* The number of watches on one connection. */
	uint32_t watches_per_client;
	/* The number of connections that have not said who they are, on the peer port and on the
	 * ports of clients each; and how many of them may come from one address. */
	uint32_t handshakes, handshakes_per_address;
	/* The memory of these connections, on the peer port and on the ports of clients each, in
	 * bytes. */
	uint64_t handshake_memory;
	/* A connection that has nothing under way and is silent for this long is closed; 0 means
	 * never. */
	span_ns idle_timeout;
};

/* What the node does about deadlocks between clients (docs/architecture.md). */
enum deadlock_action {
	/* It does not look for them. */
	DEADLOCK_OFF,
	/* It reports them. */
	DEADLOCK_REPORT,
	/* It also ends the wait of the youngest request with PAWL_EDEADLOCK. */
	DEADLOCK_REFUSE
};

/* A whole configuration file. */
struct node_config {
	char name[NODE_NAME_MAX + 1];
	char state_dir[CONFIG_PATH_MAX];

	/* LISTEN_NONE means that nobody dials this node (--dev). */
	struct listen_address listen_peer;
	struct listen_address listen_client[LISTEN_CLIENT_MAX];
	uint32_t listen_client_count;
	/* The section [redis]. */
	struct redis_settings redis;
	/* The section [redis.scripts]. */
	struct script_mappings redis_scripts;
	/* The section [memcached]. */
	struct memcached_settings memcached;

	/* The host:port at which peers reach this node. Empty means that it is not given (for a
	 * node that is to be added). */
	char advertise[ADDRESS_MAX + 1];

	/* Connections without TLS are allowed, even where other machines reach this node. */
	bool insecure;

	enum log_level log_level;
	enum log_format log_format;
	/* A request that takes longer than this many milliseconds is logged; 0 means none is. */
	uint32_t slow_ms;

	/* The configuration with epoch 0: the cluster's name, its initial masters and its timing
	 * constants. It is used only when the cluster is born. */
	struct config birth;
	/* How long a batch of the log may wait for further entries, in nanoseconds. */
	span_ns replication_interval;
	/* A master that comes back with a new identity gets its place without an operator. */
	bool auto_replace;

	enum deadlock_action deadlock;
	/* How long a request waits before the node looks for a deadlock, in nanoseconds. */
	span_ns deadlock_after;

	struct tls_config tls;
	struct node_limits limits;

	/* Empty means that there are no rules. */
	char acl_file[CONFIG_PATH_MAX];
	/* The rules in that file once it has been read, or NULL. */
	struct rights *rights;

	/* The path of the audit file. Empty means that there is none. */
	char audit_file[CONFIG_PATH_MAX];
	struct audit_config audit;

	/* Where the node shows its metrics and its health by HTTP. LISTEN_NONE means nowhere. */
	struct listen_address admin_listen;
	struct admin_config admin;
};

/* Returns NULL if there is no memory. The struct is large, so it is on the heap. */
struct node_config *node_config_new(void);
void node_config_free(struct node_config *c);

/* Reads a file. Returns 0; or PAWL_EIO, PAWL_ENOMEM or PAWL_EINVAL with *problem set. On success
 * *out is the caller's. */
int node_config_read(const char *path, struct node_config **out, struct problem *problem);
/* Does the same for bytes; `name` stands for the file in problems. This is pure: it opens nothing,
 * so that `rights` is not there yet. */
int node_config_parse(struct slice text, const char *name, struct node_config **out,
	struct problem *problem);
/* Reads acl_file, if one is named, into `rights`. It returns the same errors; then nothing has
 * changed. */
int node_config_read_rights(struct node_config *c, struct problem *problem);
/* What a single master without a file needs (--dev). */
struct dev_options {
	/* NULL means 127.0.0.1:7117. */
	const char *listen;
	/* NULL means that there is no listener for such clients. */
	const char *redis, *memcached;
	const char *state_dir;
	/* The listeners may be outside loopback. */
	bool insecure;
	/* There is each kind of listener, also the admin port: on a free port of loopback unless
	 * an address is given. */
	bool everything;
};
/* Makes the configuration of a single master without a file. Returns 0, PAWL_ENOMEM, or PAWL_EINVAL
 * with *problem set. */
int node_config_dev(const struct dev_options *options, struct node_config **out,
	struct problem *problem);

/* One setting of [limits]. */
struct node_limit {
	const char *name;
	uint64_t value;
	/* The value is a duration in nanoseconds. */
	bool seconds;
};
/* Gives the n-th setting of [limits]. Returns false if there is none. */
bool node_config_limit(const struct node_limits *limits, unsigned n, struct node_limit *out);

/* Returns NULL, or the sentence that says which setting cannot be changed by a reload (a restart is
 * needed). A reload can change [tls], but not turn it on or off; [acl]; log_level, log_format,
 * slow_ms, deadlock and deadlock_after; [redis], [redis.scripts] and [memcached]; [admin] readers
 * and drain_wait; [audit] but for file and check; and of [limits] clients, admin_clients,
 * client_memory, kept_locks, *_per_identity, *_per_address, requests_per_client,
 * watches_per_client, idle_timeout and handshake*. */
const char *node_config_reload_problem(const struct node_config *running,
	const struct node_config *wanted);

/* Parses host:port, [v6]:port or unix:/path (and plain:host:port if `tls` is on). Returns NULL on
 * success; otherwise what is wrong. */
const char *listen_address_parse(const char *text, bool tls, struct listen_address *out);
/* Returns true for UNIX, 127.0.0.0/8, ::1 and localhost. */
bool listen_address_loopback(const struct listen_address *a);
/* Writes the address as it was written in the file, for logs and for `--dev`. */
void listen_address_format(const struct listen_address *a, char *out, size_t size);

#endif
