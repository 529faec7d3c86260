/* feed.c: a master feeds its followers (section 7). A follower is sent, in batches, what the log
 * holds from the follower's place on; only a few batches may be under way. A follower that is too
 * far behind is sent a snapshot in pieces, with the entries of the log between them, so that the
 * log need not reach back to the snapshot's beginning. Every record is sent as it is at the moment
 * of sending, with its remaining lease by the longer clock. It changes nothing in the table. */
#include "replication.h"

#define BATCH_ENTRIES 256u
#define BATCH_BYTES ((size_t)256 << 10)
#define BATCH_BUCKETS 4096u

/* A master that is not linked with a quorum cannot know how old its own view is. */
static bool linked_with_quorum(const struct core *core) {
	uint32_t linked = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		linked += peer_reachable(core, i);
	}
	return linked >= core->quorum;
}

/* The follower wants watch events from now on, or no longer. */
static void want_events(struct core *core, struct feed *f, bool wanted) {
	if (wanted != f->wants_events) {
		missed_follower(core, wanted);
	}
	f->wants_events = wanted;
}

void feed_stop(struct core *core, uint32_t peer) {
	struct feed *f = &core->peers[peer].feed;
	if (!f->active) {
		return;
	}
	/* A snapshot that is under way may go on later, as long as the table's buckets stay as they
	 * are. */
	if (f->walking) {
		map_walk_end(&table_live(core)->keys);
		f->log = log_id(core);
		f->shrinks = table_live(core)->keys.shrinks;
	}
	want_events(core, f, false);
	f->active = f->walking = false;
	log_follower_removed(core);
	if (!log_followed(core)) {
		timer_stop(core, &core->replication.feed_timer);
	}
}

void feed_stop_all(struct core *core) {
	for (uint32_t i = 0; log_followed(core) && i < core->peer_count; i++) {
		feed_stop(core, i);
	}
}

/* Ends the feed and tells the follower why. */
static void end(struct core *core, uint32_t peer, enum status status) {
	struct message m = { .kind = MESSAGE_FEED_END, .round = core->peers[peer].feed.round,
		.status = status };
	feed_stop(core, peer);
	out_send(core, peer, &m);
}

/* ---- echoes ---- */

/* Keeps an echo, which names a moment of the follower's clock. It is returned once everything
 * that was accepted before this master heard it has been sent. */
static void hear_echo(struct core *core, struct feed *f, uint64_t echo) {
	if (echo == 0 || !linked_with_quorum(core)) {
		/* A master that is not linked with a quorum cannot know how old its own view is. It
		 * returns no echo, so its followers move to another one. */
		return;
	}
	/* When there is no room, the newest echo takes the place of the one before it, because the
	 * newest counts most. */
	uint32_t i = f->echo_count < FEED_ECHOES ? f->echo_count++ : FEED_ECHOES - 1;
	f->echoes[i].echo = echo;
	f->echoes[i].at = log_next(core);
	feed_logged(core);
}

/* Takes the newest echo that was heard before the first entry which this batch leaves out; 0:
 * none. */
static uint64_t take_echo(const struct core *core, struct feed *f) {
	uint64_t echo = 0;
	uint32_t n = 0;
	f->echo_count = linked_with_quorum(core) ? f->echo_count : 0;
	while (n < f->echo_count && f->echoes[n].at <= f->place.number) {
		echo = f->echoes[n++].echo;
	}
	f->echo_count -= n;
	memmove(f->echoes, f->echoes + n, f->echo_count * sizeof f->echoes[0]);
	return echo;
}

/* ---- batches ---- */

static size_t send_record(struct core *core, uint32_t peer, const struct key *key,
	const struct record *r, uint64_t number) {
	struct message m;
	record_message(core, MESSAGE_FEED_RECORD, key, r, &m);
	m.flags |= (r->by_rules ? FLAG_BY_RULES : 0) | (r->by_commit ? FLAG_BY_COMMIT : 0);
	m.round = core->peers[peer].feed.round;
	m.number = number;
	out_send(core, peer, &m);
	return record_size(r) + key->size;
}

/* A follower that does not want the event, or that still builds a table which nobody reads, is told
 * only that there is an event with this number. Returns the size in bytes. */
static size_t send_watch_event(struct core *core, uint32_t peer, const struct log_entry *e,
	uint64_t number) {
	const struct feed *f = &core->peers[peer].feed;
	const struct core_watch_event *n = &e->watch_event;
	const bool for_another = n->kind == WATCH_EVENT_MISSED && !id128_zero(n->lock_id) &&
		!id128_equal(n->lock_id, core->peers[peer].node.id);
	struct message m = { .kind = MESSAGE_FEED_WATCH_EVENT, .round = f->round,
		.number = number };
	if (f->wants_events && number >= f->events_from && !f->walking && !for_another) {
		m.part = (uint32_t)n->kind;
		m.parts = (uint32_t)WATCH_EVENT_MISSED + 1;
		m.key = n->key;
		m.lock_id = n->kind == WATCH_EVENT_MISSED ? (struct id128){ { 0 } } : n->lock_id;
		m.token = n->token;
		m.owner = n->owner;
		m.identity = n->identity;
		m.value = n->value;
		m.label = n->label;
		m.ballot = n->value_seq;
		m.terms = n->terms;
	}
	out_send(core, peer, &m);
	return m.key.size + m.owner.size + m.identity.size + m.value.size + m.label.size;
}

/* Sends what has become of the record by now: as it is, or that it is gone. A watch event is sent
 * as it was. Returns the size in bytes. */
static size_t send_entry(struct core *core, uint32_t peer, const struct log_entry *e,
	uint64_t number) {
	if (e->is_watch_event) {
		return send_watch_event(core, peer, e, number);
	}
	struct key *key = table_find(core, e->key);
	const struct record *r = key ? key_record(key, e->lock_id) : NULL;
	if (r) {
		return send_record(core, peer, key, r, number);
	}
	struct message gone = { .kind = MESSAGE_FEED_GONE, .round = core->peers[peer].feed.round,
		.key = e->key, .lock_id = e->lock_id, .number = number };
	out_send(core, peer, &gone);
	return e->key.size;
}

/* Returns true when everything up to the end of the log has been sent. */
static bool send_log(struct core *core, uint32_t peer, struct feed *f, uint32_t *sent) {
	size_t bytes = 0;
	struct log_entry e;
	while (*sent < BATCH_ENTRIES && bytes < BATCH_BYTES) {
		uint64_t number = f->place.number;
		if (!log_take(core, &f->place, &e)) {
			break;
		}
		bytes += send_entry(core, peer, &e, number);
		++*sent;
	}
	return f->place.number == log_next(core);
}

static bool send_walked(struct core *core, void *ctx, const struct key *key,
	const struct record *r) {
	send_record(core, *(const uint32_t *)ctx, key, r, 0);
	return true;
}

/* Returns true when the whole table has been sent. */
static bool send_walk(struct core *core, uint32_t peer, struct feed *f) {
	struct walk_piece piece = { .records_max = BATCH_ENTRIES, .bytes_max = BATCH_BYTES,
		.buckets_max = BATCH_BUCKETS, .visit = send_walked, .ctx = &peer };
	return table_walk(core, &f->walk, &piece);
}

static void send_batch(struct core *core, uint32_t peer) {
	struct feed *f = &core->peers[peer].feed;
	struct message m = { .kind = MESSAGE_FEED_BATCH, .round = f->round };
	uint32_t sent = 0;
	bool walked = f->walking, table_end = walked && send_walk(core, peer, f);
	/* The log comes after this piece of the walk, so that a change stands behind the record
	 * that it changed. */
	bool log_end = send_log(core, peer, f, &sent);
	if (table_end && log_end) {
		map_walk_end(&table_live(core)->keys);
		f->walking = false;
		m.flags = FLAG_WHOLE;
		COUNT(core, feed_whole);
	}
	if (f->walking) {
		m.part = (uint32_t)f->walk.bucket;
		m.parts = (uint32_t)table_live(core)->keys.bucket_count + 1;
	} else {
		/* A snapshot gives an echo back only at its end. */
		m.echo = take_echo(core, f);
	}
	m.number = f->place.number;
	if (walked || sent > 0) {
		f->in_flight++;
	} else if (m.echo == 0) {
		return;
	}
	COUNT(core, feed_batch);
	out_send(core, peer, &m);
}

/* Sends as many batches as the window takes, and at most `most`. `due`: also sends one that is not
 * full. Returns whether there may be more to send at once. */
static bool go_on(struct core *core, uint32_t peer, bool due, unsigned most) {
	struct feed *f = &core->peers[peer].feed;
	for (; f->active && f->in_flight < FEED_WINDOW; most--) {
		uint64_t waiting = log_next(core) - f->place.number;
		if (most == 0) {
			return true;
		}
		if (f->place.number < log_oldest(core)) {
			/* The log no longer reaches back to the follower's place: it needs a
			 * snapshot. */
			COUNT(core, feed_overrun);
			end(core, peer, STATUS_STALE);
		} else if (f->walking || waiting >= BATCH_ENTRIES ||
			(due && (waiting > 0 || f->echo_count > 0))) {
			send_batch(core, peer);
		} else {
			if (waiting > 0) {
				feed_logged(core);
			}
			return false;
		}
	}
	return false;
}

/* Batches are to be sent. One message of a few bytes must not be enough for many of them in one
 * step, so the follower may ask again and again before they are. */
static void send_soon(struct core *core, struct feed *f, bool any) {
	f->due = true;
	f->due_any = f->due_any || any;
	pending_add(core, PENDING_FEEDS);
}

bool feed_due(const struct core *core) {
	for (uint32_t i = 0; log_followed(core) && i < core->peer_count; i++) {
		if (core->peers[i].feed.active && core->peers[i].feed.due) {
			return true;
		}
	}
	return false;
}

void feed_send_due(struct core *core) {
	for (uint32_t i = 0; log_followed(core) && i < core->peer_count; i++) {
		struct feed *f = &core->peers[i].feed;
		const uint64_t bit = (uint64_t)1 << i;
		if (f->active && f->due && (turn_pieces(core)->feeds & bit)) {
			turn_pieces(core)->feeds &= ~bit;
			f->due = go_on(core, i, f->due_any, f->walking ? 1 : FEED_WINDOW);
			f->due_any = f->due_any && f->due;
		}
	}
	pending_left(core, PENDING_FEEDS, feed_due(core));
}

void feed_timer(struct core *core) {
	for (uint32_t i = 0; log_followed(core) && i < core->peer_count; i++) {
		send_soon(core, &core->peers[i].feed, true);
	}
}

/* This is called in the middle of whatever changes a record, so nothing is sent before the end of
 * the step. */
void feed_logged(struct core *core) {
	if (log_followed(core) && !wheel_armed(&core->replication.feed_timer.wheel)) {
		timer_at(core, &core->replication.feed_timer, TIMER_FEED,
			instant_add(core->now, core->replication.replication_interval));
	}
	if (feed_step_due(core)) {
		pending_add(core, PENDING_BATCH);
	}
}

void feed_step(struct core *core) {
	pending_left(core, PENDING_BATCH, false);
	if (!feed_step_due(core)) {
		return;
	}
	core->replication.feed_full_at = log_next(core) + BATCH_ENTRIES;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (!core->peers[i].feed.walking) {
			go_on(core, i, false, FEED_WINDOW);
		}
	}
}

/* ---- what followers say ---- */

/* Tells whether a snapshot that broke off with its link may go on: nothing has moved since to a
 * bucket that was already sent. */
static bool may_go_on(const struct core *core, const struct feed *f, const struct message *m) {
	const struct map *keys = &table_live(core)->keys;
	return f->round == m->round && f->log == m->log && f->shrinks == keys->shrinks &&
		m->part <= keys->bucket_count;
}

/* Begins a feed where the follower's log and place allow it. STATUS_OK: *f is the new feed. */
static enum status begin(struct core *core, struct feed *f, const struct message *m) {
	if (!core_votes(core) || !(linked_with_quorum(core) || (m->flags & FLAG_ACCEPT_ISOLATED))) {
		return STATUS_RECOVERING;
	}
	bool reaches = m->log == log_id(core) && m->number >= log_oldest(core) &&
		m->number <= log_next(core);
	bool resume = m->flags & FLAG_RESUME;
	if (resume && !(reaches && may_go_on(core, f, m))) {
		return STATUS_STALE;
	}
	if (!reaches && !(m->flags & FLAG_STAGING)) {
		return STATUS_STALE;
	}
	*f = (struct feed){ .active = true, .round = m->round, .walking = resume || !reaches,
		.walk = { .bucket = resume ? m->part : 0 } };
	log_seek(core, &f->place, reaches ? m->number : log_next(core));
	f->acked = f->place.number;
	core->counts[resume ? COUNT_feed_snapshot_resumed : reaches ? COUNT_feed_resumed
		: COUNT_feed_snapshot]++;
	log_follower_added(core);
	if (f->walking) {
		map_walk_begin(&table_live(core)->keys);
	}
	return STATUS_OK;
}

void feed_asked(struct core *core, uint32_t from, const struct message *m) {
	struct feed *f = &core->peers[from].feed;
	feed_stop(core, from);
	struct message answer = { .kind = MESSAGE_FEED_BEGIN, .round = m->round,
		.log = log_id(core) };
	answer.status = begin(core, f, m);
	if (answer.status != STATUS_OK) {
		COUNT(core, feed_refused);
		out_send(core, from, &answer);
		return;
	}
	answer.number = f->place.number;
	answer.flags = f->walking && !(m->flags & FLAG_RESUME) ? FLAG_STAGING : 0;
	out_send(core, from, &answer);
	hear_echo(core, f, m->echo);
	core->replication.feed_full_at = log_next(core);
	send_soon(core, f, true);
	pending_add(core, PENDING_BATCH);
}

/* The follower's watchers began at a place in this log. If that is still the end of the log,
 * nothing has happened since, and from here on every event is kept for them. Otherwise they are
 * told first that events were missed. That entry is for this follower alone and has a number in the
 * log, so that its loss does not go unnoticed. */
static void hear_watch(struct core *core, uint32_t from, const struct message *m) {
	struct feed *f = &core->peers[from].feed;
	bool wants = m->flags & FLAG_WATCH_EVENT;
	if (wants == f->wants_events) {
		return;
	}
	want_events(core, f, wants);
	f->events_from = log_next(core);
	if (wants && m->number != log_next(core)) {
		const struct core_watch_event missed = { .kind = WATCH_EVENT_MISSED,
			.lock_id = core->peers[from].node.id };
		COUNT(core, feed_watch_events_missed);
		log_append_watch_event(core, &missed);
	}
}

void feed_message(struct core *core, uint32_t from, const struct message *m) {
	struct feed *f = &core->peers[from].feed;
	if (!f->active || f->round != m->round) {
		return;
	}
	if (m->kind == MESSAGE_FEED_ECHO) {
		hear_watch(core, from, m);
	}
	hear_echo(core, f, m->echo);
	if (m->kind == MESSAGE_FEED_ACK && f->in_flight > 0 && m->number <= f->place.number) {
		f->in_flight--;
		f->acked = m->number;
		send_soon(core, f, false);
	}
}

void feed_ended(struct core *core, uint32_t from, const struct message *m) {
	struct feed *f = &core->peers[from].feed;
	if (f->active && f->round == m->round) {
		feed_stop(core, from);
	} else {
		follow_message(core, from, m);
	}
}
