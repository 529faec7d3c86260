/* client_entry.h: what the client protocol says about holders, waiters, masters and changes; both sides. See client.h. */
#ifndef PAWL_WIRE_CLIENT_ENTRY_H
#define PAWL_WIRE_CLIENT_ENTRY_H

#include "buffer.h"
#include "core.h"

/* ---- what a holder says about itself ---- */

#define CLIENT_HOST_MAX 64   /* bytes */
#define CLIENT_LABEL_MAX 128 /* bytes of the text */

struct client_label {
	struct slice host, text; /* empty: not said */
	uint32_t pid;            /* 0: not said */
};
/* As the core keeps it: a small map. Returns the bytes used, 0 when nothing is said. Longer texts are cut. */
uint32_t client_label_pack(const struct client_label *label, uint8_t out[LABEL_MAX]);
/* Borrows. What is not a label says nothing. */
struct client_label client_label_unpack(struct slice packed);

/* ---- what a lock excludes ---- */

enum client_mode { CLIENT_EXCLUSIVE, CLIENT_SHARED, CLIENT_PERMITS };
struct client_mode_facts { /* `mode`: "exclusive", "shared", "permits"; only of the last: */
	enum client_mode mode;
	uint32_t permits, of; /* so many of so many */
	struct permits slots; /* which numbers; an answer lists them */
};
struct client_mode_facts client_mode_of(const struct terms *terms);

/* ---- a holder ---- */

enum client_entry_has {
	CLIENT_ENTRY_OWNER = 1 << 0,
	CLIENT_ENTRY_VALUE = 1 << 1,
	CLIENT_ENTRY_VALUE_SEQ = 1 << 2,
	CLIENT_ENTRY_TOKEN = 1 << 3,
	CLIENT_ENTRY_REMAINING = 1 << 4, /* not together with CLOSING */
	CLIENT_ENTRY_LOCK_ID = 1 << 5,
	CLIENT_ENTRY_MODE = 1 << 6,
	CLIENT_ENTRY_PERMITS = 1 << 7, /* of a semaphore; as the next two */
	CLIENT_ENTRY_OF = 1 << 8,
	CLIENT_ENTRY_SLOTS = 1 << 9,
	CLIENT_ENTRY_HELD_FOR = 1 << 10,
	CLIENT_ENTRY_LABEL = 1 << 11,
	CLIENT_ENTRY_HOST = 1 << 12,
	CLIENT_ENTRY_PID = 1 << 13,
	CLIENT_ENTRY_IDENTITY = 1 << 14,
	CLIENT_ENTRY_LOCK_DELAY = 1 << 15,
	CLIENT_ENTRY_CLOSING = 1 << 16, /* its lease is over, and its lock delay runs: it holds no more, and the key is not free */
	CLIENT_ENTRY_HOLDERS = 1 << 17, /* lists */
	CLIENT_ENTRY_BARRED = 1 << 18   /* explain */
};
struct client_entry { /* one holder */
	uint32_t present; /* bits of enum client_entry_has */
	uint32_t holders; /* in lists: how many hold the key */
	struct slice key; /* in lists and events; empty: not said */
	struct slice owner, value, identity;
	struct ballot value_seq;
	uint64_t token;
	span_ns remaining, held_for, lock_delay, closing_for;
	struct id128 lock_id;
	struct client_mode_facts mode;
	struct client_label label;
	bool closing, barred;
};

struct client_waiter {
	struct slice key; /* of `waiters` with a prefix; else empty */
	struct slice owner, node, identity;
	span_ns since;
	bool has_lock_id;
	struct id128 lock_id;
	int32_t priority;
	struct client_mode_facts mode;
	struct client_label label;
};

struct client_got { /* one of an `acquire` with locks */
	struct slice key;
	struct id128 lock_id;
	uint64_t token;
	struct client_mode_facts mode;
};

struct client_witness { /* one master, to `explain` */
	struct slice node;
	struct slice state; /* "voting", "silent", "recovering", "other_epoch" */
	bool home;          /* it keeps the key's queue */
	uint32_t waiting;   /* at the home: how many wait */
	uint32_t kept;      /* requests that it answers when the key is free here */
	bool promised;      /* it has promised the key to somebody who is acquiring it */
	struct id128 promise_lock_id; /* all zero: not shown */
	span_ns promise_left;
	uint32_t first, count; /* its records, in client_response.entries */
	bool more;          /* it has more records or requests than it told */
};

/* ---- changes of what is watched ---- */

/* X(name, on the wire) */
#define CLIENT_EVENT_TABLE(X) \
	X(ACQUIRED, "acquired") X(UPDATED, "updated") X(DOWNGRADED, "downgraded") X(RELEASED, "released") X(EXPIRED, "expired") \
	X(LOST, "lost") X(ASKED, "asked") X(OVERFLOW, "overflow")

enum client_event_type {
#define CLIENT_EVENT_ENUM(name, text) CLIENT_EVENT_##name,
	CLIENT_EVENT_TABLE(CLIENT_EVENT_ENUM)
#undef CLIENT_EVENT_ENUM
	CLIENT_EVENT_OTHER /* of a later version: to be skipped; cannot be encoded */
};
const char *client_event_name(enum client_event_type type);

#define CLIENT_POSITION_BYTES 16 /* on the wire, as bin: log, then sequence, in network byte order; opaque to callers */
struct client_position { /* a place in the events of one node */
	uint64_t log;      /* which run of which node: random */
	uint64_t sequence;
};

struct client_event {
	enum client_event_type type;
	uint64_t watch; /* the number that `watch` answered */
	struct client_position position; /* after this event: to go on from there */
	/* Of OVERFLOW all below is empty: read anew. */
	struct client_entry entry; /* who acquired, updated, ...; its key is set */
	/* ASKED: who asks, in whose favour (may be empty), with what priority; the entry has only its key. */
	struct slice by, to;
	int32_t priority;
};
/* Of one piece of news that is no NEWS_GAP (that is an overflow); watch and position are the caller's to set. Borrows. */
struct client_event client_event_of(const struct core_watch_event *watch_event, bool show_lock_id);
/* Server: appends the notification. 0, PAWL_ENOMEM, PAWL_ETOOLARGE: buffer unchanged. */
int client_event_encode(const struct client_event *event, struct buffer *out);
/* For many who are told the same: encode it once with the watch CLIENT_EVENT_ANY_WATCH, then write each one's into its copy of the bytes. */
#define CLIENT_EVENT_ANY_WATCH UINT64_MAX
void client_event_address(struct slice message, uint64_t watch);
/* Client: what client_response_peek found to be a notification. 0, or PAWL_EPROTOCOL: an event that is none. Other
 * notifications than `event`, and events of unknown types, are CLIENT_EVENT_OTHER. Borrows from the message. */
int client_event_decode(struct slice message, struct client_event *out);

#endif
