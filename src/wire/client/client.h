/* client.h: the client protocol as bytes, which is MessagePack-RPC (docs/client-protocol.md). It
 * knows no sockets and no clocks.
 *
 *   request       [0, msgid, method, [params]]
 *   response      [1, msgid, error, result]
 *   notification  [2, method, [params]]
 *
 * `params`, `result` and `error` are maps with string keys. The code for both sides is here: a
 * server decodes requests and encodes responses, a client encodes requests and decodes responses. A
 * request is refused for a parameter that its method does not know; the unknown keys of a response
 * are skipped.
 *
 * A reader takes three steps: it calls client_scan, which finds the end of a message without memory
 * and within limits; it decodes the message; and it drops the bytes of the message. What has been
 * decoded is borrowed: slices point into the message, and lists into the decoder.
 */
#ifndef PAWL_WIRE_CLIENT_H
#define PAWL_WIRE_CLIENT_H

#include "alloc.h"
#include "buffer.h"
#include "client_entry.h"
#include "client_method.h"
#include "client_request.h"
#include "client_status_fields.h"
#include "core.h"
#include "pawl/error.h"

/* ---- where a message ends ---- */

/* What a message may have at most. */
struct client_limits {
	size_t bytes;
	/* The number of objects. A map counts two for each of its pairs. */
	uint32_t items;
};
/* The limits of what a server reads (4 MiB), and of what a client reads (16 MiB). */
extern const struct client_limits client_request_limits;
extern const struct client_limits client_response_limits;

enum client_scan {
	/* The message is not complete. Call again with more bytes. */
	CLIENT_SCAN_MORE,
	/* *out_size is the size of the message, and the scanner is ready for the next one. */
	CLIENT_SCAN_COMPLETE,
	/* The bytes are not MessagePack-RPC. Close the connection; you may answer bad_request
	 * before. */
	CLIENT_SCAN_GARBAGE,
	/* The message is larger than the limits, or announces that it will be. Close the
	 * connection; you may answer too_large before. */
	CLIENT_SCAN_TOO_LARGE
};
#define CLIENT_DEPTH_MAX 8
/* How far a scan has come. Zero it at the start. The scan goes on where it stopped, so that a
 * message in many pieces is scanned once. */
struct client_scanner {
	/* How many bytes have been scanned. */
	size_t position;

	/* How many objects were found, and how many containers are open. */
	uint32_t items, depth;

	/* Where msgpack-c's parser stands inside of an object, and how many bytes it needs
	 * there. */
	uint32_t state, needs;

	/* How many objects are still missing in each open container. */
	uint32_t left[CLIENT_DEPTH_MAX];
};
/* Scans on. `in` begins at the message's first byte, and has at least the bytes of the last
 * call. */
enum client_scan client_scan(struct client_scanner *s, const struct client_limits *limits,
	struct slice in, size_t *out_size);

/* ---- responses: the server's side ---- */

/* What answers need in addition to the core's reply. The strings are borrowed. */
struct client_context {
	/* The name of this node. */
	const char *node;
	/* "master" or "replica". If a reply or a status of the core says something else, that
	 * counts, because it is newer. */
	const char *role;
	/* The node is a replica: `age_ms` is a number then, and null otherwise. */
	bool replica;
	/* How old the replica's view is, in nanoseconds. SPAN_MAX is unknown, and becomes null. */
	span_ns age;
	/* The nodes by peer index, as core_peer() has them. They give the names of silent masters,
	 * and of the nodes at which requests wait. */
	const struct config_node *const *peers;
	uint32_t peer_count;
	/* EXPLAIN: the rings that the key is part of. */
	const struct client_ring *rings;
	uint32_t ring_count;
};

/* A ring of clients that wait for each other. Each waits for the key, which the next one holds. */
struct client_ring {
	const struct client_ring_member {
		struct slice owner, key;
		/* The name of the node that serves it. */
		struct slice node;
	} *members;
	uint32_t count;
	/* The youngest of them has got the error `deadlock`. */
	bool refused;
};

/* The functions client_..._encode append one message. They return 0, PAWL_ENOMEM or PAWL_ETOOLARGE;
 * after an error the buffer is unchanged. */

/* Appends the response that a reply of the core is. A list that would not fit into the buffer or
 * into client_response_limits is cut short, and has `more` set. */
int client_reply_encode(uint32_t msgid, const struct core_reply *reply,
	const struct client_context *context, struct buffer *out);
/* Appends an error, whichever it is; refusal->error must not be 0. */
int client_refusal_encode(uint32_t msgid, const struct client_refusal *refusal, struct buffer *out);
/* Appends an empty result, for drain, unwatch and kick. */
int client_done_encode(uint32_t msgid, struct buffer *out);
int client_ping_encode(uint32_t msgid, const char *version, const char *node, struct buffer *out);

/* Appends the answer to `watch`: the number of the watch, and the position from which it goes on.
 * For a watch of a key, `view` is the reply to a local CORE_GET; otherwise it is NULL. */
int client_watch_encode(uint32_t msgid, uint64_t watch, struct client_position position,
	const struct core_reply *view, const struct client_context *context, struct buffer *out);

/* The answer to `can`. */
struct client_can {
	bool allowed;
	/* The right that the method needs, and the identity that was judged. */
	struct slice right, identity;
	/* A sentence that gives the reason. */
	struct slice why;
	/* The file with the access rules; empty if there is none, and then `line` is 0. */
	struct slice file;
	/* The line of the rule that decided; 0 if no rule applies. */
	uint32_t line;
	/* The digest of that file, as in client_status.rights. */
	struct slice rights;
	/* The node that answers. */
	struct slice node;
};
int client_can_encode(uint32_t msgid, const struct client_can *can, struct buffer *out);

/* client_entry.h has the notifications, client_connections.h the answer to `clients`, client_top.h
 * the answer to `top`, and client_pieces.h the answers that are put together piece by piece. */

/* One result of an `extend` with `locks`. It is a copy, because the core's reply is gone before all
 * results are there. */
struct client_extended {
	/* 0, and then `valid`, `acks` and `token` are set; or a negative PAWL_E.... */
	int error;
	struct id128 lock_id;
	/* How long the lease is valid from the sending of the request, in nanoseconds. */
	span_ns valid;
	uint64_t token;
	uint32_t quorum, acks;
	/* PAWL_ENOQUORUM: how many masters promised. */
	uint32_t votes;
	/* PAWL_ETOOLONG: the longest lease that is allowed, in nanoseconds. */
	span_ns limit;
	/* PAWL_ENOQUORUM: the bit sets of the peers that were silent, and of those that do not
	 * vote. Only the encoder reads them. */
	uint64_t silent, not_voting;
	/* The field that was refused, as static text or NULL. Only the encoder reads it. */
	const char *field;
	/* The mode; of a semaphore, the permits for which the lock was extended. */
	struct client_lock_mode mode;
};
struct client_extended client_extended_of(const struct core_reply *reply);

/* ---- responses: the client's side ---- */

/* The fields that a response has. A comment says more where the name does not. */
enum client_result {
	CLIENT_RESULT_LOCK_ID = 1 << 0,
	CLIENT_RESULT_TOKEN = 1 << 1,
	CLIENT_RESULT_VALID = 1 << 2,
	CLIENT_RESULT_QUORUM = 1 << 3,
	CLIENT_RESULT_VOTES = 1 << 4,
	CLIENT_RESULT_ACKS = 1 << 5,
	CLIENT_RESULT_WAITED = 1 << 6,
	CLIENT_RESULT_RELEASED = 1 << 7,
	CLIENT_RESULT_HELD = 1 << 8,
	/* `entry` is set: a read has found a holder, the error held names one, or the error
	 * mismatch gives the present value. */
	CLIENT_RESULT_ENTRY = 1 << 9,
	CLIENT_RESULT_VALUE_SEQ = 1 << 10,
	CLIENT_RESULT_NODE = 1 << 11,
	CLIENT_RESULT_ROLE = 1 << 12,
	/* A replica has answered. */
	CLIENT_RESULT_AGE = 1 << 13,
	CLIENT_RESULT_MORE = 1 << 14,
	CLIENT_RESULT_LIMIT = 1 << 15,
	CLIENT_RESULT_VERSION = 1 << 16,
	CLIENT_RESULT_WARNING = 1 << 17,
	/* The list of LIST or WAITERS, or of EXTEND or ACQUIRE with `locks`, is set. */
	CLIENT_RESULT_LIST = 1 << 18,
	/* The response is that of a change of the set. */
	CLIENT_RESULT_EPOCH = 1 << 19,
	CLIENT_RESULT_MODE = 1 << 20,
	/* The permit numbers in `mode` are set. */
	CLIENT_RESULT_NUMBERS = 1 << 21,
	CLIENT_RESULT_REACHED = 1 << 22,
	CLIENT_RESULT_WATCH = 1 << 23,
	CLIENT_RESULT_POSITION = 1 << 24,
	CLIENT_RESULT_RETRY_AFTER = 1 << 26,
	/* An error of an ACQUIRE with `locks` names the key that it is about. */
	CLIENT_RESULT_KEY = 1 << 25
};

#define CLIENT_SILENT_MAX MASTERS_MAX
/* One response. A field whose comment begins with methods or errors belongs to these alone.
 * Durations are in nanoseconds. */
struct client_response {
	/* The number of the request. */
	uint32_t msgid;
	/* 0, or the PAWL_E... of the answer's code; PAWL_EPROTOCOL for an unknown code. */
	int error;
	/* Errors: the server's sentence. */
	struct slice message;
	/* Errors: the field or limit at fault; it may be empty. */
	struct slice field;
	/* The bits of enum client_result of the fields that the response has. */
	uint32_t present;

	struct id128 lock_id;
	uint64_t token;
	/* How long the lease is valid from the sending of the request; how long the request has
	 * waited; and how old the view of a replica is. */
	span_ns valid, waited, age;
	/* PAWL_ETOOLONG: the longest lease that is allowed. PAWL_EBADREQUEST for the lease: the
	 * shortest. */
	span_ns limit;
	/* PAWL_EQUOTA: the request may be served after this time. */
	span_ns retry_after;
	/* How many masters a quorum has, how many promised, and how many accepted. PAWL_ENOQUORUM
	 * has them, too. */
	uint32_t quorum, votes, acks;
	/* RELEASE, BREAK (which calls it `broken`), TRANSFER (which calls it `transferred`): the
	 * lock was held, and is not any more. */
	bool released;
	/* Reads: the key is held; masters know of holders that exclude one another; and the node is
	 * recovering. `more` says that a list was cut short. */
	bool held, contested, recovering, more;
	/* Errors of an ACQUIRE with `locks`: the key that the error is about. */
	struct slice key;
	/* ACQUIRE, DOWNGRADE, EXTEND of a semaphore: the mode that the caller's lock has. */
	struct client_lock_mode mode;
	/* ASK_RELEASE: how many clients were told. */
	uint32_t reached;
	/* WATCH: the number of the watch, and the position after which its events come. */
	uint64_t watch;
	struct client_position position;
	/* UPDATE: the value_seq of the new value. */
	struct ballot value_seq;
	/* The holder, or the present value; see CLIENT_RESULT_ENTRY. */
	struct client_entry entry;
	struct slice node, role, version, warning;
	/* PAWL_ENOQUORUM: the masters that did not answer. */
	struct slice silent[CLIENT_SILENT_MAX];
	uint32_t silent_count;

	/* Changes of the set, and their errors: the present epoch; whether it is settled, and
	 * whether it is complete; and the masters that do not vote in it yet. */
	uint64_t epoch;
	bool settled, complete;
	struct slice missing[CLIENT_SILENT_MAX];
	uint32_t missing_count;

	/* One of these lists is set, and `count` is its length. LIST: the keys. EXPLAIN: the
	 * records of all masters, see `masters`. */
	const struct client_entry *entries;
	/* WAITERS. */
	const struct client_waiter *waiters;
	/* EXTEND with `locks`. */
	const struct client_extended *extended;
	/* ACQUIRE with `locks`. */
	const struct client_acquired *acquired;
	size_t count;

	/* Reads, PAWL_EHELD: all holders if there is more than one; `entry` is the first of
	 * them. */
	const struct client_entry *holders;
	size_t holder_count;

	/* EXPLAIN: what each master reports. */
	struct client_report masters[MASTERS_MAX];
	uint32_t master_count;

	/* STATUS. */
	struct client_status status;
};

enum client_kind { CLIENT_RESPONSE, CLIENT_NOTIFICATION };
/* The client looks at a message that client_scan has found. *out_kind says whether it is a response
 * or a notification; *out_msgid is the number of the request that a response answers. Returns 0 or
 * PAWL_EPROTOCOL. */
int client_response_peek(struct slice message, enum client_kind *out_kind, uint32_t *out_msgid);
/* Decodes the response to a request of that method. *out stays valid until the next decode with the
 * same decoder. Returns 0, PAWL_ENOMEM, or PAWL_EPROTOCOL if the message is not a response, if a
 * field has a wrong type, or if a field is missing without which the answer means nothing (the
 * token of an acquire, for example). */
int client_response_decode(struct client_decoder *d, enum client_method method,
	struct slice message, struct client_response *out);

/* ---- lock ids as text ---- */

#define CLIENT_LOCK_ID_DIGITS 32
/* Writes the lock_id as lower-case hex digits, without a NUL. */
void client_lock_id_format(struct id128 id, char out[CLIENT_LOCK_ID_DIGITS]);
/* Reads 32 hex digits of either case. Returns false if the text is anything else, or all zero. */
bool client_lock_id_parse(struct slice text, struct id128 *out);

#endif
