/* client_response_take_lists.c: reads the lists in responses, item by item. */
#include "client_response.h"

#include "client_list.h"

/* The longest code of an error, in bytes. */
#define CODE_BYTES_MAX 63
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Reads a map with fields of two sets. What is in neither set is skipped. */
static void response_take_fields(struct unpack *u, const struct client_field_set *one,
	const struct client_field_set *other) {
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (!client_field_take(one, name, u) && !client_field_take(other, name, u)) {
			unpack_skip(u);
		}
	}
}

void client_response_take_entry(struct unpack *u, void *item) {
	struct client_entry *entry = item;
	static const struct client_field key = { "key", FIELD_BYTES,
		offsetof(struct client_entry, key), 0 };
	struct client_field_set set = { client_entry_fields, client_entry_field_count, entry,
		&entry->present };
	struct client_field_set keys = { &key, 1, entry, NULL };
	*entry = (struct client_entry){ 0 };
	response_take_fields(u, &set, &keys);
}

static void response_take_waiter(struct unpack *u, void *item) {
	struct client_waiter *waiter = item;
	static const struct client_field fields[] = {
		{ "key", FIELD_BYTES, offsetof(struct client_waiter, key), 0 },
		{ "owner", FIELD_BYTES, offsetof(struct client_waiter, owner), 0 },
		{ "node", FIELD_TEXT, offsetof(struct client_waiter, node), 0 },
		{ "identity", FIELD_BYTES, offsetof(struct client_waiter, identity), 0 },
		{ "since_ms", FIELD_MS, offsetof(struct client_waiter, since), 0 },
		{ "lock_id", FIELD_ID, offsetof(struct client_waiter, lock_id), 0 },
		{ "priority", FIELD_I32, offsetof(struct client_waiter, priority), 0 },
	};
	struct client_field_set set = { fields, COUNT(fields), waiter, NULL };
	uint32_t pairs = unpack_map(u);
	*waiter = (struct client_waiter){ 0 };
	struct client_field_set mode = { client_mode_fields, CLIENT_MODE_FIELD_COUNT, &waiter->mode,
		NULL };
	struct client_field_set label = { client_label_fields, CLIENT_LABEL_FIELD_COUNT,
		&waiter->label, NULL };
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (!client_field_take(&set, name, u) && !client_field_take(&mode, name, u) &&
			!client_field_take(&label, name, u)) {
			unpack_skip(u);
		}
	}
	waiter->has_lock_id = !id128_zero(waiter->lock_id);
}

/* Reads one of several locks that were acquired together. */
static void response_take_acquired(struct unpack *u, void *item) {
	struct client_acquired *acquired = item;
	static const struct client_field fields[] = {
		{ "key", FIELD_BYTES, offsetof(struct client_acquired, key), 1 },
		{ "lock_id", FIELD_ID, offsetof(struct client_acquired, lock_id), 2 },
		{ "token", FIELD_U64, offsetof(struct client_acquired, token), 4 },
	};
	uint32_t present = 0;
	*acquired = (struct client_acquired){ 0 };
	struct client_field_set set = { fields, COUNT(fields), acquired, &present };
	struct client_field_set mode = { client_mode_fields, CLIENT_MODE_FIELD_COUNT,
		&acquired->mode, NULL };
	response_take_fields(u, &set, &mode);
	u->bad = u->bad || (present & 6) != 6;
}

int client_response_take_code(struct unpack *u) {
	char code[CODE_BYTES_MAX + 1] = { 0 };
	struct slice s = unpack_bytes(u, SIZE_MAX);
	if (s.size == 0 || s.size > CODE_BYTES_MAX) {
		/* A later version may have such a code. */
		return PAWL_EPROTOCOL;
	}
	memcpy(code, s.data, s.size);
	int error = pawl_error_from_code(code);
	return error ? error : PAWL_EPROTOCOL;
}

/* Reads one of the locks of an extension. It has the fields of a result, or an error, whose map is
 * read by the same table. */
static void response_take_extended_map(struct unpack *u, struct client_extended *item,
	unsigned *got) {
	static const struct client_field fields[] = {
		{ "lock_id", FIELD_ID, offsetof(struct client_extended, lock_id), 0 },
		{ "valid_ms", FIELD_MS, offsetof(struct client_extended, valid), 1 },
		{ "token", FIELD_U64, offsetof(struct client_extended, token), 0 },
		{ "quorum", FIELD_U32, offsetof(struct client_extended, quorum), 0 },
		{ "acks", FIELD_U32, offsetof(struct client_extended, acks), 0 },
		{ "votes", FIELD_U32, offsetof(struct client_extended, votes), 0 },
		{ "limit_ms", FIELD_MS, offsetof(struct client_extended, limit), 0 },
	};
	struct client_field_set set = { fields, COUNT(fields), item, got };
	struct client_field_set mode = { client_mode_fields, CLIENT_MODE_FIELD_COUNT, &item->mode,
		NULL };
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (slice_equal(name, slice_str("code"))) {
			item->error = client_response_take_code(u);
		} else if (slice_equal(name, slice_str("error")) && !item->error &&
			unpack_peek(u) == UNPACK_MAP) {
			/* This stands until the code is known. It also keeps an error from having
			 * another one inside. */
			item->error = PAWL_EPROTOCOL;
			response_take_extended_map(u, item, got);
		} else if (!client_field_take(&set, name, u) &&
			!client_field_take(&mode, name, u)) {
			unpack_skip(u);
		}
	}
}

static void response_take_extended(struct unpack *u, void *item) {
	struct client_extended *extended = item;
	unsigned got = 0;
	*extended = (struct client_extended){ 0 };
	response_take_extended_map(u, extended, &got);
	u->bad = u->bad || (!extended->error && !got);
}

/* ---- which list where ---- */

/* A list in a response. */
struct response_list {
	/* The key in the map of the result. */
	const char *name;
	size_t item_bytes;
	void (*take)(struct unpack *u, void *item);
};

/* The list of each method's result; those without one have no name. */
static const struct response_list response_lists[CLIENT_METHODS] = {
	[CLIENT_LIST] = { "keys", sizeof(struct client_entry), client_response_take_entry },
	[CLIENT_WAITERS] = { "waiters", sizeof(struct client_waiter), response_take_waiter },
	[CLIENT_EXTEND] = { "locks", sizeof(struct client_extended), response_take_extended },
	[CLIENT_ACQUIRE] = { "locks", sizeof(struct client_acquired), response_take_acquired },
};

/* Reads a list behind the `count` items that are in the room. Returns how many there are then. */
static size_t response_take_items(struct response_reader *r, struct client_room *room, size_t count,
	const struct response_list *list) {
	uint32_t more = unpack_array(&r->u);
	for (uint32_t i = 0; i < more && !r->u.bad; i++) {
		void *item = client_list_room(r->d->alloc, room, count + i, list->item_bytes);
		if (!item) {
			r->no_memory = r->u.bad = true;
			return count;
		}
		list->take(&r->u, item);
	}
	return count + more;
}

static void response_take_list(struct response_reader *r, const struct response_list *list) {
	struct client_room *room = &r->d->rooms[CLIENT_LIST_FIRST];
	r->out->count = response_take_items(r, room, 0, list);
	r->out->entries = r->method == CLIENT_LIST ? room->items : NULL;
	r->out->waiters = r->method == CLIENT_WAITERS ? room->items : NULL;
	r->out->extended = r->method == CLIENT_EXTEND ? room->items : NULL;
	r->out->acquired = r->method == CLIENT_ACQUIRE ? room->items : NULL;
	r->out->present |= CLIENT_RESULT_LIST;
}

static void response_take_holders(struct response_reader *r) {
	static const struct response_list holders = { "holders", sizeof(struct client_entry),
		client_response_take_entry };
	r->out->holder_count =
		response_take_items(r, &r->d->rooms[CLIENT_LIST_SECOND], 0, &holders);
	r->out->holders = r->d->rooms[CLIENT_LIST_SECOND].items;
}

/* ---- what each master reports ---- */

/* Reads the promise of a master, or nil if it has not given one. */
static void response_take_promise(struct unpack *u, struct client_report *report) {
	static const struct client_field fields[] = {
		{ "left_ms", FIELD_MS, offsetof(struct client_report, promise_left), 0 },
		{ "lock_id", FIELD_ID, offsetof(struct client_report, promise_lock_id), 0 },
	};
	struct client_field_set set = { fields, COUNT(fields), report, NULL }, none = { 0 };
	if (unpack_nil(u)) {
		return;
	}
	report->promised = true;
	response_take_fields(u, &set, &none);
}

static void response_take_report(struct response_reader *r, struct client_report *report) {
	static const struct response_list records = { "records", sizeof(struct client_entry),
		client_response_take_entry };
	static const struct client_field fields[] = {
		{ "node", FIELD_TEXT, offsetof(struct client_report, node), 0 },
		{ "state", FIELD_TEXT, offsetof(struct client_report, state), 0 },
		{ "home", FIELD_BOOL, offsetof(struct client_report, home), 0 },
		{ "waiting", FIELD_U32, offsetof(struct client_report, waiting), 0 },
		{ "kept", FIELD_U32, offsetof(struct client_report, parked), 0 },
		{ "more", FIELD_BOOL, offsetof(struct client_report, more), 0 },
	};
	struct client_field_set set = { fields, COUNT(fields), report, NULL };
	*report = (struct client_report){ .first = (uint32_t)r->out->count };
	uint32_t pairs = unpack_map(&r->u);
	for (uint32_t i = 0; i < pairs && !r->u.bad; i++) {
		struct slice name = unpack_bytes(&r->u, SIZE_MAX);
		if (slice_equal(name, slice_str(records.name))) {
			r->out->count = response_take_items(r, &r->d->rooms[CLIENT_LIST_FIRST],
				r->out->count, &records);
		} else if (slice_equal(name, slice_str("promise"))) {
			response_take_promise(&r->u, report);
		} else if (!client_field_take(&set, name, &r->u)) {
			unpack_skip(&r->u);
		}
	}
	report->count = (uint32_t)r->out->count - report->first;
}

/* Masters beyond the largest number of masters are left out. */
static void response_take_masters(struct response_reader *r) {
	uint32_t count = unpack_array(&r->u);
	r->out->master_count = 0;
	r->out->count = 0;
	for (uint32_t i = 0; i < count && !r->u.bad; i++) {
		if (i < MASTERS_MAX) {
			response_take_report(r, &r->out->masters[i]);
			r->out->master_count++;
		} else {
			unpack_skip(&r->u);
		}
	}
	r->out->entries = r->d->rooms[CLIENT_LIST_FIRST].items;
}

bool client_response_take_lists(struct response_reader *r, struct slice name, bool error) {
	const struct response_list *list = &response_lists[r->method];
	if (!error && list->name && slice_equal(name, slice_str(list->name))) {
		response_take_list(r, list);
	} else if (slice_equal(name, slice_str("holders"))) {
		response_take_holders(r);
	} else if (!error && r->method == CLIENT_EXPLAIN &&
		slice_equal(name, slice_str("masters"))) {
		response_take_masters(r);
	} else {
		return false;
	}
	return true;
}
