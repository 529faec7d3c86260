/* sessions_share.c: whose connections belong together. */
#include "sessions_impl.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"

/* "=" and the identity, of a Unix socket its account; without one "@" and the address without its port. */
static struct slice share_name(const struct session *session, uint8_t room[ADDRESS_TEXT_BYTES + 1]) {
	bool named = session->identity[0] && strcmp(session->identity, RIGHTS_PLAIN) != 0;
	const struct slice name = named ? slice_str(session->identity) : slice_of((const uint8_t *)session->from.address, session->from.host_bytes);
	_Static_assert(TLS_NAME_MAX < ADDRESS_TEXT_BYTES, "either fits");
	room[0] = named ? '=' : '@';
	memcpy(room + 1, name.data, name.size);
	return slice_of(room, name.size + 1);
}

static struct session_share *share_find(const struct sessions *s, uint64_t hash, struct slice name) {
	for (struct map_node *n = map_first(&s->shares, hash); n; n = map_next(n)) {
		struct session_share *share = CONTAINER_OF(n, struct session_share, node);
		if (slice_equal(slice_of(share->name, share->name_size), name)) {
			return share;
		}
	}
	return NULL;
}

static struct session_share *share_new(struct sessions *s, uint64_t hash, struct slice name) {
	struct session_share *share = alloc_new(s->loop->alloc, sizeof *share + name.size);
	if (share) {
		share->name_size = name.size;
		memcpy(share->name, name.data, name.size);
		fair_init(&share->ready, SESSIONS_CONNECTION_QUANTUM);
		map_insert(&s->shares, &share->node, hash);
	}
	return share;
}

/* ---- limits ---- */

static const struct client_refusal *share_quota(const struct session_share *share, const char *field, uint32_t limit, const char *what,
	struct session_quota *room) {
	bool named = share->name[0] == '=';
	snprintf(room->message, sizeof room->message, "%s %.*s has %u %s, which is all that it may ([limits] %s of this node)",
		named ? "the identity" : "without a certificate, the address", (int)share->name_size - 1, (const char *)share->name + 1, limit, what, field);
	room->refusal = (struct client_refusal){ .error = PAWL_EQUOTA, .field = slice_str(field), .message = room->message };
	return &room->refusal;
}

const struct client_refusal *session_share_full(const struct session *session, struct session_quota *room) {
	const struct session_share *share = session->share;
	uint32_t limit = session->all->limits.requests_per_identity;
	return limit && share->open >= limit ? share_quota(share, "requests_per_identity", limit, "requests under way", room) : NULL;
}

void session_join(struct session *session) {
	struct sessions *s = session->all;
	struct session_quota quota;
	uint8_t room[ADDRESS_TEXT_BYTES + 1];
	struct slice name = share_name(session, room);
	uint64_t hash = siphash(s->hash_key, name.data, name.size);
	struct session_share *share = share_find(s, hash, name);
	uint32_t limit = s->limits.clients_per_identity;
	share = share ? share : share_new(s, hash, name);
	if (!share) {
		session_end(session, "out of memory");
		return;
	}
	if (limit && share->connections >= limit && !session->inside) {
		session_refuse_and_close(session, 0, share_quota(share, "clients_per_identity", limit, "connections", &quota));
		return;
	}
	share->connections++;
	session->share = share;
}

void session_part(struct session *session) {
	struct sessions *s = session->all;
	struct session_share *share = session->share;
	if (fair_waits(&session->flow)) {
		session_stop_waiting(session);
	}
	if (!share) {
		return;
	}
	CHECK(share->open >= session->open);
	share->open -= session->open; /* the owner hears that it is gone, and answers none of them */
	if (--share->connections == 0) {
		map_remove(&s->shares, &share->node);
		alloc_free(s->loop->alloc, share, sizeof *share + share->name_size);
	}
}
