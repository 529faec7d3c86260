/* client_method.h: the methods of the client protocol, with the right that each of them needs, and
 * the limits that hold for their parameters. docs/client-protocol.md describes the methods. */
#ifndef PAWL_WIRE_CLIENT_METHOD_H
#define PAWL_WIRE_CLIENT_METHOD_H

#include "core.h"
#include "right.h"

/* X(name, on the wire, the right that it needs). What else a method needs is listed in
 * docs/architecture.md, A new method. */
#define CLIENT_METHOD_TABLE(X) \
	X(ACQUIRE, "acquire", ACQUIRE) \
	X(EXTEND, "extend", ACQUIRE) \
	X(UPDATE, "update", ACQUIRE) \
	X(RELEASE, "release", ACQUIRE) \
	X(GET, "get", READ) \
	X(LIST, "list", READ) \
	X(WAIT, "wait", WAIT) \
	X(WAITERS, "waiters", READ) \
	X(BREAK, "break", BREAK) \
	X(STATUS, "status", STATUS) \
	X(PING, "ping", NONE) \
	X(DRAIN, "drain", CLUSTER) \
	X(DOWNGRADE, "downgrade", ACQUIRE) \
	X(TRANSFER, "transfer", ACQUIRE) \
	X(ASK_RELEASE, "ask_release", ACQUIRE) \
	X(EXPLAIN, "explain", READ) \
	X(WATCH, "watch", WATCH) \
	X(UNWATCH, "unwatch", NONE) \
	X(CLIENTS, "clients", STATUS) \
	X(KICK, "kick", CLUSTER) \
	X(CAN, "can", NONE) \
	X(TOP, "top", READ) \
	X(CLUSTER_ADD_REPLICA, "cluster_add_replica", CLUSTER) \
	X(CLUSTER_PROMOTE, "cluster_promote", CLUSTER) \
	X(CLUSTER_DEMOTE, "cluster_demote", CLUSTER) \
	X(CLUSTER_REMOVE, "cluster_remove", CLUSTER) \
	X(CLUSTER_REPLACE, "cluster_replace", CLUSTER) \
	X(CLUSTER_SET_NODES, "cluster_set_nodes", CLUSTER) \
	X(CLUSTER_SET_TIMING, "cluster_set_timing", CLUSTER) \
	X(CLUSTER_FORCE, "cluster_force", CLUSTER)

enum client_method {
#define CLIENT_METHOD_ENUM(name, text, right) CLIENT_##name,
	CLIENT_METHOD_TABLE(CLIENT_METHOD_ENUM)
#undef CLIENT_METHOD_ENUM
};
/* How many methods there are. */
#define CLIENT_METHODS 30

/* Returns the name of a method on the wire, as static text. */
const char *client_method_name(enum client_method method);

/* Returns false if no method has that name. */
bool client_method_find(struct slice name, enum client_method *out);

/* Returns the right that a caller needs for the method. */
enum right client_method_right(enum client_method method);

/* Tells whether the method is one of `cluster_...`, which change the set of nodes. */
bool client_method_changes(enum client_method method);

/* Returns true and sets *out if the core serves the method: *out is the operation to ask it for.
 * For `acquire` this is CORE_ACQUIRE, even if the request turns out to be a CORE_ACQUIRE_ALL.
 * Returns false if the node serves the method without the core, which refuses a request that is
 * left at CORE_NONE. */
bool client_method_op(enum client_method method, enum core_op *out);

/* The key that a node reads to find out whether a quorum answers. Everybody may read it. Nobody
 * needs to hold it, and whoever does disturbs nothing. */
#define CLIENT_PROBE_KEY "pawl:probe"

/* The most locks that one `extend` with `locks` may name. */
#define CLIENT_LOCKS_MAX 4096

/* The greatest `limit` of a list, and the limit of one that names none. */
#define CLIENT_LIST_MAX 1000
#define CLIENT_LIST_DEFAULT 100

/* The longest duration that a request may name, in milliseconds: 31 years. */
#define CLIENT_MS_MAX 1000000000000

/* The greatest clock drift that a request may set, in millionths. */
#define CLIENT_DRIFT_PPM_MAX 100000

/* The size of a value_seq on the wire. It is a bin of the ballot's clock, node and boot in network
 * byte order, and callers treat it as opaque. */
#define CLIENT_VALUE_SEQ_BYTES 20

#endif
