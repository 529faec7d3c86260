/* local.c: reads of this node's own memory, without a message: get, wait for a change, and list (section 3). */
#include "state.h"

#define LIST_BUCKETS_A_TURN 2048 /* a list of many keys is walked in slices, so that nobody waits for it */

static void answer(struct core *core, struct op *op, const struct key *key, int error) {
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		struct shown shown;
		bool copied = entry_show(core, c, op, key, &shown);
		struct core_reply *reply = op_reply(core, c, copied ? error : PAWL_EBUSY);
		if (copied) {
			entry_reply(reply, &shown);
		}
	}
	op_free(core, op);
}

void local_get(struct core *core, struct op *op) {
	answer(core, op, table_find(core, op->key), PAWL_OK);
}

/* ---- wait: the look and the beginning of the wait are one step, so that no change falls between ---- */

/* Free: nothing stands there, not even a lock delay. Held: somebody holds it. */
static bool fulfilled(const struct core *core, const struct op *op, const struct key *key) {
	if (op->for_free) {
		return key == NULL || key->held == NULL;
	}
	uint32_t holders;
	entry_shown(key, core->now, &holders);
	return holders > 0;
}

static void wait_on(struct core *core, struct op *op) {
	struct key *key = table_find(core, op->key);
	if (fulfilled(core, op, key)) {
		answer(core, op, key, PAWL_OK);
		return;
	}
	key = key ? key : table_make(core, op->key);
	struct key_more *more = key ? table_more(core, key) : NULL;
	if (more == NULL) {
		if (key) {
			table_settle(core, key);
		}
		op_reply_all(core, op, PAWL_EFULL);
		op_free(core, op);
		return;
	}
	op->state = OP_LOCAL;
	op->on = key;
	list_append(&more->waits, &op->waiting);
	timer_at(core, &op->timer, TIMER_OP, op->until);
	table_settle(core, key);
}

void local_wait(struct core *core, struct op *op) {
	op->until = instant_add(core->now, op->wait);
	wait_on(core, op);
}

void local_check_waits(struct core *core, struct key *key) {
	for (struct list *n = list_first(&key->more->waits), *next; n; n = next) {
		next = list_after(&key->more->waits, n);
		struct op *op = CONTAINER_OF(n, struct op, waiting);
		if (fulfilled(core, op, key)) {
			answer(core, op, key, PAWL_OK);
		}
	}
}

/* The wait ends without its change. */
void local_end(struct core *core, struct op *op, int error) {
	struct key *key = op->on;
	list_remove(&op->waiting);
	bool left = table_expire(core, key);
	answer(core, op, left ? key : NULL, error);
	if (left) {
		table_settle(core, key);
	}
}

void local_timer(struct core *core, struct op *op) {
	if (op->kind == CORE_WAIT && instant_expired(core->now, op->until)) {
		COUNT(core, wait_ended);
		local_end(core, op, PAWL_ETIMEOUT);
	} else if (op->kind == CORE_WAIT) {
		timer_at(core, &op->timer, TIMER_OP, op->until);
	}
}

void local_forget(struct core *core, struct op *op) {
	if (op->kind == CORE_WAIT) {
		local_end(core, op, PAWL_ECANCELED);
	} /* a list ends at its next slice */
}

static void wait_moved(struct core *core, struct op *op) {
	struct key *old = op->on;
	list_remove(&op->waiting);
	op->on = NULL;
	table_settle(core, old);
	wait_on(core, op);
}

/* ---- list ---- */

struct key_names { /* the first keys after `after`, in order, one more than asked for */
	uint32_t count, capacity;
	struct slice names[];
};

static size_t names_size(uint32_t capacity) {
	return sizeof(struct key_names) + capacity * sizeof(struct slice);
}

static void drop_name(struct core *core, struct slice name) {
	alloc_free(&core->alloc, (void *)(uintptr_t)name.data, name.size);
}

static void drop_names(struct core *core, struct key_names *names) {
	while (names->count > 0) {
		drop_name(core, names->names[--names->count]);
	}
}

void local_list_free(struct core *core, struct op *op) {
	if (op->names == NULL) {
		return;
	}
	drop_names(core, op->names);
	alloc_free(&core->alloc, op->names, names_size(op->names->capacity));
	op->names = NULL;
	map_walk_end(&core->live->keys);
}

void local_list(struct core *core, struct op *op) {
	uint32_t capacity = op->limit + 1;
	op->names = alloc_new(&core->alloc, names_size(capacity));
	if (op->names == NULL) {
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	op->names->capacity = capacity;
	op->state = OP_LOCAL;
	map_walk_begin(&core->live->keys);
	list_append(&core->lists, &op->waiting);
}

/* False: no memory. */
static bool add_name(struct core *core, struct key_names *names, struct slice name) {
	uint32_t low = 0, high = names->count;
	if (high == names->capacity && slice_compare(name, names->names[high - 1]) > 0) {
		return true; /* most keys of a large table */
	}
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int c = slice_compare(names->names[middle], name);
		if (c == 0) {
			return true; /* met twice because the table grew */
		}
		*(c < 0 ? &low : &high) = c < 0 ? middle + 1 : middle;
	}
	if (low == names->capacity) {
		return true;
	}
	uint8_t *copy = alloc_new(&core->alloc, name.size);
	if (copy == NULL) {
		return false;
	}
	memcpy(copy, name.data, name.size);
	if (names->count == names->capacity) {
		drop_name(core, names->names[--names->count]);
	}
	memmove(&names->names[low + 1], &names->names[low], (names->count - low) * sizeof *names->names);
	names->names[low] = slice_of(copy, name.size);
	names->count++;
	return true;
}

static void list_answer(struct core *core, struct op *op) {
	uint32_t shown_count = op->names->count < op->limit ? op->names->count : op->limit;
	struct caller *c = CONTAINER_OF(list_first(&op->callers), struct caller, link);
	struct core_entry *entries = out_room(core, shown_count * sizeof *entries);
	size_t n = 0;
	bool copied = entries != NULL;
	for (uint32_t i = 0; copied && i < shown_count; i++) {
		struct key *key = table_find(core, op->names->names[i]);
		uint32_t holders;
		const struct record *r = entry_shown(key, core->now, &holders);
		if (r) {
			copied = local_entry(core, c, op->identity, key_name(key), r, &entries[n]);
			entries[n++].holders = holders;
		}
	}
	struct core_reply *reply = op_reply(core, c, copied ? PAWL_OK : PAWL_EBUSY);
	reply->entries = entries;
	reply->count = copied ? n : 0;
	reply->more = op->names->count > op->limit;
	op_free(core, op);
}

/* A slice of one list's walk. */
static void list_slice(struct core *core, struct op *op) {
	if (list_empty(&op->callers)) {
		op_free(core, op);
		return;
	}
	for (int i = 0; i < LIST_BUCKETS_A_TURN && op->bucket < core->live->keys.bucket_count; i++, op->bucket++) {
		for (struct map_node *n = map_bucket(&core->live->keys, op->bucket); n; n = map_next_in_bucket(n)) {
			struct key *key = CONTAINER_OF(n, struct key, node);
			struct slice name = key_name(key);
			if (key->held == NULL || !slice_has_prefix(name, op->key) || (op->expected.size && slice_compare(name, op->expected) <= 0)) {
				continue;
			}
			if (!add_name(core, op->names, name)) {
				op_reply_all(core, op, PAWL_EBUSY);
				op_free(core, op);
				return;
			}
		}
	}
	if (op->bucket >= core->live->keys.bucket_count) {
		list_answer(core, op);
	}
}

void local_list_go_on(struct core *core) {
	struct list *n = list_first(&core->lists);
	struct op *op = CONTAINER_OF(n, struct op, waiting);
	list_remove(n);
	list_append(&core->lists, n); /* in turns */
	list_slice(core, op);
}

/* Waits are looked at again, because the new table may fulfil them; lists begin anew. */
void local_tables_swapped(struct core *core, struct table *old) {
	for (struct list *n = list_first(&core->lists); n; n = list_after(&core->lists, n)) {
		struct op *op = CONTAINER_OF(n, struct op, waiting);
		drop_names(core, op->names);
		op->bucket = 0;
		map_walk_end(&old->keys);
		map_walk_begin(&core->live->keys);
	}
	for (struct op *op = op_first(core); op; op = op_following(core)) {
		if (op->kind == CORE_WAIT && op->state == OP_LOCAL) {
			wait_moved(core, op);
		}
	}
}
