/* request.c: a client's request is checked before it changes anything (section 8, point 6), and
 * handed to its operation. */
#include "operation.h"
#include "node.h"

/* Says why this node takes no part. If values of the initial masters differ, it says which. */
static struct slice absence(struct core *core) {
	const char *why = engine_absence(core), *differs = core->membership->birth_differs;
	const struct slice lead = slice_str("the cluster is not born: this node waits for ");
	uint8_t *to = core->state == CORE_UNBORN && differs[0]
		? out_room(core, lead.size + BIRTH_DIFFERS_BYTES) : NULL;
	if (to) {
		const uint8_t *end = slice_put(slice_put(to, lead), slice_str(differs));
		return slice_of(to, (size_t)(end - to));
	}
	return slice_str(why ? why : "");
}

static struct core_reply *refuse(struct core *core, const struct core_request *r, int error,
	const char *field) {
	struct core_reply *reply = out_reply(core);
	reply->id = r->id;
	reply->client = r->client;
	reply->op = r->op;
	reply->error = error;
	reply->field = field;
	reply->lock_id = r->lock_id;
	reply->quorum = core->quorum;
	reply->limit = error == PAWL_ETOOLONG ? core->config.max_lease : core->limits.lease_min;
	if (error == PAWL_ERECOVERING) {
		reply->why = absence(core);
	}
	return reply;
}

struct problem {
	int error;
	const char *field;
	/* Which of several locks the problem is about, counted from 0. */
	uint32_t which;
};

/* Checks the lease, and if the request acquires also the lock terms (section 10). R5 is checked
 * here before any master is asked; it is about the lease and the lock delay together. */
static struct problem check_lease(const struct core *core, const struct core_request *r) {
	const struct terms *t = &r->terms;
	if (r->lease < core->limits.lease_min) {
		return (struct problem){ PAWL_EBADREQUEST, "lease_ms", 0 };
	}
	if (r->lease > core->config.max_lease) {
		return (struct problem){ PAWL_ETOOLONG, "lease_ms", 0 };
	}
	/* The answers of this node do not tell which connection they were for, so they must not
	 * vouch for a lock that ended when it was shortened. */
	if (r->shorten && (r->binding == 0 || !(r->ordered || r->deadline_kept))) {
		return (struct problem){ PAWL_EBADREQUEST, "shorten", 0 };
	}
	if (r->op == CORE_EXTEND ||
		(t->of == MODE_EXCLUSIVE && t->count == 0 && t->delay == 0 &&
			permits_none(t->set))) {
		return (struct problem){ PAWL_OK, NULL, 0 };
	}
	const bool semaphore = terms_semaphore(t);
	if (semaphore && t->of > PERMITS_MAX) {
		return (struct problem){ PAWL_EBADREQUEST, "of", 0 };
	}
	if (!permits_none(t->set) ||
		(semaphore ? t->count < 1 || t->count > t->of : t->count != 0)) {
		return (struct problem){ PAWL_EBADREQUEST, "permits", 0 };
	}
	if (t->delay < 0) {
		return (struct problem){ PAWL_EBADREQUEST, "lock_delay_ms", 0 };
	}
	if (t->delay > core->config.max_lease - r->lease) {
		return (struct problem){ PAWL_ETOOLONG, "lock_delay_ms", 0 };
	}
	return (struct problem){ PAWL_OK, NULL, 0 };
}

/* Section 10, Closing: whoever finds a last value releases the lock in the name of another, and
 * does not know for how long the key is to stay closed. */
static struct problem check_closing(const struct core *core, const struct core_request *r) {
	const int error = r->closes < 0 || (r->closes > 0 && (r->expect_value || r->expect_seq))
		? PAWL_EBADREQUEST
		: r->closes > core->config.max_lease ? PAWL_ETOOLONG
		: PAWL_OK;
	return (struct problem){ error, error ? "close_ms" : NULL, 0 };
}

static struct problem check_sizes(const struct core *core, const struct core_request *r) {
	if (r->key.size > KEY_MAX) {
		return (struct problem){ PAWL_ETOOLARGE, "key", 0 };
	}
	if (r->key.size == 0 && r->op != CORE_LIST && !(r->op == CORE_WAITERS && r->prefix)) {
		return (struct problem){ PAWL_EBADREQUEST, "key", 0 };
	}
	if (r->owner.size > OWNER_MAX) {
		return (struct problem){ PAWL_ETOOLARGE, "owner", 0 };
	}
	if (r->label.size > LABEL_MAX || r->to.size > OWNER_MAX) {
		return (struct problem){ PAWL_ETOOLARGE,
			r->to.size > OWNER_MAX ? "to" : "label", 0 };
	}
	if (r->value.size > core->limits.value_bytes || r->value.size > VALUE_MAX_HARD) {
		return (struct problem){ PAWL_ETOOLARGE, "value", 0 };
	}
	if (r->identity.size > IDENTITY_MAX || r->after.size > KEY_MAX) {
		return (struct problem){ PAWL_ETOOLARGE,
			r->identity.size > IDENTITY_MAX ? "identity" : "after", 0 };
	}
	return (struct problem){ PAWL_OK, NULL, 0 };
}

static struct problem check(const struct core *core, const struct core_request *r) {
	struct problem p = { PAWL_OK, NULL, 0 };
	if (r->op == CORE_NONE || r->op >= CORE_OPS) {
		return (struct problem){ PAWL_EBADREQUEST, "method", 0 };
	}
	if (r->op == CORE_ACQUIRE_ALL) {
		p.error = group_check(r, &p.field, &p.which);
	}
	p = p.error == PAWL_OK ? check_sizes(core, r) : p;
	if (p.error != PAWL_OK) {
		return p;
	}
	if (core->operations[r->op]->needs_lock_id && id128_zero(r->lock_id)) {
		return (struct problem){ PAWL_EBADREQUEST, "lock_id", 0 };
	}
	if (r->op == CORE_TRANSFER && r->to.size == 0) {
		return (struct problem){ PAWL_EBADREQUEST, "to", 0 };
	}
	if (r->token > TOKEN_MAX) {
		return (struct problem){ PAWL_EBADREQUEST, "token", 0 };
	}
	if (r->wait < 0) {
		return (struct problem){ PAWL_EBADREQUEST,
			r->op == CORE_WAIT ? "timeout_ms" : "wait_ms", 0 };
	}
	if ((r->op == CORE_LIST || (r->op == CORE_WAITERS && r->prefix)) &&
		r->limit > WAITERS_MAX) {
		return (struct problem){ PAWL_EBADREQUEST, "limit", 0 };
	}
	if (r->op == CORE_ACQUIRE || r->op == CORE_EXTEND || r->op == CORE_ACQUIRE_ALL) {
		p = check_lease(core, r);
	} else if (r->op == CORE_RELEASE) {
		p = check_closing(core, r);
	}
	return p;
}

static struct problem check_state(struct core *core, const struct core_request *r) {
	if (core->state == CORE_UNBORN || core->state == CORE_OUTSIDE ||
		core->state == CORE_DRAINED) {
		return (struct problem){ PAWL_ERECOVERING, NULL, 0 };
	}
	/* Half of the room is for holders: requests that wait must not keep them from extending and
	 * releasing (section 9). */
	const bool holder = core->operations[r->op]->of_holder;
	const uint64_t room = holder ? 2 * (uint64_t)core->limits.rounds : core->limits.rounds;
	if (core->coordinator.op_count >= room) {
		COUNT(core, busy);
		return (struct problem){ PAWL_EBUSY, "rounds", 0 };
	}
	if ((r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL) && r->wait > 0) {
		if (core->coordinator.waiting_count >= core->limits.waiters) {
			COUNT(core, full);
			return (struct problem){ PAWL_EFULL, "waiters", 0 };
		}
		if (op_client_waiters(core, r->client) >= core->limits.waiters_per_client) {
			COUNT(core, full);
			return (struct problem){ PAWL_EFULL, "waiters_per_client", 0 };
		}
	}
	return (struct problem){ PAWL_OK, NULL, 0 };
}

/* Lets the lock end with the newest of the connections that ask for it (section 2, Release on
 * disconnect). False: the commit already names an earlier one, so this has to be an attempt of its
 * own. */
static bool names_binding(struct op *op, uint32_t binding) {
	if (binding <= op->terms.binding) {
		return true;
	}
	if (op->kind == CORE_ACQUIRE && op_acquire(op)->committed) {
		return false;
	}
	op->terms.binding = binding;
	return true;
}

/* A request that is repeated while the earlier connection lives joins its attempt and gets the same
 * answer. Not so once the commit is sent: what was accepted before the repeat was asked for may
 * have ended since, and the key may have been another's (section 5, Repeats). True: the request was
 * dealt with. */
static bool join(struct core *core, const struct core_request *r) {
	struct op *op = r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL
		? op_find_lock(core, r->op, r->key, r->lock_id) : NULL;
	/* What has missed its turn must not go on as if it still waited for it. */
	if (op == NULL || (op->missed && op_left(core, op))) {
		return false;
	}
	if (!slice_equal(op->identity, r->identity)) {
		refuse(core, r, PAWL_EDENIED, "lock_id");
	} else if (op->part_of || (op->kind == CORE_ACQUIRE_ALL && !group_same(op, r))) {
		/* The lock_id is part of another request. */
		refuse(core, r, PAWL_EBADREQUEST,
			op->kind == CORE_ACQUIRE_ALL ? "locks" : "lock_id");
	} else if (op->terms.of != r->terms.of) {
		refuse(core, r, PAWL_EMISMATCH, "mode");
	} else if (op->state == OP_COMMITTING || !names_binding(op, r->terms.binding)) {
		return false;
	} else if (op_crowded(op)) {
		COUNT(core, busy);
		refuse(core, r, PAWL_EBUSY, "lock_id");
	} else if (op_join(core, op, r) == NULL) {
		refuse(core, r, PAWL_EBUSY, "memory");
	} else {
		COUNT(core, repeat_joined);
	}
	return true;
}

void request_handle(struct core *core, const struct core_request *r) {
	struct core_request named;
	if (r->op == CORE_ACQUIRE_ALL && r->lock_count > 0) {
		/* A repeat finds the request under its first key. */
		named = *r;
		named.key = r->locks[0].key;
		named.key_hash = 0;
		named.lock_id = r->locks[0].lock_id;
		r = &named;
	}
	if (!out_reserve_reply(core)) {
		COUNT(core, no_memory);
		out_unheard(core);
		return;
	}
	if (r->op == CORE_CHANGE) {
		change_begin(core, r, true);
		return;
	}
	struct problem p = check(core, r);
	if (p.error == PAWL_OK) {
		p = check_state(core, r);
	}
	if (p.error != PAWL_OK) {
		struct core_reply *reply = refuse(core, r, p.error, p.field);
		if (p.which < r->lock_count && r->op == CORE_ACQUIRE_ALL) {
			(void)out_copy(core, r->locks[p.which].key, &reply->failed_key);
		}
		return;
	}
	if (join(core, r)) {
		return;
	}
	struct op *op = op_new(core, r);
	if (op == NULL) {
		COUNT(core, no_memory);
		refuse(core, r, PAWL_EBUSY, "memory");
		return;
	}
	if (core->operations[op->kind]->begin) {
		core->operations[op->kind]->begin(core, op);
	} else {
		restart_begin(core, op);
	}
}
