/* config_file.h: pawld's configuration file, as plain values.
 *
 * INI: [section], `name = value`, comments from # or ; at the start of a line. Unknown and repeated sections and names are
 * errors that say file, line and remedy. Nothing is kept of a file that has an error.
 */
#ifndef PAWL_NODE_CONFIG_FILE_H
#define PAWL_NODE_CONFIG_FILE_H

#include "core.h"
#include "log.h"
#include "problem.h"
#include "rights.h"

#define CONFIG_PATH_MAX 1024
#define LISTEN_CLIENT_MAX 8
#define CLIENT_PORT_DEFAULT 7117
#define PEER_PORT_DEFAULT 7118

enum listen_kind {
	LISTEN_NONE,  /* not configured */
	LISTEN_TLS,   /* host:port, TLS 1.3 */
	LISTEN_PLAIN, /* host:port, no TLS: loopback only, unless insecure */
	LISTEN_UNIX   /* a socket in the file system */
};

struct listen_address {
	enum listen_kind kind;
	char host[ADDRESS_MAX + 1]; /* TLS, PLAIN: a name or address, without the brackets of IPv6 */
	uint16_t port;              /* 0: any free one */
	char path[108];             /* UNIX */
};

enum client_auth {
	CLIENT_AUTH_REQUIRED, /* a client shows a certificate of the CA */
	CLIENT_AUTH_OPTIONAL, /* it may; without one it has no name */
	CLIENT_AUTH_OFF       /* it is not asked */
};

struct tls_config {
	bool on; /* all three files are named */
	char ca[CONFIG_PATH_MAX], cert[CONFIG_PATH_MAX], key[CONFIG_PATH_MAX];
	char revoked[CONFIG_PATH_MAX], crl[CONFIG_PATH_MAX]; /* tls_revoked.h; empty: none */
	bool any_key_mode; /* others may be able to read the key */
	bool embedded;     /* the node is inside a program */
	enum client_auth client_auth; /* peers always show theirs */
};

struct node_limits {
	struct core_limits core;
	uint32_t clients;             /* connections */
	uint32_t admin_clients;       /* more of them, for administrators alone */
	struct share_limits identity; /* of one identity; without one: of one address */
	struct share_limits address;  /* of all identities that come from one address */
	uint64_t client_memory;       /* of all connections, in bytes */
	uint32_t requests_per_client;   /* under way on one connection */
	uint32_t watches_per_client;  /* on one connection */
	uint32_t handshakes, handshakes_per_address; /* connections that have not said who they are, on the peer port and on those of clients */
	uint64_t handshake_memory;    /* of them on either, in bytes */
	span_ns idle_timeout;         /* a connection that holds nothing open and says nothing for so long is closed; 0: never */
};

struct node_config {
	char name[NODE_NAME_MAX + 1];
	char state_dir[CONFIG_PATH_MAX];
	struct listen_address listen_peer; /* LISTEN_NONE: nobody dials this node (--dev) */
	struct listen_address listen_client[LISTEN_CLIENT_MAX];
	uint32_t listen_client_count;
	char advertise[ADDRESS_MAX + 1]; /* host:port at which peers reach this node; empty: not said (of a node that is to be added) */
	bool insecure;
	enum log_level log_level;

	struct config birth; /* epoch 0: the cluster's name, initial masters and timing constants; used at birth only */
	span_ns replication_interval;
	bool auto_replace; /* a master that comes back with a new identity gets its place without an operator */

	struct tls_config tls;
	struct node_limits limits;

	char acl_file[CONFIG_PATH_MAX]; /* empty: there are no rules */
	struct rights *rights;          /* what stands in it, once it is read; else NULL */

	/* Accepted, and served from a later version on; main warns. LISTEN_NONE: not configured. */
	struct listen_address admin_listen;
};

/* Large: on the heap. NULL: no memory. */
struct node_config *node_config_new(void);
void node_config_free(struct node_config *c);

/* 0, PAWL_EIO, PAWL_ENOMEM or PAWL_EINVAL with *problem set. On success *out is the caller's. */
int node_config_read(const char *path, struct node_config **out, struct problem *problem);
/* The same for bytes; `name` stands for the file in problems. Pure: opens nothing, so that `rights` is not there yet. */
int node_config_parse(struct slice text, const char *name, struct node_config **out, struct problem *problem);
/* Reads acl_file, where one is named, into `rights`. Errors likewise, and then nothing has changed. */
int node_config_read_rights(struct node_config *c, struct problem *problem);
/* One master on loopback without a file: `listen` may be NULL (127.0.0.1:7117). */
int node_config_dev(const char *listen, const char *state_dir, struct node_config **out, struct problem *problem);

/* NULL, or the sentence that says which setting cannot be changed by a reload (a restart is needed). What can: [tls] but
 * for whether it is there, [acl], log_level, and of [limits] clients, admin_clients, client_memory, *_per_identity, *_per_address, requests_per_client,
 * watches_per_client, idle_timeout and handshake*. */
const char *node_config_reload_problem(const struct node_config *running, const struct node_config *wanted);

/* host:port, [v6]:port, unix:/path (and plain:host:port where tls is on). NULL on success, else what is wrong. */
const char *listen_address_parse(const char *text, bool tls, struct listen_address *out);
bool listen_address_loopback(const struct listen_address *a); /* UNIX, 127.0.0.0/8, ::1, localhost */
/* As it was written: for logs and for `--dev`. */
void listen_address_format(const struct listen_address *a, char *out, size_t size);

#endif
