/* request_check.c: refuses the requests that the library cannot send, or must not send. Everything
 * else is for the node to refuse. */
#include "request_copy.h"

#include <string.h>

#include "kept_bytes.h"
#include "trace.h"

static int count_bytes(struct pawl_bytes b, size_t *bytes) {
	if (!kept_bytes_valid(b)) {
		return PAWL_EINVAL;
	}
	if (b.size > REQUEST_COPY_BYTES_MAX - *bytes) {
		return PAWL_ETOOLARGE;
	}
	*bytes += b.size;
	return 0;
}

uint32_t request_lock_items(struct permits numbers) {
	return 1 + 2 * 6 + permits_count(numbers);
}

static int check_locks(const struct pawl_request *r, size_t *bytes) {
	int error = r->lock_count == 0 || r->lock_count > REQUEST_COPY_LOCKS_MAX ? PAWL_EINVAL : 0;
	uint32_t items = 0;
	for (size_t i = 0; !error && i < r->lock_count; i++) {
		const struct permits numbers = { { r->locks[i].slots[0], r->locks[i].slots[1] } };
		items += request_lock_items(numbers);
		error = pawl_id_none(&r->locks[i].lock_id) ? PAWL_EINVAL
			: count_bytes(r->locks[i].key, bytes);
	}
	return error ? error : items > REQUEST_LOCK_ITEMS_MAX ? PAWL_ETOOLARGE : 0;
}

/* A semaphore's mode without permits is refused, because it would become an exclusive lock. */
static bool mode_valid(enum pawl_mode mode, uint32_t permits, uint32_t of) {
	bool semaphore = permits || of;
	return permits <= PAWL_PERMITS_MAX && of <= PAWL_PERMITS_MAX
		&& (unsigned)mode <= PAWL_PERMITS && (mode != PAWL_PERMITS || semaphore);
}

/* Checks several keys: either all lock_ids are given, no two of them the same, or none is given. */
static int check_keys(const struct pawl_request *r, size_t *bytes) {
	int error = r->key_count == 0 || r->key_count > PAWL_KEYS_MAX ? PAWL_EINVAL : 0;
	for (size_t i = 0; !error && i < r->key_count; i++) {
		const struct pawl_key_item *item = &r->keys[i];
		bool alike = pawl_id_none(&item->lock_id) == pawl_id_none(&r->keys[0].lock_id);
		for (size_t j = 0; alike && j < i && !pawl_id_none(&item->lock_id); j++) {
			alike = memcmp(&item->lock_id, &r->keys[j].lock_id, sizeof(item->lock_id))
				!= 0;
		}
		error = alike && mode_valid(item->mode, item->permits, item->of)
			? count_bytes(item->key, bytes)
			: PAWL_EINVAL;
	}
	return error;
}

static bool ids_valid(const struct pawl_request *r) {
	switch (r->method) {
	case PAWL_UPDATE:
	case PAWL_RELEASE:
	case PAWL_DOWNGRADE:
	case PAWL_TRANSFER:
		return !pawl_id_none(&r->lock_id);
	case PAWL_EXTEND:
		return r->locks || !pawl_id_none(&r->lock_id);
	case PAWL_ACQUIRE:
		return mode_valid(r->terms.mode, r->terms.permits, r->terms.of);
	case PAWL_KICK:
		return r->client != 0;
	case PAWL_WATCH:
		return r->after.size == 0 || r->after.size == POSITION_BYTES;
	case PAWL_GET:
	case PAWL_LIST:
	case PAWL_WAIT:
	case PAWL_WAITERS:
	case PAWL_BREAK:
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_CHANGE:
	case PAWL_ASK_RELEASE:
	case PAWL_EXPLAIN:
	case PAWL_UNWATCH:
	case PAWL_CLIENTS:
	case PAWL_CAN:
	case PAWL_TOP:
		return true;
	}
	return false;
}

bool request_with_valid(const struct pawl_request *r, const struct pawl_with *with) {
	const bool one = r->method == PAWL_EXTEND && !r->locks,
		acquire = r->method == PAWL_ACQUIRE && !r->terms.release_on_disconnect;
	return (!with->close_ms || r->method == PAWL_RELEASE)
		&& (!with->order || one || acquire)
		&& (!with->shorten || (one && with->order));
}

int request_check(const struct pawl_request *r, const struct request_self *self, size_t *bytes) {
	if ((unsigned)r->method < PAWL_ACQUIRE || (unsigned)r->method > PAWL_METHOD_LAST ||
		!ids_valid(r)) {
		return PAWL_EINVAL;
	}
	if (r->expect_seq.data && (r->expect_seq.size != SEQ_BYTES || r->expect.data)) {
		return PAWL_EINVAL;
	}
	if (self->trace && !trace_valid(slice_str(self->trace))) {
		return PAWL_EINVAL;
	}
	const struct pawl_bytes all[] = { r->key, self->owner, r->value, r->expect, r->after,
		self->label, r->to, pawl_str(self->host), pawl_str(self->trace) };
	int error = 0;
	*bytes = 0;
	for (size_t i = 0; !error && i < sizeof(all) / sizeof(all[0]); i++) {
		error = count_bytes(all[i], bytes);
	}
	if (!error && r->method == PAWL_ACQUIRE && r->keys) {
		error = check_keys(r, bytes);
	}
	return !error && r->method == PAWL_EXTEND && r->locks ? check_locks(r, bytes) : error;
}
