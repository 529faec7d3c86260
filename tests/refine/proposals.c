/* proposals.c: one Paxos decree chooses the next configuration (section 6, The decree). */
#include "proposals.h"

static uint64_t hash_of(struct slice blob) {
	static struct config config;
	return config_decode(blob, &config) == 0 ? config_hash(&config) : 0;
}

static struct p_ballot *ballot_make(struct proposals *p, struct ballot ballot) {
	for (uint32_t i = 0; i < P_BALLOTS; i++) {
		if (ballot_compare(p->ballots[i].ballot, ballot) == 0) {
			return &p->ballots[i];
		}
	}
	struct p_ballot *b = &p->ballots[p->next++ % P_BALLOTS];
	*b = (struct p_ballot){ .ballot = ballot };
	return b;
}

void proposals_hears(struct proposals *p, uint64_t master, const struct message *m) {
	if (m->status != STATUS_OK) {
		return;
	}
	struct p_ballot *b = ballot_make(p, m->ballot);
	for (uint32_t i = 0; i < b->count; i++) {
		if (b->promised_by[i] == master) {
			return;
		}
	}
	if (b->count < MASTERS_MAX) {
		b->promised_by[b->count++] = master;
	}
	if (m->blob.size && ballot_compare(m->prepared, b->best) > 0) {
		b->best = m->prepared;
		b->best_hash = hash_of(m->blob);
	}
}

const char *proposals_says(struct proposals *p, const struct m_node *node, bool master,
	bool to_master, const struct message *m) {
	if ((m->kind == MESSAGE_DECREE_PREPARE || m->kind == MESSAGE_DECREE_ACCEPT) && !master) {
		return "only masters propose";
	}
	if ((m->kind == MESSAGE_DECREE_PROMISE || m->kind == MESSAGE_DECREE_ACCEPTED) &&
		m->status == STATUS_OK && !to_master) {
		return "a master hears a proposal only from a master of its epoch";
	}
	if (m->kind != MESSAGE_DECREE_ACCEPT) {
		return NULL;
	}
	const uint64_t value = hash_of(m->blob);
	struct p_ballot *b = ballot_make(p, m->ballot);
	if (b->proposed) {
		return b->proposed == value ? NULL
			: "a proposer has one value for each of its ballots";
	}
	b->proposed = value;
	return b->count < node->quorum
		? "a value is proposed when q masters of the epoch have promised its ballot"
		: b->best.clock && b->best_hash != value
			? "a proposer adopts the accepted value with the highest ballot" : NULL;
}

const char *proposals_synced(const struct p_disk *before, const struct p_disk *after) {
	if (after->epoch != before->epoch) {
		return NULL;
	}
	const int order = ballot_compare(after->accepted, before->accepted);
	if (ballot_compare(after->promised, before->promised) < 0) {
		return "a master promises no ballot below the one that it has promised";
	}
	if (order == 0) {
		return before->accepted_hash && after->accepted_hash != before->accepted_hash
			? "a master accepts no other value under the same ballot" : NULL;
	}
	return order < 0 || ballot_compare(after->accepted, before->promised) < 0
		? "a master accepts nothing below the ballot that it has promised" : NULL;
}
