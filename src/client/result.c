#include "result.h"

#include <string.h>

#include "check.h"
#include "order.h"
#include "tree.h"
#include "unpack.h"

#define RESULT_BYTES_MAX ((size_t)256 << 20) /* a tree is larger than the largest response by the size of its nodes */

static const struct pawl_bytes no_bytes = { "", 0 };
static const struct pawl_entry no_entry = { .key = { "", 0 }, .owner = { "", 0 }, .value = { "", 0 }, .value_seq = { "", 0 } };

static void result_clear(struct pawl_result *r, enum pawl_method method) {
	*r = (struct pawl_result){ .method = method, .message = "", .endpoint = "", .field = "", .value_seq = no_bytes,
		.entry = no_entry, .node = "", .role = "", .version = "", .warning = "", .age_ms = -1 };
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
	return result->valid_ms > 0 ? instant_left_short(env_now(&box->env), box->valid_until) / SPAN_MS : 0;
}

void result_fail(struct result_box *box, int error, const char *why) {
	enum pawl_method method = box->result.method;
	arena_reset(&box->arena);
	result_clear(&box->result, method);
	box->result.error = error;
	box->result.message = pawl_error_message(error);
	if (why) {
		(void)tree_text(&box->arena, slice_str(why), &box->result.message); /* else the error's own text stands */
	}
}

static struct pawl_id id_of(struct id128 from) {
	struct pawl_id id;
	memcpy(id.bytes, from.b, sizeof(id.bytes));
	return id;
}

static int copy_seq(struct arena *arena, struct ballot ballot, struct pawl_bytes *out) {
	uint8_t bytes[ORDER_SEQ_BYTES];
	order_seq_write(ballot, bytes);
	return tree_copy(arena, slice_of(bytes, sizeof(bytes)), out);
}

static int copy_entry(struct arena *arena, const struct client_entry *from, struct pawl_entry *to) {
	int error = tree_copy(arena, from->key, &to->key);
	if (!error) {
		error = tree_copy(arena, from->owner, &to->owner);
	}
	if (!error) {
		error = tree_copy(arena, from->value, &to->value);
	}
	if (!error && (from->present & CLIENT_ENTRY_VALUE_SEQ)) {
		error = copy_seq(arena, from->value_seq, &to->value_seq);
	}
	to->token = from->token;
	to->remaining_ms = from->remaining / SPAN_MS;
	to->lock_id = id_of(from->lock_id);
	return error;
}

static int copy_entries(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	struct pawl_entry *items = arena_take(arena, r->count * sizeof(*items), _Alignof(struct pawl_entry));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < r->count; i++) {
		items[i] = no_entry;
		items[i].held = true;
		int error = copy_entry(arena, &r->entries[i], &items[i]);
		if (error) {
			return error;
		}
	}
	to->entries = items;
	to->entry_count = r->count;
	return 0;
}

static int copy_waiters(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	struct pawl_waiter *items = arena_take(arena, r->count * sizeof(*items), _Alignof(struct pawl_waiter));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct client_waiter *from = &r->waiters[i];
		items[i] = (struct pawl_waiter){ .node = "", .since_ms = from->since / SPAN_MS };
		if (from->has_lock_id) {
			items[i].lock_id = id_of(from->lock_id);
		}
		int error = tree_copy(arena, from->owner, &items[i].owner);
		error = error ? error : tree_text(arena, from->node, &items[i].node);
		if (error) {
			return error;
		}
	}
	to->waiters = items;
	to->waiter_count = r->count;
	return 0;
}

static int copy_extended(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	struct pawl_extended *items = arena_take(arena, r->count * sizeof(*items), _Alignof(struct pawl_extended));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < r->count; i++) {
		const struct client_extended *from = &r->extended[i];
		items[i] = (struct pawl_extended){ .error = from->error, .token = from->token, .acks = from->acks,
			.valid_ms = from->error ? 0 : from->valid / SPAN_MS };
	}
	to->extended = items;
	to->extended_count = r->count;
	return 0;
}

static int copy_lists(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	if (r->entries) {
		return copy_entries(arena, r, to);
	}
	if (r->waiters) {
		return copy_waiters(arena, r, to);
	}
	return r->extended ? copy_extended(arena, r, to) : 0;
}

static int copy_texts(struct arena *arena, const struct client_response *r, struct pawl_result *to) {
	bool status = to->method == PAWL_STATUS && !r->error;
	int error = tree_text(arena, status ? r->status.node : r->node, &to->node);
	error = error ? error : tree_text(arena, status ? r->status.role : r->role, &to->role);
	error = error ? error : tree_text(arena, status ? r->status.version : r->version, &to->version);
	error = error ? error : tree_text(arena, r->message, &to->message);
	error = error ? error : tree_text(arena, r->warning, &to->warning);
	return error ? error : tree_text(arena, r->field, &to->field);
}

static void copy_numbers(const struct client_response *r, struct pawl_result *to) {
	to->lock_id = id_of(r->lock_id);
	to->token = r->token;
	to->valid_ms = r->valid / SPAN_MS;
	to->quorum = r->quorum;
	to->votes = r->votes;
	to->acks = r->acks;
	to->waited_ms = r->waited / SPAN_MS;
	to->released = r->released;
	to->recovering = r->recovering;
	to->more = r->more;
	to->age_ms = r->present & CLIENT_GOT_AGE ? r->age / SPAN_MS : -1;
	to->entry.contested = r->contested;
}

/* A change's missing masters; those whose names are no text are left out. */
static int copy_missing(struct arena *arena, const struct pawl_value *names, struct pawl_result *to) {
	if (!names || names->kind != PAWL_ARRAY || names->count == 0) {
		return 0;
	}
	const char **missing = arena_take(arena, names->count * sizeof(*missing), _Alignof(const char *));
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

/* What became of a change, also of one that was refused, out of the tree. */
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

/* The error or result of [1, msgid, error, result], as a tree. */
static int copy_tree(struct arena *arena, struct slice message, bool failed, struct pawl_result *to) {
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
	return tree_read(arena, &rest, tree);
}

void result_answer(struct result_box *box, const struct client_response *r, struct slice message, const char *endpoint,
	struct instant sent_at) {
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
	error = error ? error : tree_text(arena, slice_str(endpoint), &to->endpoint);
	if (!error && (r->present & CLIENT_GOT_ENTRY)) {
		to->entry.held = true;
		error = copy_entry(arena, &r->entry, &to->entry);
	}
	if (!error && (r->present & CLIENT_GOT_VALUE_SEQ)) {
		error = copy_seq(arena, r->value_seq, &to->value_seq);
	}
	error = error ? error : copy_tree(arena, message, r->error != 0, to);
	error = error ? error : copy_change(arena, to);
	if (error) {
		result_fail(box, error, NULL);
	}
	/* An instant that is over stays over: no later answer makes this result valid again. */
	box->valid_until = instant_add(sent_at, r->valid);
}
