/* liar_master.c: a master that lies (docs/guarantees.md, A node that lies); it is one of three or
 * five. Its own core runs like the others'. What that core sends is altered, and between its
 * messages come others that are well formed: what was said before, with other fields or without,
 * about locks, copies, logs, the set and clocks, as the seed chooses. The others must not fail a
 * check of their own, nor grow without bound, nor let their clocks be driven faster than time, nor
 * adopt what none of them has accepted. When the liar is gone and taken out of the set, all that is
 * promised holds again. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "lies.h"
#include "faults.h"

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)
/* The most memory, in bytes, that a node may have while a liar keeps it busy. Other nodes have at
 * most a fourth of it. */
#define MEMORY_MOST ((size_t)8 << 20)
/* With fewer masters, one of them is a majority, or enough to hand over from. */
#define MASTERS_LEAST 3

struct lying {
	struct lies lies;
	struct run *run;
	/* The messages in which it says other things than its core does. */
	message_set kinds;
	/* In percent. */
	uint32_t often, tampers;
	/* It also lies about the epochs, hashes, flags and clocks of its frames. */
	bool heads;
	char keys[LIES_KEYS][16];
	/* When it began, in true time; 0: it has not begun. */
	int64_t since;
	uint32_t burst;
};

static bool is_liar(const struct run *run, uint32_t node) {
	return node == run->profile.lying_master - 1;
}

uint32_t liar_master(const struct run *run) {
	return run->profile.lying_master ? run->profile.lying_master - 1 : TRACE_NONE;
}

/* ---- what it lies about ---- */

static const message_set about_locks = KIND(PROMISE) | KIND(PROMISE_ANSWER) | KIND(COMMIT) |
	KIND(COMMIT_ANSWER) | KIND(WITHDRAW) | KIND(EXTEND) | KIND(EXTEND_ANSWER) |
	KIND(EXTEND_PERMITS) | KIND(FETCH) | KIND(FETCH_ANSWER) | KIND(LEARN) | KIND(LEARN_ANSWER) |
	KIND(RELEASE) | KIND(RELEASE_ANSWER) | KIND(BREAK) | KIND(BREAK_ANSWER) |
	KIND(PREPARE) | KIND(PREPARE_ANSWER) | KIND(WRITE) | KIND(WRITE_ANSWER) | KIND(DOWNGRADE) |
	KIND(DOWNGRADE_ANSWER) | KIND(BINDING) | KIND(BINDING_ANSWER);
static const message_set about_queues = KIND(ENQUEUE) | KIND(ENQUEUE_ANSWER) | KIND(TURN) |
	KIND(DISPLACED) | KIND(WAITERS) | KIND(WAITERS_ANSWER) | KIND(READ) | KIND(READ_ANSWER) |
	KIND(NOMINATE) | KIND(NOMINATE_ANSWER) | KIND(HAND_OVER) | KIND(ASK) | KIND(ASK_ANSWER) |
	KIND(PING) | KIND(PONG);
static const message_set about_copies = KIND(SNAPSHOT) | KIND(SNAPSHOT_RECORD) |
	KIND(SNAPSHOT_RELEASED) | KIND(SNAPSHOT_CHUNK) | KIND(SNAPSHOT_GO_ON) | KIND(SNAPSHOT_END) |
	KIND(SNAPSHOT_READY) | KIND(SNAPSHOT_LOST);
static const message_set about_logs = KIND(FOLLOW) | KIND(FEED_BEGIN) | KIND(FEED_RECORD) |
	KIND(FEED_GONE) | KIND(FEED_BATCH) | KIND(FEED_ACK) | KIND(FEED_ECHO) | KIND(FEED_END) |
	KIND(FEED_WATCH_EVENT) | KIND(SYNC_ROOT) | KIND(SYNC_GROUPS) | KIND(SYNC_ASK) |
	KIND(SYNC_LEAVES) | KIND(SYNC_KEYS) | KIND(SYNC_FETCH) | KIND(SYNC_RECORD) | KIND(COUNTED);
static const message_set about_the_set = KIND(PLEDGE) | KIND(CONFIG) | KIND(DECREE_PREPARE) |
	KIND(DECREE_PROMISE) | KIND(DECREE_ACCEPT) | KIND(DECREE_ACCEPTED) | KIND(COPY_AHEAD) |
	KIND(COPY_AHEAD_ANSWER) | KIND(COPY_AHEAD_END);

static void draw(struct lying *l) {
	struct prng *r = &l->run->late;
	const message_set sets[] = { about_locks, about_locks, about_queues, about_copies,
		about_copies, about_logs };
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		l->kinds |= prng_chance(r, 1, 2) ? sets[i] : 0;
	}
	l->kinds |= l->kinds == 0 || prng_chance(r, 1, 4) ? about_the_set : 0;
	l->often = (uint32_t)prng_between(r, 10, 100);
	l->tampers = prng_chance(r, 1, 2) ? (uint32_t)prng_between(r, 1, 40) : 0;
	l->heads = prng_chance(r, 1, 3);
}

static uint8_t next(void *ctx) {
	struct lying *l = ctx;
	return (uint8_t)prng_below(&l->run->late, 256);
}

/* A node that belongs to no cluster may be told anything by a master. The page promises nothing for
 * it, and nothing is demanded of it then. */
static bool may_say(const struct lying *l, uint32_t to, enum message_kind kind) {
	const struct durable *d = sim_node_durable(l->run->sim, to);
	return l->kinds >> (int)kind & 1 &&
		(!(about_the_set >> (int)kind & 1) || (d->config.epoch > 0 && !d->pledged));
}

/* Finds what there is to lie about to this node. False: there is nothing. */
static bool look(struct lying *l, uint32_t to) {
	const struct run *run = l->run;
	struct lies *w = &l->lies;
	const struct core *core = sim_node_core(run->sim, to);
	struct core_status status;
	if (!core || core_config(core)->epoch == 0) {
		return false;
	}
	core_status(core, sim_node_clock(run->sim, to), &status);
	w->config = core_config(core);
	w->clock = status.clock;
	w->nodes = sim_nodes(run->sim);
	for (uint32_t i = 0; i < w->nodes; i++) {
		w->ids[i] = sim_node_durable(run->sim, i)->node_id;
	}
	const uint32_t locks = checker_locks(run->checker);
	for (uint32_t i = 0; i < LIES_LOCKS && locks; i++) {
		w->locks[i] = checker_lock_id(run->checker,
			locks - 1 - (uint32_t)prng_below(&l->run->late, locks < 16 ? locks : 16));
	}
	return true;
}

/* ---- saying it ---- */

static void heard(void *ctx, const struct frame *frame) {
	struct lying *l = ctx;
	for (size_t i = 0; i < frame->count; i++) {
		lies_see(&l->lies, &frame->messages[i]);
	}
}

static void false_head(struct lying *l, struct frame *frame) {
	if (l->heads && prng_chance(&l->run->late, 1, 4)) {
		frame->clock = lies_token(&l->lies);
		frame->flags ^= prng_chance(&l->run->late, 1, 4) ? FRAME_VOTING : 0;
		frame->flags ^= prng_chance(&l->run->late, 1, 4) ? FRAME_COMPLETE : 0;
	}
	if (l->heads && prng_chance(&l->run->late, 1, 16)) {
		frame->epoch = lies_count(&l->lies, frame->epoch);
	}
}

static bool tampers(void *ctx, uint32_t to, struct frame *frame, struct message *messages) {
	struct lying *l = ctx;
	struct run *run = l->run;
	if (run->healing || l->since == 0 || prng_below(&run->late, 100) >= l->tampers ||
		!look(l, to)) {
		return false;
	}
	struct message *m = &messages[prng_below(&run->late, frame->count)];
	if (!may_say(l, to, m->kind)) {
		return false;
	}
	lies_alter(&l->lies, m);
	lies_trim(m);
	false_head(l, frame);
	run->counts[RUN_TAMPERED]++;
	return true;
}

static void lie(struct lying *l, uint32_t to) {
	struct run *run = l->run;
	if (is_liar(run, to) || !sim_linked(run->sim, liar_master(run), to) || !look(l, to)) {
		return;
	}
	struct message m = { .kind = MESSAGE_PING };
	for (int tries = 0; tries < 16 && !(m.kind != MESSAGE_PING && may_say(l, to, m.kind));
		tries++) {
		m = prng_chance(&run->late, 1, 4) ? *lies_seen_one(&l->lies)
			: lies_message(&l->lies);
	}
	if (!may_say(l, to, m.kind)) {
		return;
	}
	lies_trim(&m);
	struct frame frame = sim_forged(run->sim, liar_master(run), to);
	frame.messages = &m;
	frame.count = 1;
	false_head(l, &frame);
	run->counts[RUN_LIED] += sim_forge_frame(run->sim, liar_master(run), to, &frame);
}

/* ---- what the others must not do ---- */

static void evaluate(struct lying *l) {
	struct run *run = l->run;
	const struct config *newest = checker_newest(run->checker);
	run->too_few = run->too_few || (newest && config_masters(newest) < MASTERS_LEAST);
	/* A clock may be ahead by the margin, once more by the margin for each time that a node
	 * starts, begins to vote, or rejoins, and by a nanosecond for each one that has passed on a
	 * clock that may be fast. */
	uint64_t margins = (newest ? newest->epoch : 1) + sim_counts(run->sim)[COUNT_rejoin];
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		margins += sim_node_incarnation(run->sim, i);
	}
	const uint64_t most = CLOCK_JUMP_MAX + margins * CLOCK_JUMP_MAX +
		(uint64_t)span_grow(sim_now(run->sim), 2 * run->born.drift_ppm);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		struct core_status status;
		if (is_liar(run, i) || !sim_node_core(run->sim, i)) {
			continue;
		}
		core_status(sim_node_core(run->sim, i), sim_node_clock(run->sim, i), &status);
		if (status.clock > most) {
			checker_violation(run->checker, "a liar drives no clock", TRACE_NONE,
				"n%" PRIu32 " has come to %" PRIu64, i + 1, status.clock);
		}
		if (sim_node_memory(run->sim, i) > MEMORY_MOST) {
			checker_violation(run->checker, "lies take no memory", TRACE_NONE,
				"n%" PRIu32 " has %zu bytes", i + 1, sim_node_memory(run->sim, i));
		}
	}
}

/* It lies only once the cluster is born. Before that it may prevent the birth, as each of the
 * masters may. */
static bool born(const struct run *run) {
	const struct config *newest = checker_newest(run->checker);
	return newest && checker_config_complete(run->checker, newest);
}

static void listen(struct lying *l) {
	const uint64_t ahead[] = { 0, 0, 0, CLOCK_JUMP_MAX, 2 * CLOCK_JUMP_MAX, TOKEN_MAX };
	sim_liar_set(l->run->sim, &(struct sim_liar){ .node = liar_master(l->run), .heard = heard,
		.tampers = tampers, .ctx = l, .ahead = l->since
		? ahead[prng_below(&l->run->late, sizeof ahead / sizeof *ahead)] : 0 });
}

static void think(void *ctx, uint64_t arg) {
	(void)arg;
	struct lying *l = ctx;
	struct run *run = l->run;
	if (run->healing) {
		return;
	}
	if (!l->since && born(run)) {
		l->since = sim_now(run->sim);
		listen(l);
	}
	evaluate(l);
	if (l->since && prng_below(&run->late, 100) < l->often) {
		l->burst = l->burst || !prng_chance(&run->late, 1, 50) ? l->burst
			: (uint32_t)prng_between(&run->late, 10, 100);
		lie(l, (uint32_t)prng_below(&run->late, sim_nodes(run->sim)));
	}
	const span_ns pause = l->burst ? 10 * SPAN_US
		: prng_between(&run->late, SPAN_MS / 5, 5 * SPAN_MS);
	l->burst -= l->burst > 0;
	sim_at(run->sim, sim_now(run->sim) + pause, think, l, 0);
}

/* ---- the end ---- */

/* The liar goes away for good. */
void liar_master_ends(struct run *run) {
	if (run->profile.lying_master) {
		evaluate(run->lying);
		sim_liar_set(run->sim, NULL);
		run->destroyed |= UINT32_C(1) << liar_master(run);
		if (sim_node_running(run->sim, liar_master(run))) {
			sim_node_kill(run->sim, liar_master(run), true);
		}
	}
}

void liar_master_free(struct run *run) {
	free(run->lying);
}

void liar_master_start(struct run *run) {
	if (!run->profile.lying_master) {
		return;
	}
	struct lying *l = run->lying = calloc(1, sizeof *l);
	CHECK(l != NULL);
	l->run = run;
	l->lies.next = next;
	l->lies.ctx = l;
	l->lies.liar = liar_master(run);
	for (uint32_t i = 0; i < LIES_KEYS; i++) {
		sim_name_key(l->keys[i], i % run->profile.keys);
		l->lies.keys[i] = l->keys[i];
	}
	draw(l);
	listen(l);
	sim_at(run->sim, sim_now(run->sim) + SPAN_MS, think, l, 0);
}
