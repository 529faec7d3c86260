/* replication.h: a master that feeds its followers, and a replica that follows. */
#ifndef PAWL_CLUSTER_REPLICATION_H
#define PAWL_CLUSTER_REPLICATION_H

#include "operations.h"
#include "master.h"



/* ---- feed.c ---- */
void feed_asked(struct core *core, uint32_t from, const struct message *m);
void feed_message(struct core *core, uint32_t from, const struct message *m); /* FEED_ACK, FEED_ECHO */
void feed_ended(struct core *core, uint32_t from, const struct message *m);   /* FEED_END of either side */
void feed_logged(struct core *core);
void feed_timer(struct core *core);
void feed_step(struct core *core); /* at the end of a step */
void feed_stop(struct core *core, uint32_t peer);
void feed_stop_all(struct core *core); /* this node does not vote any more, or the epoch has changed; they are not told */

/* ---- follow.c ---- */
void follow_start(struct core *core); /* the node is CORE_FOLLOWING from now on, or its epoch has changed */
void follow_leave(struct core *core); /* for now: it can go on where it was */
void follow_stop(struct core *core);  /* for good: it is no replica any more, or needs the table beside */
void follow_yield(struct core *core); /* somebody else needs the table beside: a snapshot that is under way gives way */
void follow_room(struct core *core);  /* the table beside is free */
void follow_beat(struct core *core);
void follow_timer(struct core *core);
void follow_message(struct core *core, uint32_t from, const struct message *m);
void follow_peer_lost(struct core *core, uint32_t peer);
void follow_peer_changed(struct core *core);
void follow_say(struct core *core);         /* to the master: an echo, and whether somebody watches */

/* ---- follow_apply.c ---- */
void follow_watched(struct core *core);     /* somebody watches from now on */
/* follow_apply.c; a record: false: no memory */
bool follow_record(struct core *core, struct table *t, const struct message *m);
void follow_gone(struct core *core, struct table *t, const struct message *m);
void follow_watch_event(struct core *core, const struct message *m);

static inline bool follow_step_due(const struct core *core) {
	return core->follow.state == FOLLOW_ON && core->follow.watch_event != core->changes.watch_event_wanted;
}
static inline void follow_step(struct core *core) { /* at the end of a step */
	if (follow_step_due(core)) {
		follow_say(core);
	}
}

#endif
