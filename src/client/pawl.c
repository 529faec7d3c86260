/* pawl.c: a client's life: options, and the end. */
#include "top.h"

#include <limits.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session_binding.h"
#include "election.h"

#define TIMEOUT_MS_DEFAULT 5000
#define CONNECT_TIMEOUT_MS_DEFAULT 1000
#define SILENCE_MS_DEFAULT 2000

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

void hub_destroy(struct pawl *hub) {
	const struct allocator *alloc = hub->env.alloc;
	hub->inside++; /* nobody destroys it again meanwhile */
	if (hub->state == HUB_READY) {
		calls_part(hub);
		elections_part(hub);
		(void)connection_flush(&hub->connection); /* as far as the socket takes it */
	}
	calls_fail_all(hub, PAWL_ECANCELED);
	elections_free_all(hub);
	watches_free_all(hub);
	locks_free_all(hub);
	session_binding_done(hub);
	if (hub->kicked) {
		event_del(&hub->kick);
	}
	connection_done(&hub->connection);
	client_decoder_done(&hub->decoder);
	map_done(&hub->by_msgid);
	map_done(&hub->by_watch);
	agenda_done(&hub->agenda);
	endpoint_list_done(&hub->endpoints);
	tls_filter_context_free(hub->tls);
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
	return wanted ? tls_filter_context_new(o->ca_file, o->cert_file, o->key_file, &hub->tls, out_problem) : 0;
}

static span_ns span_of(uint32_t ms, uint32_t otherwise) {
	return (span_ns)(ms ? ms : otherwise) * SPAN_MS;
}

static int set_up_loop(struct pawl *hub, const struct pawl_options *o, const char **out_problem) {
	hub->own_base = o->base == NULL;
	hub->base = o->base ? o->base : event_base_new();
	int error = hub->base ? hub_start_clockwork(hub) : PAWL_EIO;
	if (error) {
		*out_problem = "no event loop or no timer can be had";
		return error;
	}
	failover_init(hub);
	session_binding_init(hub);
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
	hub->handlers = &client_handlers;
	hub->connection.fd = -1;
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
