/* redis_task.c: what a command does, as one request of the client protocol after the other. */
#include "redis_impl.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

/* The most that a reply may show. */
#define SHOWN_MAX ((size_t)4 << 20)

bool redis_length(const struct redis_call *call, struct slice word, bool seconds, span_ns *out) {
	const struct redis *r = call->redis;
	const span_ns unit = seconds ? SPAN_S : SPAN_MS;
	const span_ns most = r->node->max_lease(r->node->ctx) - r->server->settings.slack;
	int64_t number;
	char why[160];
	if (!redis_number(word, &number)) {
		resp_error(call->w, "ERR", slice_str("value is not an integer or out of range"));
		return false;
	}
	if (number <= 0) {
		resp_error(call->w, "ERR", slice_str("invalid expire time"));
		return false;
	}
	if (number > most / unit) {
		snprintf(why, sizeof why, "a lock of %lld ms is longer than this cluster allows, "
			"which is %lld ms: take it for less, and renew it",
			(long long)(number > INT64_MAX / 1000 ? INT64_MAX
			: number * (seconds ? 1000 : 1)), (long long)(most / SPAN_MS));
		resp_error(call->w, "NOPERM", slice_str(why));
		return false;
	}
	*out = number * unit;
	return true;
}

/* ---- making a task ---- */

static uint8_t *task_copy(uint8_t *at, struct slice from, struct slice *out) {
	*out = slice_of(at, from.size);
	return slice_put(at, from);
}

/* Returns what stands in front of the keys of the database. */
static struct slice task_prefix(const struct redis *r, char text[REDIS_PREFIX_MAX + 1]) {
	int size = r->database ? snprintf(text, REDIS_PREFIX_MAX + 1, "db%u:", r->database) : 0;
	return slice_of(text, (size_t)size);
}

static bool task_key_is_right(struct slice key, size_t prefix) {
	return key.size > 0 && key.size + prefix <= KEY_MAX;
}

struct redis_task *redis_task_new(const struct redis_call *call, const struct redis_plan *plan,
	const struct slice *keys, size_t count, struct slice value, struct slice fresh,
	enum dialect_step *out_step) {
	struct redis *r = call->redis;
	char text[REDIS_PREFIX_MAX + 1];
	const struct slice prefix = task_prefix(r, text);
	size_t bytes = sizeof(struct redis_task) + value.size + fresh.size;
	bool right = count > 0 && count <= REDIS_KEYS_MAX;
	for (size_t i = 0; right && i < count; i++) {
		right = task_key_is_right(keys[i], prefix.size);
		bytes += prefix.size + keys[i].size;
	}
	*out_step = DIALECT_DONE;
	if (!right) {
		resp_error(call->w, "ERR", slice_str("Pawl takes 1 to 64 keys at once, of 1 to "
			"512 bytes each, with the prefix dbN: of a database other than 0"));
		return NULL;
	}
	struct redis_task *task = alloc_new(&r->alloc, bytes);
	if (!task) {
		*out_step = DIALECT_BROKEN;
		return NULL;
	}
	task->plan = *plan;
	task->bytes = bytes;
	task->count = (uint32_t)count;
	buffer_init(&task->shown, &r->alloc, SHOWN_MAX);
	uint8_t *at = task_copy((uint8_t *)(task + 1), value, &task->value);
	at = task_copy(at, fresh, &task->fresh);
	for (size_t i = 0; i < count; i++) {
		uint8_t *begin = at;
		at = slice_put(slice_put(at, prefix), keys[i]);
		task->keys[i] = slice_of(begin, (size_t)(at - begin));
	}
	return task;
}

void redis_task_free(struct redis *r) {
	struct redis_task *task = r->task;
	if (task) {
		buffer_done(&task->shown);
		alloc_free(&r->alloc, task, task->bytes);
		r->task = NULL;
	}
}

/* ---- the requests ---- */

static struct core_request *task_request(struct redis *r, enum client_method method,
	enum core_op op) {
	struct redis_task *task = r->task;
	memset(&r->request, 0, offsetof(struct client_request, label_bytes));
	r->request.msgid = DIALECT_MSGID;
	r->request.method = method;
	r->request.present = CLIENT_HAS_KEY;
	r->request.core.op = op;
	r->request.core.key = task->keys[task->at];
	return &r->request.core;
}

static enum dialect_step task_read(struct redis *r) {
	task_request(r, CLIENT_GET, CORE_GET)->quorum = true;
	r->task->wait = REDIS_READS;
	return DIALECT_ASK;
}

static struct slice task_owner(const struct redis *r) {
	return slice_str(r->name[0] ? r->name : r->from);
}

/* Several keys are taken together or not at all. */
static void task_take_group(struct redis *r, struct core_request *core) {
	struct redis_task *task = r->task;
	for (uint32_t i = 0; i < task->count; i++) {
		task->locks[i] = (struct core_lock){ .key = task->keys[i],
			.lock_id = task->lock_ids[i] };
	}
	core->op = CORE_ACQUIRE_ALL;
	core->key = slice_of(NULL, 0);
	core->locks = r->request.group = task->locks;
	core->lock_count = task->count;
	r->request.present = CLIENT_HAS_LOCKS;
}

/* Notes when the lease begins at the earliest. */
static void task_begins(const struct redis *r, struct redis_task *task) {
	if (task->since.boot == 0) {
		task->since = r->node->now(r->node->ctx);
	}
}

static enum dialect_step task_take(struct redis *r, bool all) {
	struct redis_task *task = r->task;
	struct core_request *core = task_request(r, CLIENT_ACQUIRE, CORE_ACQUIRE);
	for (uint32_t i = 0; i < task->count; i++) {
		task->lock_ids[i] = r->node->draw(r->node->ctx);
	}
	task_begins(r, task);
	core->lock_id = task->lock_ids[task->at];
	core->value = task->fresh;
	core->owner = task_owner(r);
	core->lease = task->length + r->server->settings.slack;
	core->wait = task->patience;
	r->request.label.text = slice_str(r->library);
	core->label = slice_of(r->request.label_bytes,
		client_label_pack(&r->request.label, r->request.label_bytes));
	if (all && task->count > 1) {
		task_take_group(r, core);
	}
	task->wait = REDIS_ACTS;
	return DIALECT_ASK;
}

static enum dialect_step task_act(struct redis *r, enum redis_act act) {
	struct redis_task *task = r->task;
	task->act = act;
	task->wait = REDIS_ACTS;
	if (act == REDIS_TAKE) {
		return task_take(r, false);
	}
	struct core_request *core = act == REDIS_RELEASE
		? task_request(r, CLIENT_RELEASE, CORE_RELEASE)
		: task_request(r, CLIENT_EXTEND, CORE_EXTEND);
	core->lock_id = task->lock_ids[task->at];
	if (act != REDIS_RELEASE) {
		task_begins(r, task);
		core->lease = task->length + r->server->settings.slack
			+ (act == REDIS_ADD ? task->left : 0);
	}
	return DIALECT_ASK;
}

static enum dialect_step task_set_value(struct redis *r) {
	struct redis_task *task = r->task;
	struct core_request *core = task_request(r, CLIENT_UPDATE, CORE_UPDATE);
	core->lock_id = task->lock_ids[task->at];
	core->value = task->fresh;
	task->wait = REDIS_SETS_VALUE;
	return DIALECT_ASK;
}

enum dialect_step redis_task_begin(struct redis *r, struct redis_task *task) {
	CHECK(!r->task);
	r->task = task;
	task->act = REDIS_TAKE;
	return task->plan.takes ? task_take(r, true) : task_read(r);
}

/* ---- going on ---- */

static enum dialect_step task_refuse(struct redis *r, struct resp_writer *w, const char *code,
	const char *why) {
	resp_error(w, code, slice_str(why));
	redis_task_free(r);
	return DIALECT_DONE;
}

/* Returns whether the answer comes so late that a client that counts its time from there would
 * count on the lease after its end. Without slack, the operator leaves that to the client. */
static bool task_is_late(const struct redis *r, const struct redis_task *task) {
	const span_ns slack = r->server->settings.slack;
	return task->done > 0 && task->since.boot != 0 && slack > 0
		&& instant_elapsed_long(r->node->now(r->node->ctx), task->since) - task->queued
			> slack;
}

/* Releases what was taken, key by key, and then says why. */
static enum dialect_step task_too_late(struct redis *r, struct resp_writer *w) {
	struct redis_task *task = r->task;
	if (task->act == REDIS_TAKE && task->at < task->count) {
		task->late = true;
		task->wait = REDIS_ACTS;
		task_request(r, CLIENT_RELEASE, CORE_RELEASE)->lock_id = task->lock_ids[task->at];
		return DIALECT_ASK;
	}
	return task_refuse(r, w, "TRYAGAIN", "the masters answered too late for the whole length: "
		"[redis] slack of this node is shorter than that took");
}

/* Returns how long an acquire waited for its turn, from how long its lease is valid from its
 * sending on. */
static span_ns task_queued(const struct redis *r, span_ns valid) {
	const span_ns lease = r->task->length + r->server->settings.slack;
	const int64_t million = 1000000, drift = r->node->drift_ppm(r->node->ctx);
	const span_ns whole = drift < million ? valid + valid / (million - drift) * drift : valid;
	return whole > lease ? whole - lease : 0;
}

static enum dialect_step task_finish(struct redis *r, struct resp_writer *w) {
	struct redis_task *task = r->task;
	if (task_is_late(r, task)) {
		task->at = 0;
		return task_too_late(r, w);
	}
	if (task->plan.reply) {
		task->plan.reply(task, w);
	} else {
		resp_raw(w, buffer_slice(&task->shown));
	}
	redis_task_free(r);
	return DIALECT_DONE;
}

static enum dialect_step task_fail(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	redis_refuse(w, response);
	redis_task_free(r);
	return DIALECT_DONE;
}

static enum dialect_step task_next(struct redis *r, struct resp_writer *w) {
	struct redis_task *task = r->task;
	if (++task->at < task->count) {
		return task->all_read ? task_act(r, task->plan.mine) : task_read(r);
	}
	if (!task->plan.together || task->all_read || task->mine < task->count) {
		return task_finish(r, w);
	}
	task->all_read = true;
	task->at = 0;
	return task_act(r, task->plan.mine);
}

/* Returns who holds the key, or NULL. In the last moment of its lease, which its client does not
 * know of, it counts as free. */
static const struct client_entry *task_holder(const struct redis *r,
	const struct client_response *response) {
	const struct client_entry *entry = &response->entry;
	bool held = response->held && (response->present & CLIENT_RESULT_ENTRY)
		&& !entry->closing && entry->remaining > r->server->settings.slack;
	return held ? entry : NULL;
}

static enum dialect_step task_has_read(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	struct redis_task *task = r->task;
	const struct redis_plan *plan = &task->plan;
	const struct client_entry *entry = task_holder(r, response);
	const bool mine = entry && (!plan->compares || slice_equal(entry->value, task->value));
	enum redis_act act = !entry ? plan->free : mine ? plan->mine : plan->other;
	struct resp_writer shown = { .out = &task->shown, .version = r->version };
	task->left = entry ? entry->remaining - r->server->settings.slack : 0;
	task->gone += !entry;
	task->mine += mine;
	task->others += entry && !mine;
	if (plan->show) {
		redis_show(r, task, plan->compares && !mine ? NULL : entry, &shown);
	}
	if (shown.error) {
		return task_refuse(r, w, "OOM", "the values together are too large for one reply: "
			"name fewer keys");
	}
	if (act == REDIS_REFUSE) {
		return task_refuse(r, w, "NOPERM", "the key is held: Pawl does not overwrite a "
			"lock. Use NX, or delete it first");
	}
	if (mine && act != REDIS_NOTHING && !(entry->present & CLIENT_ENTRY_LOCK_ID)) {
		return task_refuse(r, w, "NOPERM", "this lock belongs to another identity");
	}
	task->lock_ids[task->at] = entry ? entry->lock_id : task->lock_ids[task->at];
	return act == REDIS_NOTHING || plan->together ? task_next(r, w) : task_act(r, act);
}

static enum dialect_step task_has_acted(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	struct redis_task *task = r->task;
	const int error = response->error;
	if (task->late) {
		task->at++;
		return task_too_late(r, w);
	}
	if (error == PAWL_EHELD || (error == PAWL_ETIMEOUT && task->act == REDIS_TAKE)) {
		task->others++;
		return task->plan.takes ? task_finish(r, w) : task_next(r, w);
	}
	if (error == PAWL_ELOST || error == PAWL_ENOTFOUND) {
		/* It ended, or another one took it, after it was read. */
		task->mine -= task->mine > 0;
		task->gone++;
		return task_next(r, w);
	}
	if (error) {
		return task_fail(r, response, w);
	}
	if (task->act == REDIS_REPLACE && task->wait == REDIS_ACTS) {
		return task_set_value(r);
	}
	task->queued = task->act == REDIS_TAKE ? task_queued(r, response->valid) : 0;
	const bool released = task->act != REDIS_RELEASE || response->released;
	task->done += task->plan.takes ? task->count : released;
	return task->plan.takes ? task_finish(r, w) : task_next(r, w);
}

enum dialect_step redis_task_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	if (r->task->wait != REDIS_READS) {
		return task_has_acted(r, response, w);
	}
	return response->error ? task_fail(r, response, w) : task_has_read(r, response, w);
}

const struct client_request *redis_task_leave(struct redis *r) {
	struct redis_task *task = r->task;
	if (task->wait != REDIS_ACTS || task->act != REDIS_TAKE) {
		return NULL;
	}
	/* A single key is taken at its place, several keys together. */
	task->at = !task->leaves && task->plan.takes ? 0 : task->at + task->leaves;
	if (task->at == task->count || (task->leaves && !task->plan.takes)) {
		return NULL;
	}
	task->leaves = true;
	task_request(r, CLIENT_RELEASE, CORE_RELEASE)->lock_id = task->lock_ids[task->at];
	return &r->request;
}
