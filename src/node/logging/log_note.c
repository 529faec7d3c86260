/* log_note.c: writes what the core notes as log lines. docs/operations/reference.md explains each.
 */
#include "log.h"

static const char *note_peer(const struct core *core, const struct core_note *note) {
	return note->peer < core_peer_count(core) ? core_peer(core, note->peer)->name : "";
}

static void note_of_quorum(struct log *log, const struct core_note *note) {
	if (note->kind == NOTE_QUORUM_LOST) {
		log_to(log, LEVEL_WARNING, "quorum_lost", LOG_NUMBER("voting", note->value),
			LOG_TEXT("remedy",
				"start the masters that are down, or repair the network between "
				"them; pawl cluster show names them"));
	} else {
		log_to(log, LEVEL_NOTICE, "quorum_back", LOG_NUMBER("voting", note->value));
	}
}

/* Writes notes about membership and replication. */
static void note_of_the_set(struct log *log, const struct core_note *note, const char *peer) {
	if (note->kind == NOTE_OUTSIDE) {
		log_to(log, LEVEL_WARNING, "outside", LOG_NUMBER("epoch", note->value),
			LOG_TEXT("remedy",
				"add this node with pawl cluster add-replica, or give it back its "
				"place with pawl cluster replace NAME NAME"));
	} else if (note->kind == NOTE_FOLLOWING) {
		log_to(log, LEVEL_INFO, "following", LOG_TEXT("peer", peer));
	} else if (note->kind == NOTE_ADOPTED) {
		log_to(log, LEVEL_NOTICE, "epoch_adopted", LOG_NUMBER("epoch", note->value),
			LOG_TEXT("as", note->text));
	} else if (note->kind == NOTE_CONFLICT) {
		log_to(log, LEVEL_ERROR, "epoch_conflict", LOG_TEXT("peer", peer),
			LOG_NUMBER("epoch", note->value),
			LOG_TEXT("remedy",
				"one cluster has become two (after pawl cluster force?), or that "
				"peer lies: compare 'pawl cluster show' on both nodes, and "
				"stop the wrong one"));
	} else if (note->kind == NOTE_UNPROVEN) {
		log_to(log, LEVEL_WARNING, "epoch_unproven", LOG_NUMBER("epoch", note->value),
			LOG_TEXT("remedy",
				"peers report a later configuration, but too few of the masters "
				"that this node knows confirm it. Start those masters again; if "
				"they are gone for good, empty this node's state_dir, list the "
				"present masters in its configuration file, and run pawl cluster "
				"replace NAME NAME"));
	} else if (note->kind == NOTE_COMPLETE) {
		log_to(log, LEVEL_NOTICE, "epoch_complete", LOG_NUMBER("epoch", note->value));
	} else if (note->kind == NOTE_ROLE_REFUSED) {
		log_to(log, LEVEL_WARNING, "role_refused", LOG_TEXT("peer", peer),
			LOG_TEXT("why", "its certificate does not allow it to be a master"),
			LOG_TEXT("remedy",
				"give that node a certificate without a role (pawl cert "
				"node), and reload it"));
	} else if (note->kind == NOTE_CHANGE) {
		log_to(log, LEVEL_NOTICE, "change", LOG_NUMBER("epoch", note->value),
			LOG_TEXT("step", note->text));
	} else if (note->kind == NOTE_FORCED) {
		log_to(log, LEVEL_WARNING, "forced", LOG_NUMBER("epoch", note->value));
	}
}

/* Writes notes about the birth of the cluster. */
static void note_of_birth(struct log *log, const struct core *core, const struct core_note *note,
	const char *peer) {
	if (note->kind == NOTE_BORN) {
		log_to(log, LEVEL_NOTICE, "cluster_born",
			LOG_TEXT("cluster", core_config(core)->cluster),
			LOG_NUMBER("epoch", core_config(core)->epoch));
	} else if (note->kind == NOTE_BIRTH_DIFFERS) {
		log_to(log, LEVEL_ERROR, "birth_differs", LOG_TEXT("peer", peer),
			LOG_TEXT("what", note->text),
			LOG_TEXT("remedy",
				note->value ? "the cluster already exists: restore this node's own "
					"state_dir, and make [cluster] the same as on the other "
					"nodes; change nothing on those"
				: "make [cluster] and [cluster.masters] the same on all nodes, "
					"empty every state_dir, and start again; nothing has "
					"been granted yet"));
	} else if (note->kind == NOTE_BIRTH_STRANGER) {
		log_to(log, LEVEL_ERROR, "peer_stranger", LOG_TEXT("peer", peer),
			LOG_TEXT("what", note->text),
			LOG_TEXT("remedy",
				"if its state_dir was lost, run pawl cluster replace NAME NAME; if "
				"it has another node's state_dir, restore its own"));
	}
}

static void note_double_grant(struct log *log, const struct core_note *note, const char *peer) {
	log_to(log, LEVEL_ERROR, "double_grant", LOG_BYTES("key", note->key),
		LOG_TEXT("why", note->text), LOG_TEXT("master", peer),
		LOG_BYTES("owner", note->holders[0].owner),
		LOG_NUMBER("token", note->holders[0].token),
		LOG_BYTES("then_owner", note->holders[1].owner),
		LOG_NUMBER("then_token", note->holders[1].token),
		LOG_TEXT("remedy",
			"two holders may have worked at once: check what the key guards, by its "
			"fencing tokens; compare the rates of the nodes' clocks, and look for "
			"a virtual machine that was frozen or a state_dir that was restored"));
}

void log_core_note(struct log *log, const struct core *core, const struct core_note *note) {
	const char *peer = note_peer(core, note);
	switch (note->kind) {
	case NOTE_BORN:
	case NOTE_BIRTH_DIFFERS:
	case NOTE_BIRTH_STRANGER:
		note_of_birth(log, core, note, peer);
		return;
	case NOTE_VOTING:
		log_to(log, LEVEL_NOTICE, "voting", LOG_TEXT("by", note->text));
		return;
	case NOTE_RECOVERING:
		log_plain_to(log, LEVEL_NOTICE, "recovering");
		return;
	case NOTE_DRAINING:
		log_plain_to(log, LEVEL_NOTICE, "draining");
		return;
	case NOTE_QUORUM_LOST:
	case NOTE_QUORUM_BACK:
		note_of_quorum(log, note);
		return;
	case NOTE_CLOCK_REFUSED:
		log_to(log, LEVEL_ERROR, "clock_refused", LOG_TEXT("peer", peer),
			LOG_NUMBER("clock", note->value));
		return;
	case NOTE_LEASE_REFUSED:
		log_to(log, LEVEL_ERROR, "lease_refused", LOG_TEXT("peer", peer),
			LOG_NUMBER("lease_s", note->value / (uint64_t)SPAN_S));
		return;
	case NOTE_CLOCK_BEHIND:
		log_to(log, LEVEL_ERROR, "clock_behind", LOG_TEXT("peer", peer),
			LOG_NUMBER("clock", note->value));
		return;
	case NOTE_UNSTEADY:
		log_to(log, LEVEL_ERROR, "peer_unsteady", LOG_TEXT("peer", peer));
		return;
	case NOTE_LINK_RESET:
		log_to(log, LEVEL_WARNING, "link_reset", LOG_TEXT("peer", peer));
		return;
	case NOTE_STOOD_STILL:
		log_to(log, LEVEL_WARNING, "stood_still", LOG_SPAN("for", note->value));
		return;
	case NOTE_CONTESTED:
		log_to(log, LEVEL_WARNING, "contested", LOG_BYTES("key", note->key));
		return;
	case NOTE_CONTESTED_ENDED:
		log_to(log, LEVEL_NOTICE, "contested_ended", LOG_BYTES("key", note->key));
		return;
	case NOTE_BROKEN:
		log_to(log, LEVEL_WARNING, "broken", LOG_BYTES("key", note->key),
			LOG_NUMBER("token", note->value), LOG_TEXT("how", note->text));
		return;
	case NOTE_DOUBLE_GRANT:
		note_double_grant(log, note, peer);
		return;
	case NOTE_OUTSIDE:
	case NOTE_FOLLOWING:
	case NOTE_ADOPTED:
	case NOTE_CONFLICT:
	case NOTE_UNPROVEN:
	case NOTE_COMPLETE:
	case NOTE_ROLE_REFUSED:
	case NOTE_CHANGE:
	case NOTE_FORCED:
		note_of_the_set(log, note, peer);
		return;
	}
}
