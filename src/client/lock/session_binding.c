/* session_binding.c: keeps locks bound to the present connection, and connections open for as long
 * as locks depend on them. */
#include "session_binding.h"

#include <unistd.h>

#include "check.h"

static struct pawl_lock *lock_at(struct list *at) {
	return CONTAINER_OF(at, struct pawl_lock, link);
}

/* Returns whether closing that connection would end, or could end, a lock that somebody still
 * trusts. The lock is known to be bound to that connection, or to an earlier one and perhaps to
 * that one since. */
static bool depends(const struct pawl_lock *lock, unsigned number) {
	return lock->binding && lock->bound_connection <= number && lock->first_connection <= number
		&& pawl_lock_valid_ms(lock) > 0;
}

static struct pawl_lock *find_dependent(const struct pawl *client, unsigned number) {
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		if (depends(lock_at(at), number)) {
			return lock_at(at);
		}
	}
	return NULL;
}

/* docs/protocol.md, Release on disconnect: a client that cannot bind a lock to another connection
 * stops trusting it before this connection is closed. */
static void lose_dependents(struct pawl *client, unsigned number) {
	struct pawl_lock *lock;
	while (!client->dying && (lock = find_dependent(client, number)) != NULL) {
		lock_lose(lock, PAWL_ELOST);
	}
}

static void close_first(struct pawl *client) {
	close(client->retained[0].fd);
	client->retained_count--;
	for (size_t i = 0; i < client->retained_count; i++) {
		client->retained[i] = client->retained[i + 1];
	}
}

static void retain_connection(struct session *session) {
	struct pawl *client = session->client;
	if (client->retained_count == RETAINED_MAX) {
		lose_dependents(client, client->retained[0].number);
		close_first(client);
	}
	client->retained[client->retained_count++] = (struct retained_connection){
		.fd = connection_leave_open(&session->connection),
		.number = session->number
	};
}

void session_binding_connection_up(struct pawl *client) {
	if (client->on_connected) {
		client->on_connected(client->session->connection.fd, client->connected_arg);
	}
}

void pawl_on_connected(struct pawl *client, pawl_connected_fn *connected, void *arg) {
	client->on_connected = connected;
	client->connected_arg = arg;
}

/* While a transfer is under way, the lock is not trusted. As the connection is lost, the lock must
 * not be trusted again, even if it turns out that the transfer had no effect. */
static void lose_leaving(const struct session *session) {
	const struct pawl *client = session->client;
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = lock_at(at);
		if (lock->binding && lock->leaving && lock->bound_connection <= session->number) {
			lock_lose(lock, PAWL_ELOST);
		}
	}
}

bool session_binding_full(const struct pawl *client) {
	return client->retained_count >= RETAINED_BEFORE_STAYING
		&& find_dependent(client, client->connection_number);
}

bool session_binding_needs(const struct session *session) {
	return find_dependent(session->client, session->number) != NULL;
}

void session_binding_connection_lost(struct session *session) {
	struct pawl *client = session->client;
	lose_leaving(session);
	if (!session->connection.ended && session_binding_needs(session)) {
		if (session->connection.broken) {
			/* No connection is left that could be kept open. */
			lose_dependents(client, session->number);
		} else {
			retain_connection(session);
		}
	}
}

/* Binds the locks to the new connection at once, and not only when they are due, because until then
 * nobody would notice the death of this process. */
void session_binding_rebind(struct pawl *client) {
	for (struct list *at = client->bound_ever ? list_first(&client->locks) : NULL; at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = lock_at(at);
		if (lock->binding && !lock->cause && !lock->leaving && !lock->no_renewal
			&& !lock->batch && !lock->reclaim && !list_linked(&lock->due)) {
			agenda_clear(&client->agenda, &lock->renew_alarm);
			list_append(&client->due, &lock->due);
			client_core_kick(client);
		}
	}
}

void session_binding_turn(struct pawl *client) {
	while (client->retained_count && !find_dependent(client, client->retained[0].number)) {
		close_first(client);
	}
	if (client->retained_count && !wheel_armed(&client->retained_alarm.timer)) {
		const struct pawl_lock *lock = find_dependent(client, client->retained[0].number);
		agenda_set(&client->agenda, &client->retained_alarm, lock->deadline.boot);
	}
}

static void on_retained_alarm(struct alarm *alarm) {
	client_core_kick(CONTAINER_OF(alarm, struct pawl, retained_alarm));
}

void session_binding_init(struct pawl *client) {
	client->retained_alarm.ring = on_retained_alarm;
}

void session_binding_done(struct pawl *client) {
	agenda_clear(&client->agenda, &client->retained_alarm);
	while (client->retained_count) {
		close_first(client);
	}
}
