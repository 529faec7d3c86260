/* hub.c: the turn of a client's loop, who is inside, and waiting for it. */
#include "hub.h"

#include "check.h"

/* ---- the turn ---- */

void hub_enter(struct pawl *hub) {
	hub->inside++;
}

void hub_leave(struct pawl *hub) {
	CHECK(hub->inside > 0);
	hub->inside--;
	if (hub->inside > 0) {
		return;
	}
	if (hub->dying) {
		if (hub->blocking) {
			hub->handlers->cancel(hub); /* the blocking call sees its own end, then destroys */
		} else {
			hub->handlers->destroy(hub);
		}
		return;
	}
	agenda_settle(&hub->agenda);
}

void hub_kick(struct pawl *hub) {
	if (!hub->kicked && !hub->dying) {
		hub->kicked = true;
		event_active(&hub->kick, EV_TIMEOUT, 0);
	}
}

static void on_kick(evutil_socket_t fd, short what, void *ctx) {
	struct pawl *hub = ctx;
	(void)fd;
	(void)what;
	hub_enter(hub);
	if (!hub->dying) {
		hub->kicked = false;
		hub->handlers->turn(hub);
	}
	hub_leave(hub);
}

void hub_tick(struct pawl *hub) {
	hub_enter(hub);
	agenda_ring(&hub->agenda);
	hub_leave(hub);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	hub_tick(ctx);
}

int hub_start_clockwork(struct pawl *hub) {
	int error = agenda_init(&hub->agenda, &hub->env, hub->base, on_timer, hub);
	if (!error) {
		CHECK(event_assign(&hub->kick, hub->base, -1, 0, on_kick, hub) == 0);
	}
	return error;
}

/* ---- blocking ---- */

bool hub_may_block(const struct pawl *hub) {
	return hub->own_base && hub->inside == 0 && hub->blocking == 0 && !hub->dying;
}

/* True: a callback has freed the client, and it is gone now. */
static bool stop_blocking(struct pawl *hub) {
	hub->blocking--;
	bool gone = hub->dying && hub->blocking == 0;
	if (gone) {
		hub->handlers->destroy(hub);
	}
	return gone;
}

int hub_wait(struct pawl *hub, const bool *over) {
	int error = 0;
	hub->blocking++;
	agenda_settle(&hub->agenda);
	while (!*over && !error) {
		error = event_base_loop(hub->base, EVLOOP_ONCE) < 0 ? PAWL_EIO : 0;
	}
	return stop_blocking(hub) ? PAWL_ECANCELED : error;
}

struct nap {
	struct alarm alarm;
	bool over;
};

static void on_nap_over(struct alarm *alarm) {
	CONTAINER_OF(alarm, struct nap, alarm)->over = true;
}

int pawl_poll(struct pawl *client, uint32_t timeout_ms) {
	if (!hub_may_block(client)) {
		return PAWL_EINVAL;
	}
	struct nap nap = { .alarm.ring = on_nap_over };
	uint64_t callbacks = client->callbacks;
	int error = 0;
	client->blocking++;
	agenda_set(&client->agenda, &nap.alarm, hub_now(client).boot + (span_ns)timeout_ms * SPAN_MS);
	agenda_settle(&client->agenda);
	int flags = timeout_ms ? EVLOOP_ONCE : EVLOOP_NONBLOCK;
	do {
		error = event_base_loop(client->base, flags) < 0 ? PAWL_EIO : 0;
	} while (!error && !client->dying && timeout_ms && !nap.over && client->callbacks == callbacks);
	agenda_clear(&client->agenda, &nap.alarm);
	return stop_blocking(client) ? PAWL_ECANCELED : error;
}
