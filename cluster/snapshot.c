/* snapshot.c: sending a snapshot (section 4): at least everything accepted up to its end: a walk over the table in pieces, each
 * acknowledged, and whatever changes meanwhile at once; promises stay out of it. Never a pause. */
#include "state.h"

#define CHUNK_RECORDS 512
#define CHUNK_BYTES ((size_t)256 << 10)

void snapshot_record_message(const struct core *core, const struct key *key, const struct record *r, struct message *m) {
	*m = (struct message){ .kind = MESSAGE_SNAPSHOT_RECORD, .key = key_name(key), .noted = r->noted };
	record_describe(core, r, m);
}

void snapshot_stop(struct core *core, uint32_t peer) {
	struct snapshot_out *s = &core->peers[peer].send;
	if (s->active) {
		s->active = false;
		core->snapshots--;
		map_walk_end(&core->live->keys);
	}
}

/* The new table has at least what the old one had. */
void snapshot_tables_swapped(struct core *core, struct table *old) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		struct snapshot_out *s = &core->peers[i].send;
		if (s->active) {
			s->bucket = 0;
			map_walk_end(&old->keys);
			map_walk_begin(&core->live->keys);
		}
	}
}

static void end(struct core *core, uint32_t peer, uint64_t round, enum status status) {
	struct message m = { .kind = MESSAGE_SNAPSHOT_END, .round = round, .status = status, .clock = core->clock };
	snapshot_stop(core, peer);
	out_send(core, peer, &m);
}

static bool walk_table(struct core *core, uint32_t peer, struct snapshot_out *s) {
	size_t bytes = 0;
	uint32_t records = 0;
	for (; s->bucket < core->live->keys.bucket_count; s->bucket++) {
		if (records >= CHUNK_RECORDS || bytes >= CHUNK_BYTES) {
			return false;
		}
		for (struct map_node *n = map_bucket(&core->live->keys, s->bucket); n; n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			for (const struct record *r = key->held; r; r = r->next) {
				struct message m;
				snapshot_record_message(core, key, r, &m);
				m.round = s->round;
				out_send(core, peer, &m);
				bytes += record_size(r) + key->size;
				records++;
			}
		}
	}
	return true;
}

static bool walk_ring(struct core *core, uint32_t peer, struct snapshot_out *s) {
	for (uint32_t sent = 0; s->ring_at < core->ring_size; s->ring_at++) {
		const struct released *r = &core->ring[s->ring_at];
		if (sent >= 4 * CHUNK_RECORDS) {
			return false;
		}
		if (r->used) {
			struct message m = { .kind = MESSAGE_SNAPSHOT_RELEASED, .round = s->round, .key = slice_str("?"), .lock_id = r->lock_id,
				.flags = r->barred_only ? 0 : FLAG_RELEASED };
			out_send(core, peer, &m);
			sent++;
		}
	}
	return true;
}

static void send_chunk(struct core *core, uint32_t peer) {
	struct snapshot_out *s = &core->peers[peer].send;
	if (walk_table(core, peer, s) && walk_ring(core, peer, s)) {
		COUNT(core, snapshot_sent);
		end(core, peer, s->round, STATUS_OK);
		return;
	}
	struct message m = { .kind = MESSAGE_SNAPSHOT_CHUNK, .round = s->round, .part = s->part, .parts = s->part + 1 };
	out_send(core, peer, &m);
}

void snapshot_asked(struct core *core, uint32_t from, const struct message *m) {
	if (!core_votes(core)) { /* who has forgotten, too, is no source */
		COUNT(core, snapshot_refused);
		end(core, from, m->round, STATUS_RECOVERING);
		return;
	}
	snapshot_stop(core, from);
	core->peers[from].send = (struct snapshot_out){ .active = true, .round = m->round };
	core->snapshots++;
	map_walk_begin(&core->live->keys);
	send_chunk(core, from);
}

void snapshot_go_on(struct core *core, uint32_t from, const struct message *m) {
	struct snapshot_out *s = &core->peers[from].send;
	if (!s->active || s->round != m->round || s->part != m->part) {
		return;
	}
	if (!core_votes(core)) {
		end(core, from, m->round, STATUS_RECOVERING);
		return;
	}
	s->part++;
	send_chunk(core, from);
}

/* What changes while snapshots are under way goes into them at once. */
void snapshot_changed(struct core *core, const struct key *key, const struct record *r) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active) {
			struct message m;
			snapshot_record_message(core, key, r, &m);
			m.round = core->peers[i].send.round;
			COUNT(core, snapshot_forwarded);
			out_send(core, i, &m);
		}
	}
}

void snapshot_released(struct core *core, struct slice key, struct id128 lock_id, bool barred_only) {
	for (uint32_t i = 0; core->snapshots && i < core->peer_count; i++) {
		if (core->peers[i].send.active) {
			struct message m = { .kind = MESSAGE_SNAPSHOT_RELEASED, .round = core->peers[i].send.round, .key = key, .lock_id = lock_id,
				.flags = barred_only ? 0 : FLAG_RELEASED };
			COUNT(core, snapshot_forwarded);
			out_send(core, i, &m);
		}
	}
}
