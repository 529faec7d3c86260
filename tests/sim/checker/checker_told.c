/* checker_told.c: a replica tells what its master tells: of each key every event in its order, or
 * that events were missed (docs/protocol.md, section 7). Where the master had no room for events of
 * its own, and told that some were missed, its replicas may tell as many events that nobody else
 * has told. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"
#include "siphash.h"

static const struct siphash_key any_key = { 1, 2 };

/* The digest of everything that an event tells. Missed events have none: 0. */
static uint64_t digest(const struct core_watch_event *n) {
	if (n->kind == WATCH_EVENT_MISSED) {
		return 0;
	}
	const uint64_t words[] = { (uint64_t)n->kind, id128_word(n->lock_id), n->token,
		n->value_seq.clock,
		n->value_seq.node, n->value_seq.boot, n->terms.of, n->terms.set.w[0],
		n->terms.set.w[1], siphash(any_key, n->owner.data, n->owner.size),
		siphash(any_key, n->identity.data, n->identity.size),
		siphash(any_key, n->value.data, n->value.size),
		siphash(any_key, n->label.data, n->label.size) };
	return siphash(any_key, (const uint8_t *)words, sizeof words) | 1;
}

static void put(struct told_key *k, struct told told) {
	if (k->count == k->capacity) {
		k->capacity = k->capacity ? 2 * k->capacity : 16;
		k->told = realloc(k->told, k->capacity * sizeof *k->told);
		CHECK(k->told != NULL);
	}
	k->told[k->count++] = told;
}

static struct told_key *told_key(struct checker *c, uint32_t node, uint32_t key) {
	struct told_by *by = &c->told[node];
	if (key >= by->count) {
		by->keys = realloc(by->keys, (key + 1) * sizeof *by->keys);
		CHECK(by->keys != NULL);
		for (; by->count <= key; by->count++) {
			by->keys[by->count] = (struct told_key){ .unsure = true };
			/* The first event of the key may have been among those for which there was
			 * no room. */
			if (by->no_room) {
				put(&by->keys[by->count],
					(struct told){ .at = sim_now(c->sim), .no_room = true });
			}
		}
	}
	return &by->keys[key];
}

void checker_told_free(struct checker *c) {
	for (uint32_t node = 0; node < SIM_NODES_MAX; node++) {
		for (uint32_t i = 0; i < c->told[node].count; i++) {
			free(c->told[node].keys[i].told);
		}
		free(c->told[node].keys);
	}
}

/* Missed events of no key are missed events of all keys. */
static void each_key(struct checker *c, uint32_t node, const struct core_watch_event *n,
	void (*then)(struct checker *, uint32_t, uint32_t, const struct core_watch_event *)) {
	if (n->key.size) {
		uint32_t key = sim_name_key_number(n->key);
		if (key != TRACE_NONE) {
			then(c, node, key, n);
		}
		return;
	}
	for (uint32_t other = 0; other < sim_nodes(c->sim); other++) {
		for (uint32_t key = c->told[node].count; key < c->told[other].count; key++) {
			(void)told_key(c, node, key);
		}
	}
	for (uint32_t key = 0; key < c->told[node].count; key++) {
		then(c, node, key, n);
	}
}

/* ---- masters ---- */

static void add(struct checker *c, uint32_t node, uint32_t key, const struct core_watch_event *n) {
	put(told_key(c, node, key), (struct told){ .digest = digest(n), .at = sim_now(c->sim) });
}

static void add_no_room(struct checker *c, uint32_t node, uint32_t key,
	const struct core_watch_event *n) {
	(void)n;
	put(told_key(c, node, key), (struct told){ .at = sim_now(c->sim), .no_room = true });
}

/* How many events were dropped, if this event says that some were missed: the core counts them when
 * it gives it out. 0: none were dropped, and it was told itself. */
static uint64_t stands_for(struct checker *c, uint32_t node) {
	const uint64_t lost = core_counts(sim_node_core(c->sim, node))[COUNT_watch_event_lost],
		more = lost - c->told[node].no_room_seen;
	c->told[node].no_room_seen = lost;
	return more;
}

/* ---- replicas ---- */

static void forget(struct checker *c, uint32_t node, uint32_t key,
	const struct core_watch_event *n) {
	(void)n;
	told_key(c, node, key)->unsure = true;
}

/* The node whose events it repeats; TRACE_NONE: it is without a master, or builds another table. */
static uint32_t repeats(const struct checker *c, uint32_t node) {
	struct core_status status;
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	return status.catching_up ? TRACE_NONE : checker_followed(c, node);
}

/* The same has been told several times: what was told since events were missed may be a later one
 * of the equal parts. */
static bool move_on(struct told_key *mine, const struct told_key *whole) {
	const uint32_t run = mine->at - mine->from;
	for (uint32_t from = mine->from + 1; from + run <= whole->count; from++) {
		uint32_t same = 0;
		while (same < run &&
			whole->told[from + same].digest == whole->told[mine->from + same].digest) {
			same++;
		}
		if (same == run) {
			mine->from = from;
			mine->at = from + run;
			return true;
		}
	}
	return false;
}

static uint32_t next_of(const struct told_key *mine, const struct told_key *whole) {
	uint32_t at = mine->at;
	while (at < whole->count && whole->told[at].no_room) {
		at++;
	}
	return at;
}

static bool is_next(const struct told_key *mine, const struct told_key *whole, uint64_t digest) {
	const uint32_t at = next_of(mine, whole);
	return at < whole->count && whole->told[at].digest == digest;
}

/* Since events were last missed here, or where it may go on after that, the master had no room for
 * events, and not all of those have been told. */
static bool may_be_excused(const struct checker *c, const struct told_key *mine,
	const struct told_key *whole, bool anywhere) {
	const uint32_t end = anywhere || mine->at >= whole->count ? whole->count : mine->at + 1;
	for (uint32_t i = mine->from; i < end; i++) {
		if (whole->told[i].no_room) {
			return mine->excused < c->told[mine->master].no_room;
		}
	}
	return false;
}

static void repeated(struct checker *c, uint32_t node, uint32_t key,
	const struct core_watch_event *n) {
	uint32_t master = repeats(c, node);
	struct told_key *mine = told_key(c, node, key);
	if (master == TRACE_NONE || (c->told[node].alone && n->kind == WATCH_EVENT_EXPIRED)) {
		/* Or it ended by this node's clocks at the beginning of the step in which it began
		 * to follow. */
		mine->unsure = true;
		return;
	}
	const struct told_key *whole = told_key(c, master, key);
	mine = told_key(c, node, key);
	if (!mine->unsure && mine->master != master) {
		checker_violation(c, "watch events of replicas", key,
			"n%" PRIu32 " told what n%" PRIu32 " tells, and goes on with n%" PRIu32
			" without saying that events were missed", node + 1, mine->master + 1,
			master + 1);
	}
	const bool first = mine->unsure;
	if (first) {
		mine->excused = mine->master == master ? mine->excused : 0;
		mine->from = mine->at = mine->master == master ? mine->from : 0;
		mine->master = master;
		mine->unsure = false;
	}
	const struct told_key before = *mine;
	bool next = is_next(mine, whole, digest(n));
	while (!next && move_on(mine, whole)) {
		next = is_next(mine, whole, digest(n));
	}
	if (!next && may_be_excused(c, &before, whole, first)) {
		*mine = before;
		mine->excused++;
		mine->unsure = true;
		return;
	}
	if (!next) {
		checker_violation(c, "watch events of replicas", key, "n%" PRIu32
			" tells an event of kind %d and token %" PRIu64 ", which is not what n%"
			PRIu32 " told next", node + 1, (int)n->kind, n->token, master + 1);
	}
	mine->at = next_of(mine, whole) + 1;
}

void checker_told(struct checker *c, uint32_t node, const struct core_watch_event *n) {
	struct core_status status;
	const uint64_t lost = stands_for(c, node);
	if (n->kind == WATCH_EVENT_ASKED) {
		return;
	}
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	if (status.state != CORE_FOLLOWING) {
		each_key(c, node, n, lost ? add_no_room : add);
		c->told[node].no_room += lost;
		each_key(c, node, n, forget);
	} else {
		const bool missed = n->kind == WATCH_EVENT_MISSED,
			whole = missed && n->key.size == 0;
		/* Once it follows again it tells that events of all keys were missed. */
		c->told[node].alone = repeats(c, node) == TRACE_NONE ||
			(c->told[node].alone && !whole);
		each_key(c, node, n, missed ? forget : repeated);
	}
}

static bool is_late(const struct checker *c, const struct told_key *mine,
	const struct told_key *whole) {
	const uint32_t at = next_of(mine, whole);
	return at < whole->count && whole->told[at].at + SPAN_S < sim_now(c->sim);
}

/* What its master told a while ago it has told, too. */
void checker_told_settled(struct checker *c) {
	for (uint32_t node = 0; node < sim_nodes(c->sim); node++) {
		uint32_t master = sim_node_core(c->sim, node) ? repeats(c, node) : TRACE_NONE;
		for (uint32_t key = 0; master != TRACE_NONE && key < c->told[node].count; key++) {
			const struct told_key *whole = told_key(c, master, key);
			struct told_key *mine = told_key(c, node, key);
			bool late = is_late(c, mine, whole);
			while (late && mine->master == master && move_on(mine, whole)) {
				late = is_late(c, mine, whole);
			}
			if (!mine->unsure && (mine->master != master || late)) {
				checker_violation(c, "watch events of replicas", key, "n%" PRIu32
					" has told %" PRIu32 " events of %" PRIu32 " that n%" PRIu32
					" told", node + 1, mine->at, whole->count, master + 1);
			}
		}
	}
}
