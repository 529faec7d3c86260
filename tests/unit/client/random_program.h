/* random_program.h: a program that does at random whatever libpawl lets it do without blocking. */
#ifndef PAWL_TESTS_RANDOM_PROGRAM_H
#define PAWL_TESTS_RANDOM_PROGRAM_H

#include "pawl/election.h"
#include "pawl/watch.h"
#include "random_draw.h"

#define PLACES 12

/* A lock that the program has. */
struct held {
	struct pawl_lock *lock;
	unsigned entered;
	/* It is, or may be, handed over: it may be trusted again. `over`: it was not valid. */
	bool moves, over;
};

struct world;
/* A call under way that may be canceled. */
struct place {
	struct world *world;
	struct pawl_call *call;
};

struct world {
	struct draw draw;
	/* The event-driven style, with clocks that the test moves. */
	bool evented;
	struct rig rig;
	/* The blocking style. */
	struct fake_node nodes[2];
	/* NULL once it was freed. */
	struct pawl *client;
	struct held locks[PLACES];
	struct place places[PLACES];
	struct pawl_watch *watches[PLACES];
	struct pawl_election *elections[PLACES];
	/* How many callbacks have to come, and have come; how many steps and grants there were. */
	unsigned expected, come, steps, granted;
	/* Another thread wakes the client now and then, so that it must not be freed. */
	bool woken;
};

static void world_init(struct world *w, uint64_t seed) {
	prng_init(&w->draw.prng, seed);
	for (size_t i = 0; i < PLACES; i++) {
		w->places[i].world = w;
	}
}

static size_t below(struct world *w, size_t bound) {
	return draw_below(&w->draw, bound);
}

static bool one_in(struct world *w, uint32_t n) {
	return draw_one_in(&w->draw, n);
}

static struct fake_node *some_node(struct world *w) {
	return &(w->evented ? w->rig.nodes : w->nodes)[below(w, 2)];
}

static void step_start(struct world *w);

/* ---- what the program has ---- */

static struct held *held_of(struct world *w, const struct pawl_lock *lock) {
	for (size_t i = 0; i < PLACES; i++) {
		if (w->locks[i].lock == lock) {
			return &w->locks[i];
		}
	}
	return NULL;
}

static void forget_lock(struct held *h) {
	*h = (struct held){ 0 };
}

static void add_lock(struct world *w, struct pawl_lock *take_lock) {
	struct held *h = held_of(w, take_lock);
	h = h ? h : held_of(w, NULL);
	w->granted++;
	if (!h) {
		(void)pawl_lock_release_start(take_lock, NULL, NULL);
	} else if (h->lock) {
		h->entered++;
	} else {
		*h = (struct held){ .lock = take_lock, .entered = 1 };
	}
}

static struct held *some_lock(struct world *w) {
	struct held *h = &w->locks[below(w, PLACES)];
	for (size_t i = 0; i < PLACES && !h->lock; i++) {
		h = &w->locks[i];
	}
	return h->lock ? h : NULL;
}

/* Takes one entering of the lock; the lock is gone after the last one. */
static struct pawl_lock *take_one(struct held *h) {
	struct pawl_lock *lock = h->lock;
	if (--h->entered == 0) {
		forget_lock(h);
	}
	return lock;
}

static void check_locks(struct world *w) {
	for (size_t i = 0; i < PLACES; i++) {
		struct held *h = &w->locks[i];
		if (h->lock && !h->moves) {
			const int64_t left = pawl_lock_valid_ms(h->lock);
			assert_true(left >= 0);
			assert_false(h->over && left > 0);
			assert_false(left > 0 && pawl_lock_error(h->lock) == PAWL_ELOST);
			h->over = left == 0;
		}
	}
}

static void free_client(struct world *w) {
	struct pawl *client = w->client;
	w->client = NULL;
	memset(w->locks, 0, sizeof(w->locks));
	if (!w->evented) {
		/* They are on the loop of the client. */
		fake_close(&w->nodes[0]);
		fake_close(&w->nodes[1]);
	}
	pawl_free(client);
	w->rig.client = NULL;
}

/* ---- callbacks ---- */

/* What any callback may do. */
static void in_callback(struct world *w) {
	if (!w->client) {
		return;
	}
	assert_int_equal(pawl_poll(w->client, 0), PAWL_EINVAL);
	if (one_in(w, 8)) {
		step_start(w);
	}
	if (one_in(w, 20)) {
		pawl_wake(w->client);
	}
	if (one_in(w, 200) && !w->woken) {
		free_client(w);
	}
}

static void take_result(struct world *w, struct pawl_result *taken) {
	read_result(taken);
	pawl_result_free(taken);
	in_callback(w);
}

static void on_done(struct pawl_result *taken, void *arg) {
	struct place *p = arg;
	p->call = NULL;
	p->world->come++;
	take_result(p->world, taken);
}

static void on_done_perhaps(struct pawl_result *taken, void *arg) {
	take_result(arg, taken);
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *taken, void *arg) {
	struct place *p = arg;
	p->call = NULL;
	p->world->come++;
	assert_true((take_lock != NULL) == (taken->error == 0));
	if (take_lock && p->world->client) {
		add_lock(p->world, take_lock);
	}
	take_result(p->world, taken);
}

static void on_locks(struct pawl_lock *const *locks, size_t count, struct pawl_result *taken,
	void *arg) {
	struct place *p = arg;
	p->call = NULL;
	p->world->come++;
	for (size_t i = 0; i < count && p->world->client; i++) {
		add_lock(p->world, locks[i]);
	}
	take_result(p->world, taken);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct world *w = arg;
	struct held *h = w->client ? held_of(w, lock) : NULL;
	assert_true(cause < 0);
	if (h && one_in(w, 3)) {
		forget_lock(h);
		pawl_lock_free(lock);
	} else if (h && one_in(w, 3)) {
		(void)pawl_lock_release_start(take_one(h), NULL, NULL);
	}
	in_callback(w);
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock;
	in_callback(arg);
}

static void on_asked(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg) {
	struct world *w = arg;
	struct held *h = w->client ? held_of(w, lock) : NULL;
	read_bytes(asked->by);
	read_bytes(asked->to);
	if (h && one_in(w, 2)) {
		h->moves = true;
		(void)pawl_lock_transfer_start(lock, asked->by, NULL, NULL);
	}
	in_callback(w);
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct world *w = arg;
	assert_string_not_equal(pawl_event_name(event->type), "unknown");
	read_bytes(event->resume);
	for (size_t i = 0; i < PLACES && w->client; i++) {
		if (w->watches[i] == watch && one_in(w, 30)) {
			w->watches[i] = NULL;
			pawl_watch_free(watch);
		}
	}
	in_callback(w);
}

static void on_watch_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	assert_int_equal(pawl_watch_error(watch), error);
	read_bytes(pawl_str(message));
	in_callback(arg);
}

/* Perhaps frees the election in whose callback this is. */
static void in_election(struct world *w, struct pawl_election *e) {
	for (size_t i = 0; i < PLACES && w->client; i++) {
		if (w->elections[i] == e && one_in(w, 15)) {
			w->elections[i] = NULL;
			pawl_election_free(e);
		}
	}
	in_callback(w);
}

static void on_leading(struct pawl_election *e, uint64_t token, void *arg) {
	assert_int_equal(token, pawl_election_token(e));
	in_election(arg, e);
}

static void on_stepped_down(struct pawl_election *e, int cause, void *arg) {
	assert_true(cause <= 0);
	in_election(arg, e);
}

static void on_leader(struct pawl_election *e, const struct pawl_leader *leader, void *arg) {
	if (leader) {
		read_bytes(leader->owner);
		read_bytes(leader->value);
	}
	in_election(arg, e);
}

static enum pawl_asked_answer on_election_asked(struct pawl_election *e,
	const struct pawl_asked *asked, void *arg) {
	struct world *w = arg;
	read_bytes(asked->by);
	const enum pawl_asked_answer answer = one_in(w, 3) ? PAWL_ASKED_STAY : PAWL_ASKED_USUAL;
	in_election(w, e);
	return answer;
}

static void on_failed(struct pawl_election *e, int error, const char *message, bool observing,
	void *arg) {
	(void)observing;
	assert_true(error < 0);
	read_bytes(pawl_str(message));
	in_election(arg, e);
}

static void on_connected(int fd, void *arg) {
	(void)arg;
	assert_true(fd >= 0);
}

/* ---- calls that do not block ---- */

static struct pawl_lock_options some_options(struct world *w) {
	struct draw *d = &w->draw;
	return (struct pawl_lock_options){ .key = draw_key(d), .lease_ms = draw_lease_ms(d),
		.wait_ms = draw_wait_ms(d), .timeout_ms = draw_ms(d), .owner = draw_bytes(d),
		.value = draw_bytes(d), .lock_id = draw_id(d),
		.warn_ms = one_in(w, 4) ? draw_lease_ms(d) / 3 : 0, .no_renewal = one_in(w, 6),
		.on_lost = one_in(w, 4) ? NULL : on_lost,
		.on_renewed = one_in(w, 2) ? NULL : on_renewed, .arg = w, .terms = draw_terms(d),
		.label = draw_bytes(d), .election = one_in(w, 6),
		.on_asked = one_in(w, 2) ? NULL : on_asked, .party = draw_id(d) };
}

static void note_started(struct world *w, int error) {
	assert_true(error <= 0);
	w->expected += error == 0;
}

static void start_call(struct world *w, struct place *p) {
	struct drawn_request r;
	struct pawl_key_item keys[4];
	size_t count;
	struct pawl_lock_options o = some_options(w);
	switch (below(w, 4)) {
	case 0:
		note_started(w, pawl_lock_start(w->client, &o, on_locked, p, &p->call));
		break;
	case 1:
		count = draw_keys(&w->draw, keys, LENGTH(keys));
		note_started(w, pawl_locks_start(w->client, &o, keys, count, on_locks, p,
			&p->call));
		break;
	default:
		draw_request(&w->draw, &r);
		note_started(w, pawl_start(w->client, &r.request, on_done, p, &p->call));
		break;
	}
}

static void use_lock(struct world *w, struct held *h, struct place *p) {
	struct draw *d = &w->draw;
	const struct pawl_bytes expect = pawl_str("v");
	switch (below(w, 7)) {
	case 0:
		note_started(w, pawl_lock_update_start(h->lock, draw_bytes(d),
			one_in(w, 2) ? &expect : NULL, on_done, p, &p->call));
		break;
	case 1:
		note_started(w, pawl_lock_downgrade_start(h->lock, on_done, p, &p->call));
		break;
	case 2:
		h->moves = true;
		note_started(w, pawl_lock_transfer_start(h->lock, draw_name(d), on_done, p));
		break;
	case 3: {
		const int stays = h->entered == 1 ? 0 : PAWL_EINVAL, error =
			pawl_lock_release_closing_start(take_one(h), one_in(w, 2), on_done, p);
		note_started(w, stays ? stays : error);
		break;
	}
	case 4: {
		struct pawl_lock *lock = h->lock;
		forget_lock(h);
		pawl_lock_free(lock);
		break;
	}
	case 5:
		note_started(w, (one_in(w, 2) ? pawl_lock_shorten_start : pawl_lock_extend_start)(
			h->lock, draw_lease_ms(d), on_done, p, &p->call));
		break;
	default:
		h->entered += one_in(w, 2) ? pawl_lock_enter(h->lock) > 0
			: 0u - (pawl_lock_leave(h->lock) > 0);
		break;
	}
}

static void look(struct world *w) {
	uint32_t slots[4];
	int64_t boot, raw;
	const struct held *h = some_lock(w);
	if (h) {
		read_bytes(pawl_lock_key(h->lock));
		(void)pawl_lock_slots(h->lock, slots, LENGTH(slots));
		(void)pawl_lock_token(h->lock);
		(void)pawl_lock_mode(h->lock);
		(void)pawl_lock_id(h->lock);
		(void)pawl_lock_asked_error(h->lock);
		pawl_lock_deadline(h->lock, &boot, &raw);
	}
	read_bytes(pawl_str(pawl_endpoint(w->client)));
	pawl_on_connected(w->client, one_in(w, 2) ? on_connected : NULL, w);
	draw_client(&w->draw);
}

static void step_watch(struct world *w) {
	struct pawl_watch **at = &w->watches[below(w, PLACES)];
	if (*at) {
		(void)pawl_watch_current(*at);
		struct pawl_watch *watch = *at;
		*at = NULL;
		pawl_watch_free(watch);
		return;
	}
	const struct pawl_watch_options o = { .key = draw_key(&w->draw), .prefix = one_in(w, 2),
		.from = one_in(w, 4) ? (struct pawl_bytes){ "0123456789abcdef", 16 }
			: pawl_str(NULL),
		.on_event = one_in(w, 20) ? NULL : on_event,
		.on_ended = one_in(w, 3) ? NULL : on_watch_ended, .arg = w };
	if (pawl_watch_start(w->client, &o, at) != 0) {
		*at = NULL;
	}
}

static void new_election(struct world *w, struct pawl_election **at) {
	struct draw *d = &w->draw;
	const struct pawl_election_options o = { .name = draw_key(d), .owner = draw_name(d),
		.value = draw_bytes(d), .label = draw_bytes(d), .lease_ms = draw_lease_ms(d),
		.warn_ms = one_in(w, 4) ? draw_lease_ms(d) / 3 : 0, .timeout_ms = draw_ms(d),
		.priority = (int32_t)below(w, 3), .lock_delay_ms = one_in(w, 5) ? 50 : 0,
		.release_on_disconnect = one_in(w, 3), .takeover = one_in(w, 2),
		.again = one_in(w, 2), .observe_only = one_in(w, 8),
		.on_leading = one_in(w, 4) ? NULL : on_leading,
		.on_renewed = one_in(w, 2) ? NULL : on_renewed,
		.on_stepped_down = one_in(w, 4) ? NULL : on_stepped_down,
		.on_leader = one_in(w, 4) ? NULL : on_leader,
		.on_asked = one_in(w, 2) ? NULL : on_election_asked,
		.on_failed = one_in(w, 4) ? NULL : on_failed, .arg = w };
	if (pawl_election_new(w->client, &o, at) != 0) {
		*at = NULL;
	}
}

static void step_election(struct world *w) {
	struct pawl_election **at = &w->elections[below(w, 3)];
	struct pawl_election *e = *at;
	struct pawl_leader leader;
	pawl_done_fn *done = one_in(w, 2) ? on_done_perhaps : NULL;
	if (!e) {
		new_election(w, at);
		return;
	}
	switch (below(w, 8)) {
	case 0:
		*at = NULL;
		pawl_election_free(e);
		return;
	case 1:
		(void)pawl_election_resign(e, done, w);
		return;
	case 2:
		(void)pawl_election_transfer(e, draw_name(&w->draw), done, w);
		return;
	case 3:
		(void)pawl_election_proclaim(e, draw_bytes(&w->draw), done, w);
		return;
	case 4:
		pawl_election_set_priority(e, (int32_t)below(w, 5));
		assert_false(pawl_election_leads(e) && pawl_election_campaigns(e));
		assert_true(!pawl_election_lock(e) == !pawl_election_token(e));
		if (pawl_election_leader(e, &leader)) {
			read_bytes(leader.owner);
		}
		(void)pawl_election_current(e);
		return;
	default:
		(void)pawl_election_campaign(e);
		return;
	}
}

static void step_start(struct world *w) {
	struct held *h = some_lock(w);
	struct place *p = &w->places[below(w, PLACES)];
	if (p->call) {
		if (one_in(w, 3)) {
			struct pawl_call *call = p->call;
			p->call = NULL;
			w->come++;
			pawl_cancel(call);
		}
		return;
	}
	switch (below(w, 6)) {
	case 0:
		step_watch(w);
		break;
	case 1:
		step_election(w);
		break;
	case 2:
		look(w);
		break;
	case 3:
		if (h) {
			use_lock(w, h, p);
		}
		break;
	default:
		start_call(w, p);
		break;
	}
}

#endif
