/* membership.h: changes of the configuration: epochs, proof, decrees, birth, force. */
#ifndef PAWL_CLUSTER_MEMBERSHIP_H
#define PAWL_CLUSTER_MEMBERSHIP_H

#include "recovery.h"

/* ---- birth.c ---- */
void birth_peer_up(struct core *core, uint32_t peer);
void birth_go_on(struct core *core);
void birth_persisted(struct core *core);
void birth_pledge(struct core *core, uint32_t from, const struct message *m);

/* ---- change.c ---- */
void change_begin(struct core *core, const struct core_request *r, bool has_caller);
void change_step(struct core *core, enum change_state state, const char *text);
void change_finish(struct core *core, int error, const char *why, struct slice who); /* answers, and ends it */
void change_accepted(struct core *core);
void change_peer_added(struct core *core, uint32_t peer); /* the place had been another node's */
void change_adopted(struct core *core);
void change_peer_changed(struct core *core);
void change_peer_up(struct core *core);
void change_client_gone(struct core *core, uint64_t client);
void change_beat(struct core *core);
void change_free(struct core *core); /* at the end of the node */
const char *change_step_name(const struct core *core);
void change_progress(const struct core *core, uint64_t *done, uint64_t *total); /* of records copied beforehand; 0, 0: nothing is */

/* ---- change_check.c ---- */
void change_check(struct core *core);
void change_prepare(struct core *core);
void change_ask_ahead(struct core *core);
void change_ahead_evaluate(struct core *core);
void change_copying_stands(struct core *core);
void change_ahead(struct core *core, uint32_t from, const struct message *m);

/* ---- decree.c ---- */
void decree_prepare(struct core *core, uint32_t from, const struct message *m);
void decree_accept(struct core *core, uint32_t from, const struct message *m);
void decree_persisted(struct core *core);

/* ---- epoch.c ---- */
void epoch_heard(struct core *core, uint32_t peer, bool first);
void epoch_told(struct core *core, uint32_t from, const struct message *m);
void epoch_tell(struct core *core, const struct config *chosen); /* to everybody */
void epoch_adopt(struct core *core, const struct config *c);
void epoch_take(struct core *core);
void epoch_persisted(struct core *core);
void epoch_said_complete(struct core *core); /* one more master says so */
void epoch_peer_changed(struct core *core);

/* ---- force.c ---- */
bool force_possible(const struct core *core);
bool force_done(const struct core *core);
int force_begin(struct core *core, const struct core_change *w, const char **why);
void force_effect(struct core *core);

/* ---- proof.c ---- */
void proof_told(struct core *core, uint32_t from, const struct message *m, const struct config *c); /* of a later configuration */
void proof_wanted(struct core *core);
void proof_accepted(struct core *core, uint32_t from, const struct message *m);
void proof_contradicted(struct core *core, uint32_t from);
void proof_peer_lost(struct core *core, uint32_t peer);
void proof_epoch(struct core *core);
void proof_beat(struct core *core);
bool proof_lacking(const struct core *core);

/* ---- propose.c ---- */
void propose_start(struct core *core);
void propose_again(struct core *core); /* with a higher ballot */
void propose_pause(struct core *core);
void propose_beat(struct core *core);
void change_decree(struct core *core, uint32_t from, const struct message *m);
void change_accepted_there(struct core *core, uint32_t from, const struct message *m);

#endif
