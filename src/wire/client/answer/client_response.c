/* client_response.c: the client's side of responses, which decodes them. It skips what a newer
 * server adds, and insists on what an answer needs. */
#include "client_response.h"
#include "client_status.h"

#define FIELD(member, type, bit) { #member, type, offsetof(struct client_response, member), bit }
#define FIELD_NAMED(name, member, type, bit) \
	{ name, type, offsetof(struct client_response, member), bit }
/* The fields of all results and errors. Each of them means the same everywhere. */
static const struct client_field response_fields[] = {
	FIELD(quorum, FIELD_U32, CLIENT_RESULT_QUORUM),
	FIELD(votes, FIELD_U32, CLIENT_RESULT_VOTES),
	FIELD(acks, FIELD_U32, CLIENT_RESULT_ACKS),
	FIELD_NAMED("valid_ms", valid, FIELD_MS, CLIENT_RESULT_VALID),
	FIELD_NAMED("waited_ms", waited, FIELD_MS, CLIENT_RESULT_WAITED),
	FIELD_NAMED("age_ms", age, FIELD_MS, CLIENT_RESULT_AGE),
	FIELD_NAMED("limit_ms", limit, FIELD_MS, CLIENT_RESULT_LIMIT),
	FIELD_NAMED("retry_after_ms", retry_after, FIELD_MS, CLIENT_RESULT_RETRY_AFTER),
	FIELD(released, FIELD_BOOL, CLIENT_RESULT_RELEASED),
	FIELD_NAMED("broken", released, FIELD_BOOL, CLIENT_RESULT_RELEASED),
	FIELD_NAMED("transferred", released, FIELD_BOOL, CLIENT_RESULT_RELEASED),
	FIELD(reached, FIELD_U32, CLIENT_RESULT_REACHED),
	FIELD(watch, FIELD_U64, CLIENT_RESULT_WATCH),
	FIELD(position, FIELD_POSITION, CLIENT_RESULT_POSITION),
	FIELD_NAMED("key", key, FIELD_BYTES, CLIENT_RESULT_KEY),
	FIELD(held, FIELD_BOOL, CLIENT_RESULT_HELD),
	FIELD(contested, FIELD_BOOL, 0),
	FIELD(recovering, FIELD_BOOL, 0),
	FIELD(more, FIELD_BOOL, CLIENT_RESULT_MORE),
	FIELD(node, FIELD_TEXT, CLIENT_RESULT_NODE),
	FIELD(role, FIELD_TEXT, CLIENT_RESULT_ROLE),
	FIELD(epoch, FIELD_U64, CLIENT_RESULT_EPOCH),
	FIELD(settled, FIELD_BOOL, 0),
	FIELD(complete, FIELD_BOOL, 0),
	FIELD(version, FIELD_TEXT, CLIENT_RESULT_VERSION),
	FIELD(warning, FIELD_TEXT, CLIENT_RESULT_WARNING),
	FIELD(message, FIELD_TEXT, 0),
	FIELD(field, FIELD_TEXT, 0),
};
/* These fields are about the caller's own lock, except in reads and errors, where they are about
 * the holder. */
static const struct client_field response_lock_fields[] = {
	FIELD(lock_id, FIELD_ID, CLIENT_RESULT_LOCK_ID),
	FIELD(token, FIELD_U64, CLIENT_RESULT_TOKEN),
	FIELD(value_seq, FIELD_BALLOT, CLIENT_RESULT_VALUE_SEQ),
	FIELD_NAMED("mode", mode.mode, FIELD_MODE, CLIENT_RESULT_MODE),
	FIELD_NAMED("permits", mode.permits, FIELD_U32, 0),
	FIELD_NAMED("of", mode.of, FIELD_U32, 0),
	FIELD_NAMED("slots", mode.numbers, FIELD_NUMBERS, CLIENT_RESULT_NUMBERS),
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void response_take_pair(struct response_reader *r, bool error);

static void response_take_map(struct response_reader *r, bool error) {
	uint32_t pairs = unpack_map(&r->u);
	for (uint32_t i = 0; i < pairs && !r->u.bad; i++) {
		response_take_pair(r, error);
	}
}

/* Reads names of masters. Those beyond the largest number of masters are left out. */
static void response_take_names(struct unpack *u, struct slice names[CLIENT_SILENT_MAX],
	uint32_t *out_count) {
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

/* Reads a field that only errors have. Returns false if the name is another one. */
static bool response_take_error(struct response_reader *r, struct slice name) {
	if (slice_equal(name, slice_str("code"))) {
		r->out->error = client_response_take_code(&r->u);
	} else if (slice_equal(name, slice_str("silent"))) {
		response_take_names(&r->u, r->out->silent, &r->out->silent_count);
	} else if (slice_equal(name, slice_str("holder"))) {
		client_response_take_entry(&r->u, &r->out->entry);
	} else {
		return false;
	}
	return true;
}

static void response_take_field(struct response_reader *r, struct slice name, bool of_holder) {
	struct client_response *out = r->out;
	struct client_field_set fields = { response_fields, COUNT(response_fields), out,
		&out->present };
	struct client_field_set own = { response_lock_fields, COUNT(response_lock_fields), out,
		&out->present };
	struct client_field_set holder = { client_entry_fields, client_entry_field_count,
		&out->entry, &out->entry.present };
	if (!client_field_take(&fields, name, &r->u) &&
		!client_field_take(of_holder ? &holder : &own, name, &r->u)) {
		unpack_skip(&r->u);
	}
}

static void response_take_pair(struct response_reader *r, bool error) {
	struct slice name = unpack_bytes(&r->u, SIZE_MAX);
	if (client_method_changes(r->method) && slice_equal(name, slice_str("missing"))) {
		response_take_names(&r->u, r->out->missing, &r->out->missing_count);
	} else if (client_response_take_lists(r, name, error)) {
		return;
	} else if (error) {
		if (!response_take_error(r, name)) {
			response_take_field(r, name, true);
		}
	} else if (r->method == CLIENT_STATUS) {
		client_status_take(&r->u, name, &r->out->status);
	} else {
		/* The result of a read has the fields of the holder among its own. */
		response_take_field(r, name,
			r->method == CLIENT_GET || r->method == CLIENT_WAIT ||
				r->method == CLIENT_EXPLAIN || r->method == CLIENT_WATCH);
	}
}

/* Returns the fields without which the answer means nothing. */
static uint32_t response_needs(enum client_method method, uint32_t present) {
	static const uint32_t needs[CLIENT_METHODS] = {
		[CLIENT_ACQUIRE] = CLIENT_RESULT_LOCK_ID | CLIENT_RESULT_TOKEN |
			CLIENT_RESULT_VALID,
		[CLIENT_EXTEND] = CLIENT_RESULT_VALID,
		[CLIENT_UPDATE] = CLIENT_RESULT_VALUE_SEQ,
		[CLIENT_RELEASE] = CLIENT_RESULT_RELEASED,
		[CLIENT_BREAK] = CLIENT_RESULT_RELEASED,
		[CLIENT_GET] = CLIENT_RESULT_HELD,
		[CLIENT_WAIT] = CLIENT_RESULT_HELD,
		[CLIENT_LIST] = CLIENT_RESULT_LIST,
		[CLIENT_WAITERS] = CLIENT_RESULT_LIST,
		[CLIENT_DOWNGRADE] = CLIENT_RESULT_MODE,
		[CLIENT_TRANSFER] = CLIENT_RESULT_RELEASED,
		[CLIENT_ASK_RELEASE] = CLIENT_RESULT_REACHED,
		[CLIENT_EXPLAIN] = CLIENT_RESULT_HELD,
		[CLIENT_WATCH] = CLIENT_RESULT_WATCH | CLIENT_RESULT_POSITION,
		[CLIENT_CLIENTS] = CLIENT_RESULT_MORE | CLIENT_RESULT_NODE,
		[CLIENT_CAN] = CLIENT_RESULT_NODE,
		[CLIENT_TOP] = CLIENT_RESULT_NODE,
	};
	if (present & CLIENT_RESULT_LIST) {
		return method == CLIENT_ACQUIRE ? CLIENT_RESULT_VALID
			: method == CLIENT_EXTEND ? 0
			: needs[method];
	}
	return client_method_changes(method) ? (uint32_t)CLIENT_RESULT_EPOCH : needs[method];
}

static void response_take_outcome(struct response_reader *r) {
	if (unpack_nil(&r->u)) {
		response_take_map(r, false);
		uint32_t needs = response_needs(r->method, r->out->present);
		r->u.bad = r->u.bad || (needs & ~r->out->present) != 0;
	} else {
		response_take_map(r, true);
		/* The result is nil. */
		unpack_skip(&r->u);
		r->u.bad = r->u.bad || r->out->error == 0;
	}
	if (r->out->entry.present) {
		r->out->present |= CLIENT_RESULT_ENTRY;
	}
}

/* Reads the head of a response or a notification. u->bad is set if it is neither. */
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

int client_response_decode(struct client_decoder *d, enum client_method method,
	struct slice message, struct client_response *out) {
	/* The status is large, and seldom asked for. */
	memset(out, 0, offsetof(struct client_response, status));
	if (method == CLIENT_STATUS) {
		memset(&out->status, 0, sizeof out->status);
	}
	struct response_reader r = {
		.u = unpack_of(message),
		.d = d,
		.method = method,
		.out = out
	};
	if (response_take_head(&r.u, &out->msgid) != CLIENT_RESPONSE) {
		return PAWL_EPROTOCOL;
	}
	response_take_outcome(&r);
	if (r.no_memory) {
		return PAWL_ENOMEM;
	}
	return r.u.bad || unpack_left(&r.u) != 0 ? PAWL_EPROTOCOL : 0;
}
