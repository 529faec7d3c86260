#include "order.h"

#include <string.h>

#include "change.h"
#include "check.h"
#include "hub.h"

struct row {
	enum client_method wire;
	enum core_op op;
	uint64_t present; /* always */
};

/* What each method always says; the rest depends on what is named. */
static const struct row rows[] = {
	[PAWL_ACQUIRE] = { CLIENT_ACQUIRE, CORE_ACQUIRE,
		CLIENT_HAS_KEY | CLIENT_HAS_LEASE | CLIENT_HAS_WAIT | CLIENT_HAS_LOCK_ID },
	[PAWL_EXTEND] = { CLIENT_EXTEND, CORE_EXTEND, 0 },
	[PAWL_UPDATE] = { CLIENT_UPDATE, CORE_UPDATE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE },
	[PAWL_RELEASE] = { CLIENT_RELEASE, CORE_RELEASE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID },
	[PAWL_GET] = { CLIENT_GET, CORE_GET, CLIENT_HAS_KEY },
	[PAWL_LIST] = { CLIENT_LIST, CORE_LIST, CLIENT_HAS_PREFIX },
	[PAWL_WAIT] = { CLIENT_WAIT, CORE_WAIT, CLIENT_HAS_KEY | CLIENT_HAS_FOR | CLIENT_HAS_WAIT },
	[PAWL_WAITERS] = { CLIENT_WAITERS, CORE_WAITERS, CLIENT_HAS_KEY },
	[PAWL_BREAK] = { CLIENT_BREAK, CORE_BREAK, CLIENT_HAS_KEY | CLIENT_HAS_TOKEN },
	[PAWL_STATUS] = { CLIENT_STATUS, CORE_GET, 0 },
	[PAWL_PING] = { CLIENT_PING, CORE_GET, 0 },
	[PAWL_DRAIN] = { CLIENT_DRAIN, CORE_GET, 0 },
	[PAWL_CHANGE] = { CLIENT_CLUSTER_SET_NODES, CORE_CHANGE, 0 }, /* change.c says which */
};

static uint64_t present_extend(const struct pawl_request *r) {
	uint64_t kept = r->deadline_kept ? CLIENT_HAS_DEADLINE_KEPT : 0;
	if (r->locks) {
		return kept | CLIENT_HAS_LOCKS;
	}
	return kept | CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE | (r->token ? CLIENT_HAS_TOKEN : 0u);
}

/* What is named beside what the row says. */
static uint64_t present_named(const struct pawl_request *r, struct pawl_bytes owner) {
	switch (r->method) {
	case PAWL_ACQUIRE:
		return (owner.size ? CLIENT_HAS_OWNER : 0u) | (r->value.size ? CLIENT_HAS_VALUE : 0u);
	case PAWL_EXTEND:
		return present_extend(r);
	case PAWL_UPDATE:
		return (r->expect.data ? CLIENT_HAS_EXPECT : 0u) | (r->expect_seq.data ? CLIENT_HAS_VALUE_SEQ : 0u);
	case PAWL_GET:
		return r->quorum ? CLIENT_HAS_CONSISTENCY : 0u;
	case PAWL_LIST:
		return (r->limit ? CLIENT_HAS_LIMIT : 0u) | (r->after.size ? CLIENT_HAS_AFTER : 0u);
	case PAWL_BREAK:
		return r->now ? CLIENT_HAS_NOW : 0u;
	case PAWL_RELEASE:
	case PAWL_WAIT:
	case PAWL_WAITERS:
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_DOWNGRADE:
	case PAWL_TRANSFER:
	case PAWL_ASK_RELEASE:
	case PAWL_EXPLAIN:
	case PAWL_WATCH:
	case PAWL_UNWATCH:
	case PAWL_CHANGE:
		return 0;
	}
	return 0;
}

static bool bytes_valid(struct pawl_bytes b) {
	return b.data || b.size == 0;
}

static int check_locks(const struct pawl_request *r, size_t *bytes) {
	if (r->lock_count == 0 || r->lock_count > ORDER_LOCKS_MAX) {
		return PAWL_EINVAL;
	}
	for (size_t i = 0; i < r->lock_count; i++) {
		if (!bytes_valid(r->locks[i].key) || pawl_id_none(&r->locks[i].lock_id)) {
			return PAWL_EINVAL;
		}
		if (r->locks[i].key.size > ORDER_BYTES_MAX - *bytes) {
			return PAWL_ETOOLARGE;
		}
		*bytes += r->locks[i].key.size;
	}
	return 0;
}

/* What the library cannot send, or must not; the rest is for the node to refuse. *bytes: to be copied. */
static int check_request(const struct pawl_request *r, struct pawl_bytes owner, size_t *bytes) {
	if ((unsigned)r->method < PAWL_ACQUIRE || (unsigned)r->method > PAWL_CHANGE) {
		return PAWL_EINVAL;
	}
	const struct pawl_bytes all[] = { r->key, owner, r->value, r->expect, r->after };
	*bytes = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!bytes_valid(all[i])) {
			return PAWL_EINVAL;
		}
		if (all[i].size > ORDER_BYTES_MAX - *bytes) {
			return PAWL_ETOOLARGE;
		}
		*bytes += all[i].size;
	}
	bool named = !pawl_id_none(&r->lock_id);
	bool needs_id = r->method == PAWL_UPDATE || r->method == PAWL_RELEASE || (r->method == PAWL_EXTEND && !r->locks);
	if (needs_id && !named) {
		return PAWL_EINVAL;
	}
	if (r->expect_seq.data && (r->expect_seq.size != ORDER_SEQ_BYTES || r->expect.data)) {
		return PAWL_EINVAL;
	}
	return r->method == PAWL_EXTEND && r->locks ? check_locks(r, bytes) : 0;
}

static uint64_t be_read(const uint8_t *p, size_t bytes) {
	uint64_t value = 0;
	for (size_t i = 0; i < bytes; i++) {
		value = value << 8 | p[i];
	}
	return value;
}

static void be_write(uint8_t *p, uint64_t value, size_t bytes) {
	for (size_t i = bytes; i-- > 0; value >>= 8) {
		p[i] = (uint8_t)value;
	}
}

static struct ballot seq_read(const uint8_t *p) {
	return (struct ballot){ be_read(p, 8), be_read(p + 8, 8), (uint32_t)be_read(p + 16, 4) };
}

void order_seq_write(struct ballot ballot, uint8_t out[ORDER_SEQ_BYTES]) {
	be_write(out, ballot.clock, 8);
	be_write(out + 8, ballot.node, 8);
	be_write(out + 16, ballot.boot, 4);
}

static struct slice keep(uint8_t **at, struct pawl_bytes from) {
	struct slice kept = slice_of(*at, from.size);
	if (from.size) {
		memcpy(*at, from.data, from.size);
		*at += from.size;
	}
	return kept;
}

static span_ns lease_of(uint32_t lease_ms) {
	return (span_ns)(lease_ms ? lease_ms : LEASE_MS_DEFAULT) * SPAN_MS;
}

static void fill_locks(struct order *o, const struct pawl_request *r, struct client_lock *locks, uint8_t **at) {
	for (size_t i = 0; i < r->lock_count; i++) {
		locks[i].key = keep(at, r->locks[i].key);
		memcpy(locks[i].lock_id.b, r->locks[i].lock_id.bytes, sizeof(locks[i].lock_id.b));
		locks[i].lease = lease_of(r->locks[i].lease_ms);
		locks[i].token = r->locks[i].token;
	}
	o->wire.locks = locks;
	o->wire.lock_count = r->lock_count;
}

static void fill(struct order *o, const struct pawl_request *r, struct pawl_bytes owner, uint8_t *at) {
	struct core_request *core = &o->wire.core;
	o->method = r->method;
	o->wire.method = rows[r->method].wire;
	o->wire.present = rows[r->method].present | present_named(r, owner);
	core->op = rows[r->method].op;
	core->key = keep(&at, r->key);
	core->owner = keep(&at, owner);
	core->value = keep(&at, r->value);
	core->expected = keep(&at, r->expect);
	core->after = keep(&at, r->after);
	memcpy(core->lock_id.b, r->lock_id.bytes, sizeof(core->lock_id.b));
	core->lease = lease_of(r->lease_ms);
	core->wait = (span_ns)r->wait_ms * SPAN_MS;
	core->token = r->token;
	core->deadline_kept = r->deadline_kept;
	core->quorum = r->quorum;
	core->now = r->now;
	core->for_free = r->for_free;
	core->limit = r->limit;
	core->expect_value = r->expect.data != NULL;
	core->expect_seq = r->expect_seq.data != NULL;
	if (core->expect_seq) {
		core->expected_seq = seq_read(r->expect_seq.data);
	}
}

int order_new(const struct allocator *alloc, const struct pawl_request *request, struct pawl_bytes owner,
	struct order **out) {
	struct pawl_bytes shown = request->owner.size ? request->owner : owner;
	bool batch = request->method == PAWL_EXTEND && request->locks, change = request->method == PAWL_CHANGE;
	size_t bytes, behind = batch ? request->lock_count * sizeof(struct client_lock) : 0;
	int error = check_request(request, shown, &bytes);
	if (!error && change) {
		error = change_size(request->change, &behind);
	}
	if (error) {
		return error;
	}
	size_t size = sizeof(struct order) + behind + bytes;
	struct order *o = alloc_new(alloc, size);
	if (!o) {
		return PAWL_ENOMEM;
	}
	o->alloc = alloc;
	o->size = size;
	uint8_t *at = (uint8_t *)(o + 1) + behind;
	if (batch) {
		fill_locks(o, request, (struct client_lock *)(void *)(o + 1), &at);
	}
	fill(o, request, shown, at);
	if (change) {
		change_fill(&o->wire, request->change, o + 1);
	}
	o->drawn = request->method == PAWL_ACQUIRE && pawl_id_none(&request->lock_id);
	if (o->drawn && order_draw(o) != 0) {
		order_free(o);
		return PAWL_EIO;
	}
	*out = o;
	return 0;
}

int order_draw(struct order *order) {
	struct pawl_id lock_id;
	if (pawl_id_new(&lock_id) != 0) {
		return PAWL_EIO;
	}
	memcpy(order->wire.core.lock_id.b, lock_id.bytes, sizeof(lock_id.bytes));
	return 0;
}

void order_free(struct order *order) {
	if (order) {
		alloc_free(order->alloc, order, order->size);
	}
}

bool order_repeatable(const struct order *order) {
	return order->method != PAWL_UPDATE && order->method != PAWL_DRAIN && order->wire.method != CLIENT_CLUSTER_FORCE;
}

struct pawl_bytes order_key(const struct order *order) {
	return (struct pawl_bytes){ order->wire.core.key.data, order->wire.core.key.size };
}

struct pawl_id order_lock_id(const struct order *order) {
	struct pawl_id id;
	memcpy(id.bytes, order->wire.core.lock_id.b, sizeof(id.bytes));
	return id;
}
