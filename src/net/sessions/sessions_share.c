/* sessions_share.c: says whose connections belong together, and what they may take together. */
#include "sessions_impl.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"

/* How many connections, and requests under way, an administrator may have above the limits of its
 * share. */
#define ADMIN_SPARE 16
/* The size of an IPv6 network in bytes. Whoever has one address in it has all of them. */
#define NETWORK_BYTES 8
#define HOST_BYTES (INET6_ADDRSTRLEN + IF_NAMESIZE + 1)

/* Writes the network of an IPv6 address, which has 64 bits. The name of the link follows if the
 * address is valid on one link only. An IPv4 address that a listener for IPv6 has accepted is
 * written as such. Returns false if `text` is no IPv6 address. */
static bool share_network(const char *text, size_t size, char out[HOST_BYTES]) {
	char name[HOST_BYTES];
	struct in6_addr ip;
	if (size >= sizeof name) {
		return false;
	}
	snprintf(name, sizeof name, "%.*s", (int)size, text);
	char *link = strchr(name, '%');
	if (link) {
		*link++ = '\0';
	}
	if (inet_pton(AF_INET6, name, &ip) != 1) {
		return false;
	}
	if (IN6_IS_ADDR_V4MAPPED(&ip)) {
		return inet_ntop(AF_INET, ip.s6_addr + sizeof ip.s6_addr - sizeof(struct in_addr),
			out, HOST_BYTES);
	}
	char network[INET6_ADDRSTRLEN];
	memset(ip.s6_addr + NETWORK_BYTES, 0, sizeof ip.s6_addr - NETWORK_BYTES);
	inet_ntop(AF_INET6, &ip, network, sizeof network);
	snprintf(out, HOST_BYTES, link ? "%s%%%s" : "%s", network, link);
	return true;
}

/* Returns the address without its port. */
static struct slice share_host(const struct session *session, char room[HOST_BYTES]) {
	const struct origin *from = &session->from;
	bool network = from->host_bytes > 2 && from->address[0] == '['
		&& share_network(from->address + 1, from->host_bytes - 2u, room);
	return network ? slice_str(room) : slice_of((const uint8_t *)from->address,
		from->host_bytes);
}

/* Finds the shares of a session. The first is that of its identity, which is the account for a Unix
 * socket, or that of its address if it has no identity. The second is that of its address, if it
 * has one. */
static bool share_find(struct session *session) {
	struct shares *all = &session->all->shares;
	char room[HOST_BYTES];
	const struct slice host = share_host(session, room);
	bool named = session->identity[0] && strcmp(session->identity, RIGHTS_PLAIN) != 0;
	bool remote = session->from.uid == ORIGIN_UNKNOWN && !session->inside;
	const char kind = session->inside ? '+' : named ? '=' : '@';
	session->share.identity = shares_find(all, kind,
		kind == '@' ? host : slice_str(session->identity), SESSIONS_CONNECTION_QUANTUM);
	session->share.address = remote ? shares_find(all, '#', host, 0) : NULL;
	return session->share.identity && (session->share.address || !remote);
}

/* Looks up the limits that hold for the session now, and whether it is an administrator. */
static void share_look_up(struct session *session) {
	struct sessions *s = session->all;
	const struct session_who who = session_who(session);
	session->rules = s->rules;
	session->share.identity->limits = session->inside
		? (struct share_limits){ { 0 } } : s->limits.identity;
	if (session->share.address) {
		session->share.address->limits = s->limits.address;
	}
	session->admin = s->handlers->own_limits(s->ctx, &who, &session->share.identity->limits);
	session->memory->admin = session->admin;
}

/* Returns whether the session has a place. A full node ends its oldest stranger rather than refuse
 * a newcomer, and administrators have places of their own. */
static bool session_has_place(struct session *session) {
	struct sessions *s = session->all;
	struct stranger *oldest;
	bool stranger = strangers_remove(&s->strangers, &session->stranger);
	while (s->by_id.count > s->limits.clients && !session->admin
		&& (oldest = strangers_oldest(&s->strangers)) != NULL) {
		sessions_evict(oldest);
	}
	if (stranger) {
		strangers_add(&s->strangers, &session->stranger);
	}
	return s->by_id.count <= s->limits.clients || session->admin;
}

bool session_join(struct session *session) {
	static const struct client_refusal full = { .error = PAWL_EFULL,
		.field = { (const uint8_t *)"clients", 7 }, .retry_after = SPAN_S,
		.message = "this node has reached its limit of connections (clients); the "
			"remaining places are for administrators" };
	struct sessions *s = session->all;
	struct share_quota quota;
	if (!share_find(session)) {
		session->share = (struct share_pair){ NULL, NULL };
		session_end(session, "out of memory");
		return false;
	}
	const struct share_pair share = session->share;
	share_look_up(session);
	session->share = (struct share_pair){ NULL, NULL };
	if (!session_has_place(session)) {
		session_refuse_and_close(session, 0, &full);
		return false;
	}
	if (!session->inside
		&& shares_full(&share, SHARE_CLIENTS, 1,
		session->admin ? ADMIN_SPARE : 0, &quota)) {
		s->shares.refused++;
		session_refuse_and_close(session, 0, &quota.refusal);
		return false;
	}
	session->share = share;
	shares_take(&share, SHARE_CLIENTS, 1);
	memory_join(session->memory, &share);
	return true;
}

bool session_is_remedy(const struct session *session, enum client_method method) {
	enum right right = client_method_right(method);
	return session->admin
		&& (right == RIGHT_STATUS || right == RIGHT_CLUSTER || right == RIGHT_BREAK);
}

static bool share_over(const struct session *session, const struct client_request *request,
	struct instant now, struct share_quota *room) {
	bool urgent = session_is_urgent(request);
	if (!urgent && shares_full(&session->share, SHARE_REQUESTS, 1, 0, room)
		&& (!session_is_remedy(session, request->method)
		|| shares_full(&session->share, SHARE_REQUESTS, 1, ADMIN_SPARE, room))) {
		return true;
	}
	return shares_rated(&session->share) && shares_hurried(&session->share, urgent, now, room)
		&& !session_is_remedy(session, request->method);
}

const struct client_refusal *session_over_quota(struct session *session,
	const struct client_request *request, struct instant now, struct share_quota *room) {
	if (session->rules != session->all->rules) {
		share_look_up(session);
	}
	if (request->method == CLIENT_PING) {
		return NULL;
	}
	bool easy = memory_easy(session->memory, 1) || session_is_urgent(request);
	const struct client_refusal *full = easy
		? NULL : session_over_memory(session, request->method, room);
	if (full || share_over(session, request, now, room)) {
		session->all->shares.refused++;
		return full ? full : &room->refusal;
	}
	if (shares_rated(&session->share) && !session_is_remedy(session, request->method)) {
		size_t parts = request->lock_count + request->core.lock_count;
		shares_charge(&session->share, parts ? parts : 1, now);
	}
	return NULL;
}

void session_give_back(struct session *session) {
	if (fair_waits(&session->flow)) {
		session_stop_waiting(session);
	}
	session_values_gone(session);
	if (session->share.identity) {
		/* The owner hears that the session is gone, and answers none of its requests. */
		shares_give(&session->share, SHARE_REQUESTS, session->open);
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
