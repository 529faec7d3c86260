/* watch.h: a watch tells what happens to a key, or to all keys that begin with a prefix, as it
 * happens and without polling.
 *
 * A watch first tells the present state: PAWL_EVENT_PRESENT for each holder, then
 * PAWL_EVENT_CURRENT. After that it tells every change, in order for each key. It survives lost
 * connections: the library watches again, at the same node or at another. If the node still has the
 * events that were missed, the program notices nothing. If it does not (it is another node, the
 * client was away for too long, or the watcher is too slow), the watch tells one
 * PAWL_EVENT_OVERFLOW, and then the present state again as in the beginning: forget what you know.
 * So a program that keeps a table of what it was told, and empties the table at each overflow, is
 * right in the end, whatever happens. (After an overflow, an acquisition that is part of the
 * present state may be told once more as acquired, with the same token.)
 *
 * A watch shows the view of one node, a little later than the masters decide. It tells when to
 * look, never that it is safe to act. For that you need a lock and its token.
 *
 * After a change to another node that node may know less than the previous one. Compare tokens:
 * those of a key only grow, so an event with a lower token than one already seen is old.
 *
 * The rules of pawl.h for styles, threads, callbacks and errors apply here. In the blocking style
 * events come in pawl_poll and in other blocking calls.
 */
#ifndef PAWL_WATCH_H
#define PAWL_WATCH_H

#include "pawl.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pawl_watch;

enum pawl_event_type {
	/* `entry` holds the key, and has held it for a while. */
	PAWL_EVENT_PRESENT = 1,
	/* The present state has been told: nobody holds any other key of this watch. This event has
	 * no key and no entry. */
	PAWL_EVENT_CURRENT,
	/* `entry` holds the key from now on. */
	PAWL_EVENT_ACQUIRED,
	/* The holder has written another value. */
	PAWL_EVENT_UPDATED,
	/* The lock was exclusive, and is shared now. */
	PAWL_EVENT_DOWNGRADED,
	/* The holder has given up the lock. Here and in the next two events `entry` held the key
	 * until now. */
	PAWL_EVENT_RELEASED,
	/* The lease, and the lock delay if there was one, has run out. */
	PAWL_EVENT_EXPIRED,
	/* The lock was taken away: an administrator has broken it, or the connection or the node of
	 * its holder is gone. */
	PAWL_EVENT_LOST,
	/* Somebody asks the holder to let go. entry.owner is the one that asks; `to` and `priority`
	 * are set. */
	PAWL_EVENT_ASKED,
	/* Changes may be missing. The present state follows. This event has no key and no entry. */
	PAWL_EVENT_OVERFLOW
};

/* An event. It is borrowed within the callback. */
struct pawl_event {
	/* What has happened. */
	enum pawl_event_type type;
	/* The key and its holder. These fields are set: key, token, owner, value, value_seq, mode,
	 * permits, slots, label, host, pid, identity, and lock_id if this client may see it; `held`
	 * says whether it holds the key after this event. PAWL_EVENT_PRESENT also sets
	 * remaining_ms, held_ms and the other fields of struct pawl_entry. */
	struct pawl_entry entry;
	/* PAWL_EVENT_ASKED: the owner in whose favour the holder is asked to let go; may be
	 * empty. */
	struct pawl_bytes to;
	/* PAWL_EVENT_ASKED: the priority of the one that asks. */
	int32_t priority;
	/* The number of this event in the order of its node, which grows. It is for logs; 0 means
	 * that there is none. */
	uint64_t position;
	/* Opaque bytes: pass them as `from` to a later watch that is to go on after this event.
	 * They may be empty. */
	struct pawl_bytes resume;
};

/* Returns the name of a type as in the client protocol, such as "acquired", or "unknown" for any
 * other number. The text is in static storage. */
const char *pawl_event_name(enum pawl_event_type type);

/* Tells one event. It runs inside the loop and may call everything that pawl.h allows, including
 * pawl_watch_free and pawl_free. */
typedef void pawl_event_fn(struct pawl_watch *watch, const struct pawl_event *event, void *arg);
/* The watch is over for a reason that another try does not mend: PAWL_EDENIED, PAWL_EBADREQUEST,
 * PAWL_ETOOLARGE, PAWL_EFULL (the connection has too many watches), PAWL_ETLS or PAWL_EMOVED
 * (another cluster has the key). This is called once, and no event follows. The program must free
 * the watch. */
typedef void pawl_watch_ended_fn(struct pawl_watch *watch, int error, const char *message,
	void *arg);

/* The options of a watch. A zero field means the default. */
struct pawl_watch_options {
	/* The key to watch. */
	struct pawl_bytes key;
	/* Watches all keys that begin with `key` (0 bytes mean all keys). */
	bool prefix;
	/* Goes on after the event that had these bytes as `resume`, in this process or in an
	 * earlier one. If that is not possible, the watch begins with an overflow and the present
	 * state. The default is to begin with the present state. */
	struct pawl_bytes from;
	/* Gets the events. It must be given. */
	pawl_event_fn *on_event;
	/* This may be NULL; then use pawl_watch_error. */
	pawl_watch_ended_fn *on_ended;
	/* Passed to both callbacks. */
	void *arg;
};

/* Begins to watch. The first event comes when a node has answered. The watch keeps trying to reach
 * a node until it is freed, and it keeps the program's loop running. Returns 0, PAWL_EINVAL,
 * PAWL_ETOOLARGE, PAWL_EBUSY or PAWL_ENOMEM. Free the watch with pawl_watch_free. */
int pawl_watch_start(struct pawl *client, const struct pawl_watch_options *options,
	struct pawl_watch **out_watch);

/* Returns whether every change until about now has been told: the node is connected, and the whole
 * present state has been told. If it returns false, what was told last may be out of date. */
bool pawl_watch_current(const struct pawl_watch *watch);

/* Returns 0, or the error that on_ended was called with. */
int pawl_watch_error(const struct pawl_watch *watch);

/* Ends the watch and frees it; no more events come. pawl_free frees all watches of its client. NULL
 * is allowed. */
void pawl_watch_free(struct pawl_watch *take_watch);

#ifdef __cplusplus
}
#endif
#endif
