/* checker_replicas.c: what replicas may show: never anything older than they say, and in the end
 * what their masters have (docs/protocol.md, section 7). */
#include <inttypes.h>

#include "checker_impl.h"

/* The node that a replica follows; TRACE_NONE: it follows nobody. */
uint32_t checker_followed(const struct checker *c, uint32_t node) {
	struct core_status status;
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	if (status.state != CORE_FOLLOWING || status.following < 0) {
		return TRACE_NONE;
	}
	return sim_node_at_peer(c->sim, node, (uint32_t)status.following);
}

void checker_shows(struct checker *c, uint32_t node) {
	const uint32_t master = checker_followed(c, node);
	c->showed[node] = c->shows[node];
	if (master == TRACE_NONE) {
		return;
	}
	struct core_status status;
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	if (!status.catching_up) {
		c->shows[node] = master + 1;
	}
}

static bool has(const struct checker *c, uint32_t node, uint32_t lock, uint64_t *token) {
	char key[16];
	uint64_t noted;
	*token = 0;
	return sim_node_core(c->sim, node) && core_peek(sim_node_core(c->sim, node),
		sim_name_key(key, c->locks[lock].key), c->locks[lock].id, token, &noted);
}

static uint32_t live_on_key(const struct checker *c, uint32_t node, uint32_t key) {
	uint32_t live = 0;
	uint64_t token;
	for (uint32_t i = 0; i < c->lock_count; i++) {
		live += c->locks[i].key == key && has(c, node, i, &token);
	}
	return live;
}

/* Finds the entry of this lock_id among the holders that the answer names; NULL: it does not name
 * it. */
static const struct core_entry *shown_entry(const struct core_reply *reply, struct id128 id) {
	if (!reply->held) {
		return NULL;
	}
	for (uint32_t i = 0; i < reply->holder_count; i++) {
		if (id128_equal(reply->holders[i].lock_id, id)) {
			return &reply->holders[i];
		}
	}
	return id128_equal(reply->entry.lock_id, id) ? &reply->entry : NULL;
}

/* The age is a promise: what the followed master had accepted, or released, by then is shown. */
void checker_aged_read(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	if (c->shows[node] != c->showed[node]) {
		/* The table was replaced in the step of this answer, before or after it. */
		return;
	}
	const uint32_t master = c->shows[node] - 1;
	if (!reply->replica || reply->age == SPAN_MAX || master == TRACE_NONE ||
		sim_now(c->sim) != op->asked_at || !sim_node_core(c->sim, master)) {
		return;
	}
	int64_t as_of = op->asked_at - reply->age;
	uint64_t tenure = c->views[master].tenure, token;
	bool single = live_on_key(c, master, op->op.key) == 1;
	for (uint32_t i = 0; i < c->lock_count; i++) {
		const struct lock_state *lock = &c->locks[i];
		if (lock->key != op->op.key) {
			continue;
		}
		const struct core_entry *shown = shown_entry(reply, lock->id);
		if (shown && lock->released[master] == tenure &&
			lock->tombstone_at[master] < as_of && !c->options.forgets_releases) {
			checker_violation(c, "age of a replica's view", op->op.key, "n%" PRIu32
				" shows L%" PRIu32 " and says that its view is %.3f ms old, but n%"
				PRIu32 " was told of its release %.3f ms ago", node + 1, i,
				(double)reply->age / 1e6, master + 1,
				(double)(op->asked_at - lock->tombstone_at[master]) / 1e6);
		}
		bool stands = single && lock->accepted_tenure[master] == tenure &&
			lock->accepted_at[master] < as_of &&
			lock->lengthened_at[master] < as_of && lock->gone_at[master] < as_of &&
			op->asked_at < lock->accepted_until[master] && has(c, master, i, &token) &&
			token == lock->accepted[master];
		/* Nobody holds the lock any more, and its delay runs. */
		bool closing = reply->entry.closing && reply->entry.token >= token;
		if (stands && !closing && !(shown && shown->token >= token)) {
			checker_violation(c, "age of a replica's view", op->op.key,
				"n%" PRIu32 " does not show L%" PRIu32 " with token %" PRIu64
				" and says that its view is %.3f ms old, but n%" PRIu32
				" has it since %.3f ms",
				node + 1, i, token, (double)reply->age / 1e6, master + 1,
				(double)(op->asked_at - lock->accepted_at[master]) / 1e6);
		}
	}
}

/* True when the replica has exactly what its master has. Otherwise *lock is a difference. */
bool checker_replica_equals(const struct checker *c, uint32_t node, uint32_t master,
	uint32_t *lock) {
	for (*lock = 0; *lock < c->lock_count; (*lock)++) {
		uint64_t here, there;
		if (has(c, node, *lock, &here) != has(c, master, *lock, &there) || here != there) {
			return false;
		}
	}
	return true;
}

/* No rule keeps this master from learning it: no other lock is live there, and the master has not
 * rolled it back. */
static bool may_learn(const struct checker *c, uint32_t node, uint32_t lock, uint64_t token) {
	return live_on_key(c, node, c->locks[lock].key) == 0 &&
		token > c->locks[lock].rolled_back[node];
}

bool checker_masters_equal(const struct checker *c, uint32_t *node, uint32_t *lock) {
	const struct config *newest = checker_newest(c);
	uint32_t masters = config_masters(newest);
	for (*lock = 0; *lock < c->lock_count; (*lock)++) {
		uint32_t having = 0;
		uint64_t highest = 0, token;
		for (uint32_t i = 0; i < masters && !c->locks[*lock].barred; i++) {
			if (has(c, sim_node_named(c->sim, newest->nodes[i].name), *lock, &token)) {
				having++;
				highest = token > highest ? token : highest;
			}
		}
		for (uint32_t i = 0; i < masters && having >= config_quorum(newest); i++) {
			*node = sim_node_named(c->sim, newest->nodes[i].name);
			if (!has(c, *node, *lock, &token) && may_learn(c, *node, *lock, highest)) {
				return false;
			}
		}
	}
	return true;
}
