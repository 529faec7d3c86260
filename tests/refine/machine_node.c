/* machine_node.c: what a node may say given what is on its disk (section 1, the clock reservation;
 * section 6, the state file), when it may vote (sections 4 and 6), and what it votes with after a
 * merge (section 4). */
#include "machine.h"

/* What a master says about what it keeps, or has accepted. */
static const message_set votes = MESSAGE_BIT(MESSAGE_PROMISE_ANSWER) |
	MESSAGE_BIT(MESSAGE_COMMIT_ANSWER) | MESSAGE_BIT(MESSAGE_EXTEND_ANSWER) |
	MESSAGE_BIT(MESSAGE_LEARN_ANSWER) | MESSAGE_BIT(MESSAGE_RELEASE_ANSWER) |
	MESSAGE_BIT(MESSAGE_PREPARE_ANSWER) | MESSAGE_BIT(MESSAGE_WRITE_ANSWER) |
	MESSAGE_BIT(MESSAGE_TURN) | MESSAGE_BIT(MESSAGE_READ_ANSWER);

static const char *decree_right(const struct m_disk *disk, const struct message *m,
	const struct frame *f) {
	if (f->epoch != disk->epoch || m->status != STATUS_OK) {
		return NULL;
	}
	if (m->kind == MESSAGE_DECREE_ACCEPTED &&
		(ballot_compare(disk->accepted, m->ballot) < 0 ||
		(ballot_compare(disk->accepted, m->ballot) == 0 &&
			disk->accepted_hash != m->number))) {
		return "an accepted value is synced before it is answered";
	}
	if (m->kind == MESSAGE_DECREE_PROMISE && ballot_compare(disk->promised, m->ballot) < 0 &&
		ballot_compare(disk->promised, (struct ballot){ 0, 0, 0 }) == 0) {
		return "a ballot of the decree is synced before it is answered";
	}
	return !disk->voted ? "only masters that have voted in the epoch answer in its decree"
		: NULL;
}

const char *machine_sent(const struct m_disk *disk, uint64_t vote_clock, const struct frame *f) {
	if (f->boot > disk->boot) {
		return "nothing leaves before the boot is on disk";
	}
	/* The next epoch may be on the disk before it takes effect. */
	if ((f->flags & FRAME_VOTING) &&
		(f->epoch > disk->epoch || (f->epoch == disk->epoch && !disk->voted))) {
		return "the mark 'voted' is synced before the first vote";
	}
	for (size_t i = 0; i < f->count; i++) {
		const struct message *m = &f->messages[i];
		const char *wrong = NULL;
		if ((votes & MESSAGE_BIT(m->kind)) && m->status != STATUS_RECOVERING &&
			vote_clock > disk->ceiling) {
			wrong = "no vote leaves a master while its clock is above the reservation";
		} else if (m->kind == MESSAGE_DECREE_ACCEPTED ||
			m->kind == MESSAGE_DECREE_PROMISE) {
			wrong = decree_right(disk, m, f);
		} else if (m->kind == MESSAGE_PLEDGE && !disk->pledged && !disk->voted &&
			f->epoch == 0 && !(m->flags & FLAG_BORN) && disk->epoch) {
			wrong = "a pledge is synced before it is told";
		}
		if (wrong) {
			return wrong;
		}
	}
	return NULL;
}

const char *machine_may_vote(const struct m_return *v) {
	const span_ns wait = span_grow(v->longest, 2 * v->drift_ppm);
	if (!v->voted_on_disk) {
		return "the mark 'voted' is synced before the first vote";
	}
	if (v->clock < v->reservation) {
		return "after a start the clock is the reservation";
	}
	if (v->clock < v->forced_clock) {
		return "a forced start raises the clock far above the highest one known";
	}
	if (v->restored) {
		return NULL;
	}
	/* Waiting: all that it ever accepted is over. It is only for who has voted in this epoch.
	 * */
	const bool waited = v->had_voted && v->since_start >= wait;
	if (waited || v->rejoined > v->masters - v->quorum ||
		(v->handover && v->handed_over > v->previous_masters - v->previous_quorum)) {
		return NULL;
	}
	return "a master votes when it has enough sources, or has waited for long enough";
}

/* A record that was merged. If it has a greater number than the source had, it was shortened after
 * that. */
const char *machine_merged(const struct m_record *r, const struct m_copy *c) {
	if (m_is_numbers(&r->terms)) {
		return NULL;
	}
	if (!c->has) {
		return r->noted < c->clock ? "a source that lacks the lock_id has noted its clock"
			: NULL;
	}
	return r->token < c->token ? "a merge keeps the higher token"
		: r->noted < c->noted ? "a merge keeps the highest noted"
		: ballot_compare(r->wrote, c->wrote) < 0 ||
			ballot_compare(r->prepared, c->prepared) < 0
			? "a merge keeps the newer value, and the highest ballot noted"
		: !instant_expired(r->end, c->end) && r->terms.binding <= c->binding
			? "a merge keeps the later end"
		: !c->bound && !r->freed ? "what a source has bound to no node ends with none"
		: NULL;
}
