/* client_entry.h: what the client protocol says about holders, waiters, masters and watch events,
 * for the server and for the client. client.h describes the protocol as a whole. Durations are in
 * nanoseconds here, and slices are borrowed. */
#ifndef PAWL_WIRE_CLIENT_ENTRY_H
#define PAWL_WIRE_CLIENT_ENTRY_H

#include "buffer.h"
#include "core.h"

/* ---- what a holder says about itself ---- */

/* The longest name of a host, and the longest label, in bytes. */
#define CLIENT_HOST_MAX 64
#define CLIENT_LABEL_MAX 128

struct client_label {
	/* The name of the holder's host, and its label; empty if it did not say them. */
	struct slice host, text;
	/* The holder's process; 0 if it did not say it. */
	uint32_t pid;
	/* The key is an election, and the holder its leader. */
	bool election;
	/* The node that granted the lock extends it until it is released. */
	bool without_end;
};
/* Packs the label as the core keeps it, which is a small map. Longer texts are cut. Returns how
 * many bytes it used; 0 if the label says nothing. */
uint32_t client_label_pack(const struct client_label *label, uint8_t out[LABEL_MAX]);
/* The result borrows from `packed`. If that is not a label, the result says nothing. */
struct client_label client_label_unpack(struct slice packed);

/* ---- what a lock excludes ---- */

enum client_mode { CLIENT_EXCLUSIVE, CLIENT_SHARED, CLIENT_PERMITS };
/* The mode of a lock. All fields but the first belong to CLIENT_PERMITS alone. */
struct client_lock_mode {
	/* On the wire it is "exclusive", "shared" or "permits". */
	enum client_mode mode;
	/* How many permits the lock has, or a waiter wants; and how many the semaphore has in
	 * all. */
	uint32_t permits, of;
	/* The permit numbers; an answer lists them. */
	struct permits numbers;
};
struct client_lock_mode client_mode_of(const struct terms *terms);

/* ---- a holder ---- */

/* The fields of an entry. */
enum client_entry_has {
	CLIENT_ENTRY_OWNER = 1 << 0,
	CLIENT_ENTRY_VALUE = 1 << 1,
	CLIENT_ENTRY_VALUE_SEQ = 1 << 2,
	CLIENT_ENTRY_TOKEN = 1 << 3,
	/* It never goes together with CLIENT_ENTRY_CLOSING. */
	CLIENT_ENTRY_REMAINING = 1 << 4,
	CLIENT_ENTRY_LOCK_ID = 1 << 5,
	CLIENT_ENTRY_MODE = 1 << 6,
	/* These three belong to a semaphore. */
	CLIENT_ENTRY_PERMITS = 1 << 7,
	CLIENT_ENTRY_OF = 1 << 8,
	/* The permit numbers. */
	CLIENT_ENTRY_NUMBERS = 1 << 9,

	CLIENT_ENTRY_HELD_FOR = 1 << 10,
	CLIENT_ENTRY_LABEL = 1 << 11,
	CLIENT_ENTRY_HOST = 1 << 12,
	CLIENT_ENTRY_PID = 1 << 13,
	CLIENT_ENTRY_IDENTITY = 1 << 14,
	CLIENT_ENTRY_LOCK_DELAY = 1 << 15,
	/* The lease is over, and its lock delay runs: the entry is no holder any more, and the key
	 * is not free yet. */
	CLIENT_ENTRY_CLOSING = 1 << 16,
	/* Only a list has it. */
	CLIENT_ENTRY_HOLDERS = 1 << 17,
	/* Only the answer to `explain` has it. */
	CLIENT_ENTRY_BARRED = 1 << 18,
	CLIENT_ENTRY_ELECTION = 1 << 19,
	CLIENT_ENTRY_WITHOUT_END = 1 << 20,
	/* at_least and at_most; only a read of a quorum has them. */
	CLIENT_ENTRY_WEIGHED = 1 << 21,
	/* Only those have it to whom the lock_id is shown. */
	CLIENT_ENTRY_ORDER = 1 << 22,
	/* The same, in a read of a quorum. */
	CLIENT_ENTRY_ORDER_SETTLED = 1 << 23
};
/* One holder of a key. */
struct client_entry {
	/* The bits of enum client_entry_has. */
	uint32_t present;
	/* In a list: how many hold the key. */
	uint32_t holders;
	/* In a list and in an event: the key. Elsewhere it is empty. */
	struct slice key;
	struct slice owner, value, identity;
	struct ballot value_seq;
	uint64_t token;
	/* For how long a quorum has the lock, unless it is released, shortened or broken; and after
	 * how long its lease is over, unless it is extended. */
	span_ns at_least, at_most;
	/* What remains of the lease; the time since the lock was acquired; its lock delay; and,
	 * with `closing`, how long the key stays closed. */
	span_ns remaining, held_for, lock_delay, closing_for;
	struct id128 lock_id;
	struct client_lock_mode mode;
	struct client_label label;
	/* The greatest order, or number of a connection, that its holder has named. */
	uint32_t order;
	/* A quorum has that order, so that any other quorum knows of it. */
	bool order_settled;
	/* See CLIENT_ENTRY_CLOSING; and the lock may not be extended any more. */
	bool closing, barred;
};

/* One request that waits for a key. */
struct client_waiter {
	/* The key, if `waiters` was asked for a prefix; otherwise empty. */
	struct slice key;
	/* Who waits, the name of the node that coordinates the request, and the identity of the
	 * connection. */
	struct slice owner, node, identity;
	/* How long the request has waited. */
	span_ns since;
	/* The lock_id was told, which it is to those to whom it belongs. */
	bool has_lock_id;
	struct id128 lock_id;
	int32_t priority;
	struct client_lock_mode mode;
	struct client_label label;
};

/* One lock that an `acquire` with `locks` has acquired. */
struct client_acquired {
	struct slice key;
	struct id128 lock_id;
	uint64_t token;
	struct client_lock_mode mode;
};

/* What one master reports to `explain`. */
struct client_report {
	struct slice node;
	/* "voting", "silent", "recovering" or "other_epoch". */
	struct slice state;
	/* The master is the home, which keeps the queue of the key. */
	bool home;
	/* At the home: how many wait in that queue. */
	uint32_t waiting;
	/* How many parked requests the master answers when the key is free there. */
	uint32_t parked;
	/* The master has promised the key to a request that is acquiring it. */
	bool promised;
	/* The lock_id that has the promise; all zero if it was not told. */
	struct id128 promise_lock_id;
	/* What is left of the promise. */
	span_ns promise_left;
	/* The master's records are `count` entries of client_response.entries, from index `first`
	 * on. */
	uint32_t first, count;
	/* The master has more records or parked requests than it told. */
	bool more;
};

/* ---- watch events ---- */

/* X(name, on the wire) */
#define CLIENT_EVENT_TABLE(X) \
	X(ACQUIRED, "acquired") \
	X(UPDATED, "updated") \
	X(DOWNGRADED, "downgraded") \
	X(RELEASED, "released") \
	X(EXPIRED, "expired") \
	X(LOST, "lost") \
	X(ASKED, "asked") \
	X(OVERFLOW, "overflow")

enum client_event_type {
#define CLIENT_EVENT_ENUM(name, text) CLIENT_EVENT_##name,
	CLIENT_EVENT_TABLE(CLIENT_EVENT_ENUM)
#undef CLIENT_EVENT_ENUM
	/* An event that only a later version knows. The reader skips it, and it cannot be
	 * encoded. */
	CLIENT_EVENT_OTHER
};

/* The size of a position on the wire. It is a bin of `log` and `sequence` in network byte order,
 * and callers treat it as opaque. */
#define CLIENT_POSITION_BYTES 16
/* A place in the events of one node. */
struct client_position {
	/* A random number that stands for one run of one node. */
	uint64_t log;
	uint64_t sequence;
};

/* One watch event, or missed events (OVERFLOW), after which the client has to read anew. */
struct client_event {
	enum client_event_type type;
	/* The number that `watch` answered. */
	uint64_t watch;
	/* The position behind this event, from which a watch can go on. */
	struct client_position position;

	/* Who acquired, updated, and so on; its key is set. ASKED: only the key is set. OVERFLOW:
	 * at most the key is set; if it is not, events of any key of the watch may have been
	 * missed. */
	struct client_entry entry;

	/* ASKED: who asks, in whose favour (this may be empty), and with what priority. */
	struct slice by, to;
	int32_t priority;
};
/* Makes an event of the core's. Missed events become an OVERFLOW. The caller sets `watch` and
 * `position`. The result borrows from the core's event. */
struct client_event client_event_of(const struct core_watch_event *watch_event, bool show_lock_id);
/* The server appends the notification. Returns 0, PAWL_ENOMEM or PAWL_ETOOLARGE; after an error the
 * buffer is unchanged. */
int client_event_encode(const struct client_event *event, struct buffer *out);

/* If many clients are told the same event, encode it once with CLIENT_EVENT_ANY_WATCH as its watch,
 * and then write the number of each client's watch into that client's copy of the bytes. */
#define CLIENT_EVENT_ANY_WATCH UINT64_MAX
void client_event_address(struct slice message, uint64_t watch);

/* The client decodes what client_response_peek found to be a notification. A notification that is
 * not an `event`, and an event of an unknown type, become CLIENT_EVENT_OTHER. The result borrows
 * from the message. Returns 0, or PAWL_EPROTOCOL if the event is malformed. */
int client_event_decode(struct slice message, struct client_event *out);

#endif
