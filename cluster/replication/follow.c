/* follow.c: the master that a replica follows (section 7).
 *
 *	NONE --FOLLOW sent--> ASKED --FEED_BEGIN--> ON
 *
 * A replica goes on from its place in that master's log, or it takes a snapshot. It builds the
 * snapshot in the staging table, which replaces the live table when the snapshot is whole. It
 * leaves a master that is lost, that does not vote any more, or that gives no echo back, and drops
 * what still arrives from there. What entries do to the table is in follow_apply.c. */
#include "replication.h"

/* Returns the place in the log of the table that the feed is applied to. */
static struct follow_place *place(struct follow *f) {
	return f->building ? &f->staging_place : &f->live;
}

/* ---- echoes ---- */

/* Draws a number that stands for this moment of the node's clock. */
static uint64_t new_echo(struct core *core) {
	struct follow *f = &core->follow;
	f->echo++;
	f->echoes[f->echo % FOLLOW_ECHOES] = core->now;
	return f->echo;
}

/* An echo came back: the view is no older than the moment for which it stands. */
static void echo_came(struct core *core, uint64_t echo) {
	struct follow *f = &core->follow;
	if (echo == 0 || echo > f->echo || f->echo - echo >= FOLLOW_ECHOES) {
		return;
	}
	f->fresh = f->echoes[echo % FOLLOW_ECHOES];
	f->fresh_known = true;
	f->progress = core->now;
	f->tried = 0;
	f->accept_isolated = false;
}

static void arm(struct core *core) {
	span_ns often = core->config.request_timeout / 20;
	span_ns interval = often > core->replication.replication_interval ? often
		: core->replication.replication_interval;
	timer_at(core, &core->replication.follow_timer, TIMER_FOLLOW,
		instant_add(core->now, interval));
}

void follow_say(struct core *core) {
	struct follow *f = &core->follow;
	f->wants_events = follow_wants_events(core);
	struct message m = { .kind = MESSAGE_FEED_ECHO, .round = f->round,
		.flags = f->wants_events ? FLAG_WATCH_EVENT : 0, .number = f->watched,
		.echo = new_echo(core) };
	out_send(core, f->peer, &m);
}

void follow_step(struct core *core) {
	pending_left(core, PENDING_WATCHED, false);
	if (follow_step_due(core)) {
		follow_say(core);
	}
}

void follow_timer(struct core *core) {
	struct follow *f = &core->follow;
	if (f->state == FOLLOW_ON) {
		follow_say(core);
		arm(core);
	}
}

/* ---- whom to follow ---- */

/* Tells whether this master votes and has not been of no use since the last echo. */
static bool usable(const struct core *core, uint32_t peer) {
	return peer_votes(core, peer) && !(core->follow.tried >> peer & 1);
}

/* Returns the peer index of the master in whose log this place is, or -1. */
static int place_master(const struct core *core, const struct follow_place *p) {
	for (uint32_t i = 0; p->log && i < core->masters; i++) {
		if (id128_equal(core->peers[i].node.id, p->master)) {
			return (int)i;
		}
	}
	return -1;
}

static bool may_take_staging(const struct core *core) {
	return table_staging_free(core) && instant_expired(core->now, core->follow.yielded);
}

/* Picks the master to ask, or returns -1. First comes the one whose snapshot is half here, then the
 * one whose log the live table follows, then all others; each replica begins with a different one.
 * Without room for a snapshot only the first two are of use. While f->patience lasts, no others are
 * asked if one of the first two is known, and otherwise only this replica's first choice. */
static int pick(const struct core *core, bool room) {
	const struct follow *f = &core->follow;
	int known[] = { f->building ? place_master(core, &f->staging_place) : -1,
		place_master(core, &f->live) };
	for (int i = 0; i < 2; i++) {
		if (known[i] >= 0 && usable(core, (uint32_t)known[i])) {
			return known[i];
		}
	}
	bool waits = !instant_expired(core->now, f->patience),
		any_known = known[0] >= 0 || known[1] >= 0;
	uint32_t others = !room || (waits && any_known) ? 0 : waits ? 1 : core->masters;
	for (uint32_t i = 0; i < others; i++) {
		uint32_t peer = (uint32_t)((id128_word(core->durable.node_id) + i) % core->masters);
		if (usable(core, peer)) {
			return (int)peer;
		}
	}
	return -1;
}

static void ask(struct core *core, uint32_t peer) {
	struct follow *f = &core->follow;
	f->resume = f->building && id128_equal(f->staging_place.master, core->peers[peer].node.id);
	f->state = FOLLOW_ASKED;
	f->peer = peer;
	f->progress = core->now;
	f->round = f->resume ? f->round : f->round + 1;
	struct message m = { .kind = MESSAGE_FOLLOW, .round = f->round,
		.flags = f->accept_isolated ? FLAG_ACCEPT_ISOLATED : 0 };
	if (f->resume) {
		m.flags |= FLAG_RESUME;
		m.log = f->staging_place.log;
		m.number = f->staging_place.number;
		m.part = f->bucket;
		m.parts = f->buckets;
	} else {
		bool known = id128_equal(f->live.master, core->peers[peer].node.id);
		m.flags |= may_take_staging(core) ? FLAG_STAGING : 0;
		m.log = known ? f->live.log : 0;
		m.number = known ? f->live.number : 0;
	}
	m.echo = new_echo(core);
	observe_follows(core, peer);
	out_send(core, peer, &m);
}

/* Drops a snapshot that is being built. */
static void drop_staging(struct core *core) {
	struct follow *f = &core->follow;
	if (f->building) {
		f->building = false;
		f->staging_place.log = 0;
		table_staging_drop(core);
	}
}

static void choose(struct core *core) {
	struct follow *f = &core->follow;
	if (core->state != CORE_FOLLOWING || f->state != FOLLOW_NONE || epoch_source_needed(core) ||
		!instant_expired(core->now, f->rest)) {
		return;
	}
	bool room = f->building || may_take_staging(core);
	int peer = pick(core, room);
	if (peer < 0 && room && f->tried && !f->accept_isolated &&
		instant_expired(core->now, f->patience)) {
		/* All were tried. Any view is better than none, and its age says what it is
		 * worth. */
		f->accept_isolated = true;
		f->tried = 0;
		peer = pick(core, room);
	}
	if (peer >= 0 && f->building && peer != place_master(core, &f->staging_place)) {
		/* This master is asked when the staging table is empty, or at once if the live
		 * table follows its log. */
		drop_staging(core);
		peer = peer == place_master(core, &f->live) ? peer : -1;
	}
	if (peer >= 0) {
		ask(core, (uint32_t)peer);
	}
}

void follow_room(struct core *core) {
	choose(core);
}

/* ---- leaving ---- */

/* The feed is over, whoever ended it. */
static void left(struct core *core) {
	struct follow *f = &core->follow;
	if (follow_tells(core)) {
		/* Events that the master had still to tell are lost. Whatever ends here from now on
		 * is told without the events that led to it. */
		watch_events_missed(core);
	}
	f->state = FOLLOW_NONE;
	f->applied = 0;
	timer_stop(core, &core->replication.follow_timer);
	f->patience = instant_add(core->now, core->config.request_timeout);
}

static void leave(struct core *core) {
	struct follow *f = &core->follow;
	if (f->state != FOLLOW_NONE) {
		struct message m = { .kind = MESSAGE_FEED_END, .round = f->round };
		out_send(core, f->peer, &m);
		left(core);
	}
}

void follow_leave(struct core *core) {
	observe_stop(core);
	leave(core);
}

void follow_stop(struct core *core) {
	follow_leave(core);
	drop_staging(core);
	core->follow.live.log = 0;
	core->follow.fresh_known = false;
	core->follow.reported = (struct id128){ { 0 } };
}

void follow_yield(struct core *core) {
	if (core->follow.building) {
		/* This is time enough for the table to be emptied and taken. */
		core->follow.yielded = instant_add(core->now, 4 * core->config.request_timeout);
		leave(core);
		drop_staging(core);
		choose(core);
	}
}

/* Leaves a master that is of no use for now, and looks for another one. */
static void give_up(struct core *core) {
	struct follow *f = &core->follow;
	f->tried |= 1u << f->peer;
	leave(core);
	f->patience = core->now;
	choose(core);
}

/* The table is no longer that of its place in the log, so only a snapshot helps. `rest`: there was
 * no memory, so nobody is asked for a while. */
static void start_over(struct core *core, bool rest) {
	struct follow *f = &core->follow;
	place(f)->log = 0;
	leave(core);
	drop_staging(core);
	f->patience = core->now;
	f->rest = instant_add(core->now, rest ? 10 * core->config.request_timeout : 0);
	choose(core);
}

void follow_peer_lost(struct core *core, uint32_t peer) {
	struct follow *f = &core->follow;
	if (f->state != FOLLOW_NONE && f->peer == peer) {
		left(core);
	}
}

void follow_peer_changed(struct core *core) {
	struct follow *f = &core->follow;
	if (f->state != FOLLOW_NONE && !peer_votes(core, f->peer)) {
		const struct peer *p = &core->peers[f->peer];
		if (p->linked && !p->in_epoch) {
			/* The master has adopted the next epoch. So will this node, and then it
			 * goes on from its place. */
			left(core);
		} else {
			give_up(core);
		}
	} else {
		choose(core);
	}
}

void follow_start(struct core *core) {
	span_ns patience = core->config.request_timeout;
	core->follow.patience = instant_add(core->now,
		core->follow.live.log ? patience : patience / 4);
	core->follow.tried = 0;
	observe_start(core);
	choose(core);
}

void follow_beat(struct core *core) {
	struct follow *f = &core->follow;
	if (f->state != FOLLOW_NONE &&
		instant_elapsed_long(core->now, f->progress) > core->config.request_timeout) {
		COUNT(core, follow_stalled);
		/* The other masters may be linked with a quorum again. */
		f->tried = f->accept_isolated ? 0 : f->tried;
		f->accept_isolated = false;
		give_up(core);
	} else if (f->state == FOLLOW_NONE) {
		f->tried = f->accept_isolated ? 0 : f->tried;
		choose(core);
	}
}

/* ---- what the master says ---- */

static void begun(struct core *core, const struct message *m) {
	struct follow *f = &core->follow;
	if (m->status == STATUS_STALE) {
		/* The master cannot go on from this replica's place. */
		start_over(core, false);
		return;
	}
	if (m->status != STATUS_OK) {
		give_up(core);
		return;
	}
	if (m->flags & FLAG_STAGING) {
		if (f->building || !table_staging_take(core)) {
			give_up(core);
			return;
		}
		f->building = true;
		f->staging_place = (struct follow_place){ core->peers[f->peer].node.id, m->log,
			m->number };
		f->bucket = f->buckets = 0;
		f->records = 0;
	} else if (m->log != place(f)->log || m->number != place(f)->number) {
		start_over(core, false);
		return;
	}
	f->state = FOLLOW_ON;
	observe_begun(core, m, (m->flags & FLAG_STAGING) != 0);
	f->wants_events = false;
	pending_add(core, PENDING_WATCHED);
	/* Whoever watches began before this feed, which does not tell what came and went in the
	 * meantime. */
	f->watched = 0;
	f->applied = 0;
	f->progress = core->now;
	arm(core);
	if (!id128_equal(f->reported, core->peers[f->peer].node.id)) {
		core->counts[COUNT_follow_moved] += !id128_zero(f->reported);
		f->reported = core->peers[f->peer].node.id;
		out_note(core, NOTE_FOLLOWING, f->peer, 0, NULL, slice_of(NULL, 0));
	}
}

/* The snapshot is whole, and replaces the live table. */
static void replace(struct core *core) {
	struct follow *f = &core->follow;
	f->building = false;
	f->live = f->staging_place;
	f->staging_place.log = 0;
	f->fresh_known = false;
	table_swap(core);
}

static void batch_ended(struct core *core, const struct message *m) {
	struct follow *f = &core->follow;
	if (m->number != place(f)->number) {
		COUNT(core, feed_missed);
		start_over(core, false);
		return;
	}
	observe_batch(core, m);
	bool acknowledged = f->building || f->applied > 0;
	f->applied = 0;
	if (f->building) {
		f->progress = core->now;
		f->bucket = m->part;
		f->buckets = m->parts;
	}
	if (f->building && (m->flags & FLAG_WHOLE)) {
		replace(core);
	}
	if (!f->building) {
		echo_came(core, m->echo);
	}
	if (acknowledged) {
		struct message ack = { .kind = MESSAGE_FEED_ACK, .round = f->round,
			.number = m->number, .echo = new_echo(core) };
		out_send(core, f->peer, &ack);
	}
}

static void entry_came(struct core *core, const struct message *m) {
	struct follow *f = &core->follow;
	if (m->number ? m->number != place(f)->number : !f->building) {
		/* The entries in between are not known. */
		COUNT(core, feed_missed);
		start_over(core, false);
		return;
	}
	observe_entry(core, m);
	struct table *t = f->building ? table_staging(core) : table_live(core);
	if (m->kind == MESSAGE_FEED_WATCH_EVENT) {
		follow_watch_event(core, m);
	} else if (m->kind == MESSAGE_FEED_GONE) {
		follow_gone(core, t, m);
	} else if (!follow_record(core, t, m)) {
		start_over(core, true);
		return;
	}
	f->applied++;
	if (m->number) {
		place(f)->number++;
	} else if (m->kind == MESSAGE_FEED_RECORD) {
		f->records++;
	}
}

void follow_message(struct core *core, uint32_t from, const struct message *m) {
	struct follow *f = &core->follow;
	if (observe_is(m)) {
		observe_message(core, from, m);
		return;
	}
	bool wanted = m->kind == MESSAGE_FEED_BEGIN ? f->state == FOLLOW_ASKED
		: m->kind == MESSAGE_FEED_END ? f->state != FOLLOW_NONE : f->state == FOLLOW_ON;
	if (core->state != CORE_FOLLOWING || !wanted || from != f->peer || m->round != f->round) {
		/* This belongs to a feed that was left. */
		COUNT(core, feed_stray);
		return;
	}
	if (m->kind == MESSAGE_FEED_BEGIN) {
		begun(core, m);
	} else if (m->kind == MESSAGE_FEED_BATCH) {
		batch_ended(core, m);
	} else if (m->kind == MESSAGE_FEED_END) {
		if (m->status == STATUS_STALE) {
			start_over(core, false);
		} else {
			give_up(core);
		}
	} else {
		entry_came(core, m);
	}
}
