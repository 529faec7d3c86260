/* changes.h: what follows from the change of a record: the log, and events for those who watch.
 * Each file calls only those whose parts stand above its own here. */
#ifndef PAWL_CLUSTER_CHANGES_H
#define PAWL_CLUSTER_CHANGES_H

#include "store.h"

/* A ring of the leases that were lost last; `count` counts all of them. */
struct lost_ring {
	/* How many leases were lost so far. */
	uint64_t count;
	struct lost_place {
		/* When it ended, in nanoseconds of CLOCK_BOOTTIME. */
		int64_t at;
		/* Its fencing token. */
		uint64_t token;
		/* The sizes of `key` and `owner` in bytes. */
		uint16_t key_size, owner_size;
		/* enum figure_lost. */
		uint8_t cause;
		/* The bytes of the key and of the owner. */
		uint8_t key[KEY_MAX], owner[OWNER_MAX];
	} places[LOST_LEASES_MAX];
};

/* An entry that was read from the log. */
struct log_entry {
	/* The key of the record. */
	struct slice key;
	/* The lock_id of the record. */
	struct id128 lock_id;
	/* The entry is a watch event, which is in `watch_event`. */
	bool is_watch_event;
	/* Its bytes, but for `key`, are in the log and last as long as the log is left alone. */
	struct core_watch_event watch_event;
	/* The bytes of `key`. */
	uint8_t bytes[KEY_MAX];
};

/* ---- log.c ---- */

/* Something has happened to this record; or (not NULL) this is a watch event that fits. */
void log_append(struct core *core, struct slice key, struct id128 lock_id,
	const struct core_watch_event *watch_event);
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

bool watch_event_init(struct core *core);
void watch_event_done(struct core *core);
/* Tells whether somebody watches at this node. */
static inline bool watch_event_wanted_here(const struct core *core) {
	return core->changes.watch_event_wanted;
}
/* Tells whether somebody watches here, or at a follower that is fed from here. */
static inline bool watch_event_wanted(const struct core *core) {
	return core->changes.watch_event_wanted || core->changes.event_feeds > 0;
}
/* Tells whether this node tells what happens in its own table. */
bool watch_event_tells(const struct core *core);
/* Tells those who watch, here and at replicas. The bytes are copied. */
void watch_event_tell(struct core *core, const struct core_watch_event *watch_event);
/* Tells what has happened to this record of the key, and remembers that it was told. `number` is
 * that of the key (key_number). */
void watch_event_of(struct core *core, enum core_watch_event_kind kind, struct slice name,
	uint64_t number, const struct record *r);
/* Tells that events of any key may have been missed. */
void watch_events_missed(struct core *core);
/* Tells that events of this key may have been missed. */
void watch_events_missed_of(struct core *core, struct slice name);
/* Another table is voted with, or read from: the log begins anew, and any events may have been
 * missed. */
void watch_events_another_table(struct core *core);
/* Tells whether something newer has been told of the key, or of one of the record's permits; or
 * another lock with the same token. */
bool watch_event_late(const struct core *core, uint64_t number, const struct record *r);
/* The lock was told of although it has not been here. */
void watch_event_told_without(struct core *core, const struct record *r);
/* Tells whether the lock of this commit, with this token, has been told of. */
bool watch_event_told_already(const struct core *core, const struct message *m);
/* Somebody begins to watch. Whoever does finds what is here, so what this node has seen by now
 * counts as told. */
void watch_event_order_begins(struct core *core);
/* Returns how many clients of this node watch the key. */
static inline uint32_t watch_event_watchers(const struct core *core, struct slice key) {
	return core->changes.count_watchers
		? core->changes.count_watchers(core->changes.count_watchers_ctx, key) : 0;
}

/* ---- missed.c ---- */

/* Returns 0 or PAWL_ENOMEM. */
int missed_init(struct core *core);
void missed_done(struct core *core);
/* Tells what has happened to a record of the table, and before it what has come before. Of an end,
 * to be called before the record is dropped. Only to be called while somebody watches. */
void missed_tell(struct core *core, enum core_watch_event_kind kind, struct key *key,
	struct record *r);
/* Tells whether something is kept that was refused here. */
static inline bool missed_any(const struct core *core) {
	return core->changes.refused.count > 0;
}
/* This master has answered a commit, or a record that was sent for repair, with this status. If it
 * is a refusal, and others may have accepted it, it is kept. `key` may be NULL. */
void missed_refused(struct core *core, const struct message *m, const struct key *key,
	enum status status);
/* A write to the record was refused. */
void missed_write_refused(struct core *core, const struct message *m, const struct record *r);
/* A write was refused because its record is not here. The record's commit may have been refused. */
void missed_write_to_refused(struct core *core, const struct message *m);
/* The end of a lock has been heard of. `key` may be NULL. */
void missed_lock_ended(struct core *core, const struct key *key, struct slice name,
	struct id128 lock_id, enum core_watch_event_kind how);
/* Tells whether a commit that was refused here rests on the name of this request alone, which
 * failed and gives it back. */
bool missed_rests_on(const struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name);
/* A later connection of the holder of a lock was named whose record is not here. */
void missed_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding);
/* A connection of the holder was closed. Tells whether the lock ends with that one or with an
 * earlier one, as far as this master was told. */
bool missed_bound_to(const struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding);
/* The message is of another epoch and is not answered, but others may be in that epoch. */
void missed_of_epoch(struct core *core, const struct message *m);
/* Others may accept what was refused here of the key, or have accepted it, and it is not kept. */
void missed_of(struct core *core, struct slice name);
/* Something has passed this master by and may still be under way, so that whoever reads anew now
 * does not find it. Missed events are told once more when the round of that is over. */
void missed_under_way(struct core *core);
void missed_beat(struct core *core);
/* A follower that is fed wants watch events from now on, or no longer. */
void missed_follower(struct core *core, bool watches);

/* ---- counted.c ---- */

/* This master refuses what has come, because it does not vote yet. */
void counted_before_vote(struct core *core);
/* A commit or a write has come from the node. It is counted although nobody watches here, because
 * the other masters ask how many came (counted_said). */
static inline void counted_came(struct core *core, uint32_t from, const struct message *m) {
	if (m->kind == MESSAGE_COMMIT || m->kind == MESSAGE_WRITE) {
		core->peers[from].counted.commits += m->kind == MESSAGE_COMMIT;
		core->peers[from].writes_come += m->kind == MESSAGE_WRITE;
		if (!core_votes(core)) {
			counted_before_vote(core);
		}
	}
}
/* This node has begun a write for the peer, whether there is a link to send it over or not. */
static inline void counted_asked(struct core *core, uint32_t peer, const struct message *m) {
	core->peers[peer].writes_begun += m->kind == MESSAGE_WRITE;
}
/* This node has begun a commit, and is about to send it to all masters. */
static inline void counted_commit_begun(struct core *core) {
	core->changes.commits_begun++;
}
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
void counted_beat(struct core *core);

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
/* Ends a record whose holder is gone; with a lock delay the key stays closed. May free the key. */
void record_lose(struct core *core, struct key *key, struct record *r);
/* To be called once when something was accepted for a record: tells whether its holder was gone,
 * and has come back before the lock delay was over. The record counts as held from then on. */
bool record_held_again(const struct core *core, struct record *r);
/* A record or a promise of the key is gone. Those who wait for the key go on. */
void key_ended(struct core *core, struct key *key);

/* ---- record_numbers.c ---- */

/* Drops some or all permit numbers of the record at once. May free the key. */
void record_drop_numbers(struct core *core, struct key *key, struct record *r,
	struct permits numbers);
/* Drops the permit numbers that rest on this name alone, if the record as a whole does not. May
 * free the key. False: there are none. */
bool record_roll_back(struct core *core, struct key *key, struct record *r, uint64_t name);

#endif
