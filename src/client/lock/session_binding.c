#include "session_binding.h"

#include <unistd.h>

#include "check.h"

static struct pawl_lock *lock_at(struct list *at) {
	return CONTAINER_OF(at, struct pawl_lock, link);
}

/* Closing that connection would, or could, end a lock that somebody still trusts: the connection is the one that it is known to be bound to, or
 * a later one, where perhaps it is bound since. */
static bool depends(const struct pawl_lock *lock, unsigned number) {
	return lock->binding && lock->bound_connection <= number && lock->first_connection <= number && pawl_lock_valid_ms(lock) > 0;
}

static struct pawl_lock *find_dependent(const struct pawl *hub, unsigned number) {
	for (struct list *at = list_first(&hub->locks); at; at = list_after(&hub->locks, at)) {
		if (depends(lock_at(at), number)) {
			return lock_at(at);
		}
	}
	return NULL;
}

/* docs/protocol.md, Release on disconnect: who cannot bind to another connection stops trusting before this one is closed. */
static void lose_dependents(struct pawl *hub, unsigned number) {
	struct pawl_lock *lock;
	while (!hub->dying && (lock = find_dependent(hub, number)) != NULL) {
		lock_lose(lock, PAWL_ELOST);
	}
}

static void close_first(struct pawl *hub) {
	close(hub->retained[0].fd);
	hub->retained_count--;
	for (size_t i = 0; i < hub->retained_count; i++) {
		hub->retained[i] = hub->retained[i + 1];
	}
}

static void retain_connection(struct pawl *hub) {
	if (hub->retained_count == RETAINED_MAX) {
		lose_dependents(hub, hub->retained[0].number);
		close_first(hub);
	}
	hub->retained[hub->retained_count++] = (struct retained_connection){ .fd = connection_leave_open(&hub->connection), .number = hub->connection_number };
}

void session_binding_connection_up(struct pawl *hub) {
	if (hub->on_connected) {
		hub->on_connected(hub->connection.fd, hub->connected_arg);
	}
}

void pawl_on_connected(struct pawl *client, pawl_connected_fn *connected, void *arg) {
	client->on_connected = connected;
	client->connected_arg = arg;
}

/* A transfer under way does not trust its lock; it must not again if it turns out that nothing came of it. */
static void lose_leaving(struct pawl *hub) {
	for (struct list *at = list_first(&hub->locks); at; at = list_after(&hub->locks, at)) {
		if (lock_at(at)->binding && lock_at(at)->leaving) {
			lock_lose(lock_at(at), PAWL_ELOST);
		}
	}
}

bool session_binding_full(const struct pawl *hub) {
	return hub->retained_count >= RETAINED_FOR_ANOTHER && find_dependent(hub, hub->connection_number);
}

void session_binding_connection_lost(struct pawl *hub) {
	lose_leaving(hub);
	if (!hub->connection.ended && find_dependent(hub, hub->connection_number)) {
		if (hub->connection.broken) {
			lose_dependents(hub, hub->connection_number); /* nothing is left that could be kept open */
		} else {
			retain_connection(hub);
		}
	}
}

/* At once, not when it would be due: until then this process's death would not be noticed. */
void session_binding_anew(struct pawl *hub) {
	for (struct list *at = hub->bound_ever ? list_first(&hub->locks) : NULL; at; at = list_after(&hub->locks, at)) {
		struct pawl_lock *lock = lock_at(at);
		if (lock->binding && !lock->cause && !lock->leaving && !lock->no_renewal && !lock->batch && !lock->reclaim && !list_linked(&lock->due)) {
			agenda_clear(&hub->agenda, &lock->renew_alarm);
			list_append(&hub->due, &lock->due);
			hub_kick(hub);
		}
	}
}

void session_binding_turn(struct pawl *hub) {
	while (hub->retained_count && !find_dependent(hub, hub->retained[0].number)) {
		close_first(hub);
	}
	if (hub->retained_count && !wheel_armed(&hub->retained_alarm.timer)) {
		const struct pawl_lock *lock = find_dependent(hub, hub->retained[0].number);
		agenda_set(&hub->agenda, &hub->retained_alarm, lock->deadline.boot);
	}
}

static void on_retained_alarm(struct alarm *alarm) {
	hub_kick(CONTAINER_OF(alarm, struct pawl, retained_alarm));
}

void session_binding_init(struct pawl *hub) {
	hub->retained_alarm.ring = on_retained_alarm;
}

void session_binding_done(struct pawl *hub) {
	agenda_clear(&hub->agenda, &hub->retained_alarm);
	while (hub->retained_count) {
		close_first(hub);
	}
}

/* ---- one lock ---- */

void session_binding_begin(struct pawl_lock *lock) {
	lock->hub->bound_ever = true;
	lock->first_connection = lock->bound_connection = lock->hub->connection_number;
}

bool session_binding_wanted(const struct pawl_lock *lock) {
	return lock->binding && lock->bound_connection != lock->hub->connection_number;
}

void session_binding_made(struct pawl_lock *lock, unsigned connection_number) {
	if (lock->binding && connection_number > lock->bound_connection) {
		lock->bound_connection = connection_number;
		hub_kick(lock->hub); /* a connection may be closed now */
	}
}
