/* service_ask.c: asks the core for what clients ask the node for. service_answer.c handles the
 * replies.
 */
#include <openssl/rand.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

void service_count(const struct service_call *call, struct request *open, struct slice key,
	span_ns wait) {
	struct service *s = call->service;
	uint32_t group = key_groups_find(&s->driver->config->admin.groups, key);
	request_counts_begin(&s->requests.counts, &open->count, call->request->method, group, wait,
		call->now);
}

void service_core_request(const struct service_call *call, struct core_request *out) {
	*out = call->request->core;
	out->client = call->client;
	out->identity = service_owner(call->service, call->who);
	out->admin = service_has(call->service, call->who, RIGHT_BREAK);
}

void service_step(const struct service_call *call, const struct core_request *request) {
	const struct core_event event = { .kind = CORE_REQUEST, .request = request,
		.client = call->client };
	driver_step(call->service->driver, &event, call->now);
	if (core_out_unheard(call->service->driver->out)) {
		const struct core_reply busy = { .id = request->id, .client = call->client,
			.op = request->op, .lock_id = request->lock_id, .error = PAWL_EBUSY,
			.field = "memory" };
		service_answer(call->service, &busy);
	}
}

/* Counts the values that are under way for the request: the one that it brings, for each of its
 * keys, because it is sent to the masters later; and those of the key, because they are copied into
 * the answer later, also when a lock is acquired that is held already. While a request waits for
 * others, no value is under way for it (docs/security.md, Values under way). */
static void service_value_begun(const struct service_call *call, struct core_request *request,
	struct request *open) {
	const struct core *core = call->service->driver->core;
	if (request->wait > 0) {
		return;
	}
	uint64_t bytes = request->value.size * (request->lock_count ? request->lock_count : 1);
	if (request->op == CORE_GET || request->op == CORE_ACQUIRE) {
		bytes += core_value_bytes(core, request);
	}
	if (bytes > 0) {
		open->values = bytes;
		sessions_value_begun(call->service->sessions, call->client, bytes);
	}
}

/* On the way in: counts all that the request takes until it is answered, in one place. What goes
 * the other way is in service_settle. Returns 0 or PAWL_ENOMEM. */
static int ask_count(const struct service_call *call, struct core_request *request,
	struct request *open) {
	struct service *s = call->service;
	if (call->notes && service_note(call, open, request) != 0) {
		return PAWL_ENOMEM;
	}
	if (request->op == CORE_ACQUIRE || request->op == CORE_ACQUIRE_ALL
		|| (call->request->present & CLIENT_HAS_PARTY)) {
		requests_of_party(&s->requests, open, call->request->party);
	}
	service_count(call, open, request->lock_count ? request->locks[0].key : request->key,
		request->op == CORE_WAIT ? 0 : request->wait);
	if (request->wait > 0 && requests_keep_wait(&s->requests, open, request,
			sessions_alloc(s->sessions, call->client)) != 0) {
		return PAWL_ENOMEM;
	}
	if ((request->terms.binding || request->binding) && !request->ordered
		&& service_binding_ask(call, request) != 0) {
		return PAWL_ENOMEM;
	}
	if (open->wait) {
		service_deadlock_waits(s, open->wait, call->now);
	}
	/* The answer says what becomes of the order. */
	open->order = s->order;
	s->order = 0;
	service_value_begun(call, request, open);
	if (request->op == CORE_RELEASE && s->kept.by_lock.count > 0) {
		service_keep_asked(s, request);
	}
	return 0;
}

void service_call_core(const struct service_call *call) {
	struct service *s = call->service;
	struct request *open = NULL;
	struct core_request request;
	struct share_quota quota;
	service_core_request(call, &request);
	/* An acquire gets the lock_ids that its client has not named. */
	const uint32_t acquired = request.op == CORE_ACQUIRE ? 1 : request.lock_count;
	for (uint32_t i = 0; i < acquired; i++) {
		/* The group is the array that request.locks points to. */
		struct id128 *lock_id = request.lock_count ? &call->request->group[i].lock_id
			: &request.lock_id;
		if (id128_zero(*lock_id)) {
			CHECK(RAND_bytes(lock_id->b, sizeof lock_id->b) == 1);
		}
	}
	int error = requests_open(&s->requests, call->client, call->request->msgid, &open);
	bool full = !error && !service_share_take(call, &request, open, &quota);
	if (!error && !full) {
		request.id = open->id;
		error = ask_count(call, &request, open);
	}
	if (!error && !full) {
		service_step(call, &request);
		return;
	}
	if (open) {
		requests_close(&s->requests, open);
	}
	if (full) {
		service_refuse_quota(s, call->client, call->request->msgid, &quota);
	} else {
		service_refuse(s, call->client, call->request->msgid, PAWL_EBUSY, NULL, NULL);
	}
}

static bool service_open_batch(const struct service_call *call) {
	const struct client_request *asked = call->request;
	struct requests_batch *batch;
	if (requests_open_batch(&call->service->requests, call->client, asked->msgid,
			(uint32_t)asked->lock_count,
		sessions_alloc(call->service->sessions, call->client), &batch) != 0) {
		service_refuse(call->service, call->client, asked->msgid, PAWL_EBUSY, NULL, NULL);
		return false;
	}
	call->progress->tag = batch->requests[0].id;
	return true;
}

static void service_call_part(const struct service_call *call, const struct client_lock *lock,
	uint64_t id) {
	const struct client_request *asked = call->request;
	struct core_request request;
	service_core_request(call, &request);
	request.id = id;
	request.key = lock->key;
	request.lock_id = lock->lock_id;
	request.lease = lock->lease;
	request.token = lock->token;
	request.binding = lock->binding;
	request.terms.set = lock->numbers;
	request.ordered = lock->ordered;
	request.shorten = lock->shorten;
	struct request *open = requests_find(&call->service->requests, id);
	open->held = holdings_hash(&call->service->holdings, lock->key, lock->lock_id);
	if (call->notes) {
		/* Without memory, its lines are missing. */
		(void)service_note(call, open, &request);
	}
	if (asked->present & CLIENT_HAS_PARTY) {
		requests_of_party(&call->service->requests, open, asked->party);
	}
	service_count(call, open, lock->key, 0);
	if (request.binding && !request.ordered) {
		/* Without memory, the lock lasts as long as its lease. */
		(void)service_binding_ask(call, &request);
	}
	service_step(call, &request);
}

/* Passes the locks of an `extend` to the core one by one; what it sends to a master for all of them
 * leaves in one frame anyway. With the last lock, the batch may be answered and its client may be
 * gone. */
void service_call_batch(const struct service_call *call) {
	const struct client_request *asked = call->request;
	size_t from = call->progress->done, left = asked->lock_count - from;
	size_t to = from + (left < call->progress->most ? left : call->progress->most);
	if (from == 0 && !service_open_batch(call)) {
		if (sessions_share(call->service->sessions, call->client)) {
			call->progress->done = asked->lock_count;
		}
		return;
	}
	uint64_t first = call->progress->tag;
	call->progress->done = to;
	for (size_t i = from; i < to; i++) {
		service_call_part(call, &asked->locks[i], first + i);
	}
}
