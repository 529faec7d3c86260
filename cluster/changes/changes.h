/* changes.h: what follows from the change of a record: the log, events for those who watch. */
#ifndef PAWL_CLUSTER_CHANGES_H
#define PAWL_CLUSTER_CHANGES_H

#include "store.h"

/* ---- counted.c ---- */
void counted_came(struct core *core, uint32_t from, const struct message *m);
void counted_asked(struct core *core, uint32_t peer, const struct message *m); /* or would have been, if there were a link */
void counted_peer_up(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
void counted_said(struct core *core, uint32_t from, const struct message *m);
void counted_self_again(struct core *core);
void counted_epoch(struct core *core); /* while the table of peers is still the one of the epoch before */
void counted_epoch_begins(struct core *core); /* once it is that of the new one */
void counted_key_missed(struct core *core, struct slice name);
void counted_beat(struct core *core);

/* ---- log.c ---- */
void log_append(struct core *core, struct slice key, struct id128 lock_id); /* something has become of this record */
void log_append_watch_event(struct core *core, const struct core_watch_event *watch_event); /* for followers that want them */
void log_new_id(struct core *core); /* a start, or the live table has been replaced: nobody can go on from before */
void log_seek(const struct core *core, struct log_place *p, uint64_t number); /* number: oldest .. next */
bool log_take(const struct core *core, struct log_place *p, struct log_entry *e); /* false at the end */
uint64_t log_bytes(const struct core *core);
void log_done(struct core *core);

/* ---- watch_event.c ---- */
void watch_event_tell(struct core *core, const struct core_watch_event *watch_event); /* copies the bytes */
void watch_event_record(struct core *core, enum core_watch_event_kind kind, struct key *key, struct record *r); /* before it is dropped */
void watch_event_of(struct core *core, enum core_watch_event_kind kind, struct slice name, const struct record *r); /* of no record of the table */
void watch_events_missed(struct core *core);
void watch_events_missed_of(struct core *core, struct slice name);

/* ---- record_changed.c ---- */
void record_changed(struct core *core, struct key *key, struct record *r, enum record_change what);
void record_end(struct core *core, struct key *key, struct record *r, enum record_change how); /* what follows from its end, and drops it */
void record_drop(struct core *core, struct key *key, struct record *r, enum record_change how); /* the same, and the key goes on; nothing is remembered of it; may free the key */
void key_ended(struct core *core, struct key *key); /* a record or a promise of it is gone: those who wait for it go on */

/* ---- record_numbers.c ---- */
void record_drop_numbers(struct core *core, struct key *key, struct record *r, struct permits numbers); /* some, not all, at once; may free the key */
bool record_roll_back(struct core *core, struct key *key, struct record *r, uint64_t attempt); /* numbers that rest on this name alone, and not all of it; may free the key */

/* ---- told.c ---- */
bool told_init(struct core *core);
void told_done(struct core *core);
void told_record(struct core *core, uint64_t key, const struct record *r); /* key: its hash in the tables */
void told_without(struct core *core, const struct record *r);
bool told_late(const struct core *core, uint64_t key, const struct record *r);
bool told_already(const struct core *core, const struct message *m);

/* ---- unseen.c ---- */
int unseen_init(struct core *core);
void unseen_done(struct core *core);
void unseen_missed_by_all(struct core *core); /* a gap is told of all keys */
void unseen_refused(struct core *core, const struct message *m, const struct key *key, enum status status); /* or not */
void unseen_ended(struct core *core, const struct key *key, struct slice name, struct id128 lock_id, enum core_watch_event_kind how); /* key: or NULL */
bool unseen_rests_on(const struct core *core, struct slice name, struct id128 lock_id, uint64_t attempt);
void unseen_written(struct core *core, const struct message *m);
void unseen_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding);
bool unseen_bound_to(const struct core *core, struct slice name, struct id128 lock_id, uint32_t binding);
void unseen_record_came(struct core *core, const struct key *key, const struct record *r); /* before it is told of */
void unseen_record_ended(struct core *core, const struct key *key, const struct record *ends); /* before it is dropped */
void unseen_beat(struct core *core);
void unseen_of_epoch(struct core *core, const struct message *m);

/* ---- unwritten.c ---- */
void unwritten_refused(struct core *core, const struct key *key, struct record *r, struct ballot ballot);
void unwritten_told(struct core *core, enum core_watch_event_kind kind, const struct key *key, struct record *r);

#endif
