/* sessions_share.c: whose connections belong together, and what they may take together. */
#include "sessions_impl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"

#define ADMIN_SPARE 16 /* connections, and requests under way, that an administrator has above the limits of its share */
#define NETWORK_BYTES 8 /* of an IPv6 address: who has one has all of its network */

/* The address without its port; of IPv6 the network of 64 bits. */
static struct slice share_host(const struct session *session, char room[INET6_ADDRSTRLEN]) {
	const struct origin *from = &session->from;
	struct in6_addr ip;
	if (from->host_bytes < 3 || from->address[0] != '[' || from->host_bytes - 2 >= INET6_ADDRSTRLEN) {
		return slice_of((const uint8_t *)from->address, from->host_bytes);
	}
	snprintf(room, INET6_ADDRSTRLEN, "%.*s", from->host_bytes - 2, from->address + 1);
	if (inet_pton(AF_INET6, room, &ip) != 1) {
		return slice_of((const uint8_t *)from->address, from->host_bytes);
	}
	memset(ip.s6_addr + NETWORK_BYTES, 0, sizeof ip.s6_addr - NETWORK_BYTES);
	return slice_str(inet_ntop(AF_INET6, &ip, room, INET6_ADDRSTRLEN));
}

/* Its identity, of a Unix socket its account; without one its address. And, where there is one, its address besides. */
static bool share_find(struct session *session) {
	struct shares *all = &session->all->shares;
	char room[INET6_ADDRSTRLEN];
	const struct slice host = share_host(session, room);
	bool named = session->identity[0] && strcmp(session->identity, RIGHTS_PLAIN) != 0;
	bool remote = session->from.uid == ORIGIN_UNKNOWN && !session->inside;
	session->share.identity = named ? shares_find(all, '=', slice_str(session->identity), SESSIONS_CONNECTION_QUANTUM)
	                                : shares_find(all, '@', host, SESSIONS_CONNECTION_QUANTUM);
	session->share.address = remote ? shares_find(all, '#', host, 0) : NULL;
	return session->share.identity && (session->share.address || !remote);
}

/* The limits that hold for it now, and whether it is an administrator. */
static void share_look_up(struct session *session) {
	struct sessions *s = session->all;
	const struct session_who who = session_who(session);
	session->rules = s->rules;
	session->share.identity->limits = session->inside ? (struct share_limits){ { 0 } } : s->limits.identity;
	if (session->share.address) {
		session->share.address->limits = s->limits.address;
	}
	session->admin = s->handlers->terms(s->ctx, &who, &session->share.identity->limits);
	session->memory->admin = session->admin;
}

/* A full node ends its oldest stranger rather than to refuse a newcomer; administrators have places of their own. */
static bool session_has_place(struct session *session) {
	struct sessions *s = session->all;
	struct stranger *oldest;
	bool stranger = strangers_remove(&s->strangers, &session->stranger);
	while (s->by_id.count > s->limits.clients && !session->admin && (oldest = strangers_oldest(&s->strangers)) != NULL) {
		session_end(CONTAINER_OF(oldest, struct session, stranger), strangers_evicted);
	}
	if (stranger) {
		strangers_add(&s->strangers, &session->stranger);
	}
	return s->by_id.count <= s->limits.clients || session->admin;
}

void session_join(struct session *session) {
	static const struct client_refusal full = { .error = PAWL_EFULL, .field = { (const uint8_t *)"clients", 7 }, .retry_after = SPAN_S,
		.message = "this node has as many connections as it may: the places above that are kept for administrators" };
	struct sessions *s = session->all;
	struct share_quota quota;
	if (!share_find(session)) {
		session->share = (struct share_pair){ NULL, NULL };
		session_end(session, "out of memory");
		return;
	}
	const struct share_pair share = session->share;
	share_look_up(session);
	session->share = (struct share_pair){ NULL, NULL };
	if (!session_has_place(session)) {
		session_refuse_and_close(session, 0, &full);
	} else if (!session->inside && shares_full(&share, SHARE_CLIENTS, 1, session->admin ? ADMIN_SPARE : 0, &quota)) {
		s->shares.refused++;
		session_refuse_and_close(session, 0, &quota.refusal);
	} else {
		session->share = share;
		shares_take(&share, SHARE_CLIENTS, 1);
		memory_join(session->memory, &share);
	}
}

bool session_mends(const struct session *session, enum client_method method) {
	enum right right = client_method_right(method);
	return session->admin && (right == RIGHT_STATUS || right == RIGHT_CLUSTER || right == RIGHT_BREAK);
}

static bool share_over(const struct session *session, const struct client_request *request, struct instant now, struct share_quota *room) {
	bool keeps = session_keeps(request->method);
	if (!keeps && shares_full(&session->share, SHARE_REQUESTS, 1, 0, room)
		&& (!session_mends(session, request->method) || shares_full(&session->share, SHARE_REQUESTS, 1, ADMIN_SPARE, room))) {
		return true;
	}
	return shares_rated(&session->share) && shares_hurried(&session->share, keeps, now, room) && !session_mends(session, request->method);
}

const struct client_refusal *session_over_quota(struct session *session, const struct client_request *request, struct instant now,
	struct share_quota *room) {
	if (session->rules != session->all->rules) {
		share_look_up(session);
	}
	if (request->method == CLIENT_PING) {
		return NULL;
	}
	bool easy = memory_easy(session->memory, 1) || session_keeps(request->method);
	const struct client_refusal *full = easy ? NULL : session_over_memory(session, request->method, room);
	if (full || share_over(session, request, now, room)) {
		session->all->shares.refused++;
		return full ? full : &room->refusal;
	}
	if (shares_rated(&session->share)) {
		size_t parts = request->lock_count + request->core.lock_count;
		shares_charge(&session->share, parts ? parts : 1, now);
	}
	return NULL;
}

void session_part(struct session *session) {
	if (fair_waits(&session->flow)) {
		session_stop_waiting(session);
	}
	if (session->share.identity) {
		shares_give(&session->share, SHARE_REQUESTS, session->open); /* the owner hears that it is gone, and answers none of them */
		shares_give(&session->share, SHARE_WATCHES, session->watches);
		shares_give(&session->share, SHARE_CLIENTS, 1);
	}
}

/* ---- for the owner ---- */

const struct share_pair *sessions_share(const struct sessions *s, uint64_t client) {
	const struct session *session = sessions_find(s, client);
	return session ? &session->share : NULL;
}

void sessions_count_refused(struct sessions *s) {
	s->shares.refused++;
}

uint64_t sessions_refused(const struct sessions *s) {
	return s->shares.refused;
}

const struct share *sessions_share_after(const struct sessions *s, uint64_t number) {
	return shares_after(&s->shares, number);
}
