/* result.c: makes results, and fills them from answers. */
#include "result.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "copy.h"
#include "request_copy.h"
#include "value.h"
#include "unpack.h"

/* A tree is larger than the largest response, because its nodes take room. */
#define RESULT_BYTES_MAX ((size_t)256 << 20)

static const struct pawl_bytes no_bytes = { "", 0 };

static void result_clear(struct pawl_result *r, enum pawl_method method) {
	*r = (struct pawl_result){ .method = method, .message = "", .endpoint = "", .field = "",
		.value_seq = no_bytes, .key = no_bytes, .entry = copy_no_entry, .node = "",
		.role = "", .version = "", .warning = "", .age_ms = -1,
		.valid_at_least_ms = -1, .held_at_most_ms = -1 };
}

struct result_box *result_new(const struct env *env, enum pawl_method method) {
	struct result_box *box = alloc_new(env->alloc, sizeof(*box));
	if (!box) {
		return NULL;
	}
	box->env = *env;
	arena_init(&box->arena, env->alloc, RESULT_BYTES_MAX);
	result_clear(&box->result, method);
	return box;
}

void pawl_result_free(struct pawl_result *take_result) {
	if (take_result) {
		struct result_box *box = result_box(take_result);
		const struct allocator *alloc = box->env.alloc;
		arena_done(&box->arena);
		alloc_free(alloc, box, sizeof(*box));
	}
}

int64_t pawl_result_valid_ms(const struct pawl_result *result) {
	const struct result_box *box = (const struct result_box *)(const void *)result;
	return result->valid_ms > 0
		? instant_left_short(env_now(&box->env), box->valid_until) / SPAN_MS
		: 0;
}

void result_fail(struct result_box *box, int error, const char *why) {
	enum pawl_method method = box->result.method;
	arena_reset(&box->arena);
	result_clear(&box->result, method);
	box->result.error = error;
	box->result.message = pawl_error_message(error);
	if (why) {
		/* If this fails, the error's own text stays. */
		(void)value_text(&box->arena, slice_str(why), &box->result.message);
	}
}

static int copy_texts(struct arena *arena, const struct client_response *r,
	struct pawl_result *to) {
	bool status = to->method == PAWL_STATUS && !r->error;
	int error = value_text(arena, status ? r->status.node : r->node, &to->node);
	error = error ? error : value_text(arena, status ? r->status.role : r->role, &to->role);
	error = error ? error
		: value_text(arena, status ? r->status.version : r->version, &to->version);
	error = error ? error : value_text(arena, r->message, &to->message);
	error = error ? error : value_text(arena, r->warning, &to->warning);
	return error ? error : value_text(arena, r->field, &to->field);
}

static void copy_numbers(const struct client_response *r, struct pawl_result *to) {
	memcpy(to->lock_id.bytes, r->lock_id.b, sizeof(to->lock_id.bytes));
	to->token = r->token;
	to->valid_ms = r->valid / SPAN_MS;
	to->quorum = r->quorum;
	to->votes = r->votes;
	to->acks = r->acks;
	to->waited_ms = r->waited / SPAN_MS;
	to->released = r->released;
	to->reached = r->reached;
	to->mode = copy_mode(r->mode.mode);
	to->recovering = r->recovering;
	to->more = r->more;
	to->age_ms = r->present & CLIENT_RESULT_AGE ? r->age / SPAN_MS : -1;
	if (r->entry.present & CLIENT_ENTRY_WEIGHED) {
		to->valid_at_least_ms = r->entry.at_least / SPAN_MS;
		to->held_at_most_ms = r->entry.at_most / SPAN_MS;
	}
}

/* Copies the names of the masters that a change has not reached. Names that are not text are left
 * out. */
static int copy_missing(struct arena *arena, const struct pawl_value *names,
	struct pawl_result *to) {
	if (!names || names->kind != PAWL_ARRAY || names->count == 0) {
		return 0;
	}
	const char **missing = arena_take(arena, names->count * sizeof(*missing),
		_Alignof(const char *));
	if (!missing) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < names->count; i++) {
		if (names->items[i].kind == PAWL_TEXT || names->items[i].kind == PAWL_BYTES) {
			missing[to->missing_count++] = names->items[i].bytes.data;
		}
	}
	to->missing = missing;
	return 0;
}

static bool says(const struct pawl_value *map, const char *name) {
	const struct pawl_value *v = pawl_value_get(map, name);
	return v && v->kind == PAWL_BOOL && v->boolean;
}

/* Copies the outcome of a change out of the tree, also if the change was refused. */
static int copy_change(struct arena *arena, struct pawl_result *to) {
	const struct pawl_value *epoch = pawl_value_get(to->tree, "epoch");
	if (to->method != PAWL_CHANGE) {
		return 0;
	}
	to->epoch = epoch && epoch->kind == PAWL_INT ? (uint64_t)epoch->integer : 0;
	to->settled = says(to->tree, "settled");
	to->complete = says(to->tree, "complete");
	return copy_missing(arena, pawl_value_get(to->tree, "missing"), to);
}

/* Reads the error or the result of [1, msgid, error, result] as a tree. */
static int copy_tree(struct arena *arena, struct slice message, bool failed,
	struct pawl_result *to) {
	struct unpack u = unpack_of(message);
	if (unpack_array(&u) != 4) {
		return PAWL_EPROTOCOL;
	}
	unpack_skip(&u);
	unpack_skip(&u);
	if (!failed) {
		unpack_skip(&u);
	}
	struct pawl_value *tree = arena_take(arena, sizeof(*tree), _Alignof(struct pawl_value));
	if (!tree || u.bad) {
		return tree ? PAWL_EPROTOCOL : PAWL_ENOMEM;
	}
	struct slice rest = slice_of(u.p, unpack_left(&u));
	to->tree = tree;
	return value_read(arena, &rest, tree);
}

static span_ns lease_most(const struct client_response *r) {
	if (r->error) {
		return r->error == PAWL_ETOOLONG && (r->present & CLIENT_RESULT_LIMIT) ? r->limit
			: 0;
	}
	span_ns most = 0;
	for (size_t i = 0; r->extended && i < r->count && most == 0; i++) {
		most = r->extended[i].error == PAWL_ETOOLONG ? r->extended[i].limit : 0;
	}
	return most;
}

void result_answer(struct result_box *box, const struct client_response *r, struct slice message,
	const char *endpoint, struct instant sent_at) {
	struct pawl_result *to = &box->result;
	struct arena *arena = &box->arena;
	to->error = r->error;
	to->message = pawl_error_message(r->error);
	if (!r->error) {
		to->message = "";
	}
	copy_numbers(r, to);
	int error = copy_texts(arena, r, to);
	error = error ? error : copy_lists(arena, r, to);
	error = error ? error : copy_slots(arena, r->mode.numbers, &to->slots, &to->slot_count);
	error = error ? error : value_text(arena, slice_str(endpoint), &to->endpoint);
	if (!error && (r->present & CLIENT_RESULT_ENTRY)) {
		error = copy_entry(arena, &r->entry, &to->entry);
		to->entry.holders = r->holder_count > 1 ? (uint32_t)r->holder_count
			: to->entry.holders;
	}
	to->entry.contested = r->contested;
	if (!error && (r->present & CLIENT_RESULT_VALUE_SEQ)) {
		error = copy_seq(arena, r->value_seq, &to->value_seq);
	}
	error = error ? error : copy_tree(arena, message, r->error != 0, to);
	if (!error && (r->present & CLIENT_RESULT_KEY)) {
		error = value_bytes(arena, r->key, &to->key);
	}
	error = error ? error : copy_change(arena, to);
	if (error) {
		result_fail(box, error, NULL);
	}
	box->lease_most = lease_most(r);
	box->watch = r->watch;
	position_write(r->position, box->position);
	/* Once this instant has passed, it stays past: no later answer makes this result valid
	 * again. */
	box->valid_until = instant_add(sent_at, r->valid);
}

const char *result_sentence(const struct pawl_result *result, char *room, size_t size) {
	if (!*result->field) {
		return result->message;
	}
	/* The sentence is about this parameter, so the name comes first. */
	bool first = result->error == PAWL_EBADREQUEST || result->error == PAWL_ETOOLARGE;
	snprintf(room, size, first ? "%s %s" : "%s (%s)", first ? result->field : result->message,
		first ? result->message : result->field);
	return room;
}
