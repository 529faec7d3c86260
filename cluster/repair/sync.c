/* sync.c: anti-entropy among masters, in the background (section 7). A master that missed writes
 * gets what the others have without waiting for extensions. Each master asks the others for what it
 * may lack; nobody pushes. One exchange:
 *
 *   ROOT (one number) --------> equal: nothing more
 *        <-------- GROUPS        digests of all groups
 *   ASK groups ---------------> LEAVES   digests of the leaves of those groups that differ
 *   ASK leaves ---------------> KEYS     for leaves that differed in two exchanges in a row, so
 *                                        that nothing is pulled that is merely on its way
 *   (evaluated: sync_evaluate.c)
 *   FETCH --------------------> RECORD   the record itself, or that its release is remembered
 *
 * Each exchange is bounded, and what is left over waits for the next one. A lost message ends the
 * exchange and nothing else. */
#include "repair.h"
#include "sync.h"

/* Beats of request_timeout / 4 after which the lists are evaluated at the latest, and after which
 * the next exchange begins. */
enum { BEATS_PULL = 3, BEATS_ROUND = 4 };

void sync_free(struct core *core) {
	struct sync *s = core->repair.sync;
	if (s) {
		arena_done(&s->names);
		alloc_free(&core->alloc, s->seen, s->seen_capacity * sizeof *s->seen);
		alloc_free(&core->alloc, s, sizeof *s);
		core->repair.sync = NULL;
	}
}

struct sync *sync_open(struct core *core) {
	if (core->repair.sync && core->repair.sync->epoch != core->config.epoch) {
		/* Other masters have these peer indexes now. */
		sync_free(core);
	}
	if (core->repair.sync == NULL) {
		core->repair.sync = alloc_new(&core->alloc, sizeof *core->repair.sync);
		if (core->repair.sync == NULL) {
			COUNT(core, no_memory);
			return NULL;
		}
		core->repair.sync->epoch = core->config.epoch;
		arena_init(&core->repair.sync->names, &core->alloc, SYNC_NAME_BYTES_MAX);
	}
	return core->repair.sync;
}

/* Tells whether this master may exchange. It does not while a snapshot is being sent, which brings
 * the same and more. */
static bool quiet(const struct core *core) {
	return core_votes(core) && core->masters > 1 && core->snapshots == 0;
}

bool sync_left(const struct core *core) {
	const struct sync *s = core->repair.sync;
	return s && s->judging.active && s->epoch == core->config.epoch && quiet(core);
}

void sync_go_on(struct core *core) {
	if (sync_left(core)) {
		sync_evaluate_more(core);
	} else if (core->repair.sync) {
		core->repair.sync->judging.active = false;
	}
	pending_left(core, PENDING_JUDGING, sync_left(core));
}

static void forget_exchange(struct core *core, struct sync *s) {
	for (uint32_t g = 0; g < DIGEST_GROUPS; g++) {
		if (sync_bit(s->compared, g)) {
			for (uint32_t leaf = g * DIGEST_GROUP; leaf < (g + 1) * DIGEST_GROUP;
				leaf += 64) {
				s->suspects[leaf / 64] = s->differs[leaf / 64];
			}
		}
	}
	memset(s->differs, 0, sizeof s->differs);
	memset(s->compared, 0, sizeof s->compared);
	memset(s->pulls, 0, sizeof s->pulls);
	s->judging.active = false;
	s->cursor = s->cursor_next;
	s->cursor_next = 0;
	s->capped = false;
	if (s->seen_count == 0) {
		alloc_free(&core->alloc, s->seen, s->seen_capacity * sizeof *s->seen);
		s->seen = NULL;
		s->seen_capacity = 0;
	}
	s->seen_count = 0;
	arena_reset(&s->names);
}

static void begin(struct core *core) {
	if (core->repair.sync) {
		forget_exchange(core, core->repair.sync);
	}
	core->repair.sync_round++;
	core->repair.sync_tick = core->tick;
	core->repair.sync_beats = 0;
	core->repair.sync_evaluated = false;
	sync_hurry_ends(core);
	struct message m = { .kind = MESSAGE_SYNC_ROOT, .round = core->repair.sync_round,
		.number = digest_root(table_live(core)) };
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && peer_votes(core, i)) {
			COUNT(core, sync_compared);
			out_send(core, i, &m);
		}
	}
}

static bool waiting_for_lists(const struct core *core) {
	const struct sync *s = core->repair.sync;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (s->pulls[i].listed < s->pulls[i].count && core->peers[i].linked) {
			return true;
		}
	}
	return false;
}

/* Counts core->tick on, by which the age of a record's acceptance is told. The time between two
 * ticks is longer than any round may count answers, also a round of an earlier epoch. */
static void tick(struct core *core) {
	const span_ns seen = core->durable.request_timeout_seen,
		round = seen > core->config.request_timeout ? seen : core->config.request_timeout;
	core->tick++;
	core->repair.tick_at = instant_add(core->now, span_grow(round, core->config.drift_ppm));
}

void sync_beat(struct core *core) {
	struct sync *s = core->repair.sync;
	if (instant_expired(core->now, core->repair.tick_at)) {
		tick(core);
	}
	if (!quiet(core)) {
		/* Answers that are still to come are dropped. */
		core->repair.sync_round++;
		core->repair.sync_beats = BEATS_ROUND;
		if (s) {
			s->judging.active = false;
		}
		return;
	}
	if (s && sync_left(core)) {
		return;
	}
	bool open = s && s->epoch == core->config.epoch && !core->repair.sync_evaluated;
	core->repair.sync_beats++;
	if (core->repair.sync_beats >= BEATS_ROUND ||
		(core->repair.sync_evaluated && sync_hurries(core))) {
		begin(core);
	} else if (open && (core->repair.sync_beats >= BEATS_PULL || !waiting_for_lists(core))) {
		core->repair.sync_evaluated = true;
		if (s->capped) {
			sync_hurry(core);
		}
		sync_evaluate(core);
	}
}

/* ---- the master that is asked ---- */

static void answer_root(struct core *core, uint32_t from, const struct message *m) {
	if (m->number == digest_root(table_live(core))) {
		return;
	}
	uint8_t bytes[8 * DIGEST_GROUPS];
	for (uint32_t g = 0; g < DIGEST_GROUPS; g++) {
		put_u64(bytes + 8 * g, table_live(core)->group_digests[g]);
	}
	struct message answer = { .kind = MESSAGE_SYNC_GROUPS, .round = m->round,
		.blob = slice_of(bytes, sizeof bytes) };
	out_send(core, from, &answer);
}

static void answer_groups(struct core *core, uint32_t from, const struct message *m) {
	struct sync *s = sync_open(core);
	size_t size = 0;
	for (size_t i = 0; s && i < m->blob.size && i < SYNC_GROUPS_MAX; i++) {
		uint32_t group = m->blob.data[i];
		if (group >= DIGEST_GROUPS) {
			return;
		}
		s->scratch[size++] = (uint8_t)group;
		for (uint32_t leaf = 0; leaf < DIGEST_GROUP; leaf++, size += 8) {
			put_u64(s->scratch + size,
				digest_leaf(table_live(core), group * DIGEST_GROUP + leaf));
		}
	}
	if (size > 0) {
		struct message answer = { .kind = MESSAGE_SYNC_LEAVES, .round = m->round,
			.blob = slice_of(s->scratch, size) };
		out_send(core, from, &answer);
	}
}

/* A master that has the record (FLAG_HAD) asks only whether its release is remembered. */
static void answer_fetch(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_SYNC_RECORD, .round = m->round,
		.status = STATUS_ABSENT, .key = m->key, .lock_id = m->lock_id };
	const struct tombstone *gone = tombstone_find(core, m->lock_id);
	struct key *key = table_find(core, m->key);
	const struct record *r = key ? key_record(key, m->lock_id) : NULL;
	const bool ended = gone && gone->binding && !r && (m->flags & FLAG_HAD);
	/* What rests on that name alone has ended. */
	if (gone && gone->name && !gone->released && !r && (m->flags & FLAG_HAD)) {
		struct message back = answer;
		back.status = STATUS_RELEASED;
		back.name = gone->name;
		out_send(core, from, &back);
	}
	if (gone && (gone->released || ended)) {
		answer.status = STATUS_RELEASED;
		/* Only what is bound to this connection or to an earlier one has ended. */
		answer.terms.binding = gone->released ? 0 : gone->binding;
	} else if (((gone && gone->barred) || (r && r->barred)) && (m->flags & FLAG_HAD)) {
		answer.status = STATUS_BARRED;
	} else if (r && !(m->flags & FLAG_HAD) && out_backlog(core, from) != BACKLOG_LARGE) {
		/* No more than a link holds: the next exchange asks for what is left over. */
		answer.status = STATUS_OK;
		answer.name = r->rests_on;
		record_describe(core, r, &answer);
	} else {
		return;
	}
	out_send(core, from, &answer);
}

/* ---- the master that asks ---- */

static void take_groups(struct core *core, uint32_t from, const struct message *m) {
	struct sync *s = m->blob.size == 8 * DIGEST_GROUPS ? sync_open(core) : NULL;
	uint8_t groups[SYNC_GROUPS_MAX];
	uint32_t count = 0, next = 0;
	for (uint32_t i = 0; s && i < DIGEST_GROUPS && count < SYNC_GROUPS_MAX; i++) {
		uint32_t g = (s->cursor / DIGEST_GROUP + i) % DIGEST_GROUPS;
		if (load_le64(m->blob.data + 8 * g) != table_live(core)->group_digests[g]) {
			groups[count++] = (uint8_t)g;
			next = (g + 1) % DIGEST_GROUPS * DIGEST_GROUP;
		}
	}
	if (count > 0) {
		s->cursor_next = count == SYNC_GROUPS_MAX && !s->capped ? next : s->cursor_next;
		struct message ask = { .kind = MESSAGE_SYNC_ASK, .round = m->round,
			.blob = slice_of(groups, count) };
		out_send(core, from, &ask);
	}
}

/* Asks for the next few leaves. They hold about 512 records, so that no master is busy with an
 * answer for long. */
static void pull_next(struct core *core, uint32_t from) {
	struct sync_pull *p = &core->repair.sync->pulls[from];
	uint64_t average = table_live(core)->held_count / DIGEST_LEAVES + 1,
		most = 1 + 512 / average;
	uint8_t bytes[2 * 64];
	size_t size = 0;
	for (uint64_t n = 0; n < most && size < sizeof bytes && p->asked < p->count;
		n++, size += 2) {
		uint16_t leaf = p->leaves[p->asked++];
		bytes[size] = (uint8_t)leaf;
		bytes[size + 1] = (uint8_t)(leaf >> 8);
		COUNT(core, sync_leaf_pulled);
	}
	if (size > 0) {
		struct message ask = { .kind = MESSAGE_SYNC_ASK, .round = core->repair.sync_round,
			.number = 1, .blob = slice_of(bytes, size) };
		out_send(core, from, &ask);
	}
}

/* Lets the next exchange begin with this leaf. What cannot be mended (a record that is here alone)
 * must not keep other leaves from their turn. */
static void stop_at(struct sync *s, uint32_t leaf) {
	if (!s->capped) {
		s->capped = true;
		s->cursor_next = leaf % DIGEST_LEAVES;
	}
}

static void compare_leaf(struct core *core, uint32_t from, uint32_t leaf, uint64_t theirs) {
	struct sync *s = core->repair.sync;
	struct sync_pull *p = &s->pulls[from];
	if (theirs == digest_leaf(table_live(core), leaf)) {
		return;
	}
	sync_set(s->differs, leaf, true);
	bool later = leaf / DIGEST_GROUP == s->cursor / DIGEST_GROUP && leaf < s->cursor;
	if (later || !sync_bit(s->suspects, leaf)) {
		return;
	}
	if (p->count < SYNC_LEAVES_MAX) {
		p->leaves[p->count++] = (uint16_t)leaf;
	} else {
		stop_at(s, leaf);
	}
}

static void take_leaves(struct core *core, uint32_t from, const struct message *m) {
	const size_t each = 1 + 8 * DIGEST_GROUP;
	if (core->repair.sync == NULL || m->blob.size % each != 0 ||
		core->repair.sync->pulls[from].count > 0) {
		return;
	}
	for (size_t at = 0; at < m->blob.size; at += each) {
		uint32_t group = m->blob.data[at];
		if (group >= DIGEST_GROUPS) {
			return;
		}
		sync_set(core->repair.sync->compared, group, true);
		for (uint32_t i = 0; i < DIGEST_GROUP; i++) {
			compare_leaf(core, from, group * DIGEST_GROUP + i,
				load_le64(m->blob.data + at + 1 + 8 * i));
		}
	}
	pull_next(core, from);
}

static void take_keys(struct core *core, uint32_t from, const struct message *m) {
	struct sync_pull *p = core->repair.sync ? &core->repair.sync->pulls[from] : NULL;
	if (p == NULL || core->repair.sync_evaluated || p->asked == p->listed) {
		return;
	}
	if (!sync_take_list(core, from, m->blob)) {
		stop_at(core->repair.sync,
			p->listed > 0 ? p->leaves[p->listed] : p->leaves[0] + 1u);
		/* What is known of this master is enough for now. */
		p->count = p->asked = p->listed;
	} else if (m->number != SYNC_LIST_GOES_ON) {
		p->cut = p->cut || m->number == SYNC_LIST_CUT;
		p->listed = p->asked;
		pull_next(core, from);
	}
}

/* Learns the record that this master lacked. Nothing rests on that. If somebody else is about to
 * get the key, the record would only displace the promise: in most cases it has run out at some
 * masters and is about to at the others. If a request that failed has given the record back here,
 * the other masters have not heard that yet. */
static void learn(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	if (rolled_back_has(core, m->lock_id, m->token, m->name)) {
		return;
	}
	const bool promised = key && key_promised_other(key, m->lock_id) &&
		!key_record(key, m->lock_id);
	const enum status status = promised ? STATUS_CONTESTED
		: master_learn_here(core, from, m, &key);
	if (status == STATUS_OK) {
		COUNT(core, sync_learned);
	} else if (!watch_event_wanted(core)) {
		/* Whoever begins to watch soon is not to miss how that ends. */
		missed_under_way(core);
	}
	if (key && !promised) {
		/* A record displaces the promise. */
		queue_parked_again(core, key);
		table_settle(core, key);
	}
}

/* Takes the record that this master lacked, or the release of a record that it had alone. The rules
 * and the stamp are those of this moment. */
static void take_record(struct core *core, uint32_t from, const struct message *m) {
	/* There may be more, so the next exchange need not wait for its time. */
	sync_hurry(core);
	if (m->status == STATUS_RELEASED && m->terms.binding) {
		core->counts[COUNT_sync_released] += master_end_binding(core, m->key, m->lock_id,
			m->terms.binding);
	} else if (m->status == STATUS_RELEASED && m->name) {
		core->counts[COUNT_sync_rolled_back] += master_roll_back(core, m->key, m->lock_id,
			m->name);
	} else if (m->status == STATUS_RELEASED) {
		core->counts[COUNT_sync_released] += master_release_here(core, m,
			RECORD_RELEASED, NULL);
	} else if (m->status == STATUS_BARRED) {
		master_bar_here(core, m->key, m->lock_id);
	} else if (m->status == STATUS_OK) {
		struct message learned = *m;
		uint64_t longest = (uint64_t)(core->config.max_lease / SPAN_US);
		/* The lease is never longer than at its source. */
		learned.lease_us = m->left_us < longest ? m->left_us : longest;
		learn(core, from, &learned);
	}
}

void sync_message(struct core *core, uint32_t from, const struct message *m) {
	bool asked = m->kind == MESSAGE_SYNC_ROOT || m->kind == MESSAGE_SYNC_ASK ||
		m->kind == MESSAGE_SYNC_FETCH;
	/* A record that was asked for at the end of an exchange may come in the next one. */
	bool mine = m->round == core->repair.sync_round ||
		(m->kind == MESSAGE_SYNC_RECORD && m->round + 1 == core->repair.sync_round);
	if (from >= core->masters || !quiet(core) || !(asked || mine)) {
		return;
	}
	if (m->kind == MESSAGE_SYNC_ROOT) {
		answer_root(core, from, m);
	} else if (m->kind == MESSAGE_SYNC_ASK && m->number == 0) {
		answer_groups(core, from, m);
	} else if (m->kind == MESSAGE_SYNC_ASK) {
		sync_list_leaves(core, from, m->round, m->blob);
	} else if (m->kind == MESSAGE_SYNC_FETCH) {
		answer_fetch(core, from, m);
	} else if (m->kind == MESSAGE_SYNC_GROUPS) {
		take_groups(core, from, m);
	} else if (m->kind == MESSAGE_SYNC_LEAVES) {
		take_leaves(core, from, m);
	} else if (m->kind == MESSAGE_SYNC_KEYS) {
		take_keys(core, from, m);
	} else {
		take_record(core, from, m);
	}
}
