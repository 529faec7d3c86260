/* roll_back.c: what a request that failed may have left is rolled back under its name
 * (section 11). */
#include "coordinator.h"

/* Returns when the lease is over at every master. This node's own record does not tell, because it
 * may have missed an extension. */
struct instant longest_lease(const struct core *core) {
	return instant_add(core->now,
		span_grow(core->config.max_lease, 2 * core->config.drift_ppm));
}

/* Tells the masters that can be reached now. Nobody waits for their answers. */
void release_roll_back_once(struct core *core, struct slice key, struct id128 lock_id,
	uint64_t name) {
	const struct message m = { .kind = MESSAGE_RELEASE, .key = key, .lock_id = lock_id,
		.name = name };
	for (uint32_t i = 0; i < core->masters; i++) {
		if (peer_reachable(core, i)) {
			out_send(core, i, &m);
		}
	}
}

/* Rolls back, under its name, what a commit that failed may have left (section 11). Nobody waits
 * for this, and it is sent again like a release. */
bool release_roll_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name) {
	struct op *op = op_new_alone(core,
		&(struct core_request){ .op = CORE_RELEASE, .key = key, .lock_id = lock_id });
	if (op == NULL) {
		COUNT(core, no_memory);
		release_roll_back_once(core, key, lock_id, name);
		return false;
	}
	op->part_of = name;
	op->until = longest_lease(core);
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_RELEASE);
	m.name = name;
	op_ask_all(core, op, &m);
	bool all = true;
	/* A master that is not in this epoch yet may not have heard the message. */
	for (uint32_t i = 0; i < core->masters; i++) {
		all = all && op->votes[i].state != VOTE_GONE && peer_votes(core, i);
	}
	catch_up_begin(core, op);
	return all;
}

/* What is sent again names what is left of the time, so that it is not longer anywhere. */
span_ns release_closes(const struct core *core, const struct op *op) {
	const struct release_state *release = op_release(op);
	return release->closes > 0 ? instant_left_long(core->now, release->closed_until) : 0;
}

/* A holder that goes on with a lock which was bound here must not lose it together with this node.
 * So only a master where the lock is still bound to this node ends it. */
struct message release_message(const struct core *core, const struct op *op) {
	const struct release_state *release = op_release(op);
	if (release->lost_here) {
		struct message lost = op_message(op, MESSAGE_BINDING);
		lost.flags = FLAG_NOW;
		return lost;
	}
	const span_ns closes = release_closes(core, op);
	if (closes > 0) {
		struct message close = op_message(op, MESSAGE_HAND_OVER);
		close.closes_us = (uint64_t)((closes + SPAN_US - 1) / SPAN_US);
		return close;
	}
	struct message m = op_message(op, MESSAGE_RELEASE);
	m.name = op->part_of;
	m.number = op->terms.binding;
	return m;
}
