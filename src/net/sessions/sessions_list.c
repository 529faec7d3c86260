/* sessions_list.c: the connections of clients as operators see them. */
#include "sessions_impl.h"

#include "time_source.h"

static void session_describe(const struct session *session, struct instant now,
	struct session_view *out) {
	const struct stream_counts counts = stream_counts(session->stream);
	*out = (struct session_view){ .client = session->id, .who = session_who(session),
		.stranger = list_linked(&session->stranger.in), .requests = session->requests,
		.open = session->open, .age = instant_elapsed_short(now, session->since),
		.silent = instant_elapsed_short(now, session->heard),
		.received = counts.received, .sent = counts.sent,
		.unsent = stream_backlog(session->stream), .memory = session->memory->used };
}

/* Finds the first connection whose number is above `after`. Numbers count up, and the list is in
 * their order. So the connection `after` is found by its number; if it is gone, the list is
 * searched from the start. */
static struct list *list_behind(const struct sessions *s, uint64_t after) {
	const struct session *named = sessions_find(s, after);
	if (named) {
		return list_after(&s->among, &named->among);
	}
	struct list *at = list_first(&s->among);
	while (at && CONTAINER_OF(at, struct session, among)->id <= after) {
		at = list_after(&s->among, at);
	}
	return at;
}

void sessions_each(const struct sessions *s, uint64_t after, sessions_visit *visit, void *ctx) {
	struct instant now = time_source_now();
	bool on = true;
	for (struct list *at = list_behind(s, after); on && at; at = list_after(&s->among, at)) {
		struct session_view view;
		session_describe(CONTAINER_OF(at, struct session, among), now, &view);
		on = visit(ctx, &view);
	}
}

void sessions_reached_at(const struct sessions *s, uint64_t client, char out[ADDRESS_TEXT_BYTES]) {
	const struct session *session = sessions_find(s, client);
	out[0] = '\0';
	if (session) {
		stream_reached_at(session->stream, out);
	}
}
