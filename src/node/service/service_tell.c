/* service_tell.c: tells clients that they were refused, or that they must go. All other files of
 * the service may call this one, and it calls none of them.
 */
#include "pawl/error.h"
#include "service_impl.h"

/* How much of what may wait on a connection is kept free of answers that show values, in bytes. */
#define SPARED_BYTES ((size_t)1 << 20)

/* ---- connections that end ---- */

void service_tell_gone(struct service *s, uint64_t client) {
	const struct core_event gone = { .kind = CORE_CLIENT_GONE, .client = client };
	driver_step_now(s->driver, &gone);
}

void service_sever(struct service *s, uint64_t client) {
	service_tell_gone(s, client);
	sessions_drop(s->sessions, client);
}

/* ---- answers ---- */

void service_told(struct service *s, uint64_t client, int error) {
	if (error) {
		service_sever(s, client);
	}
	driver_flush_later(s->driver);
}

void service_tell_done(struct service *s, uint64_t client, uint32_t msgid) {
	struct buffer *to = sessions_answer(s->sessions, client);
	service_told(s, client, to ? client_done_encode(msgid, to) : 0);
}

/* ---- refusals ---- */

static void service_refuse_as(struct service *s, uint64_t client, uint32_t msgid,
	const struct client_refusal *refusal) {
	struct buffer *to = sessions_answer(s->sessions, client);
	s->refused = refusal->error;
	service_told(s, client, to ? client_refusal_encode(msgid, refusal, to) : 0);
}

void service_refuse(struct service *s, uint64_t client, uint32_t msgid, int error,
	const char *field, const char *message) {
	service_refuse_as(s, client, msgid,
		&(struct client_refusal){ .error = error, .field = log_slice(field),
		.message = message });
}

void service_log_quota(void *ctx, const struct session_who *who,
	const struct client_refusal *refusal) {
	struct service *s = ctx;
	log_untrusted(s->driver->log, "quota", LOG_BYTES("limit", refusal->field), LOG_WHO(who),
		LOG_TEXT("why", refusal->message));
}

void service_note_quota(struct service *s, uint64_t client, const struct share_quota *quota) {
	struct session_who who;
	sessions_count_refused(s->sessions);
	if (sessions_who(s->sessions, client, &who)) {
		service_log_quota(s, &who, &quota->refusal);
	}
}

void service_refuse_quota(struct service *s, uint64_t client, uint32_t msgid,
	const struct share_quota *quota) {
	service_note_quota(s, client, quota);
	service_refuse_as(s, client, msgid, &quota->refusal);
}

/* ---- answers that need room ---- */

struct service_view service_view_begin(const struct service *s, uint64_t client,
	struct buffer *to) {
	struct service_view view = { .to = to, .max = to->max };
	uint64_t room = sessions_room(s->sessions, client);
	size_t spared = to->max - to->size > SPARED_BYTES ? to->max - SPARED_BYTES : to->size;
	view.crowded = to->capacity + room < spared;
	size_t most = view.crowded ? to->capacity + (size_t)room : spared;
	to->max = most > to->size ? most : to->size;
	return view;
}

int service_view_end(struct service *s, uint64_t client, const struct service_view *view,
	uint32_t msgid, int error) {
	static const struct client_refusal crowded = { .error = PAWL_EBUSY,
		.message = "too many answers are waiting on this connection: ask "
			"for less at once" };
	struct share_quota quota;
	view->to->max = view->max;
	if (error != PAWL_ETOOLARGE) {
		return error;
	}
	if (view->crowded) {
		sessions_say_full(s->sessions, client, &quota);
		service_note_quota(s, client, &quota);
	}
	error = client_refusal_encode(msgid, view->crowded ? &quota.refusal : &crowded, view->to);
	return error ? error : PAWL_EBUSY;
}
