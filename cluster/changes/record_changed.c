/* record_changed.c: says in one place what follows from each change of a record. */
#include "changes.h"

enum { NO, YES };
enum {
	EVENT_NONE = -1,
	EVENT_ACQUIRED = WATCH_EVENT_ACQUIRED,
	EVENT_UPDATED = WATCH_EVENT_UPDATED,
	EVENT_DOWNGRADED = WATCH_EVENT_DOWNGRADED,
	EVENT_RELEASED = WATCH_EVENT_RELEASED,
	EVENT_EXPIRED = WATCH_EVENT_EXPIRED,
	EVENT_LOST = WATCH_EVENT_LOST
};

/* There is a row for each change. A row that is missing, or leaves out a column, does not compile.
 *
 * The columns:
 *   log     Those who follow this master are told. This is for the live table only.
 *   copied  Those who copy the live table are sent the record again.
 *   event   This is what those who watch are told.
 *   opens   Those who wait in the key's queue, or are parked there, may go on. Of an end the caller
 *           says so after the drop.
 *   waits   Local waits for the key to be held look at it: the record may be held now, perhaps once
 *           more, by a lock whose lock delay ran. Requests of this node no longer expect the turn
 *           that would have brought it.
 *
 * The rows:
 *   GRANTED     The record is new here: it was committed, or came by a repair. Or it is held
 *               again: its holder was gone, and only its lock delay ran.
 *   WRITTEN     The record has another value.
 *   ACCEPTED    A commit or a repair was accepted for a record that is here.
 *   EXTENDED    An extension was accepted.
 *   PREPARED    The record has noted the ballot of an update.
 *   DOWNGRADED  An exclusive lock is shared from now on.
 *   BARRED      The record is barred. Those who copy are told of the lock_id instead.
 *   NARROWED    A semaphore's record has fewer permit numbers.
 *   CLOSED      Nobody holds the record any more, and only its lock delay runs.
 *   CLOSING     The record is new here, and nobody holds it: its lock was released, and the key
 *               stays closed.
 *   EXPIRED, RELEASED, LOST  The record ends.
 *   MERGED      What another node told of the record in a snapshot was added.
 *   FOLLOWED    The record is as the master says that this replica follows.
 *   DISPROVED   The merge found that the record had ended.
 *
 *                       log  copied  event       opens waits */
#define GRANTED_MEANS    YES, YES,    ACQUIRED,   NO,   YES
#define WRITTEN_MEANS    YES, YES,    UPDATED,    NO,   YES
#define ACCEPTED_MEANS   YES, YES,    NONE,       NO,   YES
#define EXTENDED_MEANS   YES, YES,    NONE,       NO,   YES
#define PREPARED_MEANS   YES, YES,    NONE,       NO,   NO
#define DOWNGRADED_MEANS YES, YES,    DOWNGRADED, YES,  NO
#define BARRED_MEANS     YES, NO,     NONE,       NO,   NO
#define NARROWED_MEANS   YES, YES,    NONE,       NO,   NO
#define CLOSED_MEANS     YES, NO,     LOST,       NO,   NO
#define CLOSING_MEANS    YES, YES,    NONE,       NO,   NO
#define EXPIRED_MEANS    YES, NO,     EXPIRED,    NO,   NO
#define RELEASED_MEANS   YES, NO,     RELEASED,   NO,   NO
#define LOST_MEANS       YES, NO,     LOST,       NO,   NO
#define MERGED_MEANS     NO,  NO,     NONE,       NO,   YES
#define FOLLOWED_MEANS   NO,  NO,     NONE,       NO,   YES
#define DISPROVED_MEANS  YES, NO,     NONE,       NO,   NO

/* A row of the table. */
struct consequences {
	bool log, copied, opens, waits;
	int8_t event;
};

#define ROW(log_, copied_, event_, opens_, waits_) \
	{ .log = log_, .copied = copied_, .event = EVENT_##event_, \
		.opens = opens_, .waits = waits_ }
#define ROW_OF(...) ROW(__VA_ARGS__)

static const struct consequences follows[] = {
#define X(name) [RECORD_##name] = ROW_OF(name##_MEANS),
	RECORD_CHANGES(X)
#undef X
};

void record_changed(struct core *core, struct key *key, struct record *r, enum record_change what) {
	const bool live = key_is_live(core, key);
	if (!r->digested) {
		digest_join(core, key, r);
	}
	if (core->copied && follows[what].copied && live) {
		core->observers->record_copied(core, key, r);
	}
	if (follows[what].log && live) {
		log_append(core, key_name(key), r->lock_id, NULL);
	}
	if (live) {
		figures_changed(core, key, r, what);
	}
	if (follows[what].event != EVENT_NONE && watch_event_wanted(core)) {
		missed_tell(core, (enum core_watch_event_kind)follows[what].event, key, r);
	}
	if (follows[what].opens && live) {
		core->observers->key_opened(core, key);
	}
	if (follows[what].waits) {
		core->observers->key_changed(core, key, r);
	}
}

void record_counted_on(struct core *core, struct key *key, struct record *r) {
	if (r->rests_on) {
		r->rests_on = 0;
		/* The copies of the record rest on no name, either. */
		record_changed(core, key, r, RECORD_EXTENDED);
	}
}

void record_end(struct core *core, struct key *key, struct record *r, enum record_change how) {
	record_changed(core, key, r, how);
	first_ended(core, r);
	key_drop_record(core, key, r);
}

void record_drop(struct core *core, struct key *key, struct record *r, enum record_change how) {
	record_end(core, key, r, how);
	key_ended(core, key);
	table_settle(core, key);
}

void record_lose(struct core *core, struct key *key, struct record *r) {
	if (record_delay(r) > 0) {
		record_changed(core, key, r, RECORD_CLOSED);
		r->closed = true;
		record_shorten(core, key, r, record_delay(r));
		if (core->copied) {
			core->observers->record_lost(core, key, r, record_delay(r));
		}
		table_settle(core, key);
	} else {
		record_drop(core, key, r, RECORD_LOST);
	}
}

/* style: record, because the caller says so. */
bool record_held_again(const struct core *core, struct record *r) {
	const bool again = r->closed && !record_closing(r, core->now);
	r->closed = r->closed && !again;
	return again;
}

void key_ended(struct core *core, struct key *key) {
	core->observers->key_opened(core, key);
	core->observers->key_changed(core, key, NULL);
}
