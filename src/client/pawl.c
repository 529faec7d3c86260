/* pawl.c: a client's life: options, the turn of its loop, the end; and the two ways to ask. */
#include "lock.h"

#include <limits.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "check.h"
#include "election.h"
#include "watch.h"

#define TIMEOUT_MS_DEFAULT 5000
#define CONNECT_TIMEOUT_MS_DEFAULT 1000
#define SILENCE_MS_DEFAULT 2000

/* ---- the turn ---- */

static void hub_destroy(struct pawl *hub);

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
			calls_fail_all(hub, PAWL_ECANCELED); /* the blocking call sees its own end, then destroys */
		} else {
			hub_destroy(hub);
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

static bool wants_line(struct pawl *hub) {
	return !list_empty(&hub->queue) || !list_empty(&hub->due) || watches_want_line(hub);
}

static void hub_turn(struct pawl *hub) {
	hub->kicked = false;
	bind_turn(hub);
	renew_turn(hub);
	if (hub->state == HUB_READY) {
		watches_turn(hub);
		calls_send(hub);
	}
	if (hub->state == HUB_READY && !hub->dying) {
		int error = line_flush(&hub->line);
		if (error) {
			hub->line.owner.down(hub, error);
		} else if (!list_empty(&hub->queue) && line_backlog(&hub->line) == 0) {
			hub_kick(hub); /* there was no room for them, now there is; else the line tells when */
		}
	}
	if (hub->state == HUB_IDLE && !hub->dying && wants_line(hub)) {
		reach_connect(hub);
	}
}

static void on_kick(evutil_socket_t fd, short what, void *ctx) {
	struct pawl *hub = ctx;
	(void)fd;
	(void)what;
	hub_enter(hub);
	if (!hub->dying) {
		hub_turn(hub);
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

bool hub_may_block(const struct pawl *hub) {
	return hub->own_base && hub->inside == 0 && hub->blocking == 0 && !hub->dying;
}

/* True: a callback has freed the client, and it is gone now. */
static bool stop_blocking(struct pawl *hub) {
	hub->blocking--;
	bool gone = hub->dying && hub->blocking == 0;
	if (gone) {
		hub_destroy(hub);
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

/* ---- its life ---- */

static void bytes_free(const struct allocator *alloc, struct pawl_bytes b) {
	if (b.data) {
		union { const void *from; void *to; } owned = { .from = b.data };
		alloc_free(alloc, owned.to, b.size);
	}
}

static int bytes_copy(const struct allocator *alloc, struct pawl_bytes from, struct pawl_bytes *out) {
	if (!from.size) {
		return 0;
	}
	void *copy = alloc_new(alloc, from.size);
	if (!copy) {
		return PAWL_ENOMEM;
	}
	memcpy(copy, from.data, from.size);
	*out = (struct pawl_bytes){ copy, from.size };
	return 0;
}

static void hub_destroy(struct pawl *hub) {
	const struct allocator *alloc = hub->env.alloc;
	hub->inside++; /* nobody destroys it again meanwhile */
	if (hub->state == HUB_READY) {
		calls_part(hub);
		elections_part(hub);
		(void)line_flush(&hub->line); /* as far as the socket takes it */
	}
	calls_fail_all(hub, PAWL_ECANCELED);
	elections_free_all(hub);
	watches_free_all(hub);
	locks_free_all(hub);
	bind_done(hub);
	if (hub->kicked) {
		event_del(&hub->kick);
	}
	line_done(&hub->line);
	client_decoder_done(&hub->decoder);
	map_done(&hub->by_msgid);
	map_done(&hub->by_watch);
	agenda_done(&hub->agenda);
	endpoint_list_done(&hub->endpoints);
	seal_context_free(hub->tls);
	if (hub->own_base && hub->base) {
		event_base_free(hub->base);
	}
	bytes_free(alloc, hub->self.owner);
	bytes_free(alloc, hub->self.label);
	alloc_free(alloc, hub, sizeof(*hub));
}

void pawl_free(struct pawl *client) {
	if (!client || client->dying) {
		return;
	}
	client->dying = true;
	if (!client->inside && !client->blocking) {
		hub_destroy(client);
	}
}

/* What acquires say about this process. */
static int set_self(struct pawl *hub, const struct pawl_options *o) {
	char text[HOST_NAME_MAX + 32], host[HOST_NAME_MAX + 1] = "";
	if (gethostname(host, sizeof(host) - 1) != 0) {
		host[0] = '\0';
	}
	(void)snprintf(hub->host, sizeof(hub->host), "%.*s", (int)sizeof(hub->host) - 1, host);
	(void)snprintf(text, sizeof(text), "%s:%ld", host, (long)getpid());
	hub->self.host = hub->host;
	hub->self.pid = (uint32_t)getpid();
	int error = bytes_copy(hub->env.alloc, o->owner.size ? o->owner : pawl_str(text), &hub->self.owner);
	return error ? error : bytes_copy(hub->env.alloc, o->label, &hub->self.label);
}

static int set_tls(struct pawl *hub, const struct pawl_options *o, const char **out_problem) {
	bool wanted = o->ca_file || o->cert_file || o->key_file;
	for (size_t i = 0; i < hub->endpoints.count; i++) {
		wanted = wanted || hub->endpoints.items[i].tls;
	}
	if (o->server_name) {
		size_t size = strlen(o->server_name) + 1;
		if (size > sizeof(hub->server_name)) {
			*out_problem = "server_name is too long";
			return PAWL_EINVAL;
		}
		memcpy(hub->server_name, o->server_name, size);
	}
	return wanted ? seal_context_new(o->ca_file, o->cert_file, o->key_file, &hub->tls, out_problem) : 0;
}

static span_ns span_of(uint32_t ms, uint32_t otherwise) {
	return (span_ns)(ms ? ms : otherwise) * SPAN_MS;
}

static int set_up_loop(struct pawl *hub, const struct pawl_options *o, const char **out_problem) {
	hub->own_base = o->base == NULL;
	hub->base = o->base ? o->base : event_base_new();
	int error = hub->base ? agenda_init(&hub->agenda, &hub->env, hub->base, on_timer, hub) : PAWL_EIO;
	if (error) {
		*out_problem = "no event loop or no timer can be had";
		return error;
	}
	CHECK(event_assign(&hub->kick, hub->base, -1, 0, on_kick, hub) == 0);
	reach_init(hub);
	bind_init(hub);
	int failed = map_init(&hub->by_msgid, hub->env.alloc);
	return failed ? failed : map_init(&hub->by_watch, hub->env.alloc);
}

static int set_up(struct pawl *hub, const struct pawl_options *o, const char **out_problem) {
	uint64_t seed;
	if (RAND_bytes((unsigned char *)&seed, sizeof(seed)) != 1) {
		*out_problem = "the system has no randomness";
		return PAWL_EIO;
	}
	prng_init(&hub->prng, seed);
	hub->timeout = span_of(o->timeout_ms, TIMEOUT_MS_DEFAULT);
	hub->connect_timeout = span_of(o->connect_timeout_ms, CONNECT_TIMEOUT_MS_DEFAULT);
	hub->silence = span_of(o->silence_ms, SILENCE_MS_DEFAULT);
	int error = endpoint_list_parse(&hub->endpoints, hub->env.alloc, o->endpoints, out_problem);
	error = error ? error : set_tls(hub, o, out_problem);
	error = error ? error : set_self(hub, o);
	return error ? error : set_up_loop(hub, o, out_problem);
}

int hub_new(const struct pawl_options *options, const struct env *env, struct pawl **out, const char **out_problem) {
	struct pawl *hub = alloc_new(env->alloc, sizeof(*hub));
	if (!hub) {
		*out_problem = pawl_error_message(PAWL_ENOMEM);
		return PAWL_ENOMEM;
	}
	hub->env = *env;
	hub->line.fd = -1;
	list_init(&hub->queue);
	list_init(&hub->flight);
	list_init(&hub->resting);
	list_init(&hub->named);
	list_init(&hub->locks);
	list_init(&hub->due);
	list_init(&hub->watches);
	list_init(&hub->elections);
	*out_problem = NULL;
	int error = set_up(hub, options, out_problem);
	if (error) {
		*out_problem = *out_problem ? *out_problem : pawl_error_message(error);
		hub_destroy(hub);
		return error;
	}
	*out = hub;
	return 0;
}

int pawl_new(const struct pawl_options *options, struct pawl **out_client, const char **out_message) {
	const char *problem;
	int error = hub_new(options, env_system(), out_client, &problem);
	if (error && out_message) {
		*out_message = problem;
	}
	return error;
}

const char *pawl_endpoint(const struct pawl *client) {
	return client->state == HUB_READY ? client->endpoints.items[client->endpoint_at].text : "";
}

/* ---- asking ---- */

static void end_for_program(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	if (!call->done) {
		pawl_result_free(take_result);
		return;
	}
	call->hub->callbacks++;
	call->done(take_result, ctx);
}

/* Somebody has to keep account of what is watched, and of locks that are to be bound to the next connection. */
static bool for_programs(const struct pawl_request *r) {
	bool bound = r->method == PAWL_ACQUIRE && r->terms.release_on_disconnect;
	return r->method != PAWL_WATCH && r->method != PAWL_UNWATCH && !bound;
}

int pawl_start(struct pawl *client, const struct pawl_request *request, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	if (!for_programs(request)) {
		return PAWL_EINVAL;
	}
	struct pawl_call *call;
	int error = call_start(client, &(struct call_start){ .request = request, .end = end_for_program, .ctx = arg }, &call);
	if (!error) {
		call->done = done;
		if (out_call) {
			*out_call = call;
		}
	}
	return error;
}

void pawl_cancel(struct pawl_call *take_call) {
	if (take_call) {
		call_cancel(take_call);
	}
}

struct waited {
	bool over;
	struct pawl_result *result;
};

static void on_waited(struct pawl_result *take_result, void *arg) {
	*(struct waited *)arg = (struct waited){ .over = true, .result = take_result };
}

int pawl_call(struct pawl *client, const struct pawl_request *request, struct pawl_result **out_result) {
	struct waited waited = { 0 };
	struct pawl_call *call;
	if (out_result) {
		*out_result = NULL;
	}
	if (!hub_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = pawl_start(client, request, on_waited, &waited, &call);
	if (error) {
		return error;
	}
	error = hub_wait(client, &waited.over);
	if (error && !waited.over) {
		pawl_cancel(call);
		return error;
	}
	error = waited.result->error;
	if (out_result) {
		*out_result = waited.result;
	} else {
		pawl_result_free(waited.result);
	}
	return error;
}
