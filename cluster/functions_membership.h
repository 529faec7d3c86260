/* functions_membership.h: the part of functions.h for changes of the configuration (section 6). Included by it. */
#ifndef PAWL_CLUSTER_FUNCTIONS_MEMBERSHIP_H
#define PAWL_CLUSTER_FUNCTIONS_MEMBERSHIP_H

/* ---- gather.c, premerge.c: collecting what others know ---- */
void gather_rejoin(struct core *core);
void gather_handover(struct core *core);
bool gather_ahead(struct core *core, const struct config *c);
bool gather_ready(const struct core *core);
void gather_stop(struct core *core);
void gather_again(struct core *core);
void gather_beat(struct core *core);
span_ns gather_left(const struct core *core, struct instant now); /* of a handover from masters that have forgotten */
bool gather_busy(const struct core *core); /* its own table is being copied: gather_go_on once a step */
bool gather_paused(const struct core *core); /* a source waits to be asked for its next piece */
void gather_pause_over(struct core *core);
void gather_go_on(struct core *core);
void gather_message(struct core *core, uint32_t from, const struct message *m);
void gather_changed(struct core *core, const struct key *key, const struct record *r);
void gather_released(struct core *core, const struct message *m);
void gather_lost(struct core *core, const struct message *m);
void gather_peer_lost(struct core *core, uint32_t peer);
void gather_persisted(struct core *core);
void premerge_asked(struct core *core, uint32_t from, const struct message *m);
void premerge_ended(struct core *core, uint32_t from, const struct message *m);
void premerge_tell(struct core *core);

/* ---- snapshot.c, merge.c: what is copied, and what becomes of it (section 4) ---- */
void snapshot_asked(struct core *core, uint32_t from, const struct message *m);
void snapshot_go_on(struct core *core, uint32_t from, const struct message *m);
void snapshot_changed(struct core *core, const struct key *key, const struct record *r);
void snapshot_released(struct core *core, struct slice key, struct id128 lock_id); /* what is remembered of it */
void snapshot_lost(struct core *core, const struct key *key, const struct record *r, span_ns closed);
void snapshot_stop(struct core *core, uint32_t peer);
void snapshot_tables_swapped(struct core *core, struct table *old); /* those who are being sent it ask anew */
void snapshot_record_message(const struct core *core, const struct key *key, const struct record *r, struct message *m);
void snapshot_epoch(struct core *core); /* another epoch: sessions end, or are over */
bool merge_record(struct core *core, struct table *t, uint32_t source, const struct message *m); /* false: no memory; the snapshot is not whole then */
void merge_released(struct core *core, struct table *t, const struct message *m);
void merge_lost(struct core *core, struct table *t, uint32_t source, const struct message *m);
void merge_forget_sources(struct core *core); /* no source that was asked so far counts */
void merge_note_clock(struct core *core); /* in every record that was merged: voting by waiting */
void merge_finish_begin(struct core *core);                      /* the live table is what was merged */
void merge_finish_key(struct core *core, struct key *key);       /* before anybody looks at it */
bool merge_finish_walked(struct core *core, struct key *key);    /* the same, for a walk over the live table; false: the key is freed */
void merge_finish_end(struct core *core, struct table *t);       /* the table is live no more */
void merge_sweep(struct core *core);

/* ---- slots.c: the table of peers ---- */
int slots_init(struct core *core); /* 0 or PAWL_ENOMEM */
void slots_done(struct core *core);
void slots_rebuild(struct core *core);
int slots_guest(struct core *core, const char *name, const char *address); /* PAWL_EFULL: no room */
void slots_guest_lost(struct core *core, uint32_t peer);
void slots_beat(struct core *core);
int slots_find_name(const struct core *core, const char *name);  /* -1: nobody */
int slots_find_id(const struct core *core, struct id128 id);     /* itself, or who is at the other end of a link; -1: nobody */
void op_permute(struct core *core, const int from[NODES_MAX]);
void out_permute(struct core *core, const int from[NODES_MAX]);
void out_drop_epoch(struct core *core); /* what was queued under the epoch before, but for what is of any epoch */
struct core *out_core(const struct core_out *out);

/* ---- pace.c: the longest round trips of the last half minute to minute, links that are gone included ---- */
void pace_measured(struct core *core, uint32_t peer, span_ns round_trip);
void pace_told(struct core *core, uint32_t peer, uint64_t us);
span_ns pace_own(const struct core *core); /* to any member; 0: none was measured */
span_ns pace_longest(const struct core *core, uint32_t *peer); /* the same, also as members have told; *peer: to whom, or who told */

/* ---- epoch.c, proof.c, restart.c, decree.c, change.c, force.c: membership (section 6) ---- */
void epoch_heard(struct core *core, uint32_t peer, bool first);
void epoch_told(struct core *core, uint32_t from, const struct message *m);
void epoch_tell(struct core *core, const struct config *chosen); /* to everybody */
void epoch_adopt(struct core *core, const struct config *c);
void epoch_take(struct core *core);
void epoch_persisted(struct core *core);
void epoch_said_complete(struct core *core); /* one more master says so */
void epoch_peer_changed(struct core *core);
void epoch_seen(struct core *core); /* notes the largest timings it votes under */
uint32_t epoch_voters(const struct core *core);
bool epoch_fresh(const struct core *core); /* adopted just now: its masters may not vote yet */
bool epoch_passes(const struct core *core); /* one follows the other: that fewer than q vote is no want of a quorum */
uint64_t epoch_missing(const struct core *core);
bool epoch_source_needed(const struct core *core); /* its table must stay for masters that have not taken over yet */
bool proof_master(const struct core *core, uint32_t from); /* the link is to a master of this epoch, or to nobody: itself */
bool proof_identity(const struct core *core, uint32_t from); /* the other end names no identity that belongs to another name */
void proof_told(struct core *core, uint32_t from, const struct message *m, const struct config *c); /* of a later configuration */
void proof_wanted(struct core *core);
void proof_accepted(struct core *core, uint32_t from, const struct message *m);
void proof_contradicted(struct core *core, uint32_t from);
void proof_peer_lost(struct core *core, uint32_t peer);
void proof_epoch(struct core *core);
void proof_beat(struct core *core);
bool proof_lacking(const struct core *core);
void proof_announced(struct core *core, const struct config *c);
bool proof_next_master(const struct core *core, uint32_t peer);
void restart_begin(struct core *core, struct op *op);
void commit_put_value(const struct op *op, struct message *m);
bool commit_give_back(struct core *core, struct op *op); /* false: not at every master */
void release_give_back_once(struct core *core, struct slice key, struct id128 lock_id, uint64_t name);
bool release_give_back(struct core *core, struct slice key, struct id128 lock_id, uint64_t name); /* false: not every master is told at once */
void restart_attempt(struct core *core, struct op *op); /* an acquire whose commit failed, under the same lock_id */
void restart_all(struct core *core);
void restart_parked(struct core *core);
void restart_timer(struct core *core, struct op *op);
void decree_prepare(struct core *core, uint32_t from, const struct message *m);
void decree_accept(struct core *core, uint32_t from, const struct message *m);
void decree_persisted(struct core *core);
bool decree_follows(const struct core *core, const struct config *c); /* it may be chosen in this epoch */
void change_begin(struct core *core, const struct core_request *r, bool has_caller);
void change_check(struct core *core);
void change_prepare(struct core *core);
void change_ask_ahead(struct core *core);
void change_ahead_judge(struct core *core);
void change_step(struct core *core, enum change_state state, const char *text);
void change_finish(struct core *core, int error, const char *why, struct slice who); /* answers, and ends it */
void propose_start(struct core *core);
void propose_again(struct core *core); /* with a higher ballot */
void propose_pause(struct core *core);
void propose_beat(struct core *core);
void change_ahead(struct core *core, uint32_t from, const struct message *m);
void change_decree(struct core *core, uint32_t from, const struct message *m);
void change_accepted(struct core *core);
void change_adopted(struct core *core);
void change_peer_changed(struct core *core);
void change_peer_up(struct core *core);
void change_client_gone(struct core *core, uint64_t client);
void change_beat(struct core *core);
void change_free(struct core *core); /* at the end of the node */
const char *change_step_name(const struct core *core);
void change_progress(const struct core *core, uint64_t *done, uint64_t *total); /* of records copied beforehand; 0, 0: nothing is */
bool force_possible(const struct core *core);
bool force_done(const struct core *core);
int force_begin(struct core *core, const struct core_change *w, const char **why);
void force_effect(struct core *core);

#endif
