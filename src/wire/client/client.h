/* client.h: the client protocol as bytes: MessagePack-RPC, docs/client-protocol.md. Pure: no sockets, no clocks.
 *
 *   request [0, msgid, method, [params]] · response [1, msgid, error, result] · notification [2, method, [params]]
 *
 * params, result and error are maps with string keys. Both sides are here: the server decodes requests and encodes responses,
 * the client the other way. A request is refused for a parameter it does not know; a response's unknown keys are skipped.
 *
 * Reading goes in three steps: client_scan finds where a message ends, without memory and within limits; then decode it;
 * then drop its bytes. Everything decoded borrows: slices point into the message, lists into the decoder.
 */
#ifndef PAWL_WIRE_CLIENT_H
#define PAWL_WIRE_CLIENT_H

#include "alloc.h"
#include "buffer.h"
#include "client_entry.h"
#include "core.h"
#include "pawl/error.h"
#include "right.h"

/* X(name, on the wire, the right that it needs) */
#define CLIENT_METHOD_TABLE(X) \
	X(ACQUIRE, "acquire", ACQUIRE) X(EXTEND, "extend", ACQUIRE) X(UPDATE, "update", ACQUIRE) X(RELEASE, "release", ACQUIRE) \
	X(GET, "get", READ) X(LIST, "list", READ) X(WAIT, "wait", WAIT) X(WAITERS, "waiters", READ) X(BREAK, "break", BREAK) \
	X(STATUS, "status", STATUS) X(PING, "ping", NONE) X(DRAIN, "drain", CLUSTER) \
	X(DOWNGRADE, "downgrade", ACQUIRE) X(TRANSFER, "transfer", ACQUIRE) X(ASK_RELEASE, "ask_release", ACQUIRE) \
	X(EXPLAIN, "explain", READ) X(WATCH, "watch", WATCH) X(UNWATCH, "unwatch", NONE) \
	X(CLIENTS, "clients", STATUS) X(KICK, "kick", CLUSTER) X(CAN, "can", NONE) \
	X(CLUSTER_ADD_REPLICA, "cluster_add_replica", CLUSTER) X(CLUSTER_PROMOTE, "cluster_promote", CLUSTER) \
	X(CLUSTER_DEMOTE, "cluster_demote", CLUSTER) X(CLUSTER_REMOVE, "cluster_remove", CLUSTER) \
	X(CLUSTER_REPLACE, "cluster_replace", CLUSTER) X(CLUSTER_SET_NODES, "cluster_set_nodes", CLUSTER) \
	X(CLUSTER_SET_TIMING, "cluster_set_timing", CLUSTER) X(CLUSTER_FORCE, "cluster_force", CLUSTER)

enum client_method {
#define CLIENT_METHOD_ENUM(name, text, right) CLIENT_##name,
	CLIENT_METHOD_TABLE(CLIENT_METHOD_ENUM)
#undef CLIENT_METHOD_ENUM
};
#define CLIENT_METHODS 29
const char *client_method_name(enum client_method method);

enum right client_method_right(enum client_method method);
bool client_method_changes(enum client_method method); /* the set of nodes: cluster_... */
/* What the core is asked by it; CORE_ACQUIRE also for what will be CORE_ACQUIRE_ALL. False: the node answers it. */
bool client_method_op(enum client_method method, enum core_op *out);

#define CLIENT_LOCKS_MAX 4096       /* in one `extend` with `locks` */
#define CLIENT_LIST_MAX 1000        /* greatest `limit` of `list` */
#define CLIENT_LIST_DEFAULT 100
#define CLIENT_MS_MAX 1000000000000 /* greatest duration in a request, ms: 31 years */
#define CLIENT_DRIFT_PPM_MAX 100000
#define CLIENT_VALUE_SEQ_BYTES 20   /* value_seq: clock, node, boot in network byte order, as bin; opaque to callers */

/* ---- where a message ends ---- */

struct client_limits {
	size_t bytes;   /* of one message */
	uint32_t items; /* objects in it, maps counting two for each pair */
};
extern const struct client_limits client_request_limits;  /* what a server reads: 4 MiB */
extern const struct client_limits client_response_limits; /* what a client reads: 16 MiB */

enum client_scan {
	CLIENT_SCAN_MORE,     /* call again with more bytes */
	CLIENT_SCAN_COMPLETE, /* *out_size is set; the scanner is ready for the next message */
	CLIENT_SCAN_GARBAGE,  /* no MessagePack-RPC: close (after one bad_request, if you like) */
	CLIENT_SCAN_TOO_LARGE /* what it announces is above the limits: as garbage, but too_large */
};
#define CLIENT_DEPTH_MAX 8
/* How far a scan has come. Zero it at the start. The scan goes on where it stopped, so that a message in
 * many pieces is scanned once. */
struct client_scanner {
	/* Bytes that were scanned. */
	size_t position;

	/* Objects that were found, and containers that are open. */
	uint32_t items, depth;

	/* Where msgpack-c's parser stands inside of an object, and how many bytes it needs there. */
	uint32_t state, needs;

	/* Objects that are still missing in each open container. */
	uint32_t left[CLIENT_DEPTH_MAX];
};
/* `in` begins at the message's first byte, with at least what was there at the last call. */
enum client_scan client_scan(struct client_scanner *s, const struct client_limits *limits, struct slice in,
	size_t *out_size);

/* ---- requests, both ways ---- */

/* Which parameters a request has: bits of `present`. */
#define CLIENT_HAS_KEY (UINT64_C(1) << 0)
#define CLIENT_HAS_LEASE (UINT64_C(1) << 1)
#define CLIENT_HAS_WAIT (UINT64_C(1) << 2) /* wait_ms of acquire, timeout_ms of wait */
#define CLIENT_HAS_OWNER (UINT64_C(1) << 3)
#define CLIENT_HAS_VALUE (UINT64_C(1) << 4)
#define CLIENT_HAS_LOCK_ID (UINT64_C(1) << 5)
#define CLIENT_HAS_TOKEN (UINT64_C(1) << 6)
#define CLIENT_HAS_DEADLINE_KEPT (UINT64_C(1) << 7)
#define CLIENT_HAS_LOCKS (UINT64_C(1) << 8) /* extend: client_request.locks; acquire: core.locks */
#define CLIENT_HAS_EXPECT (UINT64_C(1) << 9) /* update: `expect`, the present value, or its value_seq */
#define CLIENT_HAS_VALUE_SEQ (UINT64_C(1) << 10) /* update: `value_seq`, the present value's; not together with `expect` */
#define CLIENT_HAS_CONSISTENCY (UINT64_C(1) << 11)
#define CLIENT_HAS_PREFIX (UINT64_C(1) << 12)
#define CLIENT_HAS_LIMIT (UINT64_C(1) << 13)
#define CLIENT_HAS_AFTER (UINT64_C(1) << 14)
#define CLIENT_HAS_FOR (UINT64_C(1) << 15)
#define CLIENT_HAS_NOW (UINT64_C(1) << 16)
#define CLIENT_HAS_NAME (UINT64_C(1) << 17) /* of the changes of the set, as the next twelve */
#define CLIENT_HAS_ADDRESS (UINT64_C(1) << 18)
#define CLIENT_HAS_OLD (UINT64_C(1) << 19) /* cluster_replace: core_change.name */
#define CLIENT_HAS_NEW (UINT64_C(1) << 20) /* cluster_replace: core_change.other */
#define CLIENT_HAS_MASTERS (UINT64_C(1) << 21)
#define CLIENT_HAS_REPLICAS (UINT64_C(1) << 22)
#define CLIENT_HAS_ANYWAY (UINT64_C(1) << 23)
#define CLIENT_HAS_YES (UINT64_C(1) << 24) /* cluster_force: core_change.anyway */
#define CLIENT_HAS_MAX_LEASE (UINT64_C(1) << 25)
#define CLIENT_HAS_REQUEST_TIMEOUT (UINT64_C(1) << 26)
#define CLIENT_HAS_PROMISE_TIMEOUT (UINT64_C(1) << 27)
#define CLIENT_HAS_DRIFT (UINT64_C(1) << 28)
#define CLIENT_HAS_MODE (UINT64_C(1) << 29) /* acquire: core.terms.of, exclusive or shared; not together with the next two */
#define CLIENT_HAS_PERMITS (UINT64_C(1) << 30) /* acquire: core.terms.count */
#define CLIENT_HAS_OF (UINT64_C(1) << 31) /* acquire: core.terms.of */
#define CLIENT_HAS_PRIORITY (UINT64_C(1) << 32)
#define CLIENT_HAS_LOCK_DELAY (UINT64_C(1) << 33)
#define CLIENT_HAS_RELEASE_ON_DISCONNECT (UINT64_C(1) << 34)
#define CLIENT_HAS_LABEL (UINT64_C(1) << 35) /* client_request.label.text */
#define CLIENT_HAS_HOST (UINT64_C(1) << 36)
#define CLIENT_HAS_PID (UINT64_C(1) << 37)
#define CLIENT_HAS_TO (UINT64_C(1) << 38) /* `can` has identity, method and gids (4 bytes each, in network byte order) as OWNER, TO and VALUE */
#define CLIENT_HAS_FROM (UINT64_C(1) << 39) /* watch */
#define CLIENT_HAS_WATCH (UINT64_C(1) << 40) /* unwatch */
#define CLIENT_HAS_BOND (UINT64_C(1) << 41) /* extend: core.bond */
#define CLIENT_HAS_SLOTS (UINT64_C(1) << 42) /* extend: core.terms.set */
#define CLIENT_HAS_CLIENT (UINT64_C(1) << 43) /* kick: client_request.client; clients: likewise, as `after` */
#define CLIENT_HAS_SHARES (UINT64_C(1) << 44) /* clients */

struct client_lock { /* one of `locks` */
	struct slice key;
	struct id128 lock_id;
	span_ns lease;
	uint64_t token; /* 0: not named */
	uint32_t binding;  /* 0: not named */
	struct permits slots; /* none: not named */
};

struct client_request {
	uint32_t msgid;
	enum client_method method;
	uint64_t present; /* CLIENT_HAS_...; what is absent has its default below */
	/* For the methods that go to the core all but id, client, identity and admin, which the server fills in, and for an
	 * acquire without CLIENT_HAS_LOCK_ID a lock_id. `key` is also the prefix (then core.prefix is set, but for LIST).
	 * Defaults: everything zero, but `limit` 100 and the `timeout_ms` of wait CLIENT_MS_MAX (as long as the connection).
	 * What is decoded points into this struct and the decoder: it must not be copied. */
	struct core_request core;
	const struct client_lock *locks; /* EXTEND with CLIENT_HAS_LOCKS: 1 .. CLIENT_LOCKS_MAX, no other but deadline_kept */
	size_t lock_count;
	struct core_lock *group; /* ACQUIRE with CLIENT_HAS_LOCKS, decoded: core.locks, so that the server can fill in the lock_ids
	                          * that are all zero; to be encoded are core.locks (a lock_id of zero is left out) */
	struct core_change change; /* what is decoded; to be encoded is what core.change points to */
	struct client_label label; /* ACQUIRE; core.label is made of it by decoding */
	bool release_on_disconnect; /* ACQUIRE; core.terms.bond is 1 then by decoding */
	uint64_t watch;              /* UNWATCH */
	uint64_t client;             /* KICK: the number of a connection; CLIENTS: those with greater ones; 0: all */
	bool shares;                 /* CLIENTS: not the connections, but what each identity and each address has of the node */
	struct client_position from; /* WATCH with CLIENT_HAS_FROM */
	uint8_t label_bytes[LABEL_MAX]; /* what core.label points to, decoded */
};

/* Memory for lists, used again for the next message; one a connection, or one for all. */
struct client_decoder {
	const struct allocator *alloc;
	struct client_room {
		void *items;
		size_t bytes;
	} rooms[2]; /* a message has two lists at most */
	uint32_t piece; /* of `locks` of an extend: so many are decoded at once, 0: all */
	struct client_rest { /* left > 0: what is to be decoded yet */
		const uint8_t *at;
		uint32_t done, left, pairs;
	} rest;
};
void client_decoder_init(struct client_decoder *d, const struct allocator *alloc); /* allocator borrowed; no memory yet */
static inline size_t client_decoder_bytes(const struct client_decoder *d) { return d->rooms[0].bytes + d->rooms[1].bytes; }
void client_decoder_done(struct client_decoder *d);                                /* accepts zeroed memory */

/* Why a request was refused. */
struct client_refusal {
	int error;           /* PAWL_EBADREQUEST or PAWL_ETOOLARGE (or as given to client_refusal_encode) */
	struct slice field;  /* the parameter (or what else) at fault, perhaps from the request itself; empty: none */
	const char *message; /* what is wrong and what to do, static storage; NULL: the error's own text */
	span_ns retry_after; /* PAWL_EQUOTA: the same request may be served after so long; 0: not known */
};

/* Server. `message` is what client_scan found. 0: *out is set, until the next decode.
 * PAWL_EBADREQUEST, PAWL_ETOOLARGE: *refusal and out->msgid are set: answer with client_refusal_encode and go on.
 * PAWL_EPROTOCOL: it is no request at all: *refusal says why, out->msgid may be 0: answer likewise and close.
 * PAWL_ENOMEM: no memory; out->msgid is set.
 * A notification is PAWL_EPROTOCOL too: no method of the server is one. */
int client_request_decode(struct client_decoder *d, struct slice message, struct client_request *out, struct client_refusal *refusal);
/* The next piece, while there is a rest: with what decode has set and returned 0 for. Returns the same. */
int client_request_go_on(struct client_decoder *d, struct slice message, struct client_request *out, struct client_refusal *refusal);

/* Client. Appends the request with the parameters that are `present`. 0, PAWL_ENOMEM or PAWL_ETOOLARGE (buffer unchanged).
 * Durations are rounded up to whole ms for waits, down for leases. Ranges are for the server to refuse. */
int client_request_encode(const struct client_request *request, struct buffer *out);

/* ---- responses: the server's side ---- */

/* What answers need beside the core's reply. Strings borrowed. */
struct client_facts {
	const char *node; /* this node's name */
	const char *role; /* "master", "replica"; a reply or a status of the core that knows better wins */
	bool replica;     /* age_ms is a number, else null */
	span_ns age;      /* SPAN_MAX: not known: null */
	const struct config_node *const *peers; /* by index as core_peer(): names of silent masters and of waiters' nodes */
	uint32_t peer_count;
};

/* All of these append one response. 0, PAWL_ENOMEM, PAWL_ETOOLARGE: buffer unchanged. A `list` that would grow beyond the
 * buffer's room or client_response_limits is cut short with `more` set. */
int client_reply_encode(uint32_t msgid, const struct core_reply *reply, const struct client_facts *facts, struct buffer *out);
int client_refusal_encode(uint32_t msgid, const struct client_refusal *refusal, struct buffer *out); /* any error, not 0 */
int client_done_encode(uint32_t msgid, struct buffer *out); /* an empty result: drain, unwatch, kick */
int client_ping_encode(uint32_t msgid, const char *version, const char *node, struct buffer *out);

/* `watch`: its number, the position from which it goes on, and for a key (view not NULL) what a local CORE_GET says. */
int client_watch_encode(uint32_t msgid, uint64_t watch, struct client_position position, const struct core_reply *view,
	const struct client_facts *facts, struct buffer *out);
/* The answer to `can`. */
struct client_can {
	bool allowed;
	struct slice right, identity; /* which right the method needs, and who was judged */
	struct slice why;
	struct slice file; /* empty: there are no rules, as the next two */
	uint32_t line;     /* of the rule that decided it; 0: none applies */
	struct slice rights;
	struct slice node;
};
int client_can_encode(uint32_t msgid, const struct client_can *can, struct buffer *out);
/* Notifications: client_event_encode. The answer to `clients`: client_connections.h. */

/* One result of an `extend` with `locks`; a core_reply is gone before all of them are there. */
struct client_extended {
	int error; /* 0: valid, acks and token count */
	struct id128 lock_id;
	span_ns valid;
	uint64_t token;
	uint32_t quorum, acks;
	uint32_t votes;  /* PAWL_ENOQUORUM */
	span_ns limit;   /* PAWL_ETOOLONG */
	uint64_t silent; /* PAWL_ENOQUORUM: bit set; only for encoding */
	const char *field; /* what is refused: static, or NULL; only for encoding */
	struct client_mode_facts mode; /* of a semaphore's lock: which permits it was extended for */
};
struct client_extended client_extended_of(const struct core_reply *reply);

/* ---- status, both ways ---- */

struct client_status_peer {
	struct slice node, address, role; /* role: "master", "replica", or "guest": not in the configuration (yet, or any more) */
	bool self, linked, voting;
	bool stranger;      /* has the name of a member, but another identity */
	bool other_epoch;   /* has not adopted the node's epoch, or has adopted a later one */
	span_ns round_trip; /* 0: not measured */
	bool follows;       /* it follows the node; only then: */
	uint64_t position, lag; /* the place in the node's log that it has, and how many entries it is behind */
	struct slice serial;    /* of its certificate, in hex digits; empty: not linked, or no TLS. Only if not: */
	uint64_t certificate_ends;     /* s since 1970 */
	struct slice rights;    /* as client_status.rights; empty: not known */
	struct slice certificate_role; /* "master", "replica" or "embedded": what it lets the node be */
};

struct client_status_following { /* of a replica */
	struct slice node; /* the master it follows; empty: none now */
	bool catching_up;  /* that master's snapshot is arriving, `snapshot_done` records so far */
	uint64_t snapshot_done;
	uint64_t position; /* in that master's log */
	span_ns age;       /* SPAN_MAX: not known yet */
};

struct client_status_change { /* of the set, coordinated by the node; step empty: none */
	struct slice step;
	uint64_t done, total; /* of records to be copied beforehand; total 0: not known */
	uint64_t epoch;       /* that it is to have */
};

struct client_status {
	struct slice node, role, version;
	struct slice rights;    /* the digest of the file with the access rules, in hex digits; "none": there is no such file */
	struct slice cluster;
	struct slice state;     /* "unconfigured", "following", "handover", "recovering", "voting", "drained" */
	struct slice waits_for; /* empty: nothing */
	span_ns left;           /* until it votes by waiting at the latest; 0: unknown */
	uint64_t epoch, config_hash;
	bool settled, complete; /* a majority of the masters has voted in this epoch; all have */
	struct slice missing[MASTERS_MAX]; /* masters that do not vote in it, as far as this node sees */
	uint32_t missing_count;
	bool replica;           /* `following` counts */
	struct client_status_following following;
	uint64_t log_next, log_oldest, log_bytes; /* the node's transaction log: the next number, the oldest still there */
	struct client_status_change change;
	uint32_t quorum, voting_linked;
	uint64_t boot, clock, ceiling;
	uint64_t keys, held, promises, waiters, rounds, memory_bytes, clients;
	uint64_t handshakes, handshakes_evicted, handshakes_refused; /* connections that have not said who they are; since the start, such that ended */
	uint64_t quota_refused;   /* requests and connections since the start, of who had as much as it may */
	uint64_t watches, events; /* of all clients; events that they were told since the start */
	span_ns uptime;
	span_ns max_lease, request_timeout, promise_timeout; /* of the configuration, with drift_ppm */
	uint32_t drift_ppm;
	uint32_t peer_count; /* masters first, then replicas, then guests; the node itself is among them */
	struct client_status_peer peers[NODES_MAX];
};
/* Fills everything that the core knows: all but version, clients, handshakes*, quota_refused, watches, events, uptime and certificates. Borrows from core, config and the facts. */
void client_status_of_core(struct client_status *out, const struct core_status *core, const struct config *config,
	const struct client_facts *facts);
int client_status_encode(uint32_t msgid, const struct client_status *status, struct buffer *out);

/* ---- responses: the client's side ---- */

/* Which facts a response has. */
enum client_result {
	CLIENT_GOT_LOCK_ID = 1 << 0,
	CLIENT_GOT_TOKEN = 1 << 1,
	CLIENT_GOT_VALID = 1 << 2,
	CLIENT_GOT_QUORUM = 1 << 3,
	CLIENT_GOT_VOTES = 1 << 4,
	CLIENT_GOT_ACKS = 1 << 5,
	CLIENT_GOT_WAITED = 1 << 6,
	CLIENT_GOT_RELEASED = 1 << 7,
	CLIENT_GOT_HELD = 1 << 8,
	CLIENT_GOT_ENTRY = 1 << 9, /* `entry`: reads that found a holder; held: who holds; mismatch: the present value */
	CLIENT_GOT_VALUE_SEQ = 1 << 10,
	CLIENT_GOT_NODE = 1 << 11,
	CLIENT_GOT_ROLE = 1 << 12,
	CLIENT_GOT_AGE = 1 << 13, /* a replica answered */
	CLIENT_GOT_MORE = 1 << 14,
	CLIENT_GOT_LIMIT = 1 << 15,
	CLIENT_GOT_VERSION = 1 << 16,
	CLIENT_GOT_WARNING = 1 << 17,
	CLIENT_GOT_LIST = 1 << 18, /* the list of LIST, WAITERS, or EXTEND or ACQUIRE with `locks` */
	CLIENT_GOT_EPOCH = 1 << 19, /* a change of the set */
	CLIENT_GOT_MODE = 1 << 20,
	CLIENT_GOT_SLOTS = 1 << 21,
	CLIENT_GOT_REACHED = 1 << 22,
	CLIENT_GOT_WATCH = 1 << 23,
	CLIENT_GOT_POSITION = 1 << 24,
	CLIENT_GOT_RETRY_AFTER = 1 << 26,
	CLIENT_GOT_KEY = 1 << 25 /* errors of an ACQUIRE with `locks`: which key it is about */
};

#define CLIENT_SILENT_MAX MASTERS_MAX
struct client_response {
	uint32_t msgid;
	int error;            /* 0, or the PAWL_E... of the answer's code (one that is unknown: PAWL_EPROTOCOL) */
	struct slice message; /* errors: the server's sentence */
	struct slice field;   /* errors: the field or limit at fault; may be empty */
	uint32_t present;     /* bits of enum client_result */
	struct id128 lock_id;
	uint64_t token;
	span_ns valid, waited, age;
	span_ns limit;                /* too_long: the longest lease allowed */
	span_ns retry_after;          /* CLIENT_GOT_RETRY_AFTER: quota: after so long it may be served */
	uint32_t quorum, votes, acks; /* also of no_quorum */
	bool released;                /* release, break (which calls it `broken`), transfer (`transferred`) */
	bool held, contested, recovering, more;
	struct slice key;             /* CLIENT_GOT_KEY */
	struct client_mode_facts mode; /* ACQUIRE, DOWNGRADE: what one has */
	uint32_t reached;             /* ASK_RELEASE */
	uint64_t watch;               /* WATCH */
	struct client_position position;
	struct ballot value_seq;
	struct client_entry entry;
	struct slice node, role, version, warning;
	struct slice silent[CLIENT_SILENT_MAX]; /* no_quorum: the masters that were silent */
	uint32_t silent_count;
	uint64_t epoch;               /* changes of the set: the present one, as the next three; also of their errors */
	bool settled, complete;
	struct slice missing[CLIENT_SILENT_MAX]; /* masters that do not vote in it yet */
	uint32_t missing_count;
	/* One of these lists, by method: LIST (and EXPLAIN: all records, see `masters`), WAITERS, EXTEND or ACQUIRE with `locks`. */
	const struct client_entry *entries;
	const struct client_waiter *waiters;
	const struct client_extended *extended;
	const struct client_got *got;
	size_t count;
	const struct client_entry *holders; /* reads, and PAWL_EHELD: all, when there is more than one; `entry` is the first */
	size_t holder_count;
	struct client_witness masters[MASTERS_MAX]; /* EXPLAIN */
	uint32_t master_count;
	struct client_status status; /* STATUS */
};

enum client_kind { CLIENT_RESPONSE, CLIENT_NOTIFICATION };
/* Client. What client_scan found: a response and to which request, or a notification. 0 or PAWL_EPROTOCOL. */
int client_response_peek(struct slice message, enum client_kind *out_kind, uint32_t *out_msgid);
/* Decodes the response to a request with that method; until the next decode. 0, PAWL_ENOMEM, or PAWL_EPROTOCOL: not a
 * response, a fact of a wrong type, or one missing without which the answer means nothing (acquire without token, ...). */
int client_response_decode(struct client_decoder *d, enum client_method method, struct slice message,
	struct client_response *out);

/* ---- lock ids as text ---- */

#define CLIENT_LOCK_ID_DIGITS 32
void client_lock_id_format(struct id128 id, char out[CLIENT_LOCK_ID_DIGITS]); /* lower-case hex, no NUL */
bool client_lock_id_parse(struct slice text, struct id128 *out);              /* 32 hex digits of either case, not all zero */

#endif
