/* recovery.h: snapshots, merging, copying, rejoining. */
#ifndef PAWL_CLUSTER_RECOVERY_H
#define PAWL_CLUSTER_RECOVERY_H

#include "repair.h"

/* ---- announced.c ---- */
struct instant announced_until(const struct core *core);
bool announced_goes_first(struct core *core, const struct config *c);
bool proof_next_master(const struct core *core, uint32_t peer);
bool decree_follows(const struct core *core, const struct config *c); /* it may be chosen in this epoch */

/* ---- state_transfer.c ---- */
void state_transfer_rejoin(struct core *core);
void state_transfer_handover(struct core *core);
bool state_transfer_ahead(struct core *core, const struct config *c);
bool state_transfer_ready(const struct core *core);
void state_transfer_stop(struct core *core);
void state_transfer_again(struct core *core);
span_ns state_transfer_left(const struct core *core, struct instant now); /* of a handover from masters that have forgotten */
void state_transfer_peer_lost(struct core *core, uint32_t peer);
void state_transfer_persisted(struct core *core);

/* ---- state_transfer_ask.c ---- */
void state_transfer_beat(struct core *core);
bool state_transfer_paused(const struct core *core); /* a source waits to be asked for its next piece */
void state_transfer_pause_over(struct core *core);
void state_transfer_message(struct core *core, uint32_t from, const struct message *m);

/* ---- state_transfer_own.c ---- */
bool state_transfer_busy(const struct core *core); /* its own table is being copied: gather_go_on once a step */
void state_transfer_go_on(struct core *core);
void state_transfer_changed(struct core *core, const struct key *key, const struct record *r);
void state_transfer_released(struct core *core, const struct message *m);
void state_transfer_lost(struct core *core, const struct message *m);

/* ---- merge.c ---- */
bool merge_record(struct core *core, struct table *t, uint32_t source, const struct message *m); /* false: no memory; the snapshot is not whole then */
void merge_released(struct core *core, struct table *t, const struct message *m);
void merge_lost(struct core *core, struct table *t, uint32_t source, const struct message *m);
void merge_finish_begin(struct core *core);                      /* the live table is what was merged */

/* ---- copy_ahead.c ---- */
void copy_ahead_asked(struct core *core, uint32_t from, const struct message *m);
void copy_ahead_ended(struct core *core, uint32_t from, const struct message *m);
void copy_ahead_tell(struct core *core);

/* ---- recovery.c ---- */
void recovery_start(struct core *core, bool restored);
void recovery_again(struct core *core); /* stops voting and rejoins */
void recovery_beat(struct core *core);
void recovery_vote(struct core *core, const char *how);

/* ---- snapshot.c ---- */
void snapshot_asked(struct core *core, uint32_t from, const struct message *m);
void snapshot_go_on(struct core *core, uint32_t from, const struct message *m);
void snapshot_changed(struct core *core, const struct key *key, const struct record *r);
void snapshot_released(struct core *core, struct slice key, struct id128 lock_id); /* what is remembered of it */
void snapshot_lost(struct core *core, const struct key *key, const struct record *r, span_ns closed);
void snapshot_stop(struct core *core, uint32_t peer);
void snapshot_tables_swapped(struct core *core, struct table *old); /* those who are being sent it ask anew */
void snapshot_epoch(struct core *core); /* another epoch: sessions end, or are over */

#endif
