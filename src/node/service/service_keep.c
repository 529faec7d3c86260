/* service_keep.c: extends the locks without an end of clients whose protocol has such locks, as
 * long as this node lives and their holders may have them.
 */
#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

/* How many locks are extended in one turn of the loop; the others follow at once. */
#define EXTENDED_AT_ONCE 64

static span_ns keep_lease(const struct service *s) {
	return core_config(s->driver->core)->max_lease;
}

/* Sets the timer for the lock that is to be extended next. */
static void keep_arm(struct service *s) {
	const struct kept_lock *next = kept_locks_next(&s->kept);
	if (!next) {
		event_del(s->keep);
		return;
	}
	const span_ns left = instant_left_long(s->driver->last, next->due);
	const struct timeval wait = { .tv_sec = (time_t)(left / SPAN_S),
		.tv_usec = (suseconds_t)(left % SPAN_S / SPAN_US) };
	event_add(s->keep, &wait);
}

/* Returns whether the holder may still extend the lock. */
static bool keep_may(const struct service *s, const struct kept_lock *kept) {
	const struct kept_holder *h = &kept->holder;
	struct origin from;
	origin_named("", &from);
	from.local = h->local;
	from.uid = h->uid;
	memcpy(from.gids, h->gids, h->gid_count * sizeof h->gids[0]);
	from.gid_count = h->gid_count;
	from.more_gids = h->more_gids;
	const struct session_who who = { .identity = h->identity, .local = h->local,
		.inside = h->inside, .from = &from };
	return service_may_ask(s, &who, CLIENT_EXTEND, kept->key);
}

/* The protocol has no word for a lock that was lost, so the connection that took it is closed: its
 * client must not go on believing. */
static void keep_lose(struct service *s, const struct kept_lock *kept, const char *why) {
	const uint64_t client = kept->holder.client;
	log_to(s->driver->log, LEVEL_WARNING, "kept_lock_lost", LOG_BYTES("key", kept->key),
		LOG_BYTES("identity", kept->holder.identity), LOG_TEXT("why", why));
	kept_locks_drop(&s->kept, kept->lock_id);
	service_sever(s, client);
}

static void keep_extend(struct service *s, struct kept_lock *kept) {
	const struct core_request extend = { .id = DRIVER_OWN | ++s->last_own,
		.client = DRIVER_OWN | s->last_own, .op = CORE_EXTEND, .key = kept->key,
		.lock_id = kept->lock_id, .identity = kept->holder.owner,
		.lease = keep_lease(s) };
	const struct core_event event = { .kind = CORE_REQUEST, .request = &extend,
		.client = extend.client };
	kept_lock_asked(kept, extend.id, s->driver->last);
	kept_locks_again(&s->kept, kept, s->driver->last, keep_lease(s));
	driver_step_now(s->driver, &event);
}

static void keep_on_due(evutil_socket_t fd, short what, void *ctx) {
	struct service *s = ctx;
	struct kept_lock *next;
	const struct instant now = driver_now(s->driver);
	(void)fd;
	(void)what;
	for (int i = 0; i < EXTENDED_AT_ONCE && (next = kept_locks_next(&s->kept)) != NULL
		&& instant_expired(now, next->due); i++) {
		if (kept_lock_over(next, now)) {
			keep_lose(s, next, "no extension has succeeded in time");
		} else if (keep_may(s, next)) {
			keep_extend(s, next);
		} else {
			keep_lose(s, next, "its holder lacks the right to extend it");
		}
	}
	keep_arm(s);
}

int service_keep_init(struct service *s, const struct allocator *alloc) {
	s->keep = evtimer_new(s->driver->base, keep_on_due, s);
	return s->keep ? kept_locks_init(&s->kept, alloc) : PAWL_ENOMEM;
}

void service_keep_done(struct service *s) {
	kept_locks_done(&s->kept);
	if (s->keep) {
		event_free(s->keep);
		s->keep = NULL;
	}
}

int service_keep(struct service *s, uint64_t client, struct slice key, struct id128 lock_id,
	struct instant until) {
	struct session_who who;
	if (!sessions_who(s->sessions, client, &who)) {
		return PAWL_EFULL;
	}
	const struct origin *from = who.from;
	const struct kept_holder holder = { .client = client, .identity = who.identity,
		.owner = service_owner(s, &who), .local = who.local, .inside = who.inside,
		.uid = from->uid, .gids = from->gids, .gid_count = from->gid_count,
		.more_gids = from->more_gids };
	const struct kept_lease lease = { until, keep_lease(s) };
	const int error = kept_locks_add(&s->kept, key, lock_id, &holder, lease,
		s->driver->config->limits.kept_locks);
	if (!error) {
		kept_locks_again(&s->kept, kept_locks_find(&s->kept, lock_id), s->driver->last,
			keep_lease(s));
	}
	keep_arm(s);
	return error;
}

void service_keep_asked(struct service *s, const struct core_request *request) {
	/* A release that expects a value may leave the lock held, so it has to succeed first. */
	const bool lets_go = !request->expect_value && !request->expect_seq;
	const struct kept_lock *kept = lets_go ? kept_locks_find(&s->kept, request->lock_id) : NULL;
	/* If this release fails, the lock ends with its lease. */
	if (kept && slice_equal(kept->holder.owner, request->identity)) {
		kept_locks_drop(&s->kept, request->lock_id);
	}
}

void service_keep_ended(struct service *s, const struct core_reply *reply) {
	if (!reply->error && (reply->op == CORE_RELEASE || reply->op == CORE_TRANSFER)) {
		kept_locks_drop(&s->kept, reply->lock_id);
	}
}

void service_keep_answered(struct service *s, const struct core_reply *reply) {
	struct kept_lock *kept = reply->op == CORE_EXTEND
		? kept_locks_find(&s->kept, reply->lock_id) : NULL;
	if (!kept) {
		return;
	}
	service_audit_kept(s, kept, reply);
	if (!reply->error) {
		kept_lock_extended(kept, reply->id, reply->valid);
	}
	struct holding *held = holdings_find(&s->holdings,
		holdings_hash(&s->holdings, kept->key, kept->lock_id));
	if (!reply->error && held) {
		holdings_until(held, instant_add(s->driver->last, reply->valid));
	}
	if (reply->error == PAWL_ELOST || reply->error == PAWL_EDENIED) {
		if (held) {
			holdings_drop(&s->holdings, held);
		}
		/* The right to extend it was there when this was asked. */
		keep_lose(s, kept, reply->error == PAWL_EDENIED ? "an administrator broke it"
			: pawl_error_message(reply->error));
	}
}

struct slice service_client_identity(const struct service *s, uint64_t client) {
	struct session_who who;
	return sessions_who(s->sessions, client, &who) ? service_owner(s, &who)
		: slice_of(NULL, 0);
}
