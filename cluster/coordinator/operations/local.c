/* local.c: reads of this node's own memory, without a message: get, wait for a change, and list
 * (section 3). */
#include "operation.h"
#include "operations.h"

/* A list is made in slices, one per turn of the loop, so that nobody waits for it. This limits the
 * work of a slice, counted in visited buckets. */
#define LIST_WORK_A_TURN 1024u
/* Putting a name into its place, or telling an entry, counts as this much work. */
#define LIST_NAME_WORK 32u
/* This much work costs the client as much as a simple request. */
#define LIST_WORK_A_COST 128u
/* After this many bytes the next entry is told in another reply. */
#define LIST_PIECE_BYTES ((size_t)64 << 10)

/* Returns how many bytes of values the answers show. */
static uint64_t answer(struct core *core, struct op *op, const struct key *key, int error) {
	struct list *n;
	uint64_t bytes = 0;
	while ((n = list_first(&op->callers)) != NULL) {
		struct shown shown;
		const struct core_reply *reply = entry_answer(core,
			CONTAINER_OF(n, struct caller, link), op, key, error, &shown);
		bytes += reply->error == error ? entry_value_bytes(&shown) : 0;
	}
	op_free(core, op);
	return bytes;
}

void local_get(struct core *core, struct op *op) {
	(void)answer(core, op, table_find(core, op->key), PAWL_OK);
}

/* ---- wait ---- */

/* In an answer to a wait, so many records of the key, or bytes of values, count as one answer more
 * of those that one turn of the loop may give. */
#define RECORDS_AN_ANSWER 4u
#define BYTES_AN_ANSWER 256u

/* Tells whether the key is in the state that is waited for. Free: nothing stands on the key, not
 * even a lock delay. Held: somebody holds the key. */
static bool fulfilled(const struct core *core, const struct op *op, const struct key *key) {
	if (op_wait(op)->for_free) {
		return key == NULL || key->held == NULL;
	}
	return key && entry_held(key, core->now);
}

/* False: there was no memory. The wait was answered, and is freed. */
static bool enter_wait(struct core *core, struct op *op, struct key *key) {
	key = key ? key : table_make(core, op->key);
	struct key_more *more = key ? table_more(core, key) : NULL;
	if (more == NULL) {
		if (key) {
			table_settle(core, key);
		}
		op_reply_all(core, op, PAWL_EFULL);
		op_free(core, op);
		return false;
	}
	op->state = OP_LOCAL;
	op_wait(op)->on = key;
	list_append(&more->waits[op_wait(op)->for_free ? WAITS_FREE : WAITS_HELD], &op->waiting);
	list_append(&core->coordinator.local_waits, &op_wait(op)->all);
	pending_add(core, PENDING_UNSERVED_WAITS);
	timer_at(core, &op->timer, TIMER_OP, op->until);
	table_settle(core, key);
	return true;
}

/* The caller settles the key. */
static void leave_wait(struct op *op) {
	struct key_more *more = key_more(op_wait(op)->on);
	list_remove(&op->waiting);
	list_remove(&op_wait(op)->all);
	if (list_empty(&more->waits[WAITS_HELD]) && list_empty(&more->waits[WAITS_FREE])) {
		list_remove(&more->due);
	}
}

/* Tests whether the key is as it is waited for, and otherwise begins to wait. Both are one step, so
 * that no change falls between them. */
void local_wait(struct core *core, struct op *op) {
	struct key *key = table_find(core, op->key);
	op->until = instant_add(core->now, op->wait);
	if (fulfilled(core, op, key)) {
		(void)answer(core, op, key, PAWL_OK);
	} else {
		(void)enter_wait(core, op, key);
	}
}

/* Tells whether the key has been free since the wait began. */
static bool was_freed(const struct op *op) {
	return op_wait(op)->for_free && op->id < key_more(op_wait(op)->on)->freed;
}

/* If nobody holds the key any more, the waits for it to be held are not due any more. */
static void recheck_taken(const struct core *core, const struct key *key) {
	struct key_more *more = key_more(key);
	more->taken = more->taken && entry_held(key, core->now);
}

/* Returns the first wait of the key that is due; NULL: none is. */
static struct op *first_due(const struct key *key) {
	const struct key_more *more = key_more(key);
	struct list *held = list_first(&more->waits[WAITS_HELD]),
		*free = list_first(&more->waits[WAITS_FREE]);
	struct op *first = free ? CONTAINER_OF(free, struct op, waiting) : NULL;
	first = first && was_freed(first) ? first : NULL;
	struct op *other = held && more->taken ? CONTAINER_OF(held, struct op, waiting) : NULL;
	return first == NULL || (other && other->id < first->id) ? other : first;
}

/* Answers a wait of the key that is due. Returns the next one; NULL: none is. */
static struct op *answer_due(struct core *core, const struct key *key, struct op *op) {
	const bool freed = was_freed(op);
	leave_wait(op);
	/* Somebody may hold the key again: who waited for it to be free hears that it was. */
	const uint64_t bytes = answer(core, op, freed ? NULL : key, PAWL_OK),
		more = bytes / BYTES_AN_ANSWER +
		(freed ? 0 : key_count(key, UINT32_MAX) / RECORDS_AN_ANSWER);
	pieces_take(&turn_pieces(core)->waits, 1 + more);
	return first_due(key);
}

/* Waits of the key may be due. They are answered at once, unless others are due already, or the
 * turn has answered as many as it may. */
static void answer_or_put_off(struct core *core, struct key *key) {
	struct list *due = &core->coordinator.due_waits;
	if (list_linked(&key_more(key)->due)) {
		return;
	}
	recheck_taken(core, key);
	struct op *op = first_due(key);
	while (op && list_empty(due) && turn_pieces(core)->waits > 0) {
		op = answer_due(core, key, op);
	}
	if (op) {
		COUNT(core, wait_put_off);
		list_append(due, &key_more(key)->due);
		pending_add(core, PENDING_WAITS);
	}
}

void local_check_waits(struct core *core, struct key *key, const struct record *r) {
	struct key_more *more = key_more(key);
	const struct list *held = &more->waits[WAITS_HELD], *free = &more->waits[WAITS_FREE];
	if (r && !list_empty(held) && entry_holds(r, core->now)) {
		more->taken = true;
		answer_or_put_off(core, key);
	} else if (r == NULL && !list_empty(free) && key->held == NULL) {
		more->freed = CONTAINER_OF(free->prev, struct op, waiting)->id + 1;
		answer_or_put_off(core, key);
	}
}

/* Keys take turns, and each has one wait answered a time. */
void local_waits_go_on(struct core *core) {
	struct list *n;
	while (turn_pieces(core)->waits > 0 &&
		(n = list_first(&core->coordinator.due_waits)) != NULL) {
		struct key_more *more = CONTAINER_OF(n, struct key_more, due);
		list_remove(n);
		list_append(&core->coordinator.due_waits, n);
		/* This drops what has ended. The key stays, because it is waited for. */
		struct key *key = table_find(core, more->name);
		CHECK(key && key_more(key) == more);
		recheck_taken(core, key);
		struct op *op = first_due(key);
		if (op == NULL || answer_due(core, key, op) == NULL) {
			list_remove(n);
		}
		table_settle(core, key);
	}
	pending_left(core, PENDING_WAITS, !list_empty(&core->coordinator.due_waits));
}

void local_end(struct core *core, struct op *op, int error) {
	struct key *key = op_wait(op)->on;
	const bool freed = was_freed(op);
	leave_wait(op);
	op_reply_all(core, op, freed ? PAWL_OK : error);
	op_free(core, op);
	if (table_expire(core, key)) {
		table_settle(core, key);
	}
}

void local_unserved_go_on(struct core *core) {
	while (turn_pieces(core)->waits > 0 && local_unserved_left(core)) {
		struct list *n = list_first(&core->coordinator.local_waits);
		COUNT(core, wait_unserved);
		pieces_take(&turn_pieces(core)->waits, 1);
		local_end(core, CONTAINER_OF(n, struct op, as.wait.all), PAWL_ENOQUORUM);
	}
	pending_left(core, PENDING_UNSERVED_WAITS, local_unserved_left(core));
}

void local_timer(struct core *core, struct op *op) {
	if (op->kind == CORE_WAIT && instant_expired(core->now, op->until)) {
		COUNT(core, wait_ended);
		local_end(core, op, PAWL_ETIMEOUT);
	} else if (op->kind == CORE_WAIT) {
		timer_at(core, &op->timer, TIMER_OP, op->until);
	}
}

/* An answer that the key is free shows nothing of it, so that all of these are given at once. */
static void wait_moved(struct core *core, struct op *op) {
	struct key *old = op_wait(op)->on;
	const bool freed = was_freed(op);
	leave_wait(op);
	op_wait(op)->on = NULL;
	table_settle(core, old);
	struct key *key = table_find(core, op->key);
	if (freed || (op_wait(op)->for_free && fulfilled(core, op, key))) {
		(void)answer(core, op, NULL, PAWL_OK);
		return;
	}
	if (!enter_wait(core, op, key) || op_wait(op)->for_free) {
		return;
	}
	key = op_wait(op)->on;
	/* All that wait for this key to be held are due with the first of them. */
	if (list_first(&key_more(key)->waits[WAITS_HELD]) == &op->waiting) {
		key_more(key)->taken = entry_held(key, core->now);
		if (key_more(key)->taken && !list_linked(&key_more(key)->due)) {
			list_append(&core->coordinator.due_waits, &key_more(key)->due);
			pending_add(core, PENDING_WAITS);
		}
	}
}

/* ---- list ---- */

/* Holds the first keys after `after`, in order: one more than was asked for. */
struct key_names {
	uint32_t count, capacity, told;
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
	struct list_state *list = op_list(op);
	if (list->names == NULL) {
		return;
	}
	drop_names(core, list->names);
	alloc_free(&core->alloc, list->names, names_size(list->names->capacity));
	list->names = NULL;
	map_walk_end(&table_live(core)->keys);
}

void local_list_leave(struct caller *c) {
	struct client *client = c->client;
	if (c->op->kind != CORE_LIST || !list_linked(&c->op->waiting)) {
		return;
	}
	list_remove(&c->op->waiting);
	if (list_empty(&client->lists)) {
		list_remove(&client->listing);
	}
}

void local_list(struct core *core, struct op *op) {
	struct list_state *list = op_list(op);
	uint32_t capacity = list->limit + 1;
	list->names = alloc_new(&core->alloc, names_size(capacity));
	if (list->names == NULL) {
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	list->names->capacity = capacity;
	op->state = OP_LOCAL;
	map_walk_begin(&table_live(core)->keys);
	struct client *client = CONTAINER_OF(list_first(&op->callers), struct caller, link)->client;
	list_append(&client->lists, &op->waiting);
	if (!list_linked(&client->listing)) {
		list_append(&core->coordinator.lists, &client->listing);
		pending_add(core, PENDING_LISTS);
	}
}

/* Keeps a copy of the name if it is among the first. False: no memory. */
static bool add_name(struct core *core, struct key_names *names, struct slice name,
	uint32_t *work) {
	uint32_t low = 0, high = names->count;
	if (high == names->capacity && slice_compare(name, names->names[high - 1]) > 0) {
		/* This is the case for most keys of a large table. */
		return true;
	}
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int c = slice_compare(names->names[middle], name);
		if (c == 0) {
			/* The name was met twice because the table grew. */
			return true;
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
	memmove(&names->names[low + 1], &names->names[low],
		(names->count - low) * sizeof *names->names);
	names->names[low] = slice_of(copy, name.size);
	names->count++;
	*work += LIST_NAME_WORK;
	return true;
}

/* Writes one entry into the reply, and adds the bytes that are shown of it to *bytes. A key that
 * has ended since it was found is left out. False: no memory. */
static bool list_tell(struct core *core, struct op *op, struct slice name, struct core_reply *reply,
	struct core_entry *entries, size_t *bytes) {
	const struct caller *c = CONTAINER_OF(list_first(&op->callers), struct caller, link);
	struct key *key = table_find(core, name);
	uint32_t holders;
	const struct record *r = entry_shown(key, core->now, &holders);
	if (r == NULL) {
		return true;
	}
	struct core_entry *e = &entries[reply->count++];
	if (!local_entry(core, c, op->identity, key_name(key), r, e)) {
		return false;
	}
	e->holders = holders;
	*bytes += e->key.size + e->owner.size + e->value.size + e->identity.size + e->label.size;
	return true;
}

/* Tells some more entries. With the last of them the operation is over. */
static void list_answer(struct core *core, struct op *op) {
	struct list_state *list = op_list(op);
	struct key_names *names = list->names;
	const uint32_t end = names->count < list->limit ? names->count : list->limit,
		left = end - names->told;
	const uint32_t most = left < core->limits.list_piece ? left : core->limits.list_piece,
		first = names->told;
	struct core_entry *entries = out_room(core, most * sizeof *entries);
	struct core_reply said = { .entries = entries };
	size_t bytes = 0;
	bool copied = entries != NULL && (left == most || out_reserve_reply(core));
	while (copied && names->told - first < most && bytes < LIST_PIECE_BYTES) {
		copied = list_tell(core, op, names->names[names->told++], &said, entries, &bytes);
	}
	list->work += (names->told - first) * LIST_NAME_WORK;
	const bool goes_on = copied && names->told < end;
	struct caller *c = CONTAINER_OF(list_first(&op->callers), struct caller, link);
	struct core_reply *reply = goes_on ? op_reply_part(core, c, PAWL_OK)
		: op_reply(core, c, copied ? PAWL_OK : PAWL_EBUSY);
	reply->entries = entries;
	reply->count = copied ? said.count : 0;
	reply->more = names->count > list->limit;
	reply->goes_on = goes_on;
	reply->cost = list->work / LIST_WORK_A_COST;
	list->work %= LIST_WORK_A_COST;
	if (!goes_on) {
		op_free(core, op);
	}
}

/* Adds the key's name if the key belongs in the list. False: no memory. */
static bool list_visit(struct core *core, struct op *op, const struct key *key, uint32_t *work) {
	const struct slice name = key_name(key);
	if (key->held == NULL || !slice_has_prefix(name, op->key) ||
		(op->expected.size && slice_compare(name, op->expected) <= 0)) {
		return true;
	}
	return add_name(core, op_list(op)->names, name, work);
}

/* Does one slice of a list's walk. False: no memory. */
static bool list_walk(struct core *core, struct op *op) {
	struct list_state *list = op_list(op);
	const struct map *keys = &table_live(core)->keys;
	uint32_t work = 0;
	bool copied = true;
	for (; copied && work < LIST_WORK_A_TURN && list->bucket < keys->bucket_count;
		work++, list->bucket++) {
		for (struct map_node *n = map_bucket(keys, list->bucket); copied && n;
			n = map_next_in_bucket(n)) {
			copied = list_visit(core, op, CONTAINER_OF(n, struct key, node), &work);
		}
	}
	list->work += work;
	return copied;
}

static bool list_walked(const struct core *core, const struct op *op) {
	const struct list_state *list = op_list(op);
	return list->bucket >= table_live(core)->keys.bucket_count || list->names->told > 0;
}

static void list_slice(struct core *core, struct op *op) {
	struct list_state *list = op_list(op);
	const uint32_t before = list->work;
	if (!list_walked(core, op) && !list_walk(core, op)) {
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
	} else if (list_walked(core, op) && list->work - before < LIST_WORK_A_TURN / 2) {
		list_answer(core, op);
	}
}

/* Connections take turns; of one connection, one list is made after the other. */
void local_list_go_on(struct core *core) {
	struct list *n = turn_pieces(core)->list ? list_first(&core->coordinator.lists) : NULL;
	if (n) {
		struct client *client = CONTAINER_OF(n, struct client, listing);
		turn_pieces(core)->list = false;
		list_remove(n);
		list_append(&core->coordinator.lists, n);
		list_slice(core, CONTAINER_OF(list_first(&client->lists), struct op, waiting));
	}
	pending_left(core, PENDING_LISTS, !list_empty(&core->coordinator.lists));
}

static void list_begin_again(struct core *core, struct op *op, struct table *old) {
	struct list_state *list = op_list(op);
	map_walk_end(&old->keys);
	map_walk_begin(&table_live(core)->keys);
	if (list->names->told == 0) {
		drop_names(core, list->names);
		list->bucket = 0;
	}
}

/* Waits are tested again, because the new table may fulfil them. Lists begin anew, unless they have
 * been told in part. */
void local_tables_swapped(struct core *core, struct table *old) {
	for (struct op *op = op_first(core); op; op = op_following(core)) {
		if (op->kind == CORE_WAIT && op->state == OP_LOCAL) {
			wait_moved(core, op);
		} else if (op->kind == CORE_LIST && op_list(op)->names) {
			list_begin_again(core, op, old);
		}
	}
}

static bool local_forget(struct core *core, struct op *op) {
	if (op->kind == CORE_WAIT) {
		local_end(core, op, PAWL_ECANCELED);
	} else {
		op_free(core, op);
	}
	return true;
}

/* Nobody tells this node any more how the key changes. */
static bool wait_epoch(struct core *core, struct op *op) {
	if (core->state == CORE_OUTSIDE && op->state == OP_LOCAL) {
		COUNT(core, removed_while_waiting);
		local_end(core, op, PAWL_ERECOVERING);
	}
	return false;
}

static bool list_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_list(op)->limit = limit_of(r);
	return true;
}

static bool wait_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_wait(op)->for_free = r->for_free;
	return true;
}

const struct operation list_operation = { .begin = local_list, .make = list_make,
	.timer = local_timer,
	.leave = local_list_leave, .forget = local_forget, .release = local_list_free };
const struct operation wait_operation = { .begin = local_wait, .make = wait_make,
	.timer = local_timer,
	.epoch = wait_epoch, .forget = local_forget };
