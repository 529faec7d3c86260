/* coverage.c: what has to happen sometimes: a run of many seeds in which one of these never came up
 * has not tested what it should. */
#include "run.h"

static const enum core_count wanted[] = {
	COUNT_promise_refused_held, COUNT_promise_refused_promised, COUNT_promise_refused_queued,
	COUNT_promise_refused_released, COUNT_promise_refused_recovering,
	COUNT_promise_refused_contested, COUNT_promise_refused_denied, COUNT_promise_refused_full,
	COUNT_promise_held_self, COUNT_promise_displaced, COUNT_promise_parked,
	COUNT_promise_replaced,
	COUNT_commit_without_promise, COUNT_commit_refused_held, COUNT_commit_refused_stale_noted,
	COUNT_commit_refused_stale_clock, COUNT_commit_refused_released,
	COUNT_commit_refused_too_long, COUNT_extend_refused_too_long,
	COUNT_commit_refused_recovering, COUNT_commit_refused_contested, COUNT_extend_refused_held,
	COUNT_extend_refused_released, COUNT_extend_refused_barred, COUNT_extend_refused_recovering,
	COUNT_extend_refused_contested, COUNT_extend_learned, COUNT_extend_not_had,
	COUNT_extend_behind_binding, COUNT_extend_contested_ok, COUNT_extend_late,
	COUNT_extend_unsure, COUNT_withdraw_found,
	COUNT_withdraw_replaced, COUNT_repair_sent, COUNT_repair_accepted, COUNT_rejoin,
	COUNT_waited, COUNT_birth, COUNT_drained, COUNT_drain_consumed, COUNT_contested,
	COUNT_contested_ended, COUNT_released_refused, COUNT_release_resent, COUNT_ceiling_raised,
	COUNT_vote_held_back, COUNT_turn_given, COUNT_parked_promised, COUNT_turn_given_back,
	COUNT_turn_rival, COUNT_home_lost, COUNT_waiter_dropped, COUNT_wait_ended, COUNT_try_tie,
	COUNT_wait_put_off,
	COUNT_update_refused_ballot, COUNT_update_mismatch, COUNT_update_mismatch_written_back,
	COUNT_update_repaired, COUNT_update_unsure, COUNT_read_indeterminate, COUNT_clock_refused,
	COUNT_link_reset, COUNT_stood_still, COUNT_answer_late, COUNT_answer_stale_round,
	COUNT_repeat_joined, COUNT_token_reused, COUNT_persist_failed, COUNT_full, COUNT_busy,
	COUNT_broken, COUNT_wrong_epoch, COUNT_decree_promise_refused, COUNT_decree_accept_refused,
	COUNT_decree_not_voted, COUNT_decree_value_adopted, COUNT_decree_chosen, COUNT_decree_rival,
	COUNT_config_skipped, COUNT_config_removed, COUNT_epoch_kept_voting, COUNT_handover,
	COUNT_handover_rejoined, COUNT_source_remembers, COUNT_source_forgot,
	COUNT_copy_ahead_ready, COUNT_copy_ahead_used, COUNT_copy_ahead_broken, COUNT_table_swapped,
	COUNT_merge_swept, COUNT_snapshot_lost, COUNT_suspended_resumed, COUNT_suspended_expired,
	COUNT_restarted_by_epoch, COUNT_update_unsure_by_epoch, COUNT_change_done,
	COUNT_change_refused, COUNT_change_lost, COUNT_change_nothing, COUNT_forced,
	COUNT_non_member, COUNT_auto_replaced, COUNT_complete, COUNT_feed_missed,
	COUNT_feed_watch_events_missed, COUNT_feed_overrun, COUNT_follow_moved, COUNT_sync_learned,
	COUNT_sync_released, COUNT_promise_shared, COUNT_promise_permits, COUNT_permits_none_common,
	COUNT_promise_again, COUNT_promise_together, COUNT_turn_together, COUNT_turn_again,
	COUNT_commit_shared,
	COUNT_commit_permits, COUNT_terms_refused, COUNT_downgraded, COUNT_downgrade_learned,
	COUNT_delay_closed, COUNT_key_several, COUNT_turn_overtaken, COUNT_nominated,
	COUNT_nominate_none, COUNT_handed_over, COUNT_hand_over_promised, COUNT_release_closes,
	COUNT_release_closed_later, COUNT_extend_shortened,
	COUNT_asked, COUNT_group_begun, COUNT_group_held, COUNT_group_failed, COUNT_group_extended,
	COUNT_explained, COUNT_self_lost, COUNT_report_waited,
	COUNT_binding_ended, COUNT_commit_overtaken, COUNT_place_kept, COUNT_place_left,
	COUNT_commit_rolled_back, COUNT_extend_taken_back, COUNT_clock_followed, COUNT_clock_behind,
	COUNT_silence_pinged, COUNT_suspected, COUNT_suspected_wrongly, COUNT_turn_moved,
};

void coverage_print(void) {
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		puts(core_count_name(wanted[i]));
	}
	for (int i = 0; i < RUN_PARTED; i++) {
		puts(run_count_name((enum run_count)i));
	}
}

bool coverage_missing(const struct run_totals *totals) {
	bool missing = false;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		if (totals->counts[wanted[i]] == 0) {
			printf("never happened: %s\n", core_count_name(wanted[i]));
			missing = true;
		}
	}
	for (int i = 0; i < RUN_PARTED; i++) {
		if (totals->run_counts[i] == 0) {
			printf("never happened: %s\n", run_count_name((enum run_count)i));
			missing = true;
		}
	}
	return missing;
}
