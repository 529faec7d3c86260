/* request_copy.c: copies a request of the program, so that it can be sent again after the program's
 * bytes are gone. */
#include "request_copy.h"

#include <string.h>

#include "change.h"
#include "check.h"
#include "client_core.h"
#include "pack.h"
#include "unpack.h"

struct row {
	enum client_method wire;
	enum core_op op;
	/* The parameters that are always present. */
	uint64_t present;
};

/* What each method always says. The other parameters depend on what the request gives. */
static const struct row rows[] = {
	[PAWL_ACQUIRE] = { CLIENT_ACQUIRE, CORE_ACQUIRE, CLIENT_HAS_LEASE | CLIENT_HAS_WAIT },
	[PAWL_EXTEND] = { CLIENT_EXTEND, CORE_EXTEND, 0 },
	[PAWL_UPDATE] = { CLIENT_UPDATE, CORE_UPDATE,
		CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE },
	[PAWL_RELEASE] = { CLIENT_RELEASE, CORE_RELEASE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID },
	[PAWL_GET] = { CLIENT_GET, CORE_GET, CLIENT_HAS_KEY },
	[PAWL_LIST] = { CLIENT_LIST, CORE_LIST, CLIENT_HAS_PREFIX },
	[PAWL_WAIT] = { CLIENT_WAIT, CORE_WAIT, CLIENT_HAS_KEY | CLIENT_HAS_FOR | CLIENT_HAS_WAIT },
	[PAWL_WAITERS] = { CLIENT_WAITERS, CORE_WAITERS, 0 },
	[PAWL_BREAK] = { CLIENT_BREAK, CORE_BREAK, CLIENT_HAS_KEY | CLIENT_HAS_TOKEN },
	[PAWL_STATUS] = { CLIENT_STATUS, CORE_GET, 0 },
	[PAWL_PING] = { CLIENT_PING, CORE_GET, 0 },
	[PAWL_DRAIN] = { CLIENT_DRAIN, CORE_GET, 0 },
	[PAWL_CHANGE] = { CLIENT_CLUSTER_SET_NODES, CORE_CHANGE, 0 }, /* change.c says which. */
	[PAWL_DOWNGRADE] = { CLIENT_DOWNGRADE, CORE_DOWNGRADE,
		CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID },
	[PAWL_TRANSFER] = { CLIENT_TRANSFER, CORE_TRANSFER,
		CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_TO },
	[PAWL_ASK_RELEASE] = { CLIENT_ASK_RELEASE, CORE_ASK, CLIENT_HAS_KEY },
	[PAWL_EXPLAIN] = { CLIENT_EXPLAIN, CORE_EXPLAIN, CLIENT_HAS_KEY },
	[PAWL_WATCH] = { CLIENT_WATCH, CORE_GET, 0 },
	[PAWL_UNWATCH] = { CLIENT_UNWATCH, CORE_GET, CLIENT_HAS_WATCH },
	[PAWL_CLIENTS] = { CLIENT_CLIENTS, CORE_GET, 0 },
	[PAWL_KICK] = { CLIENT_KICK, CORE_GET, CLIENT_HAS_CLIENT },
	[PAWL_CAN] = { CLIENT_CAN, CORE_GET, CLIENT_HAS_TO },
	[PAWL_TOP] = { CLIENT_TOP, CORE_GET, CLIENT_HAS_PREFIX },
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) == PAWL_METHOD_LAST + 1, "one row for each method");

static uint64_t if_named(bool named, uint64_t bit) {
	return named ? bit : 0;
}

static uint64_t present_extend(const struct pawl_request *r) {
	uint64_t kept = if_named(r->deadline_kept, CLIENT_HAS_DEADLINE_KEPT)
		| if_named(!pawl_id_none(&r->party), CLIENT_HAS_PARTY);
	if (r->locks) {
		return kept | CLIENT_HAS_LOCKS;
	}
	return kept | CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE
		| if_named(r->token, CLIENT_HAS_TOKEN)
		| if_named(r->slots[0] | r->slots[1], CLIENT_HAS_NUMBERS);
}

/* The parameters that say what one lock excludes. */
static uint64_t present_mode(const struct pawl_terms *t) {
	if (t->permits || t->of) {
		return CLIENT_HAS_PERMITS | CLIENT_HAS_OF;
	}
	return if_named(t->mode == PAWL_SHARED, CLIENT_HAS_MODE);
}

static uint64_t present_acquire(const struct pawl_request *r, const struct request_self *self) {
	const struct pawl_terms *t = &r->terms;
	uint64_t which = r->keys ? CLIENT_HAS_LOCKS
		: CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | present_mode(t);
	return which | CLIENT_HAS_PARTY | if_named(self->owner.size, CLIENT_HAS_OWNER)
		| if_named(r->value.size, CLIENT_HAS_VALUE)
		| if_named(self->label.size, CLIENT_HAS_LABEL)
		| if_named(self->host && self->host[0], CLIENT_HAS_HOST)
		| if_named(self->pid, CLIENT_HAS_PID) | if_named(t->priority, CLIENT_HAS_PRIORITY)
		| if_named(t->lock_delay_ms, CLIENT_HAS_LOCK_DELAY)
		| if_named(t->release_on_disconnect, CLIENT_HAS_RELEASE_ON_DISCONNECT)
		| if_named(r->election, CLIENT_HAS_ELECTION);
}

/* The parameters that the request gives in addition to what its row says. */
static uint64_t present_named(const struct pawl_request *r, const struct request_self *self) {
	switch (r->method) {
	case PAWL_ACQUIRE:
		return present_acquire(r, self);
	case PAWL_EXTEND:
		return present_extend(r);
	case PAWL_UPDATE:
		return if_named(r->expect.data, CLIENT_HAS_EXPECT)
			| if_named(r->expect_seq.data, CLIENT_HAS_VALUE_SEQ);
	case PAWL_GET:
		return if_named(r->quorum, CLIENT_HAS_CONSISTENCY);
	case PAWL_LIST:
		return if_named(r->limit, CLIENT_HAS_LIMIT)
			| if_named(r->after.size, CLIENT_HAS_AFTER);
	case PAWL_WAITERS:
		return r->prefix ? CLIENT_HAS_PREFIX | if_named(r->limit, CLIENT_HAS_LIMIT)
			: CLIENT_HAS_KEY;
	case PAWL_BREAK:
		return if_named(r->now, CLIENT_HAS_NOW);
	case PAWL_ASK_RELEASE:
		return if_named(self->owner.size, CLIENT_HAS_OWNER)
			| if_named(r->to.size, CLIENT_HAS_TO)
			| if_named(r->terms.priority, CLIENT_HAS_PRIORITY);
	case PAWL_WATCH:
		return (r->prefix ? CLIENT_HAS_PREFIX : CLIENT_HAS_KEY)
			| if_named(r->after.size, CLIENT_HAS_FROM);
	case PAWL_CLIENTS:
		return if_named(r->limit, CLIENT_HAS_LIMIT) | if_named(r->client, CLIENT_HAS_CLIENT)
			| if_named(r->shares, CLIENT_HAS_SHARES);
	case PAWL_CAN:
		return (r->prefix ? CLIENT_HAS_PREFIX : if_named(r->key.size, CLIENT_HAS_KEY))
			| if_named(r->owner.size, CLIENT_HAS_OWNER)
			| if_named(r->value.size, CLIENT_HAS_VALUE)
			| if_named(r->terms.priority, CLIENT_HAS_PRIORITY);
	case PAWL_KICK:
	case PAWL_RELEASE:
	case PAWL_WAIT:
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_CHANGE:
	case PAWL_DOWNGRADE:
	case PAWL_TRANSFER:
	case PAWL_EXPLAIN:
	case PAWL_UNWATCH:
	case PAWL_TOP:
		return 0;
	}
	return 0;
}

/* ---- bytes that are opaque to the program ---- */

static struct ballot seq_read(const uint8_t *p) {
	return (struct ballot){ unpack_be(p, 8), unpack_be(p + 8, 8),
		(uint32_t)unpack_be(p + 16, 4) };
}

void seq_write(struct ballot ballot, uint8_t out[SEQ_BYTES]) {
	pack_put_be(pack_put_be(pack_put_be(out, ballot.clock, 8), ballot.node, 8), ballot.boot, 4);
}

static struct client_position position_read(const uint8_t *p) {
	return (struct client_position){ unpack_be(p, 8), unpack_be(p + 8, 8) };
}

void position_write(struct client_position position, uint8_t out[POSITION_BYTES]) {
	pack_put_be(pack_put_be(out, position.log, 8), position.sequence, 8);
}

/* ---- the copy ---- */

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

static void fill_locks(struct request_copy *copy, const struct pawl_request *r,
	struct client_lock *locks, uint8_t **at) {
	copy->lease_open = (uint8_t *)(locks + r->lock_count);
	for (size_t i = 0; i < r->lock_count; i++) {
		locks[i].key = keep(at, r->locks[i].key);
		memcpy(locks[i].lock_id.b, r->locks[i].lock_id.bytes, sizeof(locks[i].lock_id.b));
		locks[i].lease = lease_of(r->locks[i].lease_ms);
		copy->lease_open[i] = r->locks[i].lease_ms == 0;
		copy->default_lease |= r->locks[i].lease_ms == 0;
		locks[i].token = r->locks[i].token;
		locks[i].binding = r->locks[i].bond;
		memcpy(locks[i].numbers.w, r->locks[i].slots, sizeof(locks[i].numbers.w));
	}
	copy->wire.locks = locks;
	copy->wire.lock_count = r->lock_count;
}

/* Sets terms.of and terms.count. Values that make no sense go to the node as they are, because the
 * node knows how to refuse them. */
static void fill_mode(enum pawl_mode mode, uint32_t permits, uint32_t of, uint16_t *out_of,
	uint16_t *out_count) {
	bool semaphore = permits || of;
	*out_of = semaphore ? (uint16_t)of
		: mode == PAWL_SHARED ? (uint16_t)MODE_SHARED
		: (uint16_t)MODE_EXCLUSIVE;
	*out_count = semaphore ? (uint16_t)permits : 0;
}

static void fill_keys(struct request_copy *copy, const struct pawl_request *r,
	struct core_lock *locks, uint8_t **at) {
	for (size_t i = 0; i < r->key_count; i++) {
		const struct pawl_key_item *item = &r->keys[i];
		locks[i].key = keep(at, item->key);
		memcpy(locks[i].lock_id.b, item->lock_id.bytes, sizeof(locks[i].lock_id.b));
		fill_mode(item->mode, item->permits, item->of, &locks[i].of, &locks[i].count);
	}
	copy->group = locks;
	copy->wire.core.locks = locks;
	copy->wire.core.lock_count = (uint32_t)r->key_count;
}

static void fill_terms(struct request_copy *copy, const struct pawl_request *r,
	const struct request_self *self, uint8_t **at) {
	struct terms *terms = &copy->wire.core.terms;
	fill_mode(r->terms.mode, r->terms.permits, r->terms.of, &terms->of, &terms->count);
	terms->priority = r->terms.priority;
	terms->delay = (span_ns)r->terms.lock_delay_ms * SPAN_MS;
	copy->wire.release_on_disconnect = r->terms.release_on_disconnect;
	struct slice text = keep(at, self->label);
	copy->wire.label = (struct client_label){ .host = keep(at, pawl_str(self->host)),
		.text = text, .pid = self->pid, .election = r->election };
}

static void fill_bytes(struct request_copy *copy, const struct pawl_request *r,
	const struct request_self *self, uint8_t **at) {
	struct core_request *core = &copy->wire.core;
	core->key = keep(at, r->key);
	core->owner = keep(at, self->owner);
	core->value = keep(at, r->value);
	core->expected = keep(at, r->expect);
	core->after = keep(at, r->after);
	core->to = keep(at, r->to);
	copy->wire.trace = keep(at, pawl_str(self->trace));
}

span_ns request_wait(uint32_t wait_ms) {
	return (wait_ms == PAWL_FOREVER ? (span_ns)CLIENT_MS_MAX : (span_ns)wait_ms) * SPAN_MS;
}

static void fill(struct request_copy *copy, const struct pawl_request *r,
	const struct request_self *self, uint8_t **at) {
	struct core_request *core = &copy->wire.core;
	copy->method = r->method;
	copy->wire.method = rows[r->method].wire;
	copy->wire.present = rows[r->method].present | present_named(r, self)
		| if_named(self->trace, CLIENT_HAS_TRACE);
	core->op = rows[r->method].op;
	fill_bytes(copy, r, self, at);
	fill_terms(copy, r, self, at);
	memcpy(core->lock_id.b, r->lock_id.bytes, sizeof(core->lock_id.b));
	core->lease = lease_of(r->lease_ms);
	copy->default_lease = r->lease_ms == 0 && !r->locks;
	core->wait = request_wait(r->wait_ms);
	core->token = r->token;
	memcpy(core->terms.set.w, r->slots, sizeof(core->terms.set.w));
	core->deadline_kept = r->deadline_kept;
	core->quorum = r->quorum;
	core->now = r->now;
	core->for_free = r->for_free;
	core->limit = r->limit;
	core->prefix = r->prefix;
	core->expect_value = r->expect.data != NULL;
	core->expect_seq = r->expect_seq.data != NULL;
	if (core->expect_seq) {
		core->expected_seq = seq_read(r->expect_seq.data);
	}
	memcpy(copy->wire.party.b, pawl_id_none(&r->party) ? self->party.bytes : r->party.bytes,
		sizeof(copy->wire.party.b));
	copy->wire.client = r->client;
	copy->wire.shares = r->shares;
	/* PAWL_UNWATCH gives the number of the watch as `token`, and PAWL_WATCH gives its position
	 * as `after`. Only watch.c sends these two. */
	copy->wire.watch = r->token;
	if (r->method == PAWL_WATCH && r->after.size) {
		copy->wire.from = position_read(r->after.data);
	}
}

/* Computes the size of what lies behind the request in its block: the list of locks, or a
 * change. */
static int size_behind(const struct pawl_request *r, size_t *out) {
	*out = 0;
	if (r->method == PAWL_CHANGE) {
		return change_size(r->change, out);
	}
	if (r->method == PAWL_EXTEND && r->locks) {
		*out = r->lock_count * (sizeof(struct client_lock) + 1);
	} else if (r->method == PAWL_ACQUIRE && r->keys) {
		*out = r->key_count * sizeof(struct core_lock);
	}
	return 0;
}

static void fill_behind(struct request_copy *copy, const struct pawl_request *r, uint8_t **at) {
	void *behind = copy + 1;
	if (r->method == PAWL_CHANGE) {
		change_fill(&copy->wire, r->change, behind);
	} else if (r->method == PAWL_EXTEND && r->locks) {
		fill_locks(copy, r, behind, at);
	} else if (r->method == PAWL_ACQUIRE && r->keys) {
		fill_keys(copy, r, behind, at);
	}
}

static struct request_self self_of(const struct pawl_request *r, const struct request_self *self) {
	bool named = r->method == PAWL_ACQUIRE || r->method == PAWL_ASK_RELEASE;
	struct request_self shown = named ? *self : (struct request_self){ 0 };
	shown.trace = r->trace ? r->trace : self->trace;
	shown.owner = r->owner.size || !named ? r->owner : shown.owner;
	shown.label = r->label.size || !named ? r->label : shown.label;
	return shown;
}

int request_copy_new(const struct allocator *alloc, const struct pawl_request *request,
	const struct request_self *self, struct request_copy **out) {
	struct request_self shown = self_of(request, self);
	size_t bytes, behind;
	int error = request_check(request, &shown, &bytes);
	/* A method without a row is refused. */
	error = !error && rows[request->method].op == CORE_NONE ? PAWL_EINVAL : error;
	error = error ? error : size_behind(request, &behind);
	if (error) {
		return error;
	}
	size_t size = sizeof(struct request_copy) + behind + bytes;
	struct request_copy *copy = alloc_new(alloc, size);
	if (!copy) {
		return PAWL_ENOMEM;
	}
	copy->alloc = alloc;
	copy->size = size;
	uint8_t *at = (uint8_t *)(copy + 1) + behind;
	fill(copy, request, &shown, &at);
	fill_behind(copy, request, &at);
	copy->drawn = request->method == PAWL_ACQUIRE
		&& pawl_id_none(copy->group ? &request->keys[0].lock_id : &request->lock_id);
	if (copy->drawn && request_copy_draw(copy) != 0) {
		request_copy_free(copy);
		return PAWL_EIO;
	}
	*out = copy;
	return 0;
}

void request_copy_set_order(struct request_copy *request, uint32_t order) {
	if (order > request_copy_order(request)) {
		request->wire.present |= CLIENT_HAS_ORDER;
		request->wire.core.ordered = true;
		request->wire.core.binding = order;
	}
}

/* The list behind the request is its own. */
static struct client_lock *extended_locks(struct request_copy *request) {
	return (struct client_lock *)(request + 1);
}

void request_copy_set_order_of(struct request_copy *request, size_t n, uint32_t order) {
	extended_locks(request)[n].binding = order;
	extended_locks(request)[n].ordered = true;
}

void request_copy_orders(struct request_copy *request) {
	for (size_t i = 0; i < request->wire.lock_count; i++) {
		extended_locks(request)[i].ordered = request->wire.locks[i].binding != 0;
	}
}

uint32_t request_copy_order(const struct request_copy *request) {
	return request->wire.core.ordered ? request->wire.core.binding : 0;
}

void request_copy_with(struct request_copy *request, const struct pawl_with *with) {
	request->wire.present |= if_named(with->close_ms, CLIENT_HAS_CLOSE)
		| if_named(with->shorten, CLIENT_HAS_SHORTEN);
	request->wire.core.closes = (span_ns)with->close_ms * SPAN_MS;
	request->wire.core.shorten = with->shorten;
	request_copy_set_order(request, with->order);
}

static int draw(struct id128 *out) {
	struct pawl_id lock_id;
	if (pawl_id_new(&lock_id) != 0) {
		return PAWL_EIO;
	}
	memcpy(out->b, lock_id.bytes, sizeof(out->b));
	return 0;
}

int request_copy_draw(struct request_copy *request) {
	int error = 0;
	for (size_t i = 0; !error && i < request_copy_locks(request); i++) {
		error = draw(
			request->group ? &request->group[i].lock_id : &request->wire.core.lock_id);
	}
	return error;
}

void request_copy_free(struct request_copy *request) {
	if (request) {
		alloc_free(request->alloc, request, request->size);
	}
}

bool request_copy_repeatable(const struct request_copy *request) {
	return !request_copy_unsure(request) && request->method != PAWL_DRAIN
		&& request->method != PAWL_KICK && request->wire.method != CLIENT_CLUSTER_FORCE;
}

void request_copy_set_lease(struct request_copy *request, span_ns lease) {
	request->lease = lease;
	for (size_t i = 0; i < request->wire.lock_count; i++) {
		if (request->lease_open[i]) {
			extended_locks(request)[i].lease = lease;
		}
	}
	if (!request->lease_open) {
		request->wire.core.lease = lease;
	}
}

bool request_copy_unsure(const struct request_copy *request) {
	return request->method == PAWL_UPDATE || request->method == PAWL_TRANSFER;
}

size_t request_copy_locks(const struct request_copy *request) {
	return request->group ? request->wire.core.lock_count : 1;
}

struct terms request_copy_terms(const struct request_copy *request, size_t n) {
	return request->group
		? (struct terms){ .of = request->group[n].of, .count = request->group[n].count }
		: request->wire.core.terms;
}

struct pawl_bytes request_copy_key(const struct request_copy *request, size_t n) {
	struct slice key = request->group ? request->group[n].key : request->wire.core.key;
	return (struct pawl_bytes){ key.data, key.size };
}

struct pawl_id request_copy_lock_id(const struct request_copy *request, size_t n) {
	struct pawl_id id;
	memcpy(id.bytes,
		request->group ? request->group[n].lock_id.b : request->wire.core.lock_id.b,
		sizeof(id.bytes));
	return id;
}
