/* changes.h: what follows from the change of a record: the log, and events for those who watch. */
#ifndef PAWL_CLUSTER_CHANGES_H
#define PAWL_CLUSTER_CHANGES_H

#include "store.h"

/* ---- counted.c ---- */

/* A commit or a write has come from the node. */
void counted_came(struct core *core, uint32_t from, const struct message *m);
/* This node has begun a write for the peer, whether there is a link to send it over or not. */
void counted_asked(struct core *core, uint32_t peer, const struct message *m);
/* A link is coming up. To be called before what is known of the previous link is overwritten. */
void counted_peer_up(struct core *core, uint32_t peer, struct id128 id, uint64_t boot);
/* Handles a COUNTED message. */
void counted_said(struct core *core, uint32_t from, const struct message *m);
/* This node has lost messages to itself, because there was no memory for them. */
void counted_self_again(struct core *core);
/* A new epoch begins, and the table of peers is still the one of the previous epoch. */
void counted_epoch(struct core *core);
/* The table of peers is that of the new epoch. A node that becomes a master has not been sent what
 * this node began before, and is to say as much of it as the others. */
void counted_epoch_begins(struct core *core);
/* Others may have accepted what this master refused of the key, or may yet. */
void counted_key_missed(struct core *core, struct slice name);
void counted_beat(struct core *core);
/* This node has begun a commit, and is about to send it to all masters. */
static inline void counted_commit_begun(struct core *core) {
	core->changes.commits_begun++;
}

/* ---- log.c ---- */

/* Something has happened to this record. */
void log_append(struct core *core, struct slice key, struct id128 lock_id);
/* Appends a watch event for the followers that want them. */
void log_append_watch_event(struct core *core, const struct core_watch_event *watch_event);
/* The node starts, or the live table has been replaced. Nobody can go on from a place in the log
 * before. */
void log_new_id(struct core *core);
/* Sets *p to an entry that is still there, or to the end of the log: number is oldest .. next. */
void log_seek(const struct core *core, struct log_place *p, uint64_t number);
/* Reads the entry at *p and moves on. False: *p is at the end. */
bool log_take(const struct core *core, struct log_place *p, struct log_entry *e);
/* Return the id of the log; the number of the entry to come; and that of the oldest entry that is
 * still here. */
static inline uint64_t log_id(const struct core *core) {
	return core->changes.log.id;
}
static inline uint64_t log_next(const struct core *core) {
	return core->changes.log.next;
}
static inline uint64_t log_oldest(const struct core *core) {
	return core->changes.log.oldest;
}
/* A follower is fed from the log from now on, or no longer. */
static inline void log_follower_added(struct core *core) {
	core->changes.feeds++;
}
static inline void log_follower_removed(struct core *core) {
	core->changes.feeds--;
}
/* Tells whether any follower is fed from the log. */
static inline bool log_followed(const struct core *core) {
	return core->changes.feeds > 0;
}
/* Returns the memory of the log in bytes. */
uint64_t log_bytes(const struct core *core);
void log_done(struct core *core);

/* ---- watch_event.c ---- */

/* Tells those who watch, here and at replicas. The bytes are copied. */
void watch_event_tell(struct core *core, const struct core_watch_event *watch_event);
/* Tells what has happened to a record of the table. Of an end, to be called before it is
 * dropped. */
void watch_event_record(struct core *core, enum core_watch_event_kind kind, struct key *key,
	struct record *r);
/* Tells the same of a record that is not in the table. */
void watch_event_of(struct core *core, enum core_watch_event_kind kind, struct slice name,
	const struct record *r);
/* Tells that events of any key may have been missed. */
void watch_events_missed(struct core *core);
/* Tells that events of this key may have been missed. */
void watch_events_missed_of(struct core *core, struct slice name);
/* Tells that events of this key may have been missed if the record, of which an acquisition is told
 * next, has a value that was written after the first one. */
void watch_event_first_value(struct core *core, struct slice name, const struct record *r);
/* Tells whether somebody watches at this node. */
static inline bool watch_event_wanted_here(const struct core *core) {
	return core->changes.watch_event_wanted;
}
/* A follower that is fed wants watch events from now on, or no longer. */
static inline void watch_event_follower_added(struct core *core) {
	core->changes.event_feeds++;
}
static inline void watch_event_follower_removed(struct core *core) {
	core->changes.event_feeds--;
}
/* Returns how many clients of this node watch the key. */
static inline uint32_t watch_event_watchers(const struct core *core, struct slice key) {
	return core->changes.count_watchers
		? core->changes.count_watchers(core->changes.count_watchers_ctx, key) : 0;
}

/* ---- when the next comparison of tables is due (repair/) ---- */

/* This master is likely to lack something that others have: the next comparison is due at once. */
static inline void sync_hurry(struct core *core) {
	core->changes.sync_hurry = true;
}
/* Tells whether somebody has said so since the last comparison began. */
static inline bool sync_hurries(const struct core *core) {
	return core->changes.sync_hurry;
}
/* A comparison begins. */
static inline void sync_hurry_ends(struct core *core) {
	core->changes.sync_hurry = false;
}

/* ---- figures_changed.c ---- */

/* Counts the change of a record of the live table if the lease begins or ends with it. */
void figures_changed(struct core *core, const struct key *key, const struct record *r,
	enum record_change what);

/* ---- record_changed.c ---- */

/* Does what follows from the change of a record. Of an end, to be called before the record is
 * dropped. */
void record_changed(struct core *core, struct key *key, struct record *r, enum record_change what);
/* Somebody counts on the record, whatever has brought it here: no name rolls it back any more
 * (section 11). */
void record_counted_on(struct core *core, struct key *key, struct record *r);
/* Does what follows from the record's end, and drops it. The caller settles the key. */
void record_end(struct core *core, struct key *key, struct record *r, enum record_change how);
/* Does the same, lets those who wait for the key go on, and settles the key, which may free it.
 * Nothing is remembered of the lock_id. */
void record_drop(struct core *core, struct key *key, struct record *r, enum record_change how);
/* A record or a promise of the key is gone. Those who wait for the key go on. */
void key_ended(struct core *core, struct key *key);

/* ---- record_numbers.c ---- */

/* Drops some or all permit numbers of the record at once. May free the key. */
void record_drop_numbers(struct core *core, struct key *key, struct record *r,
	struct permits numbers);
/* Drops the permit numbers that rest on this name alone, if the record as a whole does not. May
 * free the key. False: there are none. */
bool record_roll_back(struct core *core, struct key *key, struct record *r, uint64_t name);

/* ---- told.c ---- */

/* False: no memory. */
bool told_init(struct core *core);
void told_done(struct core *core);
/* The record has been told of. `key` is the hash of the key in the tables. */
void told_record(struct core *core, uint64_t key, const struct record *r);
/* A lock was told of that has not been here. */
void told_without(struct core *core, const struct record *r);
/* Tells whether something newer has been told of the key, or of one of the record's permits. */
bool told_late(const struct core *core, uint64_t key, const struct record *r);
/* Tells whether the lock of this commit, with this token, has been told of already. */
bool told_already(const struct core *core, const struct message *m);

/* ---- unseen.c ---- */

/* Returns 0 or PAWL_ENOMEM. */
int unseen_init(struct core *core);
void unseen_done(struct core *core);
/* It is being told that events of any key were missed. That stands for those locks that can no
 * longer be accepted elsewhere. */
void unseen_missed_by_all(struct core *core);
/* This master has answered a commit with this status. If it is a refusal, and others may have
 * accepted the commit, it is kept. `key` may be NULL. */
void unseen_refused(struct core *core, const struct message *m, const struct key *key,
	enum status status);
/* The end of a lock has been heard of. `key` may be NULL. */
void unseen_ended(struct core *core, const struct key *key, struct slice name,
	struct id128 lock_id, enum core_watch_event_kind how);
/* Tells whether a commit that was refused here rests on the name of this request alone, which
 * failed and gives it back. */
bool unseen_rests_on(const struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name);
/* A write was refused because its record is not here. The value is kept with the refused commit. */
void unseen_written(struct core *core, const struct message *m);
/* The same for a later connection of the holder. */
void unseen_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding);
/* A connection of the holder was closed. Tells whether the lock ends with that one or with an
 * earlier one, as far as this master was told. */
bool unseen_bound_to(const struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding);
/* The record is here now, and is about to be told of. What came before it is told first. */
void unseen_record_came(struct core *core, const struct key *key, const struct record *r);
/* The record is about to be dropped. */
void unseen_record_ended(struct core *core, const struct key *key, const struct record *ends);
/* Tells that events were missed of those locks whose time is over. */
void unseen_beat(struct core *core);
/* The message is of another epoch and is not answered, but others may be in that epoch. */
void unseen_of_epoch(struct core *core, const struct message *m);

/* ---- unwritten.c ---- */

/* A write to the record, with this ballot, was refused. */
void unwritten_refused(struct core *core, const struct key *key, struct record *r,
	struct ballot ballot);
/* The record's value, or its end, is about to be told. */
void unwritten_told(struct core *core, enum core_watch_event_kind kind, const struct key *key,
	struct record *r);

#endif
