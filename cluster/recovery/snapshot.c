/* snapshot.c: sending a snapshot (section 4). A snapshot holds at least everything that was
 * accepted up to its end. It is a walk over the table in pieces, each of which is acknowledged, and
 * whatever changes meanwhile is sent at once. Promises stay out of it. It never makes the node
 * pause. */
#include "recovery.h"

#define CHUNK_RECORDS 128
#define CHUNK_TOMBSTONES 1024
#define CHUNK_BYTES ((size_t)256 << 10)
#define CHUNK_BUCKETS 4096

void snapshot_stop(struct core *core, uint32_t peer) {
	struct snapshot_out *s = &core->peers[peer].send;
	if (s->active) {
		s->active = false;
		core->snapshots--;
		recovery_copies_changed(core);
		map_walk_end(&table_live(core)->keys);
	}
}

static void say_end(struct core *core, uint32_t peer, const struct message *end) {
	snapshot_stop(core, peer);
	out_send(core, peer, end);
}

static void refuse(struct core *core, uint32_t peer, uint64_t round, enum status status) {
	struct message m = { .kind = MESSAGE_SNAPSHOT_END, .round = round, .status = status,
		.clock = core->clock };
	COUNT(core, snapshot_refused);
	say_end(core, peer, &m);
}

/* What was sent is of a table from which nobody votes any more. What that table had and the new one
 * lacks would never be told, so those that are being sent a snapshot ask anew. */
void snapshot_tables_swapped(struct core *core, struct table *old) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		struct snapshot_out *s = &core->peers[i].send;
		if (s->active) {
			s->active = false;
			core->snapshots--;
			recovery_copies_changed(core);
			map_walk_end(&old->keys);
			refuse(core, i, s->round, STATUS_RECOVERING);
		}
	}
}

/* Returns the flag that says what this node is, as a source, to the masters of its present epoch
 * (section 6). */
static uint32_t source_flag(const struct core *core) {
	if (core->remembers) {
		return FLAG_REMEMBERS;
	}
	return core->durable.voted_before ? FLAG_FORGOT : FLAG_NEVER;
}

static void end(struct core *core, uint32_t peer, const struct snapshot_out *s) {
	struct message m = { .kind = MESSAGE_SNAPSHOT_END, .round = s->round, .clock = core->clock,
		.flags = s->handover ? source_flag(core) : 0,
		.lease_us = (uint64_t)(core->durable.max_lease_seen / SPAN_US) };
	if (m.flags & FLAG_FORGOT) {
		m.clock = core->durable.ceiling > core->clock ? core->durable.ceiling : core->clock;
	}
	COUNT(core, snapshot_sent);
	say_end(core, peer, &m);
}

static bool send_record(struct core *core, void *ctx, const struct key *key,
	const struct record *r) {
	const uint32_t peer = *(const uint32_t *)ctx;
	struct message m;
	record_message(core, MESSAGE_SNAPSHOT_RECORD, key, r, &m);
	m.round = core->peers[peer].send.round;
	out_send(core, peer, &m);
	return true;
}

static bool walk_table(struct core *core, uint32_t peer, struct snapshot_out *s) {
	struct walk_piece piece = { .records_max = CHUNK_RECORDS, .bytes_max = CHUNK_BYTES,
		.buckets_max = CHUNK_BUCKETS, .visit = send_record, .ctx = &peer };
	return table_walk(core, &s->walk, &piece);
}

static bool walk_tombstones(struct core *core, uint32_t peer, struct snapshot_out *s) {
	for (uint32_t sent = 0; s->tombstones_at < tombstone_places(core); s->tombstones_at++) {
		const struct tombstone *r =
			tombstone_at(core, s->tombstones_next, s->tombstones_at);
		if (sent >= CHUNK_TOMBSTONES) {
			return false;
		}
		if (r->used) {
			struct message m;
			tombstone_describe(r, slice_str("?"), &m);
			m.round = s->round;
			out_send(core, peer, &m);
			sent++;
		}
	}
	return true;
}

static void send_chunk(struct core *core, uint32_t peer) {
	struct snapshot_out *s = &core->peers[peer].send;
	s->due = false;
	if (!(walk_table(core, peer, s) && walk_tombstones(core, peer, s))) {
		struct message m = { .kind = MESSAGE_SNAPSHOT_CHUNK, .round = s->round,
			.part = s->part, .parts = s->part + 1 };
		out_send(core, peer, &m);
		return;
	}
	s->walked = true;
	if (s->epoch == core->config.epoch) {
		end(core, peer, s);
	} else {
		/* Before the decree, what changes is sent until this node has adopted the epoch. */
		struct message m = { .kind = MESSAGE_SNAPSHOT_READY, .round = s->round };
		out_send(core, peer, &m);
	}
}

/* Tells whether this node can stand now for what it was asked for. */
static bool may_serve(const struct core *core, const struct snapshot_out *s) {
	if (!s->handover) {
		return core_votes(core) && s->epoch == core->config.epoch;
	}
	/* What a node merges in order to rejoin is what others had, and not what it remembers. */
	if (s->epoch == core->config.epoch) {
		return !(core->remembers && core->state == CORE_RECOVERING);
	}
	return core_votes(core) && s->epoch == core->config.epoch + 1;
}

/* Tells whether the asker may have the snapshot: it is a master of this epoch, or of one that is
 * being prepared for. */
static bool may_have(const struct core *core, uint32_t from, const struct snapshot_out *s) {
	return s->handover && s->epoch == core->config.epoch + 1 ? announced_next_master(core, from)
		: proof_master(core, from);
}

void snapshot_asked(struct core *core, uint32_t from, const struct message *m) {
	struct snapshot_out s = { .active = true, .round = m->round, .epoch = m->epoch,
		.handover = (m->flags & FLAG_HANDOVER) != 0,
		.tombstones_next = tombstone_next(core) };
	snapshot_stop(core, from);
	/* A node that has forgotten is no source to rejoin from, either. */
	if (!core_born(core) || core->adopting || !may_serve(core, &s)) {
		refuse(core, from, m->round,
			s.epoch == core->config.epoch ? STATUS_RECOVERING : STATUS_EPOCH);
		return;
	}
	if (!may_have(core, from, &s)) {
		COUNT(core, asked_by_no_member);
		refuse(core, from, m->round, STATUS_DENIED);
		return;
	}
	core->peers[from].send = s;
	core->snapshots++;
	recovery_copies_changed(core);
	map_walk_begin(&table_live(core)->keys);
	if (s.handover && s.epoch == core->config.epoch && !core->remembers && !core_votes(core)) {
		/* This node has nothing to tell but what it is. */
		end(core, from, &core->peers[from].send);
	} else {
		core->peers[from].send.due = true;
		pending_add(core, PENDING_SNAPSHOTS);
	}
}

void snapshot_go_on(struct core *core, uint32_t from, const struct message *m) {
	struct snapshot_out *s = &core->peers[from].send;
	if (!s->active || s->round != m->round) {
		return;
	}
	/* A message without parts says that the asker has enough. */
	if (m->parts == 0) {
		snapshot_stop(core, from);
	} else if (!may_serve(core, s)) {
		refuse(core, from, m->round, STATUS_RECOVERING);
	} else if (s->part == m->part && !s->walked && !s->due) {
		s->part++;
		s->due = true;
		pending_add(core, PENDING_SNAPSHOTS);
	}
}

bool snapshot_due(const struct core *core) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active && core->peers[i].send.due) {
			return true;
		}
	}
	return false;
}

/* A master that asks for one snapshot after the other gets the first piece of the last one. */
void snapshot_send_due(struct core *core) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		const struct snapshot_out *s = &core->peers[i].send;
		const uint64_t bit = (uint64_t)1 << i;
		if (!s->active || !s->due || !(turn_pieces(core)->snapshots & bit)) {
			continue;
		}
		turn_pieces(core)->snapshots &= ~bit;
		if (may_serve(core, s)) {
			send_chunk(core, i);
		} else {
			refuse(core, i, s->round, STATUS_RECOVERING);
		}
	}
	pending_left(core, PENDING_SNAPSHOTS, snapshot_due(core));
}

/* Those that were waiting for the new epoch get their end, because everything that was accepted
 * before is on its way already. */
void snapshot_epoch(struct core *core) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		struct snapshot_out *s = &core->peers[i].send;
		if (s->active && (s->epoch != core->config.epoch || !s->handover)) {
			refuse(core, i, s->round, STATUS_EPOCH);
		} else if (s->active && s->walked) {
			end(core, i, s);
		}
	}
}

/* What changes while snapshots are under way is sent at once. */
void snapshot_changed(struct core *core, const struct key *key, const struct record *r) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active) {
			struct message m;
			record_message(core, MESSAGE_SNAPSHOT_RECORD, key, r, &m);
			m.round = core->peers[i].send.round;
			COUNT(core, snapshot_forwarded);
			out_send(core, i, &m);
		}
	}
	state_transfer_changed(core, key, r);
}

void snapshot_released(struct core *core, struct slice key, struct id128 lock_id) {
	struct message m;
	tombstone_describe(tombstone_find(core, lock_id), key, &m);
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active) {
			m.round = core->peers[i].send.round;
			COUNT(core, snapshot_forwarded);
			out_send(core, i, &m);
		}
	}
	state_transfer_released(core, &m);
}

/* From now on this node is a source that lacks the lock_id. */
void snapshot_lost(struct core *core, const struct key *key, const struct record *r,
	span_ns closed) {
	struct message m = { .kind = MESSAGE_SNAPSHOT_LOST, .key = key_name(key),
		.lock_id = r->lock_id, .left_us = (uint64_t)(closed / SPAN_US) };
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active) {
			m.round = core->peers[i].send.round;
			COUNT(core, snapshot_lost);
			out_send(core, i, &m);
		}
	}
	state_transfer_lost(core, &m);
}
