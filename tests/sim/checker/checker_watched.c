/* checker_watched.c: a client that watches all keys at a node from the node's start is told in true
 * time of every lock that somebody was granted, in order for each key, or that something is
 * missing. Where nothing goes wrong nothing is missing (docs/protocol.md, section 3, Watching). */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"

#define RAN_OUT (2 * SPAN_S)
/* Until then links are made, and masters begin to vote. */
#define BIRTH (3 * SPAN_S)

static struct watched_key *watched_key(struct checker *c, uint32_t node, uint32_t key) {
	struct watched *w = &c->watched[node];
	if (key >= w->count) {
		w->keys = realloc(w->keys, (key + 1) * sizeof *w->keys);
		CHECK(w->keys != NULL);
		memset(&w->keys[w->count], 0, (key + 1 - w->count) * sizeof *w->keys);
		w->count = key + 1;
	}
	return &w->keys[key];
}

static void key_again(struct watched_key *k) {
	k->present_count = 0;
	k->any = k->exclusive = 0;
	k->sure = false;
}

static void all_again(struct watched *w) {
	for (uint32_t key = 0; key < w->count; key++) {
		key_again(&w->keys[key]);
	}
}

void checker_watched_free(struct checker *c) {
	for (uint32_t node = 0; node < SIM_NODES_MAX; node++) {
		free(c->watched[node].keys);
	}
}

static void begins(struct checker *c, uint32_t node) {
	struct watched *w = &c->watched[node];
	w->since = sim_now(c->sim);
	w->missed_at = 0;
	for (uint32_t key = 0; key < w->count; key++) {
		w->keys[key].missed_at = 0;
	}
	all_again(w);
	for (size_t i = 0; i < c->lock_count; i++) {
		c->locks[i].seen &= ~(1u << node);
		c->locks[i].lacked &= ~(1u << node);
	}
}

/* When the node has started anew, so do its watchers. */
void checker_watched_step(struct checker *c, uint32_t node) {
	uint64_t incarnation = sim_node_incarnation(c->sim, node);
	if (c->watched[node].incarnation == incarnation) {
		return;
	}
	c->watched[node].incarnation = incarnation;
	begins(c, node);
	char name[16];
	uint64_t token, noted;
	for (size_t i = 0; i < c->lock_count; i++) {
		struct lock_state *lock = &c->locks[i];
		if (!core_peek(sim_node_core(c->sim, node), sim_name_key(name, lock->key),
			lock->id, &token, &noted)) {
			lock->found_since[node] = 0;
		}
	}
}

void checker_watched_commit(struct checker *c, uint32_t lock) {
	if (lock < c->lock_count) {
		struct key_state *k = checker_key(c, c->locks[lock].key);
		bool other = k->commit_lock && k->commit_lock - 1 != lock;
		k->raced_at = other && !c->locks[k->commit_lock - 1].ended ? sim_now(c->sim)
			: k->raced_at;
		k->commit_lock = lock + 1;
	}
}

/* The node's master may tell the other update's value without having had this one. */
void checker_watched_crossed(struct checker *c, uint64_t round) {
	const uint32_t key = sim_round_key(c->sim, round);
	if (key != TRACE_NONE) {
		checker_key(c, key)->raced_at = sim_now(c->sim);
	}
}

/* There were two commits at once, each refused by some masters. A master that has seen the later
 * one cannot know what became of the other. */
static bool raced(struct checker *c, uint32_t key) {
	return key != TRACE_NONE && checker_key(c, key)->raced_at &&
		checker_key(c, key)->raced_at + RAN_OUT > sim_now(c->sim);
}

/* Whether a lease has recently run out. It does not run out everywhere at once, so that the next
 * lock may have the key here and not there, and an extension that comes too late brings a lock back
 * where another one has been told of. */
static bool ran_out(const struct checker *c, uint32_t key) {
	bool any = false;
	for (uint32_t node = 0; key != TRACE_NONE && node < sim_nodes(c->sim); node++) {
		const struct watched *w = &c->watched[node];
		any = any || (key < w->count && w->keys[key].ran_out_at &&
			w->keys[key].ran_out_at + RAN_OUT > sim_now(c->sim));
	}
	return any;
}

/* A client that is told that something is missing reads anew, and finds what the node has by then.
 * That includes locks that came with a snapshot. */
static void read_anew(struct checker *c, uint32_t node, uint32_t key) {
	char name[16];
	uint64_t token, noted;
	for (uint32_t i = 0; sim_node_core(c->sim, node) && i < c->lock_count; i++) {
		struct lock_state *lock = &c->locks[i];
		if ((key == TRACE_NONE || key == lock->key) &&
			core_peek(sim_node_core(c->sim, node), sim_name_key(name, lock->key),
			lock->id, &token, &noted)) {
			lock->seen |= 1u << node;
			lock->unseen_at[node] = 0;
		}
	}
}

/* What is held elsewhere, and not here yet, may end while it is watched. */
void checker_watch_begins(struct checker *c, uint32_t node) {
	begins(c, node);
	checker_events_look_again(c, node);
	read_anew(c, node, TRACE_NONE);
	for (uint32_t i = 0; sim_node_core(c->sim, node) && i < c->lock_count; i++) {
		struct lock_state *lock = &c->locks[i];
		/* What the node has had counts as told. */
		const bool had = lock->shown_token && lock->accepted[node] >= lock->shown_token;
		if (lock->granted_at && !lock->ended && !lock->barred && !had &&
			!(lock->seen >> node & 1) && checker_lock_believed(c, i)) {
			lock->lacked |= 1u << node;
		}
	}
}

static void missing(struct checker *c, uint32_t node, struct slice key) {
	struct watched *w = &c->watched[node];
	uint32_t number = key.size ? sim_name_key_number(key) : TRACE_NONE;
	if (c->options.nothing_wrong && sim_now(c->sim) > BIRTH && !ran_out(c, number) &&
		!raced(c, number)) {
		checker_violation(c, "watchers in calm", number, "n%" PRIu32
			" tells that something is missing, and nothing is wrong", node + 1);
	}
	if (number == TRACE_NONE) {
		w->missed_at = sim_now(c->sim);
		all_again(w);
	} else {
		watched_key(c, node, number)->missed_at = sim_now(c->sim);
		key_again(watched_key(c, node, number));
	}
	read_anew(c, node, number);
}

static void gone(struct watched_key *k, uint32_t lock) {
	for (uint32_t i = 0; i < k->present_count; i++) {
		if (k->present[i].lock == lock) {
			k->present[i--] = k->present[--k->present_count];
		}
	}
}

/* The permits of a record may become more or fewer without an event. */
static bool excludes(uint16_t a, uint16_t b) {
	return a == MODE_EXCLUSIVE || b == MODE_EXCLUSIVE;
}

static void came(struct checker *c, uint32_t node, uint32_t key, uint32_t lock,
	const struct core_watch_event *n) {
	struct watched_key *k = watched_key(c, node, key);
	gone(k, lock);
	if (k->sure && !(n->value_seq.boot & BALLOT_FIRST)) {
		checker_violation(c, "watchers", key, "n%" PRIu32 " tells of L%" PRIu32
			" with a value that was written later, and not that something is missing",
			node + 1, lock);
	}
	for (uint32_t i = 0; i < k->present_count; i++) {
		if (excludes(k->present[i].of, n->terms.of)) {
			checker_violation(c, "watchers", key, "n%" PRIu32 " tells of L%" PRIu32
				" and has not told of the end of L%" PRIu32, node + 1, lock,
				k->present[i].lock);
		}
	}
	uint64_t before = n->terms.of == MODE_EXCLUSIVE ? k->any : k->exclusive;
	if (n->token < before) {
		checker_violation(c, "watchers", key, "n%" PRIu32 " tells of L%" PRIu32
			" with token %" PRIu64 " after token %" PRIu64, node + 1, lock, n->token,
			before);
	}
	k->any = n->token > k->any ? n->token : k->any;
	k->exclusive = n->terms.of == MODE_EXCLUSIVE && n->token > k->exclusive ? n->token
		: k->exclusive;
	if (k->present_count < WATCHED_PRESENT) {
		k->present[k->present_count++] = (struct watched_lock){ lock, n->terms.of };
	}
	c->locks[lock].seen |= 1u << node;
	c->locks[lock].unseen_at[node] = 0;
}

static void loosened(struct watched_key *k, uint32_t lock) {
	for (uint32_t i = 0; i < k->present_count; i++) {
		k->present[i].of = k->present[i].lock == lock ? MODE_SHARED : k->present[i].of;
	}
}

void checker_watched(struct checker *c, uint32_t node, const struct core_watch_event *n) {
	checker_watched_step(c, node);
	if (n->kind == WATCH_EVENT_MISSED) {
		missing(c, node, n->key);
		return;
	}
	uint32_t key = sim_name_key_number(n->key), lock = sim_name_lock_number(n->lock_id);
	if (key == TRACE_NONE || lock >= c->lock_count) {
		return;
	}
	switch (n->kind) {
	case WATCH_EVENT_ACQUIRED:
		came(c, node, key, lock, n);
		break;
	case WATCH_EVENT_DOWNGRADED:
		loosened(watched_key(c, node, key), lock);
		break;
	case WATCH_EVENT_RELEASED: case WATCH_EVENT_EXPIRED: case WATCH_EVENT_LOST:
		gone(watched_key(c, node, key), lock);
		c->locks[lock].unseen_at[node] = sim_now(c->sim);
		c->locks[lock].unseen_token[node] = n->token;
		watched_key(c, node, key)->ran_out_at = n->kind == WATCH_EVENT_RELEASED
			? watched_key(c, node, key)->ran_out_at : sim_now(c->sim);
		break;
	case WATCH_EVENT_UPDATED: case WATCH_EVENT_ASKED: case WATCH_EVENT_MISSED:
		break;
	}
	watched_key(c, node, key)->sure |= n->kind != WATCH_EVENT_ASKED;
}

/* When a quorum had accepted it: a client that reads anew before that may find the key free. If its
 * release was asked for before that, it is as much over as it ever will be at the masters that had
 * it first. */
static int64_t shown_at(const struct lock_state *lock, const struct core_reply *reply) {
	int64_t first[SIM_NODES_MAX];
	uint32_t count = 0;
	for (uint32_t node = 0; node < SIM_NODES_MAX; node++) {
		if (lock->accepted[node] >= reply->token) {
			uint32_t at = count++;
			for (; at > 0 && first[at - 1] > lock->found_since[node]; at--) {
				first[at] = first[at - 1];
			}
			first[at] = lock->found_since[node];
		}
	}
	const uint32_t wanted = lock->ended ? 1 : reply->quorum &&
		reply->quorum < count ? reply->quorum : count;
	return count ? first[wanted - 1] : 0;
}

/* An acquire was answered as held. Only the first one of the lock_id counts. */
void checker_watched_granted(struct checker *c, uint32_t lock, const struct core_reply *reply) {
	if (!c->locks[lock].granted_at) {
		c->locks[lock].shown_at = shown_at(&c->locks[lock], reply);
		c->locks[lock].shown_token = reply->token;
		c->locks[lock].granted_at = sim_now(c->sim);
	}
}

/* A node that is no longer in the cluster and cannot know that hears of nothing, like one that is
 * cut off. The age of its view says so. */
static bool tells(const struct checker *c, uint32_t node) {
	struct core_status status;
	bool master;
	if (!sim_node_running(c->sim, node) || !sim_node_core(c->sim, node) ||
		c->watched[node].incarnation != sim_node_incarnation(c->sim, node)) {
		return false;
	}
	if (!checker_newest(c) || !checker_in_config(c, checker_newest(c), node, &master)) {
		return false;
	}
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	return status.state == CORE_VOTING ||
		(status.state == CORE_FOLLOWING && !status.catching_up && status.following >= 0);
}

/* Missed events count from the time at which a reader finds the lock. What was told of an earlier
 * attempt, which was rolled back, does not count. */
static bool is_told(struct checker *c, uint32_t node, const struct lock_state *lock) {
	const struct watched *w = &c->watched[node];
	const bool earlier = lock->unseen_at[node] && lock->unseen_at[node] < lock->shown_at &&
		lock->unseen_token[node] < lock->shown_token;
	return ((lock->seen >> node & 1) && !earlier) ||
		(w->since >= lock->shown_at && !(lock->lacked >> node & 1)) ||
		w->missed_at >= lock->shown_at ||
		watched_key(c, node, lock->key)->missed_at >= lock->shown_at;
}

/* Judges, while nothing is wrong, what was granted `patience` ago. */
void checker_watched_judge(struct checker *c, uint32_t node, span_ns patience) {
	const int64_t before = sim_now(c->sim) - patience;
	for (uint32_t i = 0; tells(c, node) && i < c->lock_count; i++) {
		const struct lock_state *lock = &c->locks[i];
		/* What was held when the watch began may be told as late. */
		const bool due = lock->granted_at && lock->granted_at < before &&
			(!(lock->lacked >> node & 1) || c->watched[node].since < before);
		if (due && !is_told(c, node, lock)) {
			checker_violation(c, "watchers", lock->key, "n%" PRIu32
				" has told neither of L%" PRIu32 ", which q masters had at %.6f"
				" and was granted at %.6f, nor that something is missing",
				node + 1, i, (double)lock->shown_at / 1e9,
				(double)lock->granted_at / 1e9);
		}
	}
}

void checker_watched_settled(struct checker *c, span_ns patience) {
	for (uint32_t node = 0; node < sim_nodes(c->sim) && !c->options.forced &&
		!c->options.unkind; node++) {
		checker_watched_judge(c, node, patience);
	}
}
