/* events.h: who watches which keys, and what each of them is told, in order.
 *
 * Events come from the core, and go into a ring. A *walk* takes one after the other to those who
 * watch its key (or a prefix of it). However many these are, a turn of the loop walks past a
 * bounded number of them, and the next turn goes on where it stopped. A watcher whose connection is
 * full is *behind*: it is served from the ring when there is room again, and is told of an overflow
 * if the ring has gone on without it. So a slow watcher costs no memory but its place. Whoever is
 * not behind has been told of everything that was walked.
 *
 *   UP TO DATE --its connection is full, or it resumes--> BEHIND
 *          --the ring is read to its end--> UP TO DATE
 *
 * This is pure: what is told leaves through a port, and nothing here knows of sockets.
 */
#ifndef PAWL_NODE_EVENTS_H
#define PAWL_NODE_EVENTS_H

#include "list.h"
#include "map.h"
#include "siphash.h"
#include "watch_event_ring.h"

/* The size of the ring, in bytes. */
#define EVENTS_RING_BYTES ((size_t)4 << 20)

/* A place in this node's events. A place at another node, or from an earlier start, is in another
 * log. */
struct events_position {
	uint64_t log, number;
};

/* One event for one watch. */
struct events_item {
	/* The id of the watch. */
	uint64_t watch;
	struct events_position position;
	/* NULL is an overflow: something was missed, and from `position` on nothing is. The kind
	 * WATCH_EVENT_MISSED means the same for this key alone. */
	const struct core_watch_event *watch_event;
	bool show_lock_id;
};

/* The way out for what watchers are told. */
struct events_port {
	/* Returns whether so much is unsent on the client's connection that nothing more should be
	 * added. */
	bool (*full)(void *ctx, uint64_t client);
	/* Returns 0, or an error if the item could not be told now; then it is tried again. It must
	 * not call anything in this header. */
	int (*tell)(void *ctx, uint64_t client, const struct events_item *item);
};

/* The client to which a watch belongs. */
struct events_watcher {
	uint64_t client;
	struct slice identity;
	bool admin;
};

/* The search for the subjects that a key matches: the key itself, and then its prefixes, the
 * shortest first. */
struct events_match {
	/* The number of subjects that have been looked for: the key, and prefixes of all lengths
	 * below `looked` - 1. A search begins with 0. */
	size_t looked;
	/* The subject that is looked for now. */
	size_t size;
	bool prefix;
	uint64_t hash;
	/* The hash of the prefixes so far, once one has been looked for. */
	struct siphash_prefixes hashes;
};

struct events_entry;
struct events_subject;

/* The walk of an event past those who watch its key. It goes on over several turns. */
struct events_walk {
	/* The number of the event. All events before it have been walked. */
	uint64_t number;
	/* The walk of this event has begun. */
	bool begun;
	/* The event concerns everybody, or the ring has lost it, and with it perhaps others. */
	bool everybody, lost;
	struct events_match match;
	/* What is walked now: the entries of this subject. NULL: the clients, if the event concerns
	 * everybody; else nothing. */
	struct events_subject *subject;
	/* The next entry or client; NULL: there is none. */
	struct list *at;
	/* Every client that was met at `subject` is behind. */
	bool all_behind;
	/* How many entries and watches may still be visited in this turn. */
	int32_t steps;
};

/* The watches of a node, and the events that they are told of. */
struct events {
	const struct allocator *alloc;
	const struct events_port *port;
	void *ctx;
	/* Of keys, and of prefixes. */
	struct siphash_key hash_keys[2];
	/* The random number of this start's log; and the id of the last watch. */
	uint64_t log, last_id;
	/* Since the start: events that were told, and how often somebody was told that some are
	 * missed. */
	uint64_t told, overflows;
	/* How much memory the ring takes when somebody watches. */
	size_t ring_bytes;
	struct watch_event_ring ring;

	/* The clients that watch something, by id, and as a list. */
	struct map clients;
	struct list everybody;
	/* The keys and prefixes that are watched, by their hash. */
	struct map by_subject;
	/* The entries, by the hash of their key or prefix and their client. */
	struct map by_own;
	/* The number of watches. */
	uint64_t count;
	/* The number of watched prefixes of each length, and the number of these lengths. */
	uint32_t prefixes[KEY_MAX + 1];
	uint32_t prefix_sizes;
	struct events_walk walk;
	/* The number of the last count of watchers (events_watchers). */
	uint32_t stamp;

	/* The clients that are behind and whose connection takes more. */
	struct list lagging;
	/* The clients that are behind and whose connection does not take more, or that are in
	 * doubt. */
	struct list full;

	/* How much may still be told in this turn; see events_tell.c. */
	int64_t left;
	/* Where `left` is at the end of the part of the client that is served. */
	int64_t least;
	/* The number of the present turn. */
	uint64_t turn;

	/* The clients with watches that the present rules have not judged yet. */
	struct list doubted;
	/* How often the rules have been replaced. */
	uint32_t rules;
};

/* `log` is a random number for this start. Everything is borrowed. Returns 0 or PAWL_ENOMEM. */
int events_init(struct events *e, const struct allocator *alloc, struct siphash_key hash_key,
	uint64_t log, const struct events_port *port, void *ctx);
/* Accepts zeroed memory. */
void events_done(struct events *e);

/* Begins to collect events, or ceases to; the latter only while nobody watches. events_open returns
 * 0 or PAWL_ENOMEM. */
int events_open(struct events *e);
void events_close(struct events *e);
static inline bool events_is_open(const struct events *e) {
	return e->ring.bytes != NULL;
}

/* Returns the position of the latest event. Whoever has seen it resumes from here. */
static inline struct events_position events_position(const struct events *e) {
	return (struct events_position){ e->log, e->ring.next - 1 };
}

/* Begins a watch: from now on, or from after a position on, the watcher is told of the key, or of
 * all keys with that prefix. Nothing leaves within this call. Returns 0, PAWL_ENOMEM, or PAWL_EFULL
 * if the client has `limit` watches. It needs events_open. */
int events_watch(struct events *e, const struct events_watcher *who, struct slice subject,
	bool prefix, const struct events_position *from, uint32_t limit, uint64_t *out_watch);
/* Returns false if the client has no such watch. */
bool events_unwatch(struct events *e, uint64_t client, uint64_t watch);
/* Removes at most that many of the client's watches, and returns how many. */
uint32_t events_forget(struct events *e, uint64_t client, uint32_t most);

/* Other rules hold from now on. Every client that has a watch is in doubt, and is told nothing
 * until events_review has passed all its watches. Then it is told what has happened meanwhile. */
void events_doubt(struct events *e);

/* Returns whether the watcher may no longer watch this key, or the keys with this prefix. It must
 * not call anything in this header. */
typedef bool events_forbidden(void *ctx, const struct events_watcher *who,
	struct slice subject, bool prefix);
enum events_reviewed {
	/* Nobody is in doubt, and events_serve tells those that waited. */
	EVENTS_REVIEW_DONE,
	/* `limit` keys and prefixes of clients have been judged, and there are others. */
	EVENTS_REVIEW_MORE,
	/* *out_client has a watch that it may not have. The caller must forget it, and then call
	 * again. */
	EVENTS_REVIEW_FORBIDDEN
};
enum events_reviewed events_review(struct events *e, uint32_t limit, events_forbidden *is_it,
	uint64_t *out_client);

/* Tells of an event, now or in later turns. Does nothing while the events are closed. */
void events_add(struct events *e, const struct core_watch_event *watch_event);

/* Begins a new turn of the loop. It bounds what all watchers together are told in the turn, and how
 * many watchers are visited; both are half if the turn is to be short. A watcher that would be told
 * more is behind. */
void events_turn(struct events *e, bool is_short);

/* Goes on with events that have not been told to everybody, and serves the watchers that are
 * behind, one after the other, as far as their connections and the turn allow. Returns true if
 * there is more for the next turn. */
bool events_serve(struct events *e);
/* Returns whether events_serve would find nothing to do. */
static inline bool events_is_idle(const struct events *e) {
	return list_empty(&e->lagging) && e->walk.number == e->ring.next;
}

/* The client's connection takes more again. */
void events_room(struct events *e, uint64_t client);

/* Returns how many clients watch the key, or a prefix of it. If they are many, and watch different
 * prefixes, it counts only some of them. */
uint32_t events_watchers(struct events *e, struct slice key);
/* Returns how many watches the client has. */
uint32_t events_watches(const struct events *e, uint64_t client);
/* Returns how many bytes the client's watches take. A key that others watch, too, counts for each
 * of the clients. */
size_t events_bytes(const struct events *e, uint64_t client);
/* Returns the number of all watches. */
static inline uint64_t events_count(const struct events *e) {
	return e->count;
}

#endif
