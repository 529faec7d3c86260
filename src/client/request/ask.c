/* ask.c: starts the requests of the program, in both styles. */
#include "call.h"

static void end_for_program(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	if (!call->done) {
		pawl_result_free(take_result);
		return;
	}
	call->client->callbacks++;
	call->done(take_result, ctx);
}

/* A program must not send these by itself, because the library has to keep account of what is
 * watched, and of the locks that it must bind to its next connection. */
static bool for_programs(const struct pawl_request *r) {
	bool bound = r->method == PAWL_ACQUIRE && r->terms.release_on_disconnect;
	return r->method != PAWL_WATCH && r->method != PAWL_UNWATCH && !bound;
}

/* Returns whether the request may be made with that. A handle counts its orders by itself. */
static bool with_allowed(const struct pawl *client, const struct pawl_request *r,
	const struct pawl_with *with) {
	return !with || (request_with_valid(r, with)
		&& !(with->order && client->handlers->lock_trusted(client, r->lock_id)));
}

int pawl_start_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with, pawl_done_fn *done, void *arg, struct pawl_call **out_call) {
	if (!for_programs(request) || !with_allowed(client, request, with)) {
		return PAWL_EINVAL;
	}
	struct pawl_call *call;
	int error = call_start(client,
		&(struct call_start){ .request = request, .with = with, .end = end_for_program,
			.ctx = arg },
		&call);
	if (!error) {
		call->done = done;
		if (out_call) {
			*out_call = call;
		}
	}
	return error;
}

int pawl_start(struct pawl *client, const struct pawl_request *request, pawl_done_fn *done,
	void *arg, struct pawl_call **out_call) {
	return pawl_start_with(client, request, NULL, done, arg, out_call);
}

void pawl_cancel(struct pawl_call *take_call) {
	if (take_call) {
		call_cancel(take_call);
	}
}

struct waited {
	bool over;
	struct pawl_result *result;
};

static void on_waited(struct pawl_result *take_result, void *arg) {
	*(struct waited *)arg = (struct waited){ .over = true, .result = take_result };
}

int pawl_call_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with, struct pawl_result **out_result) {
	struct waited waited = { 0 };
	struct pawl_call *call;
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = pawl_start_with(client, request, with, on_waited, &waited, &call);
	if (error) {
		return error;
	}
	error = client_core_wait(client, &waited.over, call);
	if (error && !waited.over) {
		pawl_cancel(call);
		return error;
	}
	error = waited.result->error;
	if (out_result) {
		*out_result = waited.result;
	} else {
		pawl_result_free(waited.result);
	}
	return error;
}

int pawl_call(struct pawl *client, const struct pawl_request *request,
	struct pawl_result **out_result) {
	return pawl_call_with(client, request, NULL, out_result);
}
