/* events.c: which rooms hear of what happens in a lower room, and in which order. It only calls
 * them. */
#include "node.h"

static void persisted(struct core *core) {
	birth_persisted(core);
	epoch_persisted(core);
	state_transfer_persisted(core);
	decree_persisted(core);
}

static void link_up(struct core *core, uint32_t peer) {
	binding_master_peer_up(core, peer);
	birth_peer_up(core, peer);
	peer_ping_send(core, peer);
	change_peer_up(core);
}

static void link_ends(struct core *core, uint32_t peer) {
	binding_master_peer_lost(core, peer, false);
}

static void link_lost(struct core *core, uint32_t peer, bool closed) {
	proof_peer_lost(core, peer);
	snapshot_stop(core, peer);
	feed_stop(core, peer);
	follow_peer_lost(core, peer);
	observe_lost(core, peer);
	queue_peer_lost(core, peer);
	state_transfer_peer_lost(core, peer);
	op_peer_lost(core, peer, closed);
	attempt_rehome_all(core);
}

static void master_votes_changed(struct core *core, uint32_t peer) {
	op_peer_changed(core, peer);
	attempt_peer_changed(core, peer);
	attempt_rehome_all(core);
}

static void link_changed(struct core *core, uint32_t peer) {
	master_votes_changed(core, peer);
	follow_peer_changed(core);
	epoch_peer_changed(core);
}

static void suspicion_changed(struct core *core, uint32_t peer) {
	(void)peer;
	attempt_rehome_all(core);
}

/* It is rare, and its caller is to cost little. */
static __attribute__((noinline)) void tell_waits(struct core *core, struct key *key,
	const struct record *r) {
	if (core->coordinator.queued_count > 0) {
		attempt_key_changed(core, key, r != NULL);
	}
	if (key_more(key)) {
		local_check_waits(core, key, r);
	}
}

static void key_changed(struct core *core, struct key *key, const struct record *r) {
	if (core->coordinator.queued_count > 0 || key_more(key)) {
		tell_waits(core, key, r);
	}
}

static void self_lost(struct core *core) {
	queue_peer_lost(core, core->self);
	op_peer_lost(core, core->self, false);
	attempt_rehome_all(core);
}

static void self_again(struct core *core) {
	counted_self_again(core);
	master_votes_changed(core, core->self);
	epoch_peer_changed(core);
}

static void peer_dropped(struct core *core, uint32_t peer) {
	snapshot_stop(core, peer);
	binding_master_peer_lost(core, peer, false);
}

static void table_ends(struct core *core, struct table *old) {
	/* The entries of queues stand on keys of this table. */
	CHECK(core->master.waiter_count == 0);
	feed_stop_all(core);
	finish_end(core, old);
}

static void table_swapped(struct core *core, struct table *old) {
	local_tables_swapped(core, old);
	snapshot_tables_swapped(core, old);
	watch_events_another_table(core);
}

static void lock_ended(struct core *core, struct slice key, struct id128 lock_id) {
	if (core->copied) {
		snapshot_released(core, key, lock_id);
	}
}

static void votes_changed(struct core *core) {
	master_votes_changed(core, core->self);
	epoch_peer_changed(core);
}

const struct observers node_observers = {
	.persisted = persisted,
	.link_comes = counted_peer_up,
	.link_up = link_up,
	.link_ends = link_ends,
	.link_lost = link_lost,
	.link_changed = link_changed,
	.suspicion_changed = suspicion_changed,
	.self_lost = self_lost,
	.self_again = self_again,
	.votes_changed = votes_changed,
	.peer_added = change_peer_added,
	.peer_dropped = peer_dropped,
	.peers_moved = op_permute,
	.logged = feed_logged,
	.log_ends = feed_stop_all,
	.watched = follow_watched,
	.table_ends = table_ends,
	.table_swapped = table_swapped,
	.table_emptied = follow_room,
	.record_changed = record_changed,
	.record_lost = snapshot_lost,
	.lock_ended = lock_ended,
	.record_copied = snapshot_changed,
	.key_opened = queue_record_ended,
	.key_ended = key_ended,
	.key_changed = key_changed,
	.key_freed = queue_free_all,
};
