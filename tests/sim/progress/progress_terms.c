/* progress_terms.c: what is promised about several holders of a key, and about which waiter is next
 * (docs/protocol.md, sections 10 and 11), once nothing is wrong any more. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "progress.h"

#define SEATS 6
struct play;
/* A client with one request. */
struct seat {
	struct play *play;
	struct sim_actor actor;
	struct sim_session *session;
	struct instant sent;
	uint32_t number, locks[2], count;
	int64_t granted;
	int error;
	/* How many watchers its request to let go has reached. */
	uint32_t reached;
	bool asked, answered, ended, told;
};
struct play {
	struct run *run;
	/* The first of two keys; the other one is the next. */
	uint32_t key;
	/* All ask at this node, so that their tickets are in the order in which they ask. */
	uint32_t node;
	struct seat seats[SEATS];
	/* The bit set of seats that are awaited. */
	uint64_t awaited;
};

static span_ns pause_for(const struct run *run) {
	return 12 * progress_hop(run) + 2 * run->profile.sim.session_delay_max + 3 * SPAN_MS;
}

static span_ns bound(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	return 2 * (o->session_delay_max + o->loop_lag_max) + 4 * progress_hop(run) +
		2 * o->disk_max + 4 * SPAN_MS;
}

static const char *owner_of(uint32_t seat) {
	static const char *const names[SEATS] = { "seat0", "seat1", "seat2", "seat3", "seat4",
		"seat5" };
	return names[seat];
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct seat *seat = ctx;
	struct run *run = seat->play->run;
	const struct core_reply *r = &reply->r;
	checker_returned(run->checker, r->id, reply, CHECKER_NO_VALUE);
	if (r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL) {
		seat->answered = true;
		seat->error = r->error;
		seat->granted = sim_now(run->sim);
		for (uint32_t i = 0; r->error == 0 && i < seat->count; i++) {
			checker_believe(run->checker, &seat->actor, seat->locks[i],
				instant_add(seat->sent, r->valid),
				seat->count > 1 ? reply->got[i].token : r->token);
		}
	} else if (r->op == CORE_ASK) {
		seat->told = true;
		seat->reached = r->reached;
	} else {
		seat->ended = seat->ended || r->error == 0;
		seat->error = r->error;
	}
}

static void closed(void *ctx) {
	struct seat *seat = ctx;
	checker_violation(seat->play->run->checker, "progress", seat->play->key,
		"a connection broke although nothing was wrong any more");
}

static void begin(struct play *play, struct run *run) {
	*play = (struct play){ .run = run, .key = 2000 + 2 * (uint32_t)prng_below(&run->prng, 1000),
		.node = members_any(run) };
}

static void finish(struct play *play) {
	for (uint32_t i = 0; i < SEATS; i++) {
		if (play->seats[i].session) {
			sim_session_close(play->seats[i].session);
		}
	}
	sim_run_for(play->run->sim, pause_for(play->run));
}

/* Asks, and lets everybody hear of it. `both`: it asks for the two keys at once; with 2, named the
 * other way round. */
static void ask(struct play *play, uint32_t number, const struct terms *terms, span_ns lease,
	int both) {
	struct run *run = play->run;
	struct seat *seat = &play->seats[number];
	*seat = (struct seat){ .play = play, .number = number, .count = both ? 2 : 1,
		.asked = true };
	sim_actor_init(run->sim, &seat->actor, 600 + number);
	seat->session = sim_connect(run->sim, &seat->actor, both ? members_any(run) : play->node,
		(struct sim_handler){ replied, closed, seat });
	char keys[2][16];
	struct core_lock locks[2];
	struct checker_op op = { .op = both ? CORE_ACQUIRE_ALL : CORE_ACQUIRE,
		.client = seat->actor.number, .key = play->key, .lease = lease,
		.wait = 60 * SPAN_S, .expect = CHECKER_NO_VALUE, .member_count = both ? 2 : 0,
		.priority = terms->priority };
	for (uint32_t i = 0; i < seat->count; i++) {
		uint32_t key = play->key + (both == 2 ? 1 - i : i), value = ++run->values;
		seat->locks[i] = op.members[i] = checker_lock_new(run->checker, key, value);
		checker_lock_terms(run->checker, seat->locks[i], terms);
		locks[i] = (struct core_lock){ .key = sim_name_key(keys[i], key),
			.lock_id = checker_lock_id(run->checker, seat->locks[i]), .of = terms->of,
			.count = terms->count };
		op.value = value;
	}
	op.lock = seat->locks[0];
	struct core_request r = { .op = op.op, .key = locks[0].key, .lock_id = locks[0].lock_id,
		.lease = lease, .wait = op.wait, .terms = *terms,
		.owner = slice_str(owner_of(number)) };
	if (both) {
		r.locks = locks;
		r.lock_count = 2;
	}
	seat->sent = sim_actor_clock(run->sim, &seat->actor);
	checker_invoked(run->checker, sim_send(seat->session, &r), &op);
	sim_run_for(run->sim, pause_for(run));
}

/* Lets go, in favour of the seat `to`; SEATS: in nobody's favour. */
static void let_go(struct play *play, uint32_t number, uint32_t to) {
	struct run *run = play->run;
	struct seat *seat = &play->seats[number];
	for (uint32_t i = 0; i < seat->count; i++) {
		char key[16];
		uint32_t of = checker_lock_key(run->checker, seat->locks[i]);
		struct checker_op op = { .op = to < SEATS ? CORE_TRANSFER : CORE_RELEASE,
			.client = seat->actor.number, .key = of, .lock = seat->locks[i] };
		struct core_request r = { .op = op.op, .key = sim_name_key(key, of),
			.lock_id = checker_lock_id(run->checker, seat->locks[i]) };
		if (to < SEATS) {
			r.to = slice_str(owner_of(to));
		}
		checker_forget(run->checker, &seat->actor, seat->locks[i]);
		checker_lock_end(run->checker, seat->locks[i]);
		checker_invoked(run->checker, sim_send(seat->session, &r), &op);
	}
}

static bool all_answered(void *ctx) {
	const struct play *play = ctx;
	for (uint32_t i = 0; i < SEATS; i++) {
		if ((play->awaited >> i & 1) && !play->seats[i].answered) {
			return false;
		}
	}
	return true;
}

static bool one_answered(void *ctx) {
	const struct play *play = ctx;
	for (uint32_t i = 0; i < SEATS; i++) {
		if ((play->awaited >> i & 1) && play->seats[i].answered) {
			return true;
		}
	}
	return false;
}

/* All of these seats have what they asked for within the time. */
static void demand(struct play *play, uint64_t seats, span_ns within, const char *what) {
	struct run *run = play->run;
	play->awaited = seats;
	bool answered = sim_run_until(run->sim, all_answered, play, within);
	for (uint32_t i = 0; i < SEATS; i++) {
		const struct seat *seat = &play->seats[i];
		if ((seats >> i & 1) && (!seat->answered || seat->error)) {
			checker_violation(run->checker, "progress (more than one holder)",
				play->key, "%s: seat %" PRIu32 " has %s after %.3f ms", what, i,
				seat->answered ? pawl_error_code(seat->error) : "no answer",
				(double)within / 1e6);
		}
	}
	CHECK(answered);
}

static void demand_not(struct play *play, uint64_t seats, const char *what) {
	for (uint32_t i = 0; i < SEATS; i++) {
		if ((seats >> i & 1) && play->seats[i].answered) {
			checker_violation(play->run->checker, "order of waiting", play->key,
				"%s: seat %" PRIu32 " is answered (%s)", what, i,
				pawl_error_code(play->seats[i].error));
		}
	}
}

static bool told(void *ctx) {
	return ((const struct seat *)ctx)->told;
}

/* A request to let go reaches the watchers at every member. */
static void ask_to_let_go(struct play *play, uint32_t number) {
	struct run *run = play->run;
	struct seat *seat = &play->seats[number];
	char key[16];
	struct checker_op op = { .op = CORE_ASK, .client = seat->actor.number, .key = play->key,
		.lock = TRACE_NONE, .expect = CHECKER_NO_VALUE };
	struct core_request r = { .op = CORE_ASK, .key = sim_name_key(key, play->key),
		.owner = slice_str(owner_of(number)), .to = slice_str(owner_of(number)) };
	checker_invoked(run->checker, sim_send(seat->session, &r), &op);
	uint32_t members = checker_newest(run->checker)->node_count;
	if (!sim_run_until(run->sim, told, seat, bound(run) + run->profile.sim.request_timeout) ||
		seat->reached < members) {
		checker_violation(run->checker, "progress (who watches is asked)", play->key,
			"a request to let go reached %" PRIu32 " of %" PRIu32 " members",
			seat->reached, members);
	}
}

/* A writer waits for those who read, and those who come after it wait for it; then they read
 * together. */
static void readers_and_writers(struct run *run) {
	const struct terms reader = { .of = MODE_SHARED }, writer = { .of = MODE_EXCLUSIVE };
	span_ns lease = run->profile.sim.max_lease;
	struct play play;
	begin(&play, run);
	ask(&play, 0, &reader, lease, 0);
	ask(&play, 1, &reader, lease, 0);
	demand(&play, 3, bound(run), "readers of a free key");
	ask(&play, 2, &writer, lease, 0);
	for (uint32_t i = 3; i < 5; i++) {
		ask(&play, i, &reader, lease, 0);
	}
	demand_not(&play, 28, "a writer waits, and readers behind it");
	let_go(&play, 0, SEATS);
	let_go(&play, 1, SEATS);
	demand(&play, 4, bound(run), "a writer when the readers are gone");
	demand_not(&play, 24, "a writer writes");
	sim_run_for(run->sim, pause_for(run));
	let_go(&play, 2, SEATS);
	demand(&play, 24, 3 * bound(run), "readers behind a writer");
	run->counts[RUN_HOLD_TOGETHER] += checker_lock_believed(run->checker,
		play.seats[3].locks[0]) &&
		checker_lock_believed(run->checker, play.seats[4].locks[0]);
	let_go(&play, 3, SEATS);
	let_go(&play, 4, SEATS);
	finish(&play);
}

/* A client that wants many permits is not passed by one that wants few. */
static void permits(struct run *run) {
	const struct terms one = { .of = 3, .count = 1 }, three = { .of = 3, .count = 3 };
	span_ns lease = run->profile.sim.max_lease;
	struct play play;
	begin(&play, run);
	ask(&play, 0, &one, lease, 0);
	ask(&play, 1, &one, lease, 0);
	demand(&play, 3, bound(run), "permits that are free");
	ask(&play, 2, &three, lease, 0);
	ask(&play, 3, &one, lease, 0);
	demand_not(&play, 12, "three permits are waited for");
	let_go(&play, 0, SEATS);
	sim_run_for(run->sim, pause_for(run));
	demand_not(&play, 12, "three permits are waited for, and one is out");
	let_go(&play, 1, SEATS);
	demand(&play, 4, bound(run), "three permits that are free");
	sim_run_for(run->sim, pause_for(run));
	let_go(&play, 2, SEATS);
	demand(&play, 8, bound(run), "a permit behind others");
	let_go(&play, 3, SEATS);
	finish(&play);
}

static void next_in_line(struct run *run) {
	const struct terms plain = { .of = MODE_EXCLUSIVE },
		high = { .of = MODE_EXCLUSIVE, .priority = 1 };
	span_ns lease = run->profile.sim.max_lease;
	struct play play;
	begin(&play, run);
	ask(&play, 0, &plain, lease, 0);
	demand(&play, 1, bound(run), "a free key");
	ask(&play, 1, &plain, lease, 0);
	ask(&play, 2, &plain, lease, 0);
	ask(&play, 3, &plain, lease, 0);
	ask_to_let_go(&play, 3);
	if (prng_chance(&run->prng, 1, 2)) {
		/* In favour of a waiter that is not the first. */
		let_go(&play, 0, 2);
		demand(&play, 4, bound(run) + 2 * progress_hop(run),
			"the one whom the holder named");
		demand_not(&play, 10, "the one whom the holder named has it");
		sim_run_for(run->sim, pause_for(run));
		let_go(&play, 2, SEATS);
	} else {
		ask(&play, 4, &high, lease, 0);
		let_go(&play, 0, SEATS);
		demand(&play, 16, bound(run), "the more important one");
		demand_not(&play, 14, "the more important one has it");
		sim_run_for(run->sim, pause_for(run));
		let_go(&play, 4, SEATS);
		demand(&play, 2, bound(run), "the first of those who waited");
		sim_run_for(run->sim, pause_for(run));
		let_go(&play, 1, SEATS);
		demand(&play, 4, bound(run), "the second of those who waited");
	}
	finish(&play);
}

/* Whatever the order in which they name the keys, nobody waits for ever. */
static void several_keys(struct run *run) {
	const struct terms plain = { .of = MODE_EXCLUSIVE };
	span_ns lease = run->profile.sim.max_lease;
	struct play play;
	begin(&play, run);
	for (uint32_t i = 0; i < 4; i++) {
		ask(&play, i, &plain, lease, i % 2 ? 2 : 1);
	}
	for (uint64_t left = 15; left;) {
		span_ns most = 4 * bound(run) + 2 * run->profile.sim.promise_timeout;
		play.awaited = left;
		if (!sim_run_until(run->sim, one_answered, &play, most)) {
			checker_violation(run->checker, "progress (several keys)", play.key,
				"nobody of those left (%" PRIx64 ") has both keys after %.3f ms",
				left, (double)most / 1e6);
		}
		uint32_t one = 0;
		while (!(left >> one & 1) || !play.seats[one].answered) {
			one++;
		}
		demand(&play, UINT64_C(1) << one, SPAN_MS, "several keys");
		sim_run_for(run->sim, pause_for(run));
		let_go(&play, one, SEATS);
		left &= ~(UINT64_C(1) << one);
	}
	finish(&play);
}

/* The checker sees that the key is closed for as long as it should be; here it opens again. */
static void closed_for_a_while(struct run *run) {
	span_ns lease = run->profile.sim.limits.lease_min ? run->profile.sim.limits.lease_min
		: LEASE_MIN_DEFAULT;
	if (run->profile.sim.max_lease < 2 * lease) {
		return;
	}
	const struct terms plain = { .of = MODE_EXCLUSIVE };
	struct terms delayed = { .of = MODE_EXCLUSIVE,
		.delay = run->profile.sim.max_lease - lease };
	struct play play;
	begin(&play, run);
	ask(&play, 0, &delayed, lease, 0);
	demand(&play, 1, bound(run), "a free key");
	checker_forget(run->checker, &play.seats[0].actor, play.seats[0].locks[0]);
	ask(&play, 1, &plain, run->profile.sim.max_lease, 0);
	demand(&play, 2, span_grow(lease + delayed.delay, 3 * run->profile.sim.drift_ppm) +
		bound(run) + 5 * SPAN_MS, "after a lease and its delay");
	let_go(&play, 1, SEATS);
	finish(&play);
}

/* Runs one of these in each run. A lease has to outlast the few seats that come one after the
 * other. */
void terms_demand(struct run *run) {
	if (run->profile.theme == THEME_limits || span_shrink(run->profile.sim.max_lease,
		run->profile.sim.drift_ppm) < 7 * pause_for(run) + 3 * bound(run)) {
		/* Too little fits. */
		return;
	}
	switch (run->profile.theme == THEME_groups ? 3 : prng_below(&run->prng, 5)) {
	case 0: readers_and_writers(run); break;
	case 1: permits(run); break;
	case 2: next_in_line(run); break;
	case 3: several_keys(run); break;
	case 4: closed_for_a_while(run); break;
	}
}
