/* service_slow.c: says in the log which requests were slow, and where their time went. */
#include <stdio.h>

#include "config_file.h"
#include "service_impl.h"

/* These wait on purpose. */
static bool slow_by_nature(enum core_op op) {
	return op == CORE_WAIT || op == CORE_CHANGE;
}

/* Writes the names of the masters that were late, with commas. */
static void slow_names(const struct service *s, uint64_t late, char *out, size_t size) {
	size_t used = 0;
	out[0] = '\0';
	for (uint32_t i = 0; i < s->driver->context.peer_count && used < size; i++) {
		if (late >> i & 1) {
			used += (size_t)snprintf(out + used, size - used, "%s%s",
				used ? "," : "", s->driver->nodes[i]->name);
		}
	}
}

void service_slow(struct service *s, const struct request *request,
	const struct core_reply *reply) {
	const struct request_note *note = request->note;
	static const struct core_times unknown = { .late = 0 };
	const struct core_times *t = reply->times ? reply->times : &unknown;
	const span_ns limit = (span_ns)s->driver->config->slow_ms * SPAN_MS;
	/* The times of the core end with its decision. An answer may be held back after that, until
	 * something is on the disk. */
	const span_ns took = driver_now(s->driver).boot - note->begun - t->queued;
	char late[MASTERS_MAX * (NODE_NAME_MAX + 1)];
	struct session_who who;
	if (limit == 0 || took <= limit || slow_by_nature(reply->op)
		|| !sessions_who(s->sessions, request->client, &who)) {
		return;
	}
	const bool acquires = reply->op == CORE_ACQUIRE;
	const span_ns rest = took - t->before - t->round;
	slow_names(s, t->late, late, sizeof late);
	log_untrusted(s->driver->log, "slow_request",
		LOG_TEXT("what", client_method_name(note->method)), LOG_BYTES("key", note->key),
		LOG_TEXT("result", pawl_error_code(reply->error)), LOG_SPAN("took", took),
		LOG_SPAN(acquires ? "promises" : "before", t->before),
		LOG_SPAN(acquires ? "commit" : "round", t->round),
		LOG_SPAN("rest", rest > 0 ? rest : 0), LOG_SPAN("queued", t->queued),
		LOG_TEXT("late", late), LOG_WHO(&who), LOG_GIVEN("trace", note->trace));
}
