/* events.h: who watches which keys, and what each of them is told, in order.
 *
 * News come from the core and go at once to those who watch the key (or a prefix of it), and into a ring. A watcher whose
 * connection is full is *behind*: it is served from the ring when there is room again, and told of an overflow if the ring
 * has gone on without it. So a slow watcher costs no memory but its place.
 *
 *   UP TO DATE --its connection is full, or it resumes--> BEHIND --the ring is read to its end--> UP TO DATE
 *
 * Pure: what is told leaves through a port, and nothing here knows of sockets.
 */
#ifndef PAWL_NODE_EVENTS_H
#define PAWL_NODE_EVENTS_H

#include "list.h"
#include "map.h"
#include "news_ring.h"

#define EVENTS_RING_BYTES ((size_t)4 << 20)

/* A place in this node's news. Of another node, or of a start before, it is of another log. */
struct events_position {
	uint64_t log, number;
};

struct events_item { /* one event for one watch */
	uint64_t watch;
	struct events_position position;
	const struct core_watch_event *watch_event; /* NULL: overflow: something was missed, and from `position` on nothing is; NEWS_GAP: of this key alone */
	bool show_lock_id;
};

struct events_port {
	/* So much is unsent on the client's connection that nothing more should be added. */
	bool (*full)(void *ctx, uint64_t client);
	/* 0, or it could not be told now: it is tried again. Must not call anything in here. */
	int (*tell)(void *ctx, uint64_t client, const struct events_item *item);
};

struct events_watcher { /* whose watch */
	uint64_t client;
	struct slice identity;
	bool admin;
};

struct events {
	const struct allocator *alloc;
	const struct events_port *port;
	void *ctx;
	struct siphash_key hash_key;
	uint64_t log, last_id, told;
	size_t ring_bytes;
	struct watch_event_ring ring;
	struct map clients;     /* by id */
	struct map by_subject;  /* keys and prefixes that are watched, by their hash */
	struct map by_own;      /* watches, by that and their client */
	uint64_t count;         /* watches */
	uint32_t prefixes[KEY_MAX + 1]; /* how many there are of each length */
	uint32_t stamp;         /* of the last count */
	struct list lagging;    /* clients that are behind, and whose connection takes more */
	struct list full;       /* clients that are behind, and whose connection does not, or that are in doubt */
	int64_t left;           /* of what may be told in this turn */
	uint64_t turn;
	struct list doubted;    /* clients with watches that were not judged by the present rules */
	uint32_t rules;         /* how often they were replaced */
};

/* 0 or PAWL_ENOMEM. `log`: random, of this start. Everything is borrowed. */
int events_init(struct events *e, const struct allocator *alloc, struct siphash_key hash_key, uint64_t log,
	const struct events_port *port, void *ctx);
void events_done(struct events *e); /* accepts zeroed memory */

/* News are collected from now on, or not any more: only while nobody watches. 0 or PAWL_ENOMEM. */
int events_open(struct events *e);
void events_close(struct events *e);
static inline bool events_is_open(const struct events *e) {
	return watch_event_ring_is_open(&e->ring);
}

/* The latest news: who has seen them resumes from here. */
static inline struct events_position events_position(const struct events *e) {
	return (struct events_position){ e->log, e->ring.next - 1 };
}

/* From now on, or from behind a position on, the watcher is told of the key, or of all keys that begin with it. Nothing leaves
 * within this call. 0, PAWL_ENOMEM, or PAWL_EFULL: it has `limit` watches. Needs events_open. */
int events_watch(struct events *e, const struct events_watcher *who, struct slice subject, bool prefix,
	const struct events_position *from, uint32_t limit, uint64_t *out_watch);
bool events_unwatch(struct events *e, uint64_t client, uint64_t watch); /* false: the client has no such watch */
void events_forget(struct events *e, uint64_t client);
/* Other rules hold from now on. Every client that has a watch is in doubt, and is told nothing until events_review has passed all
 * its watches; what happens meanwhile it is told of then. */
void events_doubt(struct events *e);

/* Whether the watcher may not watch this key, or the keys with this prefix, any more. Must not call anything in here. */
typedef bool events_forbidden(void *ctx, const struct events_watcher *who, struct slice subject, bool prefix);
enum events_reviewed {
	EVENTS_REVIEW_DONE,     /* nobody is in doubt; events_serve tells those that waited */
	EVENTS_REVIEW_MORE,     /* `limit` watches were judged, and there are others */
	EVENTS_REVIEW_FORBIDDEN /* *out_client has a watch that it may not have: to be forgotten by the caller, who calls again */
};
enum events_reviewed events_review(struct events *e, uint32_t limit, events_forbidden *is_it, uint64_t *out_client);

void events_add(struct events *e, const struct core_watch_event *watch_event);
/* A new turn of the loop: what may be told in it is bounded, at once and late together. Who would be told more is behind. */
void events_turn(struct events *e);
/* Serves those that are behind, one after the other, as far as their connections and the turn allow. True: there are more, for the next
 * turn. */
bool events_serve(struct events *e);
void events_room(struct events *e, uint64_t client); /* its connection takes more again */

uint32_t events_watchers(struct events *e, struct slice key); /* how many clients watch the key, or a prefix of it */
uint32_t events_watches(const struct events *e, uint64_t client); /* how many the client has */
size_t events_bytes(const struct events *e, uint64_t client); /* what these take; a key that others watch too counts for each */
static inline uint64_t events_count(const struct events *e) {
	return e->count;
}

#endif
