/* redis_reply.c: how answers of the client protocol look to a client of Redis. */
#include "redis_impl.h"

#include "pawl/error.h"
#include "sentence.h"

/* A client must not take an outage for "held by somebody else". Some answer "false" to an error
 * with the code ERR, NOSCRIPT or WRONGTYPE just as to nil, and raise an exception for all others
 * (phpredis, and so Laravel); so none of these is used here, except for what Redis answers with it,
 * too. */
static const char *reply_code(int error) {
	switch (error) {
	case PAWL_ENOQUORUM:
		return "NOREPLICAS";
	case PAWL_ERECOVERING:
		return "LOADING";
	case PAWL_EDENIED:
	case PAWL_ETOOLONG:
	case PAWL_EBADREQUEST:
		return "NOPERM";
	case PAWL_EFULL:
	case PAWL_ETOOLARGE:
	case PAWL_ENOMEM:
		return "OOM";
	default:
		return "TRYAGAIN";
	}
}

enum dialect_step redis_wrong(const struct redis_call *call, const char *why) {
	resp_error(call->w, "ERR", slice_str(why));
	return DIALECT_DONE;
}

enum dialect_step redis_unable(const struct redis_call *call, const char *why) {
	resp_error(call->w, "NOPERM", slice_str(why));
	return DIALECT_DONE;
}

void redis_refuse(struct resp_writer *w, const struct client_response *response) {
	char room[SENTENCE_BYTES];
	resp_error(w, reply_code(response->error), sentence_of(response, room));
}

/* These are rounded down, because holders act on them. A client of Redis never sees 0 ms of a key
 * that exists (task_holder). */
static int64_t reply_seconds(span_ns left) {
	return left / SPAN_S;
}

static int64_t reply_ms(span_ns left) {
	return left / SPAN_MS;
}

/* A lock without an end ends never, which clients of Redis know as -1. */
static int64_t reply_end(const struct task *task, int64_t end) {
	return task->endless ? -1 : end;
}

int redis_show(void *ctx, struct task *task, const struct client_entry *entry) {
	const struct redis *r = ctx;
	struct resp_writer writer = { .out = &task->shown, .version = r->version };
	struct resp_writer *w = &writer;
	const int64_t end = entry ? r->node->unix_ms(r->node->ctx) + reply_ms(task->left) : 0;
	switch (r->plan.show) {
	case REDIS_SHOW_NOTHING:
		break;
	case REDIS_SHOW_VALUE:
		if (entry) {
			resp_bulk(w, entry->value);
		} else {
			resp_nil(w);
		}
		break;
	case REDIS_SHOW_PTTL:
		resp_number(w, entry ? reply_end(task, reply_ms(task->left)) : -2);
		break;
	case REDIS_SHOW_TTL:
		resp_number(w, entry ? reply_end(task, reply_seconds(task->left)) : -2);
		break;
	case REDIS_SHOW_END_MS:
		resp_number(w, entry ? reply_end(task, end) : -2);
		break;
	case REDIS_SHOW_END:
		resp_number(w, entry ? reply_end(task, end / 1000) : -2);
		break;
	case REDIS_SHOW_TYPE:
		resp_status(w, entry ? "string" : "none");
		break;
	case REDIS_SHOW_LENGTH:
		resp_number(w, entry ? (int64_t)entry->value.size : 0);
		break;
	case REDIS_SHOW_TOKEN:
		if (entry) {
			resp_number(w, (int64_t)entry->token);
		} else {
			resp_nil(w);
		}
		break;
	case REDIS_SHOW_BOTH:
		resp_array(w, 2);
		if (entry) {
			resp_bulk(w, entry->value);
		} else {
			resp_nil(w);
		}
		resp_number(w, entry ? reply_end(task, reply_ms(task->left)) : -2);
		break;
	}
	return w->error;
}

void redis_reply_done(const struct redis *r, struct resp_writer *w) {
	resp_number(w, r->tasks.task->done);
}

void redis_reply_mine(const struct redis *r, struct resp_writer *w) {
	resp_number(w, r->tasks.task->mine);
}

void redis_reply_ok(const struct redis *r, struct resp_writer *w) {
	if (r->tasks.task->done) {
		resp_status(w, "OK");
	} else {
		resp_nil(w);
	}
}

/* SETNX, and scripts that take. */
void redis_reply_taken(const struct redis *r, struct resp_writer *w) {
	resp_number(w, r->tasks.task->done > 0);
}

/* A plain SET is never answered with nil, which would mean that the key is held. */
void redis_reply_set(const struct redis *r, struct resp_writer *w) {
	if (r->tasks.task->done) {
		resp_status(w, "OK");
	} else {
		resp_error(w, "TRYAGAIN", slice_str("the key is not free yet, or another "
			"client has just taken it"));
	}
}
