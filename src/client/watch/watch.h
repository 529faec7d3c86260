/* watch.h: what is watched, over all the connections that it needs.
 *
 *   wanted --connection up: watch sent--> asking --answer--> (prefix: listing, a page at a time) --> live
 *     ^                                      |                            |                           |
 *     +------ connection lost, overflow, or a refusal that may pass (then after a pause) ---------------+      ended: for good
 */
#ifndef PAWL_CLIENT_WATCH_H
#define PAWL_CLIENT_WATCH_H

#include "call.h"
#include "pawl/watch.h"

#define WATCH_ENDED_MAX 32 /* more in one list: it is made anew */

enum watch_state { WATCH_WANTED, WATCH_ASKING, WATCH_LISTING, WATCH_LIVE, WATCH_ENDED };

struct pawl_watch {
	struct list link; /* in client->watches */
	struct pawl *client;
	enum watch_state state;
	uint8_t *key;
	size_t key_size;
	bool prefix;
	bool quiet; /* the library's own: its callback is none of the program's */
	pawl_event_fn *on_event;
	pawl_watch_ended_fn *on_ended;
	void *arg;
	int error;

	struct pawl_call *call;
	uint64_t number; /* at the node; 0: none */
	struct map_node by_number;
	uint8_t position[POSITION_BYTES];
	bool resumes;    /* `position` is to go on from: all before it has been told */
	bool overflowed; /* what is told next is the state anew, and the program knows */
	bool told;       /* something was told that would have to be forgotten */
	/* While it is listed: the acquisitions whose end was told already. The list may be older than that. */
	uint64_t ended[WATCH_ENDED_MAX];
	unsigned ended_count;
	unsigned failures;
	struct alarm retry;
	bool *gone; /* while the program is called: set when it frees the watch */
};

bool watches_want_connection(struct pawl *client);
/* Once a turn, over a connection that is up. */
void watches_turn(struct pawl *client);
void watches_connection_lost(struct pawl *client);
/* What is known is not to be relied on: it is all told again, after a while. */
void watch_reread(struct pawl_watch *watch);
/* No node can ever be talked to. */
void watches_fail_all(struct pawl *client, int error);
/* A notification. False: it cannot be read. */
bool watches_event(struct pawl *client, struct slice message);
void watches_free_all(struct pawl *client);

/* watch_tell.c: to the program. False: the watch is gone, or the client is about to be. */
bool watch_tell(struct pawl_watch *watch, const struct pawl_event *event);
bool watch_tell_plain(struct pawl_watch *watch, enum pawl_event_type type);
bool watch_tell_present(struct pawl_watch *watch, const struct pawl_result *result);
/* A change that comes while the present state is listed. False: too many ends to be remembered. */
bool watch_note_end(struct pawl_watch *watch, const struct client_event *event);
/* PAWL_ENOMEM: it could not be told; gone: *out_alive false. */
int watch_tell_change(struct pawl_watch *watch, const struct client_event *event, bool *out_alive);

#endif
