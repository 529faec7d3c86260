/* service_shares.c: what a request takes of the share of its caller, and what stays of that when
 * the request is answered.
 */
#include <event2/event.h>

#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"
#include "time_source.h"

/* How many locks are looked at in one turn of the loop, to drop those whose time is over. */
#define SWEEP_AT_ONCE 2000

/* ---- who may have how much ---- */

bool service_own_limits(const struct service *s, const struct session_who *who,
	struct share_limits *limits) {
	const struct rights_caller caller = service_caller(who);
	if (s->driver->config->rights) {
		rights_limits(s->driver->config->rights, &caller, limits);
	}
	return service_has(s, who, RIGHT_CLUSTER);
}

/* ---- before the request ---- */

bool service_share_take(const struct service_call *call, const struct core_request *request,
	struct request *open, struct share_quota *out_full) {
	const struct share_pair *share = call->who->share;
	const bool waits = request->wait > 0;
	const uint32_t locks = request->op == CORE_ACQUIRE_ALL ? request->lock_count
		: request->op == CORE_ACQUIRE;
	/* For an update, both values count until it is answered. */
	const uint64_t bytes = request->value.size * (request->op == CORE_UPDATE ? 1 : locks);
	if ((waits && shares_full(share, SHARE_WAITS, 1, 0, out_full))
		|| (locks && shares_full(share, SHARE_LOCKS, locks, 0, out_full))
		|| (bytes && shares_full(share, SHARE_VALUES, bytes, 0, out_full))) {
		return false;
	}
	open->held = request->lock_count ? 0 : holdings_hash(&call->service->holdings, request->key,
		request->lock_id);
	if (waits || locks || bytes) {
		open->share = *share;
		open->locks = locks;
		open->bytes = bytes;
		shares_take(share, SHARE_WAITS, waits);
		shares_take(share, SHARE_LOCKS, locks);
		shares_take(share, SHARE_VALUES, bytes);
	}
	if (waits) {
		requests_mark_waiting(open);
	}
	return true;
}

bool service_share_watched_enough(struct service *s, uint64_t client, uint32_t msgid) {
	const struct share_pair *share = sessions_share(s->sessions, client);
	struct share_quota quota;
	bool full = share && shares_full(share, SHARE_WATCHES, 1, 0, &quota);
	if (full) {
		service_refuse_quota(s, client, msgid, &quota);
	}
	return full;
}

/* ---- after the answer ---- */

/* From now on, what was counted for the request is counted for the lock. If the lock was there
 * before, only its value is counted. */
static void share_got(struct service *s, struct request *request, uint64_t hash,
	uint32_t value_bytes, span_ns lease) {
	struct holding *held = holdings_find(&s->holdings, hash);
	if (held) {
		holdings_value(&s->holdings, held, value_bytes);
		holdings_belongs(&s->holdings, held, request->party);
	} else if (request->locks > 0 && (held = holdings_adopt(&s->holdings, hash, &request->share,
		request->party, value_bytes)) != NULL) {
		request->locks--;
		request->bytes -= value_bytes;
	}
	if (held) {
		holdings_until(held, instant_add(s->driver->last, lease));
	}
}

static void share_got_all(struct service *s, struct request *request,
	const struct core_reply *reply) {
	uint32_t bytes = request->locks ? (uint32_t)(request->bytes / request->locks) : 0;
	for (size_t i = 0; i < reply->count; i++) {
		share_got(s, request,
			holdings_hash(&s->holdings, reply->got[i].key, reply->got[i].lock_id),
			bytes, reply->valid);
	}
}

/* A lock that was granted through another node counts here from now on, until its lease is over. */
static struct holding *share_meet(struct service *s, const struct request *request, span_ns lease) {
	const struct share_pair *share = sessions_share(s->sessions, request->client);
	struct holding *held = share ? holdings_adopt(&s->holdings, request->held, share, NULL, 0)
		: NULL;
	if (held) {
		shares_take(share, SHARE_LOCKS, 1);
		holdings_until(held, instant_add(s->driver->last, lease));
	}
	return held;
}

static void share_extended(struct service *s, struct request *request, span_ns lease) {
	struct holding *held = holdings_find(&s->holdings, request->held);
	if (held) {
		holdings_until(held, instant_add(s->driver->last, lease));
	} else {
		held = share_meet(s, request, lease);
	}
	if (held && !holdings_party(&s->holdings, held) && !request->party) {
		/* It is of the connection, unless the client has said something else. */
		requests_of_party(&s->requests, request, (struct id128){ { 0 } });
	}
	if (held) {
		holdings_belongs(&s->holdings, held, request->party);
	}
}

static void share_updated(struct service *s, const struct request *request) {
	struct holding *held = holdings_find(&s->holdings, request->held);
	held = held ? held : share_meet(s, request, core_config(s->driver->core)->max_lease);
	if (held) {
		holdings_value(&s->holdings, held, (uint32_t)request->bytes);
	}
}

static void share_let_go(struct service *s, const struct request *request) {
	struct holding *held = holdings_find(&s->holdings, request->held);
	if (held) {
		holdings_drop(&s->holdings, held);
	}
}

void service_share_answered(struct service *s, struct request *request,
	const struct core_reply *reply) {
	if (reply->error == PAWL_ELOST && reply->op != CORE_ACQUIRE_ALL) {
		share_let_go(s, request);
	} else if (reply->error) {
		return;
	} else if (reply->op == CORE_ACQUIRE_ALL) {
		share_got_all(s, request, reply);
	} else if (reply->op == CORE_ACQUIRE) {
		share_got(s, request, request->held, (uint32_t)request->bytes, reply->valid);
	} else if (reply->op == CORE_EXTEND) {
		share_extended(s, request, reply->valid);
	} else if (reply->op == CORE_UPDATE) {
		share_updated(s, request);
	} else if (reply->op == CORE_RELEASE || reply->op == CORE_TRANSFER) {
		share_let_go(s, request);
	}
}

/* ---- locks that nobody releases ---- */

static void share_on_sweep(evutil_socket_t fd, short what, void *ctx) {
	static const struct timeval second = { 1, 0 }, next_turn = { 0, 0 };
	struct service *s = ctx;
	(void)fd;
	(void)what;
	bool more = holdings_sweep(&s->holdings, time_source_now(), SWEEP_AT_ONCE);
	event_add(s->sweep, more ? &next_turn : &second);
}

int service_shares_init(struct service *s, const struct allocator *alloc,
	struct siphash_key hash_key) {
	static const struct timeval second = { 1, 0 };
	s->sweep = evtimer_new(s->driver->base, share_on_sweep, s);
	if (!s->sweep || event_add(s->sweep, &second) != 0) {
		return PAWL_ENOMEM;
	}
	return holdings_init(&s->holdings, alloc, hash_key, &s->requests.parties);
}
