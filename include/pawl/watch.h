/* watch.h: what becomes of a key, or of all keys that begin with a prefix, told as it happens, without polling.
 *
 * A watch first tells the present state (PAWL_EVENT_PRESENT for each holder, then PAWL_EVENT_CURRENT), then every change, in
 * order for each key. It lasts over lost connections: the library watches anew, at the same node or another. Where the node
 * still has what was missed nothing else is to be seen; where it has not (another node, away for too long, a watcher that is
 * too slow) comes one
 * PAWL_EVENT_OVERFLOW: forget what you know, and then the present state again as in the beginning. So a program that keeps a
 * table of what it was told and empties it at each overflow is right in the end, whatever happens. (Behind an overflow an
 * acquisition that is part of the present state may be told once more as acquired, with the same token.)
 *
 * A watch shows the view of one node, a little later than the masters decide: it tells when to look, never that it is safe to
 * act. That is what a lock and its token are for.
 *
 * Order between nodes: the next node may know less than the one before. Tokens tell: those of a key only grow, what comes with
 * a lower token than one already seen is old.
 *
 * The rules of pawl.h for styles, threads, callbacks and errors are in force here. In blocking style events come in pawl_poll
 * and other blocking calls.
 */
#ifndef PAWL_WATCH_H
#define PAWL_WATCH_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_watch;

enum pawl_event_type {
	PAWL_EVENT_PRESENT = 1, /* `entry` holds the key, and has done so for a while */
	PAWL_EVENT_CURRENT,     /* that was the present state: of every other key watched nobody holds it. No key, no entry */
	PAWL_EVENT_ACQUIRED,    /* `entry` holds the key from now on */
	PAWL_EVENT_UPDATED,     /* its holder has written another value */
	PAWL_EVENT_DOWNGRADED,  /* it was exclusive and is shared now */
	PAWL_EVENT_RELEASED,    /* its holder has given it up: `entry` held it until now, as in the next two */
	PAWL_EVENT_EXPIRED,     /* its lease (and lock delay) has run out */
	PAWL_EVENT_LOST,        /* it was taken away: broken by an administrator, or its holder's connection or node is gone */
	PAWL_EVENT_ASKED,       /* somebody asks the holder to let go: entry.owner asks, `to`, priority */
	PAWL_EVENT_OVERFLOW     /* changes may be missing: the present state follows. No key, no entry */
};

struct pawl_event { /* borrowed within the callback */
	enum pawl_event_type type;
	/* key, token, owner, value, value_seq, mode, permits, slots, label, host, pid, identity, and lock_id where this client may
	 * see it; held: whether it holds the key after this event. Of PRESENT also remaining_ms, held_ms and the others of pawl.h.
	 * */
	struct pawl_entry entry;
	struct pawl_bytes to; /* ASKED: in whose favour; may be empty */
	int32_t priority;     /* ASKED */
	uint64_t position;    /* of this event in its node's order, growing; for logs, and for `from` at the same node; 0: none */
	struct pawl_bytes resume; /* opaque: `from` of a later watch that is to go on after this event; may be empty */
};

/* The name of a type, "acquired", as on the wire; "unknown" for what is none. Static storage. */
const char *pawl_event_name(enum pawl_event_type type);

/* Runs inside the loop. In it everything may be called that pawl.h allows, also pawl_watch_free and pawl_free. */
typedef void pawl_event_fn(struct pawl_watch *watch, const struct pawl_event *event, void *arg);
/* The watch is over for a reason that another attempt does not mend: PAWL_EDENIED, PAWL_EBADREQUEST, PAWL_ETOOLARGE,
 * PAWL_EFULL (too many watches of this connection), PAWL_ETLS. Called once; no event follows; free the watch. */
typedef void pawl_watch_ended_fn(struct pawl_watch *watch, int error, const char *message, void *arg);

struct pawl_watch_options { /* zero: the default */
	struct pawl_bytes key;   /* this key; or: */
	bool prefix;             /* all keys that begin with `key` (0 bytes: all) */
	struct pawl_bytes from;  /* go on after this event's `resume`, of this process or of an earlier one; where that cannot be done:
	                          * an overflow and the present state. Default: the present state */
	pawl_event_fn *on_event;
	pawl_watch_ended_fn *on_ended; /* may be NULL: then look at pawl_watch_error */
	void *arg;               /* for both */
};

/* Begins to watch; the first event comes when a node has answered. The watch keeps trying to reach a node until it is freed;
 * it keeps a program's loop running. 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EBUSY, PAWL_ENOMEM. */
int pawl_watch_start(struct pawl *client, const struct pawl_watch_options *options, struct pawl_watch **out_watch);

/* Every change until about now has been told: the node is connected, and the present state was told whole. False in between:
 * what was told last may be out of date. */
bool pawl_watch_current(const struct pawl_watch *watch);

/* 0, or the error that on_ended was called with. */
int pawl_watch_error(const struct pawl_watch *watch);

/* Ends the watch; no event comes any more. NULL is allowed. pawl_free frees the watches of its client. */
void pawl_watch_free(struct pawl_watch *take_watch);

#ifdef __cplusplus
}
#endif
#endif
