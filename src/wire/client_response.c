/* Responses, as the client reads them: what a newer server adds is skipped, what an answer needs must be there. */
#include "client_list.h"
#include "client_status.h"

#include "check.h"

#define CODE_BYTES_MAX 63

#define FACT(member, type, bit) { #member, type, offsetof(struct client_response, member), bit }
#define FACT_NAMED(name, member, type, bit) { name, type, offsetof(struct client_response, member), bit }
/* Of any result or error; `held` and the like have one meaning wherever they stand. */
static const struct client_fact response_facts[] = {
	FACT(quorum, FACT_U32, CLIENT_GOT_QUORUM),
	FACT(votes, FACT_U32, CLIENT_GOT_VOTES),
	FACT(acks, FACT_U32, CLIENT_GOT_ACKS),
	FACT_NAMED("valid_ms", valid, FACT_MS, CLIENT_GOT_VALID),
	FACT_NAMED("waited_ms", waited, FACT_MS, CLIENT_GOT_WAITED),
	FACT_NAMED("age_ms", age, FACT_MS, CLIENT_GOT_AGE),
	FACT_NAMED("limit_ms", limit, FACT_MS, CLIENT_GOT_LIMIT),
	FACT(released, FACT_BOOL, CLIENT_GOT_RELEASED),
	FACT_NAMED("broken", released, FACT_BOOL, CLIENT_GOT_RELEASED),
	FACT(held, FACT_BOOL, CLIENT_GOT_HELD),
	FACT(contested, FACT_BOOL, 0),
	FACT(recovering, FACT_BOOL, 0),
	FACT(more, FACT_BOOL, CLIENT_GOT_MORE),
	FACT(node, FACT_TEXT, CLIENT_GOT_NODE),
	FACT(role, FACT_TEXT, CLIENT_GOT_ROLE),
	FACT(epoch, FACT_U64, CLIENT_GOT_EPOCH),
	FACT(settled, FACT_BOOL, 0),
	FACT(complete, FACT_BOOL, 0),
	FACT(version, FACT_TEXT, CLIENT_GOT_VERSION),
	FACT(warning, FACT_TEXT, CLIENT_GOT_WARNING),
	FACT(message, FACT_TEXT, 0),
	FACT(field, FACT_TEXT, 0),
};
/* These name the caller's own lock, except in reads and errors, where they belong to the holder. */
static const struct client_fact response_lock_facts[] = {
	FACT(lock_id, FACT_ID, CLIENT_GOT_LOCK_ID),
	FACT(token, FACT_U64, CLIENT_GOT_TOKEN),
	FACT(value_seq, FACT_BALLOT, CLIENT_GOT_VALUE_SEQ),
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct response_reader {
	struct unpack u;
	struct client_decoder *d;
	enum client_method method;
	struct client_response *out;
	bool no_memory;
};

static void response_take_pair(struct response_reader *r, bool error);

static void response_take_map(struct response_reader *r, bool error) {
	uint32_t pairs = unpack_map(&r->u);
	for (uint32_t i = 0; i < pairs && !r->u.bad; i++) {
		response_take_pair(r, error);
	}
}

/* ---- entries ---- */

static void response_take_entry(struct unpack *u, void *item) {
	struct client_entry *entry = item;
	static const struct client_fact key = { "key", FACT_BYTES, offsetof(struct client_entry, key), 0 };
	struct client_fact_set set = { client_entry_facts, client_entry_fact_count, entry, &entry->present };
	struct client_fact_set keys = { &key, 1, entry, NULL };
	*entry = (struct client_entry){ 0 };
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (!client_fact_take(&set, name, u) && !client_fact_take(&keys, name, u)) {
			unpack_skip(u);
		}
	}
}

static void response_take_waiter(struct unpack *u, void *item) {
	struct client_waiter *waiter = item;
	static const struct client_fact facts[] = {
		{ "owner", FACT_BYTES, offsetof(struct client_waiter, owner), 0 },
		{ "node", FACT_TEXT, offsetof(struct client_waiter, node), 0 },
		{ "since_ms", FACT_MS, offsetof(struct client_waiter, since), 0 },
		{ "lock_id", FACT_ID, offsetof(struct client_waiter, lock_id), 0 },
	};
	struct client_fact_set set = { facts, COUNT(facts), waiter, NULL };
	*waiter = (struct client_waiter){ 0 };
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		if (!client_fact_take(&set, unpack_bytes(u, SIZE_MAX), u)) {
			unpack_skip(u);
		}
	}
	waiter->has_lock_id = !id128_zero(waiter->lock_id);
}

static int response_take_code(struct unpack *u) {
	char code[CODE_BYTES_MAX + 1] = { 0 };
	struct slice s = unpack_bytes(u, SIZE_MAX);
	if (s.size == 0 || s.size > CODE_BYTES_MAX) {
		return PAWL_EPROTOCOL; /* a later version's */
	}
	memcpy(code, s.data, s.size);
	int error = pawl_error_from_code(code);
	return error ? error : PAWL_EPROTOCOL;
}

/* One of an extension's locks: facts of its own, or an error with the same names. */
static void response_take_extended_map(struct unpack *u, struct client_extended *item, unsigned *got) {
	static const struct client_fact facts[] = {
		{ "lock_id", FACT_ID, offsetof(struct client_extended, lock_id), 0 },
		{ "valid_ms", FACT_MS, offsetof(struct client_extended, valid), 1 },
		{ "token", FACT_U64, offsetof(struct client_extended, token), 0 },
		{ "quorum", FACT_U32, offsetof(struct client_extended, quorum), 0 },
		{ "acks", FACT_U32, offsetof(struct client_extended, acks), 0 },
		{ "votes", FACT_U32, offsetof(struct client_extended, votes), 0 },
		{ "limit_ms", FACT_MS, offsetof(struct client_extended, limit), 0 },
	};
	struct client_fact_set set = { facts, COUNT(facts), item, got };
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (slice_equal(name, slice_str("code"))) {
			item->error = response_take_code(u);
		} else if (slice_equal(name, slice_str("error")) && !item->error && unpack_peek(u) == UNPACK_MAP) {
			item->error = PAWL_EPROTOCOL; /* until its code is known; also keeps errors from nesting */
			response_take_extended_map(u, item, got);
		} else if (!client_fact_take(&set, name, u)) {
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

/* ---- lists ---- */

struct response_list {
	const char *name;
	size_t item_bytes;
	void (*take)(struct unpack *u, void *item);
};

/* The list of a method's result; NULL: it has none. */
static const struct response_list *response_list_of(enum client_method method) {
	static const struct response_list keys = { "keys", sizeof(struct client_entry), response_take_entry };
	static const struct response_list waiters = { "waiters", sizeof(struct client_waiter), response_take_waiter };
	static const struct response_list locks = { "locks", sizeof(struct client_extended), response_take_extended };
	if (method == CLIENT_LIST) {
		return &keys;
	}
	if (method == CLIENT_WAITERS) {
		return &waiters;
	}
	return method == CLIENT_EXTEND ? &locks : NULL;
}

static void response_take_list(struct response_reader *r, const struct response_list *list) {
	uint32_t count = unpack_array(&r->u);
	for (uint32_t i = 0; i < count && !r->u.bad; i++) {
		void *item = client_list_room(r->d->alloc, &r->d->rooms[CLIENT_LIST_FIRST], i, list->item_bytes);
		if (!item) {
			r->no_memory = r->u.bad = true;
			return;
		}
		list->take(&r->u, item);
	}
	r->out->count = count;
	r->out->entries = r->method == CLIENT_LIST ? r->d->rooms[CLIENT_LIST_FIRST].items : NULL;
	r->out->waiters = r->method == CLIENT_WAITERS ? r->d->rooms[CLIENT_LIST_FIRST].items : NULL;
	r->out->extended = r->method == CLIENT_EXTEND ? r->d->rooms[CLIENT_LIST_FIRST].items : NULL;
	r->out->present |= CLIENT_GOT_LIST;
}

/* Names of masters; more than a cluster may have are left out. */
static void response_take_names(struct unpack *u, struct slice names[CLIENT_SILENT_MAX], uint32_t *out_count) {
	uint32_t count = unpack_array(u);
	*out_count = 0;
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (*out_count < CLIENT_SILENT_MAX) {
			names[(*out_count)++] = name;
		}
	}
}

/* ---- the whole ---- */

/* What only errors have; false: it is something else. */
static bool response_take_error(struct response_reader *r, struct slice name) {
	if (slice_equal(name, slice_str("code"))) {
		r->out->error = response_take_code(&r->u);
	} else if (slice_equal(name, slice_str("silent"))) {
		response_take_names(&r->u, r->out->silent, &r->out->silent_count);
	} else if (slice_equal(name, slice_str("holder"))) {
		response_take_entry(&r->u, &r->out->entry);
	} else {
		return false;
	}
	return true;
}

static void response_take_fact(struct response_reader *r, struct slice name, bool of_holder) {
	struct client_response *out = r->out;
	struct client_fact_set facts = { response_facts, COUNT(response_facts), out, &out->present };
	struct client_fact_set own = { response_lock_facts, COUNT(response_lock_facts), out, &out->present };
	struct client_fact_set holder = { client_entry_facts, client_entry_fact_count, &out->entry, &out->entry.present };
	if (!client_fact_take(&facts, name, &r->u) && !client_fact_take(of_holder ? &holder : &own, name, &r->u)) {
		unpack_skip(&r->u);
	}
}

static void response_take_pair(struct response_reader *r, bool error) {
	struct slice name = unpack_bytes(&r->u, SIZE_MAX);
	const struct response_list *list = response_list_of(r->method);
	if (client_method_changes(r->method) && slice_equal(name, slice_str("missing"))) {
		response_take_names(&r->u, r->out->missing, &r->out->missing_count);
	} else if (error) {
		if (!response_take_error(r, name)) {
			response_take_fact(r, name, true);
		}
	} else if (r->method == CLIENT_STATUS) {
		client_status_take(&r->u, name, &r->out->status);
	} else if (list && slice_equal(name, slice_str(list->name))) {
		response_take_list(r, list);
	} else {
		response_take_fact(r, name, r->method == CLIENT_GET || r->method == CLIENT_WAIT);
	}
}

/* Without these the answer means nothing. */
static uint32_t response_needs(enum client_method method, uint32_t present) {
	static const uint32_t needs[CLIENT_METHODS] = {
		[CLIENT_ACQUIRE] = CLIENT_GOT_LOCK_ID | CLIENT_GOT_TOKEN | CLIENT_GOT_VALID,
		[CLIENT_EXTEND] = CLIENT_GOT_VALID,
		[CLIENT_UPDATE] = CLIENT_GOT_VALUE_SEQ,
		[CLIENT_RELEASE] = CLIENT_GOT_RELEASED,
		[CLIENT_BREAK] = CLIENT_GOT_RELEASED,
		[CLIENT_GET] = CLIENT_GOT_HELD,
		[CLIENT_WAIT] = CLIENT_GOT_HELD,
		[CLIENT_LIST] = CLIENT_GOT_LIST,
		[CLIENT_WAITERS] = CLIENT_GOT_LIST,
	};
	if (present & CLIENT_GOT_LIST) {
		return method == CLIENT_ACQUIRE ? CLIENT_GOT_VALID : method == CLIENT_EXTEND ? 0 : needs[method];
	}
	return client_method_changes(method) ? (uint32_t)CLIENT_GOT_EPOCH : needs[method];
}

static void response_take_outcome(struct response_reader *r) {
	if (unpack_peek(&r->u) == UNPACK_NIL) {
		unpack_skip(&r->u);
		response_take_map(r, false);
		uint32_t needs = response_needs(r->method, r->out->present);
		r->u.bad = r->u.bad || (needs & ~r->out->present) != 0;
	} else {
		response_take_map(r, true);
		unpack_skip(&r->u); /* the result, nil */
		r->u.bad = r->u.bad || r->out->error == 0;
	}
	if (r->out->entry.present) {
		r->out->present |= CLIENT_GOT_ENTRY;
	}
}

/* The head of a response or notification; bad if it is neither. */
static enum client_kind response_take_head(struct unpack *u, uint32_t *out_msgid) {
	uint32_t parts = unpack_array(u);
	uint64_t type = unpack_uint(u, 2);
	*out_msgid = 0;
	if (type == 2) {
		u->bad = u->bad || parts != 3;
		return CLIENT_NOTIFICATION;
	}
	u->bad = u->bad || type != 1 || parts != 4;
	*out_msgid = (uint32_t)unpack_uint(u, UINT32_MAX);
	return CLIENT_RESPONSE;
}

int client_response_peek(struct slice message, enum client_kind *out_kind, uint32_t *out_msgid) {
	struct unpack u = unpack_of(message);
	uint32_t msgid;
	enum client_kind kind = response_take_head(&u, &msgid);
	if (u.bad) {
		return PAWL_EPROTOCOL;
	}
	*out_kind = kind;
	*out_msgid = msgid;
	return 0;
}

int client_response_decode(struct client_decoder *d, enum client_method method, struct slice message,
	struct client_response *out) {
	memset(out, 0, offsetof(struct client_response, status)); /* the status is large, and seldom asked for */
	if (method == CLIENT_STATUS) {
		memset(&out->status, 0, sizeof out->status);
	}
	struct response_reader r = { .u = unpack_of(message), .d = d, .method = method, .out = out };
	if (response_take_head(&r.u, &out->msgid) != CLIENT_RESPONSE) {
		return PAWL_EPROTOCOL;
	}
	response_take_outcome(&r);
	if (r.no_memory) {
		return PAWL_ENOMEM;
	}
	return r.u.bad || unpack_left(&r.u) != 0 ? PAWL_EPROTOCOL : 0;
}
