/* counts.h: the counters of a core. Part of core.h. */
#ifndef PAWL_CLUSTER_COUNTS_H
#define PAWL_CLUSTER_COUNTS_H

/* X(name): each counts how often something has happened at this node since core_new. */
#define CORE_COUNT_TABLE(X) \
	X(promise_ok) X(promise_held_self) X(promise_parked) X(promise_refused_held) \
	X(promise_refused_promised) X(promise_refused_queued) X(promise_refused_released) \
	X(promise_refused_recovering) X(promise_refused_contested) X(promise_refused_denied) \
	X(promise_refused_full) X(promise_together) X(promise_displaced) X(promise_unlapsed) \
	X(promise_replaced) \
	X(commit_overtaken_first) \
	X(commit_ok) X(commit_without_promise) X(commit_refused_held) \
	X(commit_refused_stale_noted) X(commit_refused_stale_clock) X(commit_refused_released) \
	X(commit_refused_too_long) X(commit_refused_recovering) X(commit_refused_contested) \
	X(commit_refused_full) \
	X(extend_ok) X(extend_learned) X(extend_not_had) X(extend_taken_back) \
	X(extend_permits_missing) X(extend_refused_held) X(extend_refused_released) \
	X(extend_refused_barred) X(extend_refused_too_long) X(extend_refused_recovering) \
	X(extend_refused_contested) X(extend_contested_ok) X(extend_late) X(extend_asked_again) \
	X(extend_behind) X(extend_behind_binding) X(extend_unsure) \
	X(repair_sent) X(repair_accepted) X(withdraw_found) X(withdraw_replaced) X(release_ok) \
	X(release_resent) X(released_refused) \
	X(wrong_epoch) X(unsound) X(clock_refused) X(lease_refused) X(clock_followed) \
	X(clock_behind) X(answer_late) X(answer_stale_round) \
	X(turn_given) X(turn_given_back) X(turn_rival) X(parked_promised) X(home_lost) \
	X(home_changed) X(queue_refused_full) X(waiter_dropped) X(claim_dropped) X(leaves_later) \
	X(wait_ended) \
	X(wait_unserved) \
	X(wait_put_off) X(try_tie) \
	X(repeat_joined) X(token_reused) \
	X(update_ok) X(update_refused_ballot) X(update_mismatch) X(update_mismatch_written_back) \
	X(update_unsure) X(update_repaired) \
	X(report_put_off) X(read_quorum) X(read_indeterminate) X(read_again) X(read_put_off) \
	X(birth) X(birth_refused) X(rejoin) X(waited) X(drained) X(drain_consumed) \
	X(snapshot_sent) X(snapshot_refused) X(snapshot_forwarded) X(snapshot_lost) \
	X(contested) X(contested_ended) X(record_index_made) X(ceiling_raised) X(vote_held_back) \
	X(persist_failed) \
	X(decree_promise) X(decree_promise_refused) X(decree_accept) X(decree_accept_refused) \
	X(decree_two_under_one) X(decree_not_voted) X(decree_value_adopted) X(decree_chosen) \
	X(decree_finished_for_other) X(decree_rival) \
	X(config_adopted) X(config_skipped) X(config_conflict) X(config_told) X(config_unproven) \
	X(config_passed_on) X(accepted_again) X(asked_by_no_member) X(config_removed) \
	X(epoch_kept_voting) X(handover) X(handover_rejoined) X(source_remembers) \
	X(source_forgot) X(source_never_voted) \
	X(copy_ahead_started) X(copy_ahead_ready) X(copy_ahead_goes_first) X(copy_ahead_used) \
	X(copy_ahead_broken) X(table_swapped) X(merge_swept) X(merge_dropped) \
	X(suspended) X(suspended_resumed) X(suspended_expired) X(removed_while_waiting) \
	X(restarted_by_epoch) X(update_unsure_by_epoch) \
	X(feed_resumed) X(feed_snapshot) X(feed_snapshot_resumed) X(feed_whole) X(feed_overrun) \
	X(feed_refused) X(feed_batch) X(feed_missed) X(feed_stray) X(follow_moved) \
	X(follow_stalled) X(follow_gone) X(feed_watch_events_missed) X(log_lost) \
	X(watch_event_lost) \
	X(counted_missed) X(unseen_told) X(unseen_missed) X(unwritten_missed) X(value_missed) \
	X(change_done) X(change_refused) X(change_lost) X(change_nothing) X(forced) X(non_member) \
	X(non_member_rolled_back) X(auto_replaced) X(role_refused) X(complete) \
	X(sync_compared) X(sync_leaf_pulled) X(sync_learned) X(sync_released) X(sync_rolled_back) \
	X(sync_dropped) X(sync_not_enough) \
	X(commit_overtaken) X(place_kept) X(place_left) X(commit_met_itself) \
	X(commit_rolled_back) \
	X(promise_shared) X(promise_permits) X(permits_none_common) X(promise_again) \
	X(home_waited) X(permits_widened) \
	X(permits_run_out) X(permits_uneven) X(commit_shared) X(commit_permits) X(terms_refused) \
	X(downgraded) X(downgrade_learned) X(delay_closed) X(key_several) \
	X(turn_overtaken) X(turn_together) X(turn_again) X(turn_moved) X(nominated) \
	X(nominate_none) \
	X(handed_over) X(hand_over_promised) X(extend_shortened) \
	X(release_closes) X(release_closed_later) \
	X(asked) X(group_begun) X(group_begun_again) X(group_held) X(group_failed) \
	X(group_extended) X(explained) X(report_waited) \
	X(link_reset) X(silence_pinged) X(suspected) X(suspected_wrongly) \
	X(unsteady) X(self_lost) X(stood_still) X(expired) X(busy) X(full) \
	X(no_memory) \
	X(catching_up_lost) X(broken) X(audit_violations) \
	X(binding_made) X(binding_ended) X(binding_lost)

enum core_count {
#define CORE_COUNT_ENUM(name) COUNT_##name,
	CORE_COUNT_TABLE(CORE_COUNT_ENUM)
#undef CORE_COUNT_ENUM
	COUNT_TOTAL
};

#endif
