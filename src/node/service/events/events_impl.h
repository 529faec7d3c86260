/* events_impl.h: what the parts of the events share; nobody else includes this. */
#ifndef PAWL_NODE_EVENTS_IMPL_H
#define PAWL_NODE_EVENTS_IMPL_H

#include "events.h"

/* A client that watches something. */
struct events_client {
	struct map_node node;
	/* Its entries; those that were judged by older rules are in front. */
	struct list entries;
	struct list among, lagging, doubted;
	uint64_t id;
	bool admin;

	/* While the client is in `lagging`: the first number of which it may not have been told. */
	uint64_t next;
	/* While its watches are told of an overflow: the last number that the ring had lost when
	 * that began. Otherwise 0. */
	uint64_t lost;
	/* The last number that there was then. All of its watches go on after this one, however
	 * many turns it takes to tell them. */
	uint64_t lost_until;
	/* The numbers of its watches and of its entries. */
	uint32_t count, entry_count;
	uint32_t stamp;

	/* How many bytes its watches take. */
	size_t bytes;
	/* The turn in which it was last told something. */
	uint64_t turn;
	/* While the client is behind: it is in `full`, and is tried again when there is room again,
	 * or no doubt any more. */
	bool full;

	uint8_t identity_size;
	uint8_t identity[IDENTITY_MAX];
};

/* A key or prefix that somebody watches. */
struct events_subject {
	struct map_node node;
	struct list entries;
	/* The number of its entries, which is that of the clients that watch it. */
	uint32_t clients;
	/* Every client that watches this is behind, so there is nobody to be told at once. */
	bool all_behind;
	bool prefix;
	uint16_t size;
	uint8_t bytes[];
};

/* All watches of one client of the same key or prefix. However many they are, an event meets one
 * entry. */
struct events_entry {
	struct map_node by_own;

	/* Linked to the other entries of its client. */
	struct list among;
	struct list of_subject;

	struct events_client *client;
	struct events_subject *subject;

	/* Ordered by `since`, so that the watches that are still to be told come first. */
	struct list watches;
	/* The one that was told last, or NULL. */
	struct events_one *told;
	/* The rules by which the entry was judged. */
	uint32_t rules;
};

/* One watch. */
struct events_one {
	struct list of_entry;
	struct events_entry *entry;

	uint64_t id;
	/* Events with lower numbers are not for this watch, or it has been told of them. */
	uint64_t since;
};

/* Returns NULL if the client watches nothing. */
struct events_client *events_client(const struct events *e, uint64_t id);

/* Visits each entry of one client that matches the key, until `visit` returns false; then the
 * result is false. */
typedef bool events_visit(struct events *e, struct events_entry *entry, const void *arg);
bool events_each_of(struct events *e, const struct events_client *c, struct slice key,
	events_visit *visit, const void *arg);

/* Goes on to the next subject: the key, and then its prefixes of lengths that somebody watches.
 * A zeroed search begins. Returns false if there is no other. */
bool events_match_next(const struct events *e, struct events_match *m, struct slice key);
/* Returns the subject with that hash, or NULL if nobody watches it. */
struct events_subject *events_subject(const struct events *e, uint64_t hash, struct slice subject,
	bool prefix);

/* Puts the watch, which is in no list, among those of its entry. `at` is where the search begins: a
 * watch, or the head of the list. */
void events_place(struct events *e, struct events_one *w, struct list *at);
/* The functions below are in events_tell.c. The client is behind from the number `next` on. */
void events_lag(struct events *e, struct events_client *c, uint64_t next);
/* Tells the watches of the entry of an event that is in the ring, unless their client is behind. If
 * they cannot be told now, it is behind afterwards. */
void events_tell_at_once(struct events *e, struct events_entry *entry, uint64_t number);
/* An event that says that others were missed, and that names no key, concerns everybody. */
bool events_is_global(const struct core_watch_event *watch_event);

/* The functions below are in events_walk.c. Somebody who watches the subject is not behind. */
void events_walk_found(struct events *e, struct events_subject *s);
/* To be called before the entry, the client or the subject is unlinked. */
void events_walk_leave_entry(struct events *e, const struct events_entry *entry);
void events_walk_leave_client(struct events *e, const struct events_client *c);
void events_walk_leave_subject(struct events *e, const struct events_subject *s);
/* Nothing that has happened so far is to be walked. */
void events_walk_reset(struct events *e);
/* Walks on, as far as the turn allows. */
void events_walk(struct events *e);

#endif
