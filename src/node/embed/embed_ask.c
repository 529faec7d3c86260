/* embed_ask.c: passes the program's requests straight to the core, and copies the answers, which
 * come back from an event of their own.
 */
#include <event2/event.h>

#include "embed.h"
#include "pawl/error.h"
#include "roles.h"
#include "time_source.h"

#define RESULT_BYTES_MAX ((size_t)256 << 20)

/* ---- the request ---- */

static void call_free(struct pawl_node_call *call) {
	list_remove(&call->among);
	arena_done(&call->bytes);
	alloc_free(&call->node->alloc, call, sizeof *call);
}

static int call_new(struct pawl_node *node, struct pawl_node_call **out) {
	if (node->calls.count >= EMBED_CALLS_MAX) {
		return PAWL_EBUSY;
	}
	struct pawl_node_call *call = alloc_new(&node->alloc, sizeof *call);
	if (!call) {
		return PAWL_ENOMEM;
	}
	call->node = node;
	call->id = DRIVER_LOCAL | ++node->last_id;
	arena_init(&call->bytes, &node->alloc, RESULT_BYTES_MAX);
	map_insert_number(&node->calls, &call->by_id, call->id);
	list_append(&node->under_way, &call->among);
	*out = call;
	return 0;
}

static void call_answer(struct pawl_node_call *call, const struct core_reply *reply);

/* Asks the core. After an error, the call is gone. */
static int call_begin(struct pawl_node_call *call, struct core_request *request) {
	const struct core_event event = { .kind = CORE_REQUEST, .request = request,
		.client = call->id };
	char why[ROLES_WHY_BYTES];
	call->result = (struct pawl_node_result){ .message = "", .field = "", .why = "",
		.value_seq = embed_no_bytes, .entry = embed_no_entry };
	call->asked = time_source_now();
	request->id = request->client = call->id;
	if (request->op == CORE_CHANGE
		&& roles_forbid(node_driver(call->node->node), request->change, why)) {
		const struct core_reply refusal = { .id = call->id, .client = call->id,
			.op = CORE_CHANGE, .error = PAWL_EDENIED, .why = slice_str(why) };
		call_answer(call, &refusal);
		return 0;
	}
	driver_step(node_driver(call->node->node), &event, call->asked);
	if (core_out_unheard(node_driver(call->node->node)->out)) {
		map_remove(&call->node->calls, &call->by_id);
		call_free(call);
		return PAWL_ENOMEM;
	}
	return 0;
}

/* Keeps what is needed of the request after the step. After an error, the call is gone. */
static int call_keep(struct pawl_node_call *call, const struct core_request *request) {
	call->lock_id = request->lock_id;
	if (arena_copy(&call->bytes, request->key, &call->key) != 0) {
		map_remove(&call->node->calls, &call->by_id);
		call_free(call);
		return PAWL_ENOMEM;
	}
	return 0;
}

int pawl_node_ask(struct pawl_node *node, const struct pawl_request *request,
	pawl_node_done_fn *done, void *arg, struct pawl_node_call **out_call) {
	struct core_request core;
	struct embed_request room;
	struct pawl_node_call *call;
	if (!node || !request || !node->started || node->doomed) {
		return PAWL_EINVAL;
	}
	int error = embed_request_read(node, request, &room, &core);
	error = error ? error : call_new(node, &call);
	if (error) {
		return error;
	}
	call->done = done;
	call->arg = arg;
	call->rolls_back = core.op == CORE_ACQUIRE;
	error = call->rolls_back ? call_keep(call, &core) : 0;
	if (error) {
		return error;
	}
	error = call_begin(call, &core);
	if (error) {
		return error;
	}
	call->result.method = request->method;
	if (out_call) {
		*out_call = call;
	}
	return 0;
}

/* ---- locks that end with the process ---- */

int pawl_node_release_on_disconnect(struct pawl_node *node, struct pawl_bytes key,
	const struct pawl_id *lock_id, uint32_t grace_ms, pawl_node_done_fn *ended, void *arg,
	struct pawl_node_call **out_call) {
	struct pawl_node_call *call;
	if (!node || !node->started || node->doomed || !lock_id || !key.data || key.size == 0
		|| key.size > KEY_MAX) {
		return PAWL_EINVAL;
	}
	struct core_request request = { .op = CORE_BINDING, .key = slice_of(key.data, key.size),
		.wait = (span_ns)grace_ms * SPAN_MS, .identity = slice_str(node->identity),
		.admin = true };
	memcpy(request.lock_id.b, lock_id->bytes, sizeof request.lock_id.b);
	int error = call_new(node, &call);
	error = error ? error : call_keep(call, &request);
	if (error) {
		return error;
	}
	call->done = ended;
	call->arg = arg;
	error = call_begin(call, &request);
	if (error) {
		return error;
	}
	if (out_call) {
		*out_call = call;
	}
	return 0;
}

int64_t pawl_node_bond_left_ms(const struct pawl_node_call *binding) {
	struct instant end = core_binding_end(node_driver(binding->node->node)->core, binding->key,
		binding->lock_id);
	return end.boot == INT64_MAX
		? INT64_MAX : instant_left_short(time_source_now(), end) / SPAN_MS;
}

/* ---- the answer ---- */

static const char *result_node_name(const struct core *core, struct id128 id) {
	for (uint32_t i = 0; i < core_peer_count(core); i++) {
		if (id128_equal(core_peer(core, i)->id, id)) {
			return core_peer(core, i)->name;
		}
	}
	return "";
}

static int result_waiters(struct pawl_node_call *call, const struct core_reply *reply) {
	struct pawl_waiter *to = arena_take(&call->bytes, reply->count * sizeof *to,
		_Alignof(struct pawl_waiter));
	int error = to ? 0 : PAWL_ENOMEM;
	for (size_t i = 0; !error && i < reply->count; i++) {
		const char *node = result_node_name(node_driver(call->node->node)->core,
			reply->waiters[i].node);
		error = embed_waiter(&call->bytes, &reply->waiters[i], node, &to[i]);
	}
	call->result.waiters = to;
	call->result.waiter_count = error ? 0 : reply->count;
	return error;
}

static int result_make_room(struct pawl_node_call *call, size_t count) {
	if (call->entries && count <= call->room) {
		return 0;
	}
	const size_t room = count < 2 * call->room ? 2 * call->room : count;
	struct pawl_entry *to = arena_take(&call->bytes, room * sizeof *to,
		_Alignof(struct pawl_entry));
	if (!to) {
		return PAWL_ENOMEM;
	}
	if (call->result.entry_count > 0) {
		memcpy(to, call->entries, call->result.entry_count * sizeof *to);
	}
	call->result.entries = call->entries = to;
	call->room = room;
	return 0;
}

/* Adds the entries of a list, or of one more piece of it. */
static int result_entries(struct pawl_node_call *call, const struct core_reply *reply) {
	const size_t before = call->result.entry_count;
	int error = call->result.error
		? call->result.error : result_make_room(call, before + reply->count);
	for (size_t i = 0; !error && i < reply->count; i++) {
		error = embed_entry(&call->bytes, &reply->entries[i], false,
			&call->entries[before + i]);
	}
	call->result.entry_count = error ? 0 : before + reply->count;
	call->result.more = reply->more;
	return error;
}

static int result_bytes(struct pawl_node_call *call, const struct core_reply *reply) {
	struct pawl_node_result *r = &call->result;
	int error = 0;
	if (reply->op == CORE_LIST && !reply->error) {
		return result_entries(call, reply);
	}
	if (reply->op == CORE_WAITERS && !reply->error) {
		return result_waiters(call, reply);
	}
	if (reply->why.size > 0) {
		struct pawl_bytes why;
		error = embed_bytes(&call->bytes, reply->why, &why);
		r->why = error ? "" : why.data;
	}
	if (reply->op == CORE_UPDATE && !reply->error) {
		error = embed_seq_copy(&call->bytes, reply->value_seq, &r->value_seq);
	}
	if (!error && terms_semaphore(&reply->terms)) {
		error = embed_slots(&call->bytes, &reply->terms, &r->slots, &r->slot_count);
	}
	if (!error && (reply->held || reply->entry.closing || reply->error == PAWL_EMISMATCH)) {
		error = embed_entry(&call->bytes, &reply->entry, reply->contested, &r->entry);
	}
	r->entry.contested = reply->contested;
	return error;
}

static void result_fill(struct pawl_node_call *call, const struct core_reply *reply) {
	struct pawl_node_result *r = &call->result;
	const struct instant end = instant_add(call->asked, reply->valid);
	struct core_status status;
	core_status(node_driver(call->node->node)->core, node_driver(call->node->node)->last,
		&status);
	/* The error may be that of an earlier piece of a list. */
	r->error = reply->error ? reply->error : r->error;
	r->field = reply->field ? reply->field : "";
	memcpy(r->lock_id.bytes, reply->lock_id.b, sizeof r->lock_id.bytes);
	r->token = reply->token;
	if (!reply->error && reply->valid > 0) {
		r->deadline = (struct pawl_node_deadline){ end.boot, end.raw };
	}
	r->quorum = reply->quorum;
	r->votes = reply->votes;
	r->acks = reply->acks;
	r->waited_ms = reply->waited / SPAN_MS;
	r->released = reply->released;
	r->reached = reply->reached;
	r->mode = embed_mode(&reply->terms);
	r->recovering = reply->recovering;
	r->epoch = reply->epoch;
	r->settled = reply->settled;
	r->complete = reply->complete;
	r->age_ms = embed_age_ms(&status);
	if (result_bytes(call, reply) != 0 && !r->error) {
		r->error = PAWL_ENOMEM;
	}
	/* The entries may be those of earlier pieces of a list. */
	r->entry_count = r->error ? 0 : r->entry_count;
	r->message = !r->error ? "" : r->why[0] ? r->why : pawl_error_message(r->error);
}

static struct pawl_node_call *call_find(const struct pawl_node *node, uint64_t id) {
	struct map_node *found = map_first_number(&node->calls, id);
	return found ? CONTAINER_OF(found, struct pawl_node_call, by_id) : NULL;
}

/* Ends the call. It stays until the callbacks run. */
static void call_answer(struct pawl_node_call *call, const struct core_reply *reply) {
	struct pawl_node *node = call->node;
	map_remove(&node->calls, &call->by_id);
	list_remove(&call->among);
	result_fill(call, reply);
	list_append(&node->done, &call->among);
	event_active(node->deliver, EV_TIMEOUT, 0);
}

void embed_on_reply(void *ctx, const struct core_reply *reply) {
	struct pawl_node *node = ctx;
	struct pawl_node_call *call = call_find(node, reply->id);
	if (!call) {
		/* The call was canceled. */
		return;
	}
	if (reply->goes_on) {
		call->result.error = call->done ? result_entries(call, reply) : 0;
		return;
	}
	if (call->done) {
		call_answer(call, reply);
	} else {
		map_remove(&node->calls, &call->by_id);
		call_free(call);
	}
}

void embed_finish(struct pawl_node_call *take_call) {
	list_remove(&take_call->among);
	if (take_call->done) {
		take_call->done(take_call->node, &take_call->result, take_call->arg);
	}
	call_free(take_call);
}

/* ---- cancel ---- */

/* Releases what the attempt got, or may still get; a later commit of it is refused (R3). */
static void cancel_release(struct pawl_node *node, struct slice key, struct id128 lock_id) {
	struct core_request request = { .op = CORE_RELEASE, .key = key, .lock_id = lock_id,
		.identity = slice_str(node->identity), .admin = true };
	struct pawl_node_call *call;
	/* Without memory, the lease runs out by itself. */
	if (call_new(node, &call) == 0) {
		(void)call_begin(call, &request);
	}
}

void pawl_node_cancel(struct pawl_node_call *take_call) {
	struct pawl_node *node = take_call->node;
	struct pawl_node_call *known = call_find(node, take_call->id);
	if (known) {
		const struct core_event gone = { .kind = CORE_CLIENT_GONE,
			.client = take_call->id };
		map_remove(&node->calls, &take_call->by_id);
		driver_step_now(node_driver(node->node), &gone);
	}
	if (take_call->rolls_back && (known || !take_call->result.error)) {
		cancel_release(node, take_call->key, take_call->lock_id);
	}
	call_free(take_call);
}

void embed_cancel_all(struct pawl_node *node) {
	struct list *first;
	while ((first = list_first(&node->done)) != NULL
		|| (first = list_first(&node->under_way)) != NULL) {
		struct pawl_node_call *call = CONTAINER_OF(first, struct pawl_node_call, among);
		if (call_find(node, call->id)) {
			map_remove(&node->calls, &call->by_id);
			call->result.error = PAWL_ECANCELED;
			call->result.message = pawl_error_message(PAWL_ECANCELED);
		}
		embed_finish(call);
	}
}
