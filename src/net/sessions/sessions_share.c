/* sessions_share.c: whose connections belong together, and what they may take together. Hands over
 * one request, unless it is too much.
 */
#include "sessions_impl.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"

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
bool session_find_share(struct session *session) {
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
void session_look_up(struct session *session) {
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

/* ---- whether a request is over a limit ---- */

static const struct client_refusal pool_refusal = { .error = PAWL_EFULL,
	.field = { (const uint8_t *)"client_memory", 13 }, .retry_after = SPAN_S,
	.message = "this node's memory for connections is full (client_memory), and this "
		"identity uses most of it" };

/* Returns whether this session belongs to the identity that is refused when the memory of all is
 * full. */
static bool session_is_heaviest(const struct session *session) {
	struct sessions *s = session->all;
	if (!s->heaviest) {
		s->heaviest = shares_heaviest(&s->shares);
	}
	return session->share.identity && session->share.identity == s->heaviest;
}

bool session_fills_pool(const struct session *session, enum memory_step step) {
	return memory_pool_full(&session->all->memory, 1, step) && session_is_heaviest(session);
}

/* Returns whether this is a request with which an administrator sees or stops what somebody does to
 * the node. */
static bool session_is_remedy(const struct session *session, enum client_method method) {
	enum right right = client_method_right(method);
	return session->admin
		&& (right == RIGHT_STATUS || right == RIGHT_CLUSTER || right == RIGHT_BREAK);
}

static const struct client_refusal *session_over_memory(struct session *session,
	enum client_method method, struct share_quota *room) {
	enum memory_step step = session_is_remedy(session, method) ? MEMORY_END : MEMORY_LIMIT;
	if (memory_share_full(session->memory, step)) {
		shares_full(&session->share, SHARE_MEMORY, 1, 0, room);
		return &room->refusal;
	}
	return session_fills_pool(session, step) ? &pool_refusal : NULL;
}

/* The methods that let others go on, or keep a lock, and the one that asks whether the node
 * lives. */
bool session_is_urgent(const struct client_request *request) {
	const enum client_method method = request->method;
	return request->urgent || method == CLIENT_EXTEND || method == CLIENT_RELEASE
		|| method == CLIENT_UNWATCH || method == CLIENT_PING;
}

/* Returns what refuses the request because its identity or address has reached a limit. If there is
 * nothing, charges the request and returns NULL. The refusal may be in `room`. */
static const struct client_refusal *session_over_quota(struct session *session,
	const struct client_request *request, struct instant now, struct share_quota *room) {
	const struct share_pair *share = &session->share;
	if (session->rules != session->all->rules) {
		session_look_up(session);
	}
	if (request->method == CLIENT_PING) {
		return NULL;
	}
	const bool urgent = session_is_urgent(request);
	const bool rated = (share->identity->limits.max[SHARE_RATE]
			|| (share->address && share->address->limits.max[SHARE_RATE]))
		&& !session_is_remedy(session, request->method);
	const struct client_refusal *full = memory_easy(session->memory, 1) || urgent
		? NULL : session_over_memory(session, request->method, room);
	if (!full && ((!urgent && shares_full(share, SHARE_REQUESTS, 1, 0, room)
			&& (!session_is_remedy(session, request->method)
			|| shares_full(share, SHARE_REQUESTS, 1, SESSIONS_ADMIN_SPARE, room)))
		|| (rated && shares_hurried(share, urgent, now, room)))) {
		full = &room->refusal;
	}
	if (full) {
		session->all->shares.refused++;
	} else if (rated) {
		size_t parts = request->lock_count + request->core.lock_count;
		shares_charge(share, parts ? parts : 1, now);
	}
	return full;
}

/* ---- one request ---- */

int session_dispatch(struct session *session, const struct client_request *request,
	struct session_progress *progress, struct instant now) {
	struct sessions *s = session->all;
	struct share_quota quota;
	const bool judged = progress->done == 0 && !request->gives_back;
	const uint64_t most = s->limits.requests_per_client;
	/* Urgent requests are let through even if a connection has too many under way, but not
	 * without a bound. */
	if (judged && session->open >= most && request->method != CLIENT_PING
		&& (!session_is_urgent(request) || session->open >= 2 * most)) {
		const struct client_refusal busy = { .error = PAWL_EBUSY,
			.message = "too many requests are under way on this connection" };
		progress->done = request->lock_count;
		return session_refuse(session, request->msgid, &busy);
	}
	const struct client_refusal *full = judged
		? session_over_quota(session, request, now, &quota) : NULL;
	const struct session_who who = session_who(session);
	if (full) {
		progress->done = request->lock_count;
		s->handlers->over(s->ctx, &who, full);
		return session_refuse(session, request->msgid, full);
	}
	if (list_linked(&session->stranger.in)) {
		strangers_remove(&s->strangers, &session->stranger);
	}
	/* It has been charged in this turn of the loop. */
	session->method = request->method;
	session->open += progress->done == 0;
	session->requests += progress->done == 0;
	shares_take(&session->share, SHARE_REQUESTS, progress->done == 0);
	s->handlers->request(s->ctx, session->id, &who, request, progress, now);
	return 0;
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
