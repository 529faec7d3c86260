/* renew.c: extends all locks that are due in a turn of the loop with one request. */
#include <string.h>

#include "lock.h"

#include "session_binding.h"
#include "check.h"

/* Extensions of the same kind go into one request together. */
enum renewal {
	/* These may be repeated over another connection. */
	RENEWAL_ANY_CONNECTION,
	/* These locks end with the connection to which they are bound. */
	RENEWAL_THIS_CONNECTION,
	/* These locks are to be bound to this connection (session_binding.h). They are not extended
	 * for the sake of the deadline. */
	RENEWAL_BINDS
};

struct batch {
	struct pawl *client;
	enum renewal kind;
	unsigned connection_number;
	size_t count;
	/* An item is NULL if the lock is gone meanwhile. */
	struct pawl_lock *locks[];
};

static size_t batch_bytes(size_t count) {
	return sizeof(struct batch) + count * sizeof(struct pawl_lock *);
}

static void batch_free(struct batch *b) {
	for (size_t i = 0; i < b->count; i++) {
		if (b->locks[i]) {
			b->locks[i]->batch = NULL;
		}
	}
	alloc_free(b->client->env.alloc, b, batch_bytes(b->count));
}

void renew_forget(struct pawl_lock *lock) {
	list_remove(&lock->due);
	agenda_clear(&lock->client->agenda, &lock->renew_alarm);
	if (lock->batch) {
		lock->batch->locks[lock->slot] = NULL;
		lock->batch = NULL;
	}
}

/* Returns the outcome for one lock. Where there is no list of outcomes, that of the whole request
 * counts. */
static struct pawl_extended outcome_of(const struct pawl_result *result, size_t i) {
	if (result->error == 0 && i < result->extended_count) {
		return result->extended[i];
	}
	return (struct pawl_extended){ .error = result->error ? result->error : PAWL_EPROTOCOL };
}

/* A node refuses a request as a whole if the client may not extend one of its locks. So that the
 * others stay held, each half is asked for by itself. Returns false if the outcome is final for the
 * lock. */
static bool divide(const struct batch *b, struct pawl_result *result, int error,
	struct pawl_lock *lock) {
	const bool together = result->error || result_box(result)->denied_together;
	if (error != PAWL_EDENIED || !together || b->count == 1) {
		lock->together = 0;
		return false;
	}
	lock->together = b->count / 2;
	return true;
}

/* Returns whether the client should leave the node because it cannot help. If only some of the
 * locks were refused, the reason lies with these locks. */
static bool node_useless(const struct pawl_result *result) {
	for (size_t i = 0; i < result->extended_count; i++) {
		int error = result->extended[i].error;
		if (error != PAWL_ENOQUORUM && error != PAWL_ERECOVERING) {
			return false;
		}
	}
	return result->extended_count > 0 || result->error == PAWL_ENOQUORUM
		|| result->error == PAWL_ERECOVERING;
}

static void on_batch(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct batch *b = ctx;
	struct pawl *client = b->client;
	struct instant sent_at = call->sent_at;
	const span_ns most = result_box(take_result)->lease_most;
	for (size_t i = 0; i < b->count && !client->dying; i++) {
		struct pawl_lock *lock = b->locks[i];
		if (lock) {
			struct pawl_extended outcome = outcome_of(take_result, i);
			renew_forget(lock);
			/* docs/operations/change.md: locks stay held when max_lease is lowered. */
			const bool shorter = outcome.error == PAWL_ETOOLONG
				&& lock_lower_lease(lock, most);
			if (shorter || divide(b, take_result, outcome.error, lock)) {
				list_append(&client->due, &lock->due);
				client_core_kick(client);
				continue;
			}
			lock_extended(lock, sent_at, b->connection_number, &outcome);
		}
	}
	/* The node that was left may answer late. */
	bool useless = !client->dying && call->connection == client->connection_number
		&& node_useless(take_result);
	pawl_result_free(take_result);
	batch_free(b);
	if (useless) {
		failover_move_on(client, PAWL_ENOQUORUM);
	}
}

/* Returns the time that is left to the lock with the latest deadline. After that no answer
 * counts. */
static span_ns longest_left(const struct batch *b, struct instant now) {
	span_ns longest = SPAN_MS;
	for (size_t i = 0; i < b->count; i++) {
		span_ns left = instant_left_short(now, b->locks[i]->deadline);
		longest = left > longest ? left : longest;
	}
	return longest;
}

/* Returns for whom the locks are, so that a node that did not grant them learns it; none if they
 * are for several. */
static struct pawl_id batch_party(const struct batch *b) {
	struct pawl_id first = b->locks[0]->party;
	for (size_t i = 1; i < b->count; i++) {
		if (memcmp(&b->locks[i]->party, &first, sizeof(first)) != 0) {
			return (struct pawl_id){ { 0 } };
		}
	}
	return pawl_id_none(&first) ? b->client->self.party : first;
}

static int batch_start(struct batch *b) {
	struct pawl *client = b->client;
	struct pawl_extend_item *items = alloc_new(client->env.alloc, b->count * sizeof(*items));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < b->count; i++) {
		struct pawl_lock *lock = b->locks[i];
		items[i] = (struct pawl_extend_item){ .key = { lock->key, lock->key_size },
			.lock_id = lock->lock_id, .lease_ms = (uint32_t)(lock->lease / SPAN_MS),
			.token = lock->token,
			.bond = b->kind == RENEWAL_BINDS ? client->connection_number : lock->order,
			.slots = { lock->slots.w[0], lock->slots.w[1] } };
	}
	struct pawl_request request = { .method = PAWL_EXTEND,
		.deadline_kept = b->kind != RENEWAL_BINDS, .locks = items, .lock_count = b->count,
		.party = batch_party(b) };
	struct call_start start = { .request = &request, .orders = b->kind != RENEWAL_BINDS,
		.timeout = longest_left(b, client_core_now(client)), .internal = true,
		.tied = b->kind != RENEWAL_ANY_CONNECTION, .end = on_batch, .ctx = b };
	int error = call_start(client, &start, NULL);
	alloc_free(client->env.alloc, items, b->count * sizeof(*items));
	return error;
}

static enum renewal kind_of(const struct pawl_lock *lock) {
	if (!lock->binding) {
		return RENEWAL_ANY_CONNECTION;
	}
	return session_binding_wanted(lock) ? RENEWAL_BINDS : RENEWAL_THIS_CONNECTION;
}

static struct pawl_lock *due_at(struct list *at) {
	return CONTAINER_OF(at, struct pawl_lock, due);
}

/* Returns the first lock that can be extended now. A lock that needs a particular connection waits
 * until that is up. */
static struct pawl_lock *first_due(const struct pawl *client) {
	for (struct list *at = list_first(&client->due); at; at = list_after(&client->due, at)) {
		if (!due_at(at)->binding || client->state == CLIENT_CORE_READY) {
			return due_at(at);
		}
	}
	return NULL;
}

/* Counts the locks of the kind that fit into one request, as a node reads it: by their number, by
 * the bytes of their keys and by their objects. A lock always fits alone. */
static size_t count_due(const struct pawl *client, enum renewal kind) {
	size_t count = 0, bytes = 0, items = 0, most = REQUEST_COPY_LOCKS_MAX;
	for (struct list *at = list_first(&client->due); at && count < most;
		at = list_after(&client->due, at)) {
		if (kind_of(due_at(at)) != kind) {
			continue;
		}
		const size_t together = due_at(at)->together;
		most = together && together < most ? together : most;
		if (count && count >= most) {
			break;
		}
		bytes += due_at(at)->key_size;
		items += request_lock_items(due_at(at)->slots);
		if (count && (bytes > REQUEST_COPY_BYTES_MAX || items > REQUEST_LOCK_ITEMS_MAX)) {
			break;
		}
		count++;
	}
	return count;
}

static void batch_fill(struct batch *b, size_t count) {
	struct list *next;
	for (struct list *at = list_first(&b->client->due); at && b->count < count; at = next) {
		struct pawl_lock *lock = due_at(at);
		next = list_after(&b->client->due, at);
		if (kind_of(lock) == b->kind) {
			list_remove(at);
			lock->batch = b;
			lock->slot = b->count;
			b->locks[b->count++] = lock;
		}
	}
}

static struct batch *batch_new(struct pawl *client, enum renewal kind) {
	size_t count = count_due(client, kind);
	struct batch *b = alloc_new(client->env.alloc, batch_bytes(count));
	if (!b) {
		return NULL;
	}
	*b = (struct batch){ .client = client, .kind = kind,
		.connection_number = client->connection_number };
	batch_fill(b, count);
	CHECK(b->count == count);
	return b;
}

/* Nothing could be sent. Each lock tries again later, as after an answer that refuses. */
static void batch_fail(struct batch *b, int error) {
	struct pawl *client = b->client;
	struct pawl_extended failed = { .error = error };
	for (size_t i = 0; i < b->count && !client->dying; i++) {
		struct pawl_lock *lock = b->locks[i];
		if (lock) {
			renew_forget(lock);
			lock_extended(lock, client_core_now(client), b->connection_number, &failed);
		}
	}
	batch_free(b);
}

static void renew_later(struct pawl_lock *lock) {
	struct pawl_extended failed = { .error = PAWL_ENOMEM };
	list_remove(&lock->due);
	lock_extended(lock, client_core_now(lock->client), lock->client->connection_number,
		&failed);
}

/* Also extends the locks that will be due within an eighth of their lease. So locks that began at
 * different times are soon extended together, and in the time of the shortest lease there are at
 * most eight walks over all locks. */
static void add_nearly_due(struct pawl *client) {
	int64_t now = client_core_now(client).boot;
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (wheel_armed(&lock->renew_alarm.timer) && !lock->failures
			&& lock->renew_at - lock->lease / 8 <= now) {
			agenda_clear(&client->agenda, &lock->renew_alarm);
			list_append(&client->due, &lock->due);
		}
	}
}

void renew_turn(struct pawl *client) {
	if (!list_empty(&client->due)) {
		add_nearly_due(client);
	}
	struct pawl_lock *first;
	while (!client->dying && (first = first_due(client)) != NULL) {
		struct batch *b = batch_new(client, kind_of(first));
		if (!b) {
			renew_later(first);
			continue;
		}
		int error = batch_start(b);
		if (error) {
			batch_fail(b, error);
		}
	}
}
