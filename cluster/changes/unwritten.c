/* unwritten.c: writes of a held record's value that this master refused, although others may have
 * accepted them (section 3, Watching). A repair brings the value that it missed, which is a watch
 * event like any other. Where something newer is told first, or the lock ends, those who watch are
 * told that events of the key were missed. */
#include "changes.h"

static struct unwritten *find(struct core *core, struct id128 lock_id) {
	for (uint32_t i = 0; i < UNWRITTEN_MAX; i++) {
		if (id128_equal(core->changes.unwritten[i].lock_id, lock_id)) {
			return &core->changes.unwritten[i];
		}
	}
	return NULL;
}

static void forget(struct unwritten *u) {
	if (u) {
		*u = (struct unwritten){ .ballot = { 0, 0, 0 } };
	}
}

/* Tells that events of the key were missed. */
static void tell_missed(struct core *core, const struct key *key) {
	COUNT(core, unwritten_missed);
	watch_events_missed_of(core, key_name(key));
}

/* record.unwritten says that a write was refused, even if its ballot is not remembered, because
 * there were two such writes, or too many since. */
void unwritten_refused(struct core *core, const struct key *key, struct record *r,
	struct ballot ballot) {
	const int newer = ballot_compare(ballot, record_wrote(core, r));
	struct unwritten *u = r->unwritten ? find(core, r->lock_id) : NULL;
	if (newer == 0) {
		/* The value is here, and has been told. */
		return;
	}
	if (newer < 0) {
		tell_missed(core, key);
	} else if (!r->unwritten) {
		r->unwritten = true;
		core->changes.unwritten[core->changes.unwritten_next++ % UNWRITTEN_MAX] =
			(struct unwritten){ r->lock_id, ballot };
	} else if (u && ballot_compare(u->ballot, ballot) != 0) {
		forget(u);
	}
}

void unwritten_told(struct core *core, enum core_watch_event_kind kind, const struct key *key,
	struct record *r) {
	struct unwritten *u = find(core, r->lock_id);
	const int newer = kind == WATCH_EVENT_UPDATED && u
		? ballot_compare(u->ballot, record_wrote(core, r)) : -1;
	if (newer > 0 || kind == WATCH_EVENT_DOWNGRADED) {
		/* The value may still come. */
		return;
	}
	r->unwritten = false;
	forget(u);
	if (newer < 0) {
		tell_missed(core, key);
	}
}
