/* functions_replication.h: the part of functions.h for the log, those who are fed from it, and replicas (section 7). Included by it. */
#ifndef PAWL_CLUSTER_FUNCTIONS_REPLICATION_H
#define PAWL_CLUSTER_FUNCTIONS_REPLICATION_H

/* ---- digest.c: what a table holds, in numbers that masters compare ---- */
bool digest_add_key(struct core *core, struct table *t, struct key *key); /* false: no memory */
void digest_drop_key(struct key *key);
/* To be called whenever a record's token, ballot of the value, or bar has changed, and after it was added and filled in. */
void digest_record(struct core *core, const struct key *key, struct record *r);
void digest_drop_record(struct core *core, const struct key *key, struct record *r);
uint64_t digest_root(const struct table *t);
uint64_t digest_leaf(const struct table *t, uint32_t leaf);
struct key *digest_first(const struct table *t, uint32_t leaf); /* of the leaf's keys; then key->leaf_next */
void digest_done(struct core *core, struct table *t);
void digest_check_key(const struct table *t, const struct key *key, uint64_t sums[DIGEST_GROUPS]);

/* ---- log.c: the transaction log (section 7) ---- */
void log_append(struct core *core, struct slice key, struct id128 lock_id); /* something has become of this record */
void log_append_news(struct core *core, const struct core_news *news); /* for followers that want them */
void log_new_id(struct core *core); /* a start, or the live table has been replaced: nobody can go on from before */
void log_seek(const struct core *core, struct log_place *p, uint64_t number); /* number: oldest .. next */
bool log_take(const struct core *core, struct log_place *p, struct log_entry *e); /* false at the end */
uint64_t log_bytes(const struct core *core);
void log_done(struct core *core);

/* ---- feed.c: a master and those who follow it ---- */
void feed_asked(struct core *core, uint32_t from, const struct message *m);
void feed_message(struct core *core, uint32_t from, const struct message *m); /* FEED_ACK, FEED_ECHO */
void feed_ended(struct core *core, uint32_t from, const struct message *m);   /* FEED_END of either side */
void feed_logged(struct core *core);
void feed_timer(struct core *core);
void feed_step(struct core *core); /* at the end of a step */
void feed_stop(struct core *core, uint32_t peer);
void feed_stop_all(struct core *core); /* this node does not vote any more, or the epoch has changed; they are not told */

/* ---- follow.c: a replica and the master that it follows ---- */
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
bool follow_tells(const struct core *core); /* the master's news are this node's */
void follow_watched(struct core *core);     /* somebody watches from now on */
void follow_say(struct core *core);         /* to the master: an echo, and whether somebody watches */
static inline bool follow_step_due(const struct core *core) {
	return core->follow.state == FOLLOW_ON && core->follow.news != core->news_wanted;
}
static inline void follow_step(struct core *core) { /* at the end of a step */
	if (follow_step_due(core)) {
		follow_say(core);
	}
}
/* follow_apply.c; a record: false: no memory */
bool follow_record(struct core *core, struct table *t, const struct message *m);
void follow_gone(struct core *core, struct table *t, const struct message *m);
void follow_news(struct core *core, const struct message *m);
span_ns follow_age(const struct core *core, struct instant now); /* SPAN_MAX: unknown */

/* ---- unseen.c: locks that came without this master, for those who watch ---- */
int unseen_init(struct core *core);
void unseen_done(struct core *core);
void unseen_gap_of_all(struct core *core); /* a gap is told of all keys */
void unseen_refused(struct core *core, const struct message *m, const struct key *key, enum status status); /* or not */
void unseen_ended(struct core *core, const struct key *key, struct slice name, struct id128 lock_id, enum core_news_kind how); /* key: or NULL */
bool unseen_rests_on(const struct core *core, struct slice name, struct id128 lock_id, uint64_t attempt);
void unseen_written(struct core *core, const struct message *m);
void unseen_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t bond);
bool unseen_bound_to(const struct core *core, struct slice name, struct id128 lock_id, uint32_t bond);
void unseen_record_came(struct core *core, const struct key *key, const struct record *r); /* before it is told of */
void unseen_record_ended(struct core *core, const struct key *key, const struct record *ends); /* before it is dropped */
void unseen_beat(struct core *core);
void unseen_of_epoch(struct core *core, const struct message *m);

/* ---- told.c: what was told of late ---- */
bool told_init(struct core *core);
void told_done(struct core *core);
void told_record(struct core *core, uint64_t key, const struct record *r); /* key: its hash in the tables */
void told_without(struct core *core, const struct record *r);
bool told_late(const struct core *core, uint64_t key, const struct record *r);
bool told_already(const struct core *core, const struct message *m);

/* ---- unwritten.c: writes that a master refused, for those who watch ---- */
void unwritten_refused(struct core *core, const struct key *key, struct record *r, struct ballot ballot);
void unwritten_told(struct core *core, enum core_news_kind kind, const struct key *key, struct record *r);

#endif
