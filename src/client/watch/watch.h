/* watch.h: one watch, over all the connections that it needs.
 *
 *   wanted --connection up: sent--> asking --answer--> (prefix: listing, page by page) --> live
 *     ^                               |                   |                                 |
 *     +--- connection lost, overflow, or a refusal that may pass (then after a pause) ------+
 *
 *   A refusal that does not pass ends the watch for good (ended). A watch that lasts is not ended
 *   because a node has no room for it; it waits (crowded) until another watch of this client has
 *   found room, or the connection is another one.
 */
#ifndef PAWL_CLIENT_WATCH_H
#define PAWL_CLIENT_WATCH_H

#include "call.h"
#include "pawl/watch.h"

/* How many ends are remembered while the present state is listed. If there are more, the watch
 * begins again. */
#define WATCH_ENDED_MAX 32

enum watch_state {
	WATCH_WANTED,
	WATCH_ASKING,
	WATCH_LISTING,
	WATCH_LIVE,
	WATCH_CROWDED,
	WATCH_ENDED
};

struct pawl_watch {
	/* In client->watches. */
	struct list link;
	struct pawl *client;
	enum watch_state state;
	uint8_t *key;
	size_t key_size;
	bool prefix;

	/* The library itself has made this watch, so its callback does not count as one of the
	 * program's. */
	bool quiet;

	/* Nobody is told of an end, so the watch does not end for want of room. */
	bool lasts;
	pawl_event_fn *on_event;
	pawl_watch_ended_fn *on_ended;
	void *arg;
	/* Why the watch has ended, or why a watch that lasts is crowded; 0 while it has not. */
	int error;

	/* The request under way: to watch, or to list the present state; or NULL. */
	struct pawl_call *call;

	/* The number of the watch at the node; 0 if it has none. */
	uint64_t number;
	/* Element of client->by_watch, while the watch has a number. */
	struct map_node by_number;
	/* The place in the node's events up to which the watch was told. A NUL follows. */
	uint8_t position[POSITION_BYTES + 1];

	/* The watch can go on from `position`: everything before it has been told. */
	bool resumes;

	/* The program knows of the overflow. What it is told next is the whole state again. */
	bool overflowed;

	/* The program was told something that it would have to forget. */
	bool told;

	/* While the present state is listed: the acquisitions whose end has been told already. The
	 * list may be older than these ends. */
	uint64_t ended[WATCH_ENDED_MAX];
	unsigned ended_count;

	/* How many tries have failed since the watch was last live. */
	unsigned failures;

	/* Goes off when the pause after a refusal is over. */
	struct alarm retry;

	/* While a callback of the program runs: set to true if the program frees the watch. */
	bool *gone;
};

bool watches_want_connection(struct pawl *client);
/* Sends the watches that wait. Call this once in each turn of the loop, while a connection is
 * up. */
void watches_turn(struct pawl *client);
void watches_connection_lost(struct pawl *client);
/* What the watch has told may be wrong: tells everything again, after a while. */
void watch_reread(struct pawl_watch *watch);
/* No node can ever be reached. */
void watches_fail_all(struct pawl *client, int error);
/* Takes a notification of the node. Returns false if it cannot be read. */
bool watches_event(struct pawl *client, struct slice message);
void watches_free_all(struct pawl *client);

/* ---- watch_tell.c: telling the program ----
 *
 * These return false if the watch is gone, or if the client is about to be gone. */
bool watch_tell(struct pawl_watch *watch, const struct pawl_event *event);
bool watch_tell_plain(struct pawl_watch *watch, enum pawl_event_type type);
bool watch_tell_present(struct pawl_watch *watch, const struct pawl_result *result);
/* Notes a change that arrives while the present state is listed. Returns false if there are too
 * many ends to remember. */
bool watch_note_end(struct pawl_watch *watch, const struct client_event *event);
/* Tells a change. Returns 0, or PAWL_ENOMEM if it could not be told. *out_alive is false if the
 * watch is gone. */
int watch_tell_change(struct pawl_watch *watch, const struct client_event *event, bool *out_alive);

#endif
