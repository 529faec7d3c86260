/* client_request.h: the requests of the client protocol. A server decodes them and refuses what it
 * cannot accept; a client encodes them. */
#ifndef PAWL_WIRE_CLIENT_REQUEST_H
#define PAWL_WIRE_CLIENT_REQUEST_H

#include "alloc.h"
#include "buffer.h"
#include "client_entry.h"
#include "client_method.h"
#include "core.h"
#include "pawl/error.h"

/* The parameters that a request has, as bits of `present`. A comment names the field that holds the
 * parameter where the name of the bit does not say it. */
#define CLIENT_HAS_KEY (UINT64_C(1) << 0)
#define CLIENT_HAS_LEASE (UINT64_C(1) << 1)
/* `wait_ms` of acquire, and `timeout_ms` of wait, are in core.wait. */
#define CLIENT_HAS_WAIT (UINT64_C(1) << 2)
/* `can` has its parameter `identity` here, `method` as CLIENT_HAS_TO, and `gids` as
 * CLIENT_HAS_VALUE (4 bytes for each group, in network byte order). */
#define CLIENT_HAS_OWNER (UINT64_C(1) << 3)
#define CLIENT_HAS_VALUE (UINT64_C(1) << 4)
#define CLIENT_HAS_LOCK_ID (UINT64_C(1) << 5)
#define CLIENT_HAS_TOKEN (UINT64_C(1) << 6)
#define CLIENT_HAS_DEADLINE_KEPT (UINT64_C(1) << 7)
/* extend: the locks are in client_request.locks. acquire: they are in core.locks. */
#define CLIENT_HAS_LOCKS (UINT64_C(1) << 8)
/* update: `expect` is the present value, or its value_seq. */
#define CLIENT_HAS_EXPECT (UINT64_C(1) << 9)
/* update: `value_seq` is that of the present value. It does not go together with `expect`. */
#define CLIENT_HAS_VALUE_SEQ (UINT64_C(1) << 10)
#define CLIENT_HAS_CONSISTENCY (UINT64_C(1) << 11)
#define CLIENT_HAS_PREFIX (UINT64_C(1) << 12)
#define CLIENT_HAS_LIMIT (UINT64_C(1) << 13)
#define CLIENT_HAS_AFTER (UINT64_C(1) << 14)
#define CLIENT_HAS_FOR (UINT64_C(1) << 15)
#define CLIENT_HAS_NOW (UINT64_C(1) << 16)

/* These belong to the changes of the set of nodes (`cluster_...`), and their fields to
 * struct core_change. */
#define CLIENT_HAS_NAME (UINT64_C(1) << 17)
#define CLIENT_HAS_ADDRESS (UINT64_C(1) << 18)
/* cluster_replace: `old` is in core_change.name, and `new` in core_change.other. */
#define CLIENT_HAS_OLD (UINT64_C(1) << 19)
#define CLIENT_HAS_NEW (UINT64_C(1) << 20)
#define CLIENT_HAS_MASTERS (UINT64_C(1) << 21)
#define CLIENT_HAS_REPLICAS (UINT64_C(1) << 22)
#define CLIENT_HAS_ANYWAY (UINT64_C(1) << 23)
/* cluster_force: `yes` is in core_change.anyway. */
#define CLIENT_HAS_YES (UINT64_C(1) << 24)
#define CLIENT_HAS_MAX_LEASE (UINT64_C(1) << 25)
#define CLIENT_HAS_REQUEST_TIMEOUT (UINT64_C(1) << 26)
#define CLIENT_HAS_PROMISE_TIMEOUT (UINT64_C(1) << 27)
#define CLIENT_HAS_DRIFT (UINT64_C(1) << 28)

/* acquire: `mode` is in core.terms.of, as exclusive or shared. It does not go together with
 * `permits` (core.terms.count) and `of` (core.terms.of). */
#define CLIENT_HAS_MODE (UINT64_C(1) << 29)
#define CLIENT_HAS_PERMITS (UINT64_C(1) << 30)
#define CLIENT_HAS_OF (UINT64_C(1) << 31)
#define CLIENT_HAS_PRIORITY (UINT64_C(1) << 32)
#define CLIENT_HAS_LOCK_DELAY (UINT64_C(1) << 33)
#define CLIENT_HAS_RELEASE_ON_DISCONNECT (UINT64_C(1) << 34)
/* The next three are in client_request.label: `label` is its text. */
#define CLIENT_HAS_LABEL (UINT64_C(1) << 35)
#define CLIENT_HAS_HOST (UINT64_C(1) << 36)
#define CLIENT_HAS_PID (UINT64_C(1) << 37)
#define CLIENT_HAS_TO (UINT64_C(1) << 38)
/* watch: the position from which it goes on. */
#define CLIENT_HAS_FROM (UINT64_C(1) << 39)
/* unwatch: the number of the watch. */
#define CLIENT_HAS_WATCH (UINT64_C(1) << 40)
/* acquire, extend: `bond` is in core.binding. */
#define CLIENT_HAS_BINDING (UINT64_C(1) << 41)
/* extend: the permit numbers are in core.terms.set. */
#define CLIENT_HAS_NUMBERS (UINT64_C(1) << 42)
/* `client` of kick, and `after` of clients, are in client_request.client. */
#define CLIENT_HAS_CLIENT (UINT64_C(1) << 43)
#define CLIENT_HAS_SHARES (UINT64_C(1) << 44)
/* Every method takes it. */
#define CLIENT_HAS_TRACE (UINT64_C(1) << 46)
/* `election` of acquire is in client_request.label. */
#define CLIENT_HAS_ELECTION (UINT64_C(1) << 50)
/* acquire, extend: `party`. */
#define CLIENT_HAS_PARTY (UINT64_C(1) << 47)
/* release: `close_ms` is in core.closes. */
#define CLIENT_HAS_CLOSE (UINT64_C(1) << 48)
#define CLIENT_HAS_SHORTEN (UINT64_C(1) << 49)
/* acquire, extend: `order` is in core.binding, and core.ordered is set. */
#define CLIENT_HAS_ORDER (UINT64_C(1) << 51)

/* One of the `locks` of an extend. */
struct client_lock {
	struct slice key;
	struct id128 lock_id;
	/* The lease in nanoseconds. */
	span_ns lease;
	/* The fencing token; 0 names none. */
	uint64_t token;
	/* The holder's connection that ends the lock from now on; 0 names none. */
	uint32_t binding;
	/* The permit numbers that the lock has; an empty set names none. */
	struct permits numbers;
	/* `binding` is an order only; and the lease becomes shorter, if it was longer. */
	bool ordered, shorten;
};

/* One request. It is zeroed before it is decoded, so what a request leaves out is zero, but for two
 * defaults: `limit` is 100, and `timeout_ms` of wait is CLIENT_MS_MAX, which is as long as the
 * connection lasts. A decoded request points into itself, into the decoder, and into the message:
 * it must not be copied without setting core.label and core.change anew. */
struct client_request {
	/* The client chooses this number, and the response repeats it. */
	uint32_t msgid;
	enum client_method method;
	/* The bits CLIENT_HAS_... of the parameters that the request has. */
	uint64_t present;

	/* What the core is asked for. It is whole for a method that goes to the core, but for `id`,
	 * `client`, `identity` and `admin`, which the server fills in; so it does with the lock_id
	 * of an acquire without CLIENT_HAS_LOCK_ID. `key` is also the prefix, and core.prefix is
	 * set then, except for LIST. */
	struct core_request core;

	/* EXTEND with CLIENT_HAS_LOCKS: 1 .. CLIENT_LOCKS_MAX locks. The only other parameters that
	 * go with them are `deadline_kept`, `party` and `trace`. */
	const struct client_lock *locks;
	size_t lock_count;

	/* ACQUIRE with CLIENT_HAS_LOCKS: the decoded locks, which core.locks also points to. The
	 * server fills in each lock_id that is all zero here. The encoder does not read this field,
	 * but core.locks, and leaves out a lock_id of zero. */
	struct core_lock *group;

	/* A decoded change of the set. The encoder does not read this field, but what core.change
	 * points to. */
	struct core_change change;

	/* ACQUIRE: what the holder says about itself. Decoding makes core.label from it. */
	struct client_label label;

	/* ACQUIRE: the lock ends when this connection is closed. Decoding sets core.terms.binding
	 * to `bond` then, or to 1 if no `bond` is named. */
	bool release_on_disconnect;

	/* ACQUIRE, EXTEND: the client object that asks, for the search for deadlocks; all zero for
	 * none. */
	struct id128 party;

	/* GET of a dialect: what follows is a release or an extension, and so this has their
	 * privileges where there is no room for others. */
	bool urgent;
	/* A dialect releases what it has taken for a client that is not told so. That is not held
	 * against any limit: a lock without an end would be kept for nobody. */
	bool gives_back;

	/* UNWATCH: the number of the watch. */
	uint64_t watch;

	/* KICK: the number of a connection. CLIENTS: the answer begins with the first connection
	 * that has a greater number; 0 asks for all. */
	uint64_t client;

	/* CLIENTS: the caller wants to know what each identity and each address has of the node,
	 * instead of the connections. */
	bool shares;

	/* WATCH with CLIENT_HAS_FROM: the position from which the watch goes on. */
	struct client_position from;

	/* A traceparent, by which others find the request again. */
	struct slice trace;

	/* The bytes that core.label points to in a decoded request. */
	uint8_t label_bytes[LABEL_MAX];
};

/* The memory for the lists of a message, which is used again for the next message. There may be one
 * decoder for each connection, or one for all of them. */
struct client_decoder {
	/* Borrowed. */
	const struct allocator *alloc;

	/* The memory of the lists; a message has two of them at most. */
	struct client_room {
		void *items;
		/* The size of the memory in bytes. */
		size_t bytes;
	} rooms[2];

	/* How many of the `locks` of an extend are decoded by one call; 0 for all. */
	uint32_t piece;

	/* What remains to be decoded after such a call. */
	struct client_rest {
		/* The first byte that was not read. */
		const uint8_t *at;
		/* How many items of the list have been decoded; how many are left, which is 0 when
		 * the request is complete; and how many pairs of the map of parameters come after
		 * the list. */
		uint32_t done, left, pairs;
	} rest;
};

/* The decoder borrows the allocator, and takes no memory yet. */
void client_decoder_init(struct client_decoder *d, const struct allocator *alloc);

/* Returns how many bytes of memory the decoder has. */
static inline size_t client_decoder_bytes(const struct client_decoder *d) {
	return d->rooms[0].bytes + d->rooms[1].bytes;
}

/* Frees the decoder's memory. A zeroed decoder is allowed. */
void client_decoder_done(struct client_decoder *d);

/* Why a request was refused. */
struct client_refusal {
	/* PAWL_EBADREQUEST or PAWL_ETOOLARGE from the decoder; client_refusal_encode takes any. */
	int error;
	/* The parameter or limit at fault; empty for none. It may point into the request. */
	struct slice field;
	/* What is wrong, and what to do about it, as static text; NULL for the error's own text. */
	const char *message;
	/* PAWL_EQUOTA: the time in nanoseconds after which the same request may be served; 0 for
	 * unknown. */
	span_ns retry_after;
};

/* The server decodes a message that client_scan has found. What is decoded stays valid until the
 * next decode with the same decoder, and while the message does. Returns
 * - 0: *out is set, or its first piece is (decoder->rest.left > 0).
 * - PAWL_EBADREQUEST, PAWL_ETOOLARGE: the request is wrong; *refusal and out->msgid are set. Answer
 *   with client_refusal_encode, and go on.
 * - PAWL_EPROTOCOL: the message is no request, and *refusal says why. out->msgid may be 0. Answer
 *   with client_refusal_encode, and close the connection. A notification is such a message, because
 *   the server has no method for one.
 * - PAWL_ENOMEM: there is no memory; out->msgid is set. */
int client_request_decode(struct client_decoder *d, struct slice message,
	struct client_request *out, struct client_refusal *refusal);

/* Decodes the request that `in` begins with, without looking for its end before. Returns the bytes
 * of its message, and *out is as after client_request_decode. Returns 0 if the request is not all
 * there, is long, is wrong, or there is no memory: call client_scan and client_request_decode then,
 * which tell these apart. Most requests are short and right, and so are read once instead of
 * twice. */
size_t client_request_decode_short(struct client_decoder *d, struct slice in,
	struct client_request *out);

/* Decodes the next piece while decoder->rest.left is above 0. `out` is the request for which the
 * call before returned 0. Returns the same values as client_request_decode. */
int client_request_go_on(struct client_decoder *d, struct slice message,
	struct client_request *out, struct client_refusal *refusal);

/* The client appends the request with the parameters that are `present`. Times to wait and lock
 * delays are rounded up to whole milliseconds; leases, and the timing constants of a change, are
 * rounded down. Ranges are not checked, because the server refuses what is out of range. Returns 0,
 * PAWL_ENOMEM or PAWL_ETOOLARGE; after an error the buffer is unchanged. */
int client_request_encode(const struct client_request *request, struct buffer *out);

#endif
