/* client_core.c: the turns of a client's loop, the count of callbacks that are inside the client,
 * and blocking calls, which wait for the loop. */
#include "client_core.h"

#include "check.h"

/* ---- the turn ---- */

void client_core_enter(struct pawl *client) {
	client->inside++;
}

void client_core_leave(struct pawl *client) {
	CHECK(client->inside > 0);
	client->inside--;
	if (client->inside > 0) {
		return;
	}
	if (client->dying) {
		if (client->blocking) {
			/* The blocking call sees that its own call has ended, and then destroys the
			 * client. */
			client->handlers->cancel(client);
		} else {
			client->handlers->destroy(client);
		}
		return;
	}
	agenda_settle(&client->agenda);
}

void client_core_kick(struct pawl *client) {
	if (!client->kicked && !client->dying) {
		client->kicked = true;
		event_active(&client->kick, EV_TIMEOUT, 0);
	}
}

static void on_kick(evutil_socket_t fd, short what, void *ctx) {
	struct pawl *client = ctx;
	(void)fd;
	(void)what;
	client_core_enter(client);
	if (!client->dying) {
		client->kicked = false;
		client->handlers->turn(client);
	}
	client_core_leave(client);
}

void client_core_tick(struct pawl *client) {
	client_core_enter(client);
	agenda_ring(&client->agenda);
	client_core_leave(client);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	client_core_tick(ctx);
}

int client_core_start_timers(struct pawl *client) {
	int error = agenda_init(&client->agenda, &client->env, client->base, on_timer, client);
	if (!error) {
		CHECK(event_assign(&client->kick, client->base, -1, 0, on_kick, client) == 0);
	}
	return error;
}

/* ---- blocking ---- */

bool client_core_may_block(const struct pawl *client) {
	return client->own_base && client->inside == 0 && !client->blocking && !client->dying;
}

static void begin_blocking(struct pawl *client, struct blocking *blocking) {
	client->blocking = blocking;
	agenda_settle(&client->agenda);
}

/* Returns what the blocking call returns if the loop has ended with that error. After
 * PAWL_ECANCELED the client is gone, because a callback has freed it. */
static int stop_blocking(struct pawl *client, int error) {
	const struct blocking *blocking = client->blocking;
	client->blocking = NULL;
	if (client->dying) {
		client->handlers->destroy(client);
		return PAWL_ECANCELED;
	}
	return error ? error : blocking->interrupted && !*blocking->over ? PAWL_EINTERRUPTED : 0;
}

int client_core_wait(struct pawl *client, const bool *over, struct pawl_call *call) {
	struct blocking blocking = { .over = over, .call = call };
	int error = 0;
	begin_blocking(client, &blocking);
	while (!*over && !error && !blocking.interrupted) {
		error = event_base_loop(client->base, EVLOOP_ONCE) < 0 ? PAWL_EIO : 0;
	}
	return stop_blocking(client, error);
}

struct nap {
	struct alarm alarm;
	bool over;
};

static void on_nap_over(struct alarm *alarm) {
	CONTAINER_OF(alarm, struct nap, alarm)->over = true;
}

int pawl_poll(struct pawl *client, uint32_t timeout_ms) {
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	struct nap nap = { .alarm.ring = on_nap_over };
	struct blocking blocking = { .over = &nap.over };
	uint64_t callbacks = client->callbacks;
	int error = 0;
	if (timeout_ms) {
		agenda_set(&client->agenda, &nap.alarm,
			client_core_now(client).boot + (span_ns)timeout_ms * SPAN_MS);
	}
	begin_blocking(client, &blocking);
	int flags = timeout_ms ? EVLOOP_ONCE : EVLOOP_NONBLOCK;
	do {
		error = event_base_loop(client->base, flags) < 0 ? PAWL_EIO : 0;
	} while (!error && !client->dying && timeout_ms && !nap.over && !blocking.interrupted
		&& client->callbacks == callbacks);
	agenda_clear(&client->agenda, &nap.alarm);
	return stop_blocking(client, error);
}
