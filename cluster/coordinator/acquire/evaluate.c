/* evaluate.c: decides what follows from the votes of an attempt: commit, queue, pause, or an error
 * (sections 2 and 5). */
#include "acquire.h"

#define ALIVE (VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_SELF))
#define OPEN VOTE_BIT(VOTE_ASKED)

/* Returns the error that a refusal of this status ends the attempt with. */
static int error_of(enum status s) {
	switch (s) {
	case STATUS_DENIED: return PAWL_EDENIED;
	case STATUS_FULL: return PAWL_EFULL;
	case STATUS_TERMS: return PAWL_EMISMATCH;
	case STATUS_NEED: case STATUS_STALE: case STATUS_RELEASED: case STATUS_TOO_LONG:
	case STATUS_BARRED: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_LATER:
		return PAWL_ELOST;
	case STATUS_OK: case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_HELD:
	case STATUS_CONTESTED: case STATUS_PROMISED: case STATUS_QUEUED: case STATUS_RECOVERING:
	case STATUS_EPOCH: case STATUS_CLOCK:
		/* Such a vote is not VOTE_REFUSED (take_vote in attempt.c). */
		break;
	}
	CHECK(false);
	return PAWL_ELOST;
}

static int final_error(const struct core *core, const struct op *op) {
	int error = PAWL_OK;
	for (uint32_t i = 0; i < core->masters; i++) {
		error = op->votes[i].state == VOTE_REFUSED ? error_of(op->votes[i].status) : error;
	}
	return error;
}

/* Counts the open votes of suspect masters, which do not count as open (section 5, Silence). For a
 * try-lock that has met neither a rival nor somebody who waits they do: it would fail without
 * them. */
static uint32_t suspect_votes(const struct core *core, const struct op *op) {
	uint32_t n = 0;
	if (op_acquire(op)->try_lock &&
		op_votes(core, op, VOTE_BIT(VOTE_RIVAL) | VOTE_BIT(VOTE_QUEUED)) == 0) {
		return 0;
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		n += peer_suspect(core, i) && op->votes[i].state == VOTE_ASKED;
	}
	return n;
}

static inline uint32_t open_votes(const struct core *core, const struct op *op) {
	const uint32_t open = op_votes(core, op, OPEN);
	return peers_suspect(core) > 0 ? open - suspect_votes(core, op) : open;
}

/* Counts the masters that have parked the request behind a promise. They name no record that stands
 * in the way. */
static uint32_t behind_promises(const struct core *core, const struct op *op) {
	uint32_t count = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		count += op->votes[i].state == VOTE_PARKED && op->votes[i].token == 0;
	}
	return count;
}

/* A try-lock is refused because of held records or silence, never because of a tie. */
static int try_error(const struct core *core, const struct op *op) {
	const uint32_t hopeful = ALIVE | OPEN | VOTE_BIT(VOTE_RIVAL) | VOTE_BIT(VOTE_QUEUED);
	if (op_votes(core, op, ALIVE) >= core->quorum) {
		/* No permits are free at q of the masters. */
		return PAWL_EHELD;
	}
	if (op_votes(core, op, hopeful) + behind_promises(core, op) >= core->quorum) {
		return PAWL_OK;
	}
	return op_votes(core, op, VOTE_BIT(VOTE_HELD) | VOTE_BIT(VOTE_PARKED))
		? PAWL_EHELD : PAWL_ENOQUORUM;
}

/* The first attempt has not got its quorum. It withdraws and enters the queue. */
static void refused(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	int error = final_error(core, op);
	if (error == PAWL_OK && acquire->try_lock) {
		error = try_error(core, op);
	}
	if (error != PAWL_OK) {
		attempt_fail(core, op, error);
		return;
	}
	attempt_withdraw(core, op, false);
	if (acquire->try_lock) {
		COUNT(core, try_tie);
		op->until = instant_add(core->now, 2 * core->config.promise_timeout);
	}
	attempt_enqueue(core, op);
}

/* Tells whether a rival's promise stands in the way, and q masters cannot be had without it. */
static bool rivalled(const struct core *core, const struct op *op) {
	return op_votes(core, op, VOTE_BIT(VOTE_RIVAL)) &&
		op_votes(core, op, ALIVE) + open_votes(core, op) < core->quorum;
}

/* The attempt is refused because of a rival's promise. It withdraws, pauses for a random time and
 * tries again; the longest pause doubles up to promise_timeout / 4. */
static void back_off(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	COUNT(core, turn_rival);
	attempt_withdraw(core, op, false);
	span_ns most = peers_pause_most(core, acquire->pauses++);
	acquire->rival_waiting = false;
	op->state = OP_PAUSED;
	op_next_round(core, op);
	struct instant at = instant_add(core->now, prng_between(&core->prng, 0, most));
	timer_at(core, &op->timer, TIMER_OP, instant_expired(at, op->until) ? op->until : at);
}

/* If the record that the request is parked behind ends soon, the attempt waits for that end and a
 * little longer, because the end differs from master to master. */
static span_ns rival_wait(const struct core *core, const struct op *op) {
	span_ns pause = peers_pause_most(core, 0),
		left = instant_left_long(core->now, op_acquire(op)->parked_until);
	return left <= core->config.promise_timeout / 4 ? left + pause : pause;
}

/* The attempt goes on after this time (attempt_rival_waited), or when its own time is over. */
static void wait_rival(struct core *core, struct op *op, span_ns time) {
	const struct instant at = instant_add(core->now, time);
	op_acquire(op)->rival_waiting = true;
	timer_at(core, &op->timer, TIMER_OP, instant_expired(at, op->until) ? op->until : at);
}

/* If q masters have parked the request or promised, a rival's promise elsewhere does not matter:
 * the end of the record that the request is parked behind decides, and an attempt that paused would
 * sleep through it. But an attempt that has promises as well must not wait for that end for long.
 * Two attempts that have some promises each and wait for the same record would wait for each
 * other. */
static void rival_met(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (op_votes(core, op, ALIVE | VOTE_BIT(VOTE_PARKED)) + open_votes(core, op) <
		core->quorum) {
		back_off(core, op);
	} else if (op_votes(core, op, ALIVE) && !acquire->rival_waiting) {
		wait_rival(core, op, rival_wait(core, op));
	}
}

static enum vote_state home_vote(const struct op *op) {
	const int home = op_acquire(op)->home;
	return home >= 0 ? op->votes[home].state : VOTE_NONE;
}

/* Section 5, Together: q masters have promised permits to a request with a turn, but the home has
 * not, or the numbers that it has reserved are not free at q masters. They soon are, because a
 * release is on its way to all masters. It is waited for as long as for a rival. */
static void await_numbers(struct core *core, struct op *op, uint32_t open) {
	struct acquire_state *acquire = op_acquire(op);
	const enum vote_state home = acquire->home_waited ? VOTE_NONE : home_vote(op);
	if ((home == VOTE_PARKED || home == VOTE_OK) && !acquire->rival_waiting) {
		wait_rival(core, op, peers_pause_most(core, 0));
	}
	if (open == 0 && home != VOTE_PARKED) {
		attempt_be_told(core, op);
	}
}

void attempt_rival_waited(struct core *core, struct op *op) {
	op_acquire(op)->rival_waiting = false;
	if (op_votes(core, op, ALIVE) >= core->quorum) {
		COUNT(core, home_waited);
		op_acquire(op)->home_waited = true;
		attempt_go_on(core, op);
		attempt_evaluate(core, op);
	} else if (rivalled(core, op)) {
		back_off(core, op);
	} else {
		attempt_go_on(core, op);
	}
}

/* Chooses the permits of a semaphore once q masters have promised. If these have no permits in
 * common, a master that has not answered yet may help; after that it is as if the key were held. */
static bool choose_permits(struct core *core, struct op *op, uint32_t open) {
	struct permits set = { { 0, 0 } };
	if (!attempt_choose_permits(core, op, open, &set)) {
		core->counts[COUNT_permits_none_common] += open == 0;
		return false;
	}
	op->terms.set = set;
	return true;
}

/* Counts the masters that lacked the lock_id at one common moment since the attempt began. A first
 * value needs q of them (section 2, Acquire). */
static uint32_t lapsed_at(const struct core *core, const struct op *op) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		n += op->votes[i].state == VOTE_OK && op->votes[i].lapsed;
	}
	return n;
}

/* Tells whether the home refuses permits that q masters have promised, not to this coordinator
 * alone, or whether it is suspect. Without the home's word the attempt would take what is reserved
 * for others, or what others take; so it enters the queue. */
static bool refused_permits(const struct core *core, const struct op *op) {
	const uint32_t refusals = VOTE_BIT(VOTE_QUEUED) | VOTE_BIT(VOTE_RIVAL) |
		VOTE_BIT(VOTE_HELD);
	const enum vote_state home = home_vote(op);
	return op->state == OP_ASKING && !op_acquire(op)->try_lock && !attempt_alone(core, op) &&
		((refusals >> home & 1) || (home == VOTE_ASKED &&
			peer_suspect(core, (uint32_t)op_acquire(op)->home)));
}

void attempt_evaluate(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	uint32_t alive = op_votes(core, op, ALIVE), open = open_votes(core, op);
	if (alive >= core->quorum) {
		/* A master that is suspect may have the permits that a try-lock needs. */
		open = acquire->try_lock ? op_votes(core, op, OPEN) : open;
		const bool semaphore = terms_semaphore(&op->terms);
		if (semaphore && refused_permits(core, op)) {
			refused(core, op);
		} else if (acquire->reported == NULL && lapsed_at(core, op) < core->quorum) {
			COUNT(core, promise_unlapsed);
			attempt_ask_all(core, op, op->state == OP_TURN);
		} else if (!semaphore || choose_permits(core, op, open)) {
			commit_start(core, op);
		} else if (open == 0 && op->state == OP_ASKING) {
			refused(core, op);
		} else if (open == 0 && acquire->try_lock) {
			attempt_fail(core, op, PAWL_EHELD);
		} else if (op->state == OP_TURN) {
			await_numbers(core, op, open);
		}
		return;
	}
	if (op->state == OP_ASKING) {
		const enum vote_state home = home_vote(op);
		/* Before the attempt has q promises, the home's refusal is enough to end it. A
		 * try-lock also hears the other masters about a held record. */
		bool by_home = home == VOTE_QUEUED || home == VOTE_RIVAL || home == VOTE_REFUSED ||
			(home == VOTE_HELD && !acquire->try_lock);
		if (by_home || alive + open < core->quorum) {
			refused(core, op);
		}
		return;
	}
	int error = final_error(core, op);
	if (error != PAWL_OK &&
		op_votes(core, op, VOTE_BIT(VOTE_REFUSED)) > core->masters - core->quorum) {
		attempt_fail(core, op, error);
	} else if (acquire->try_lock && try_error(core, op) != PAWL_OK) {
		attempt_fail(core, op, try_error(core, op));
	} else if (rivalled(core, op)) {
		rival_met(core, op);
	} else if (op_votes(core, op, VOTE_BIT(VOTE_PARKED)) >= core->quorum) {
		/* The rival that the attempt met before has the key by now. The next one is met
		 * with a short pause again. */
		acquire->pauses = 0;
	}
}
