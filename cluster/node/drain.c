/* drain.c: a planned stop (section 4). The node stops voting first and then hands out what it
 * knows. The next start takes that back, and then it was no restart at all, only a pause. Remaining
 * times start again as they were at the stop. */
#include "node.h"

#define DRAIN_MESSAGES 512

/* Returns the name under which the operation is to be rolled back: that of a commit for permits
 * that is under way (section 10), or that of an extension (section 11). 0: there is none. */
static uint64_t roll_back_name(const struct op *op) {
	return op->kind == CORE_ACQUIRE ? op_acquire(op)->roll_back_name
		: op->kind == CORE_EXTEND ? op_extend(op)->roll_back_name
		: 0;
}

void drain_start(struct core *core) {
	if (core->state == CORE_DRAINED) {
		return;
	}
	bool voted = core_votes(core);
	state_transfer_stop(core);
	persist_votes_end(core);
	core->state = CORE_DRAINED;
	/* A node that did not vote has nothing to hand on: there is no frame and no end. */
	core->recovery->drain_whole = !voted;
	core->node.drain_bucket = 0;
	core->node.drain_written = 0;
	core->node.drain_tombstones = 0;
	COUNT(core, drained);
	out_note(core, NOTE_DRAINING, core->self, 0, NULL, slice_of(NULL, 0));
	for (struct op *op = op_first(core); op; op = op_following(core)) {
		if (op->kind == CORE_ACQUIRE && op->state != OP_COMMITTING) {
			attempt_fail(core, op, PAWL_ERECOVERING);
		} else if (op->kind == CORE_ACQUIRE_ALL) {
			group_drain(core, op);
		} else if (op->kind == CORE_WAIT) {
			local_end(core, op, PAWL_ERECOVERING);
		} else {
			/* A half-done write may still take effect (section 2, Update). */
			bool half_done = op->kind == CORE_UPDATE && op->state == OP_SECOND;
			const uint64_t name = roll_back_name(op);
			if (name) {
				COUNT(core, commit_rolled_back);
				release_roll_back_once(core, op->key, op->lock_id, name);
			}
			op_reply_all(core, op, half_done ? PAWL_EUNSURE : PAWL_ERECOVERING);
			op_free(core, op);
		}
	}
	for (uint32_t i = 0; i < core->peer_count; i++) {
		snapshot_stop(core, i);
	}
	feed_stop_all(core);
	follow_stop(core);
	peers_tell(core);
}

void drain_done(struct core *core) {
	alloc_free(&core->alloc, core->node.drain_messages,
		DRAIN_MESSAGES * sizeof *core->node.drain_messages);
	core->node.drain_messages = NULL;
}

/* Writes no more bytes than the codec takes in a frame, values and all. Nothing changes between two
 * frames, so a place in the walk is a bucket and how many of its records have been written. */
static size_t fill_records(struct core *core, size_t n) {
	size_t bytes = 0;
	for (; core->node.drain_bucket < core->store.live->keys.bucket_count;
		core->node.drain_bucket++, core->node.drain_written = 0) {
		uint32_t at = 0;
		for (struct map_node *m =
			map_bucket(&core->store.live->keys, core->node.drain_bucket);
			m; m = map_next_in_bucket(m)) {
			struct key *key = CONTAINER_OF(m, struct key, node);
			if (core->store.finish.active) {
				/* What is handed on is finished, and only once, so that it keeps
				 * its place. */
				finish_key(core, key);
			}
			for (const struct record *r = key->held; r; r = r->next, at++) {
				if (at < core->node.drain_written) {
					continue;
				}
				if (n >= DRAIN_MESSAGES || bytes >= FRAME_BYTES_MAX / 2) {
					return n;
				}
				record_message(core, MESSAGE_SNAPSHOT_RECORD, key, r,
					&core->node.drain_messages[n++]);
				bytes += 256 + record_size(r) + key->size;
				core->node.drain_written++;
			}
		}
	}
	return n;
}

static size_t fill_tombstones(struct core *core, size_t n) {
	for (; core->node.drain_tombstones < core->store.tombstones_size && n < DRAIN_MESSAGES;
		core->node.drain_tombstones++) {
		const struct tombstone *r = tombstone_at(core, core->store.tombstones_next,
			core->node.drain_tombstones);
		if (r->used) {
			tombstone_describe(r, slice_str("?"), &core->node.drain_messages[n++]);
		}
	}
	return n;
}

bool core_drain_frame(struct core *core, struct instant now, struct frame *frame) {
	CHECK(core->state == CORE_DRAINED);
	CHECK(now.boot >= core->now.boot && now.raw >= core->now.raw);
	core->now = now;
	if (core->recovery->drain_whole) {
		return false;
	}
	if (core->node.drain_messages == NULL) {
		core->node.drain_messages =
			alloc_new(&core->alloc, DRAIN_MESSAGES * sizeof *core->node.drain_messages);
		if (core->node.drain_messages == NULL) {
			/* Without its end the side file is not taken, and the next start is an
			 * ordinary restart. */
			return false;
		}
	}
	size_t n = fill_tombstones(core, fill_records(core, 0));
	if (core->node.drain_bucket >= core->store.live->keys.bucket_count &&
		core->node.drain_tombstones >= core->store.tombstones_size && n < DRAIN_MESSAGES) {
		core->node.drain_messages[n++] =
			(struct message){ .kind = MESSAGE_SNAPSHOT_END, .clock = core->clock };
		core->recovery->drain_whole = true;
	}
	*frame = (struct frame){ .epoch = core->config.epoch, .config_hash = core->config_hash,
		.sender = core->durable.node_id, .boot = core->durable.boot, .clock = core->clock,
		.messages = core->node.drain_messages, .count = n };
	return true;
}

/* style: record, because the node restores its table before it votes, and nobody follows it yet. */
static bool restore_record(struct core *core, const struct message *m) {
	struct key *key = table_make(core, m->key);
	struct record *r = key && !key_record(key, m->lock_id) ? record_new(core, m) : NULL;
	if (r && !record_write(core, &r, NULL, m->ballot, m->prepared)) {
		record_free(core, r);
		r = NULL;
	}
	if (r) {
		r->noted = m->noted;
		record_put_older(r, older_of(m));
		r->rests_on = m->name;
		r->vouched = (m->flags & FLAG_COUNTS) != 0;
		r->end = instant_add(core->now, span_from_us(m->left_us));
		r->accepted = core->tick;
		key_add_record(core, key, r);
		digest_join(core, key, r);
	}
	if (key) {
		table_settle(core, key);
	}
	return r != NULL;
}

/* Only what the last run of this very node wrote under this very configuration is taken back. */
void drain_restore(struct core *core, const struct frame *frame) {
	if (core->state != CORE_RECOVERING || frame->epoch != core->config.epoch ||
		frame->config_hash != core->config_hash ||
		!id128_equal(frame->sender, core->durable.node_id) ||
		frame->boot != core->durable.boot) {
		core->node.drain_failed = true;
	}
	for (size_t i = 0; i < frame->count && !core->node.drain_failed; i++) {
		const struct message *m = &frame->messages[i];
		if (m->kind == MESSAGE_SNAPSHOT_RECORD) {
			core->node.drain_failed = !restore_record(core, m);
		} else if (m->kind == MESSAGE_SNAPSHOT_RELEASED) {
			tombstone_take(core, m);
		} else if (m->kind == MESSAGE_SNAPSHOT_END) {
			core->recovery->drain_whole = true;
			core->recovery->drain_clock = m->clock;
		}
	}
	core->recovery->drain_whole = core->recovery->drain_whole && !core->node.drain_failed;
}
