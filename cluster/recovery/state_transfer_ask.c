/* state_transfer_ask.c: asking sources for what they know, again and again until it is enough, and
 * what arrives from them (sections 4 and 6). */
#include "recovery.h"
#include "state_transfer.h"

/* Tells whether this source may be asked now. */
static bool wanted_now(const struct core *core, const struct source *s) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	int index = peer_table_find_id(core, s->id);
	if (index < 0 || index == (int)core->self) {
		return false;
	}
	const struct peer *p = &core->peers[index];
	switch (transfer->kind) {
	case STATE_TRANSFER_AHEAD: return s->previous_master && p->voting;
	case STATE_TRANSFER_HANDOVER:
		return p->in_epoch && (s->previous_master ||
			(p->voting && instant_expired(core->now, core->recovery->rejoin_at)));
	case STATE_TRANSFER_REJOIN:
		return p->voting && instant_expired(core->now, core->recovery->rejoin_at);
	case STATE_TRANSFER_NONE: break;
	}
	return false;
}

/* Tells whether what has come is not enough, and nothing else is to come. */
static bool stuck(const struct core *core) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	for (uint32_t i = 0; i < transfer->count; i++) {
		const struct source *s = &transfer->sources[i];
		if (s->asked ? !s->done : s->previous_master && wanted_now(core, s)) {
			return false;
		}
	}
	return !state_transfer_enough(core);
}

/* Breaks off with sources that were asked in vain, so that they may be asked again. */
static void renew(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	const bool again = stuck(core);
	for (uint32_t i = 0; i < transfer->count; i++) {
		struct source *s = &transfer->sources[i];
		int index = peer_table_find_id(core, s->id);
		bool self = index == (int)core->self;
		/* A source that waits for the decree sends nothing as long as nothing changes. */
		bool waits = s->walked && transfer->kind == STATE_TRANSFER_AHEAD;
		bool adopted = index >= 0 && !self && core->peers[index].in_epoch &&
			transfer->kind == STATE_TRANSFER_HANDOVER;
		/* The end is due from now on, however long nothing had changed before. */
		if (adopted && !s->adopted) {
			s->adopted = true;
			s->progress = core->now;
		}
		bool silent = instant_elapsed_short(core->now, s->progress) >
			core->config.request_timeout;
		if (s->asked && !s->done && !self && !waits && silent && (!s->walked || adopted)) {
			COUNT(core, copy_ahead_broken);
			state_transfer_tell_stop(core, s);
			state_transfer_break_off(core, s);
		}
		/* This source votes by now and was asked too early to count for rejoining, so it is
		 * asked once more (section 6, Handover). */
		if (s->done && s->master && !s->votes &&
			(again || !state_transfer_counts_before(core, s)) &&
			wanted_now(core, s) && core->peers[index].voting) {
			state_transfer_break_off(core, s);
		}
	}
}

/* Returns how many sources are needed. */
static uint32_t needed(const struct core *core) {
	const struct state_transfer *transfer = &core->recovery->transfer;
	return transfer->kind == STATE_TRANSFER_REJOIN ? config_sources(transfer->master_count)
		: config_sources(transfer->previous_master_count);
}

/* Counts the sources that were asked and may still be of use. */
static uint32_t asked(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		const struct source *s = &core->recovery->transfer.sources[i];
		bool hopeful = s->asked && !(s->done && s->forgot &&
			!state_transfer_forgotten_long_enough(core, s) && !s->votes);
		n += hopeful && (core->recovery->transfer.kind == STATE_TRANSFER_REJOIN ||
			s->previous_master);
	}
	return n;
}

static void ask_more(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	struct source *self = state_transfer_own(core);
	if (self && !self->asked &&
		(transfer->kind == STATE_TRANSFER_HANDOVER || core_votes(core))) {
		state_transfer_ask_own(core, self);
	}
	bool all = transfer->kind == STATE_TRANSFER_HANDOVER &&
		instant_elapsed_short(core->now, core->adopted_at) > core->config.request_timeout;
	for (uint32_t i = 0; i < transfer->count && (all || asked(core) < needed(core)); i++) {
		struct source *s = &transfer->sources[i];
		if (!s->asked && wanted_now(core, s)) {
			state_transfer_ask(core, s, (uint32_t)peer_table_find_id(core, s->id));
		}
	}
}

void state_transfer_beat(struct core *core) {
	struct state_transfer *transfer = &core->recovery->transfer;
	if (transfer->kind == STATE_TRANSFER_NONE) {
		return;
	}
	if (transfer->kind == STATE_TRANSFER_AHEAD &&
		instant_expired(core->now, transfer->keep_until)) {
		state_transfer_stop(core);
		return;
	}
	if (transfer->bits_used_up) {
		state_transfer_again(core);
	}
	if (transfer->kind == STATE_TRANSFER_REJOIN && finish_active(core)) {
		/* Rejoining would merge into a table that is still being finished, with the bits of
		 * other sources. */
		return;
	}
	if (state_transfer_staging(core) && !transfer->owns_staging) {
		follow_yield(core);
		transfer->owns_staging = !finish_active(core) && table_staging_take(core);
		if (!transfer->owns_staging) {
			/* What was in the staging table is still being emptied or finished. */
			return;
		}
	}
	renew(core);
	ask_more(core);
	state_transfer_evaluate(core);
	copy_ahead_tell(core);
}

/* ---- what arrives ---- */

/* Returns the source whose present try the message belongs to; NULL: none. */
static struct source *of(struct core *core, uint32_t from, const struct message *m) {
	struct source *s = core->recovery->transfer.kind == STATE_TRANSFER_NONE ? NULL
		: state_transfer_source(&core->recovery->transfer, core->peers[from].link_id);
	return s && s->asked && !s->done && s->round == m->round &&
		proof_identity(core, from) ? s : NULL;
}

/* Returns the longest lease that is taken from a source (section 9). A lease that is longer than
 * any that this node knows to have been allowed is taken only if at least two of its sources say
 * that they have allowed such a lease. Where one source is enough, that one is believed. */
static span_ns lease_most_here(const struct core *core) {
	const span_ns own = span_longer(core->durable.max_lease_seen, core->config.max_lease);
	span_ns first = 0, second = 0;
	if (needed(core) < 2) {
		return SPAN_MAX;
	}
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		const span_ns said = core->recovery->transfer.sources[i].lease;
		second = said > first ? first : span_longer(second, said);
		first = span_longer(first, said);
	}
	/* The lease that is left is rounded up. */
	return clock_saturating_add(span_longer(own, second), SPAN_US);
}

/* What this source was not believed is missing, so the source does not count as it is. It is asked
 * again, because others may have said by then what it needs. */
static void lease_refused(struct core *core, uint32_t from, struct source *s) {
	COUNT(core, lease_refused);
	if (s->refused > lease_most_here(core)) {
		out_note(core, NOTE_LEASE_REFUSED, from, (uint64_t)s->refused, NULL,
			slice_of(NULL, 0));
	}
	state_transfer_break_off(core, s);
}

/* The source has sent its end, which may be a refusal. */
static void ended(struct core *core, uint32_t from, struct source *s, const struct message *m) {
	if (m->status != STATUS_OK) {
		state_transfer_break_off(core, s);
		return;
	}
	s->lease = span_from_us(m->lease_us);
	if (s->refused > 0) {
		lease_refused(core, from, s);
		return;
	}
	s->walked = s->done = true;
	s->clock_end = m->clock;
	s->forgot = (m->flags & FLAG_FORGOT) != 0;
	s->never = (m->flags & FLAG_NEVER) != 0;
	s->told_at = core->now;
	/* A source that begins to vote in the same turn in which it answers may say that it votes
	 * next to an end that has nothing of what it then knows. So it must have been known to vote
	 * when it was asked. */
	s->votes = s->asked_voter && core->peers[from].voting &&
		core->recovery->transfer.kind != STATE_TRANSFER_AHEAD &&
		instant_expired(s->asked_at, core->recovery->rejoin_at);
	if (s->previous_master && !s->forgot && !s->never && !(m->flags & FLAG_REMEMBERS) &&
		core->recovery->transfer.kind == STATE_TRANSFER_HANDOVER) {
		/* The source cannot stand for the previous epoch. */
		s->previous_master = false;
	}
	state_transfer_evaluate(core);
}

/* Returns the highest clock that is taken from a source (section 9). A node that does not vote
 * takes the clocks of its sources. Where it needs several, it takes no clock that one of them says
 * alone: the second highest of their clocks is the measure, or the clock that it would follow if it
 * voted. */
static uint64_t clock_most_here(const struct core *core) {
	uint64_t first = 0, second = 0;
	if (core_votes(core) || needed(core) < 2) {
		return core_votes(core) ? clock_most(core) : TOKEN_MAX;
	}
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		const int index = peer_table_find_id(core, core->recovery->transfer.sources[i].id);
		const uint64_t said =
			index >= 0 && index != (int)core->self && core->peers[index].up
			? core->peers[index].said_clock : 0;
		second = said > first ? first : said > second ? said : second;
		first = said > first ? said : first;
	}
	const uint64_t margin = CLOCK_JUMP_MAX +
		(uint64_t)instant_elapsed_short(core->now, core->recovery->transfer.began);
	second = clock_later(second, margin);
	return second > clock_most(core) ? second : clock_most(core);
}

/* Tells whether a number in the message is above the highest clock that is taken. */
static bool beyond_bounds(const struct core *core, const struct message *m) {
	const uint64_t most = clock_most_here(core);
	return (m->kind == MESSAGE_SNAPSHOT_RECORD &&
		(m->token > most || m->noted > most || m->ballot.clock > most ||
		m->prepared.clock > most)) ||
		(m->kind == MESSAGE_SNAPSHOT_END && m->clock > most);
}

static void go_on(struct core *core, uint32_t from, struct source *s) {
	struct message go_on = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = s->round, .part = s->part,
		.parts = s->part + 1 };
	s->paused = false;
	s->chunk_at = core->now;
	out_send(core, from, &go_on);
}

/* Before the decree nobody waits for a copy. A pause is twice as long as the previous piece took,
 * so that copying takes at most a third of what the machines and the network have to give. */
#define PAUSE_MOST (50 * SPAN_MS)

static void chunk_came(struct core *core, uint32_t from, struct source *s,
	const struct message *m) {
	span_ns took = instant_elapsed_short(core->now, s->chunk_at);
	s->part = m->part;
	s->paused = core->recovery->transfer.kind == STATE_TRANSFER_AHEAD;
	s->go_at = instant_add(core->now, 2 * took < PAUSE_MOST ? 2 * took : PAUSE_MOST);
	if (s->paused) {
		pending_add(core, PENDING_PAUSED);
	} else {
		go_on(core, from, s);
	}
}

bool state_transfer_paused(const struct core *core) {
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		if (core->recovery->transfer.sources[i].paused) {
			return true;
		}
	}
	return false;
}

void state_transfer_pause_over(struct core *core) {
	for (uint32_t i = 0; i < core->recovery->transfer.count; i++) {
		struct source *s = &core->recovery->transfer.sources[i];
		int index = s->paused ? peer_table_find_id(core, s->id) : -1;
		if (index >= 0 && (instant_expired(core->now, s->go_at) ||
			core->recovery->transfer.kind != STATE_TRANSFER_AHEAD)) {
			go_on(core, (uint32_t)index, s);
		}
	}
	pending_left(core, PENDING_PAUSED, state_transfer_paused(core));
}

void state_transfer_message(struct core *core, uint32_t from, const struct message *m) {
	struct source *s = of(core, from, m);
	if (s == NULL) {
		return;
	}
	s->progress = core->now;
	if (beyond_bounds(core, m)) {
		clock_refused(core, from,
			m->kind == MESSAGE_SNAPSHOT_END ? m->clock : m->token, m->key);
		state_transfer_tell_stop(core, s);
		state_transfer_break_off(core, s);
		return;
	}
	if (m->kind == MESSAGE_SNAPSHOT_RECORD &&
		span_from_us(m->left_us) > lease_most_here(core)) {
		s->refused = span_longer(s->refused, span_from_us(m->left_us));
	} else if (m->kind == MESSAGE_SNAPSHOT_RECORD) {
		core->recovery->transfer.merged++;
		if (!merge_record(core, state_transfer_into(core), s->bit, m)) {
			core->recovery->transfer.full = true;
			state_transfer_tell_stop(core, s);
			/* The copy is not whole, so the source will be asked again. */
			state_transfer_break_off(core, s);
		}
	} else if (m->kind == MESSAGE_SNAPSHOT_RELEASED) {
		merge_released(core, state_transfer_into(core), m);
	} else if (m->kind == MESSAGE_SNAPSHOT_LOST) {
		merge_lost(core, state_transfer_into(core), s->bit, m);
	} else if (m->kind == MESSAGE_SNAPSHOT_CHUNK) {
		chunk_came(core, from, s, m);
	} else if (m->kind == MESSAGE_SNAPSHOT_READY) {
		s->walked = true;
		copy_ahead_tell(core);
	} else {
		ended(core, from, s, m);
	}
}
