/* membership.h: changes of the configuration: epochs, proof, decrees, birth, force (section 6).
 *
 * `from` and `peer` are peer indexes. A function that takes `from` and a message handles that
 * message. Bytes in a message are borrowed for the call. A string that says why must be constant
 * text, because it may be read when the step is long over. */
#ifndef PAWL_CLUSTER_MEMBERSHIP_H
#define PAWL_CLUSTER_MEMBERSHIP_H

#include "membership_state.h"
#include "recovery.h"

/* ---- birth.c ---- */

/* The link to this peer is up: tells it this node's pledge. */
void birth_peer_up(struct core *core, uint32_t peer);

/* Does the next possible step of the birth: pledges, writes epoch 1, or tells the pledge. */
void birth_go_on(struct core *core);

/* Something is on disk; it may be the pledge, or epoch 1. */
void birth_persisted(struct core *core);

void birth_pledge(struct core *core, uint32_t from, const struct message *m);

/* ---- change.c ---- */

/* Begins the change that the request asks for. `has_caller`: the request is answered, now or when
 * the change has ended. */
void change_begin(struct core *core, const struct core_request *r, bool has_caller);

/* Goes to this state, and notes it for the log with this text. */
void change_step(struct core *core, enum change_state state, const char *text);

/* Ends the change and answers its caller, if it has one. `error`: PAWL_OK or a negative PAWL_E...
 * value. `why` may be NULL; `who` may be empty, and is copied. */
void change_finish(struct core *core, int error, const char *why, struct slice who);

/* This node has accepted a value in the decree. If it does not hear how that ends, it finishes the
 * decree itself, after a random time. */
void change_accepted(struct core *core);

/* This place in the table of peers had been another node's. */
void change_peer_added(struct core *core, uint32_t peer);

/* This node has adopted a configuration. */
void change_adopted(struct core *core);

/* What a peer says of itself has changed: it may vote now, or no longer. */
void change_peer_changed(struct core *core);

/* A link is up. */
void change_peer_up(struct core *core);

/* The client is gone. Its change goes on. */
void change_client_gone(struct core *core, uint64_t client);

/* Called with each beat of the node. */
void change_beat(struct core *core);

/* Frees what the change holds, at the end of the node. */
void change_free(struct core *core);

/* Returns what the change is doing, for a status; NULL: there is no change. */
const char *change_step_name(const struct core *core);

/* Returns how many records were copied ahead, and about how many there are to copy; 0 and 0:
 * nothing is being copied. */
void change_progress(const struct core *core, uint64_t *done, uint64_t *total);

/* ---- change_check.c ---- */

/* Checks whether the change may go on. It goes on, waits, or is refused. */
void change_check(struct core *core);

/* Begins the change: lets the masters of the next epoch copy ahead. */
void change_prepare(struct core *core);

/* Asks the masters of the next epoch to copy ahead. */
void change_ask_ahead(struct core *core);

/* Begins the decree if all masters of the next epoch that are linked are ready. */
void change_ahead_evaluate(struct core *core);

/* Ends a change that has made no progress in copying for too long. */
void change_copying_stalled(struct core *core);

/* Handles COPY_AHEAD_ANSWER. */
void change_ahead(struct core *core, uint32_t from, const struct message *m);

/* ---- decree.c ---- */

void decree_prepare(struct core *core, uint32_t from, const struct message *m);
void decree_accept(struct core *core, uint32_t from, const struct message *m);

/* Something is on disk: sends the answers that have waited for it. */
void decree_persisted(struct core *core);

/* ---- epoch.c ---- */

/* A frame of this peer has come. A peer that shows a lower epoch is told the configuration.
 * `first`: it is the first frame over this link. */
void epoch_heard(struct core *core, uint32_t peer, bool first);

/* Handles CONFIG: a peer tells a configuration. */
void epoch_told(struct core *core, uint32_t from, const struct message *m);

/* Tells the chosen configuration to all linked peers. */
void epoch_tell(struct core *core, const struct config *chosen);

/* Adopts a configuration that was chosen: writes it down. It takes effect when it is on disk. */
void epoch_adopt(struct core *core, const struct config *c);

/* core->config is in effect from now on. */
void epoch_take(struct core *core);

/* Something is on disk; it may be the configuration that is being adopted. */
void epoch_persisted(struct core *core);

/* One more master says that the epoch is complete. */
void epoch_said_complete(struct core *core);

/* Somebody votes now, or no longer does; it may be this node itself. */
void epoch_peer_changed(struct core *core);

/* ---- force.c ---- */

/* Tells whether this node may be started over. */
bool force_possible(const struct core *core);

/* Tells whether this node was started over and has nothing more to do for it. */
bool force_done(const struct core *core);

/* Writes down a new cluster of this node alone. Returns PAWL_OK, or a negative PAWL_E... value with
 * the reason in *why. */
int force_begin(struct core *core, const struct core_change *w, const char **why);

/* The new cluster is on disk and in effect. */
void force_effect(struct core *core);

/* ---- proof.c ---- */

/* A peer tells a later configuration of this cluster. */
void proof_told(struct core *core, uint32_t from, const struct message *m, const struct config *c);

/* This node is told of a later configuration that it does not believe yet. */
void proof_wanted(struct core *core);

/* Handles an acceptance (DECREE_ACCEPTED), also one that answers another proposer. */
void proof_accepted(struct core *core, uint32_t from, const struct message *m);

/* A peer has another configuration under the number of this epoch. */
void proof_contradicted(struct core *core, uint32_t from);

/* The link to this peer is lost. */
void proof_peer_lost(struct core *core, uint32_t peer);

/* Another epoch is in force. */
void proof_epoch(struct core *core);

/* Called with each beat of the node. */
void proof_beat(struct core *core);

/* Tells whether this node cannot get the proof that it needs, so that an operator has to help. */
bool proof_lacking(const struct core *core);

/* ---- propose.c ---- */

/* Begins the decree for the value of the change. */
void propose_start(struct core *core);

/* Begins a new round of the decree with a higher ballot. */
void propose_again(struct core *core);

/* Pauses after a round that could not succeed, or gives up a change that has taken too long. */
void propose_pause(struct core *core);

/* Called with each beat of the node while a round of the decree is under way. */
void propose_beat(struct core *core);

/* Handles DECREE_PROMISE and DECREE_ACCEPTED as answers to this node's own proposal. */
void propose_answered(struct core *core, uint32_t from, const struct message *m);

/* Handles DECREE_ACCEPTED, for this node's own proposal or another's. */
void propose_accepted(struct core *core, uint32_t from, const struct message *m);

#endif
