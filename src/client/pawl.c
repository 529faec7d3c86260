/* pawl.c: how a client is made and freed. */
#include "top.h"

#include <limits.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "election.h"
#include "kept_bytes.h"
#include "session_binding.h"

#define TIMEOUT_MS_DEFAULT 5000
#define CONNECT_TIMEOUT_MS_DEFAULT 1000
#define SILENCE_MS_DEFAULT 2000

void client_core_destroy(struct pawl *client) {
	const struct allocator *alloc = client->env.alloc;
	/* Nothing destroys the client a second time meanwhile. */
	client->inside++;
	if (client->state == CLIENT_CORE_READY) {
		calls_release_on_close(client);
		elections_release_on_close(client);
		/* This writes as much as the socket takes. */
		(void)connection_flush(&client->session->connection);
	}
	calls_fail_all(client, PAWL_ECANCELED);
	/* From the top down: an election owns a lock and a watch, and a lock may own a watch. */
	elections_free_all(client);
	locks_free_all(client);
	watches_free_all(client);
	session_binding_done(client);
	if (client->kicked) {
		event_del(&client->kick);
	}
	failover_done(client);
	wake_done(client);
	polled_done(client);
	map_done(&client->by_msgid);
	map_done(&client->by_watch);
	agenda_done(&client->agenda);
	endpoint_list_done(&client->endpoints);
	tls_files_done(&client->tls, alloc);
	if (client->own_base && client->base) {
		event_base_free(client->base);
	}
	kept_bytes_free(alloc, client->located_text);
	kept_bytes_free(alloc, client->self.owner);
	kept_bytes_free(alloc, client->self.label);
	alloc_free(alloc, client, sizeof(*client));
}

void pawl_free(struct pawl *client) {
	if (!client || client->dying) {
		return;
	}
	client->dying = true;
	if (!client->inside && !client->blocking) {
		client_core_destroy(client);
	}
}

/* Sets what acquires say about this process. */
static int set_self(struct pawl *client, const struct pawl_options *o, const char **out_problem) {
	if (!kept_bytes_valid(o->owner) || !kept_bytes_valid(o->label)) {
		*out_problem = "owner or label has a size, and no bytes";
		return PAWL_EINVAL;
	}
	char text[HOST_NAME_MAX + 32], host[HOST_NAME_MAX + 1] = "";
	if (gethostname(host, sizeof(host) - 1) != 0) {
		host[0] = '\0';
	}
	(void)snprintf(client->host, sizeof(client->host), "%.*s", (int)sizeof(client->host) - 1,
		host);
	(void)snprintf(text, sizeof(text), "%s:%ld", host, (long)getpid());
	client->self.host = client->host;
	client->self.pid = (uint32_t)getpid();
	const struct allocator *alloc = client->env.alloc;
	int error = pawl_id_new(&client->self.party);
	error = error ? error : kept_bytes_copy(alloc, o->owner.size ? o->owner : pawl_str(text),
		&client->self.owner);
	return error ? error : kept_bytes_copy(alloc, o->label, &client->self.label);
}

static int set_trace(struct pawl *client, const struct pawl_options *o, const char **out_problem) {
	if (o->trace && !trace_valid(slice_str(o->trace))) {
		*out_problem = "trace is no traceparent, such as "
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
		return PAWL_EINVAL;
	}
	if (o->trace) {
		memcpy(client->trace, o->trace, sizeof(client->trace));
		client->self.trace = client->trace;
	}
	return 0;
}

static int set_tls(struct pawl *client, const struct pawl_options *o, const char **out_problem) {
	bool wanted = o->ca_file || o->cert_file || o->key_file;
	for (size_t i = 0; i < client->endpoints.source_count; i++) {
		wanted = wanted || client->endpoints.sources[i].given.tls;
	}
	if (o->server_name) {
		size_t size = strlen(o->server_name) + 1;
		if (size > sizeof(client->server_name)) {
			*out_problem = "server_name is too long";
			return PAWL_EINVAL;
		}
		memcpy(client->server_name, o->server_name, size);
	}
	const char *const paths[TLS_FILES] = { o->ca_file, o->cert_file, o->key_file };
	return wanted ? tls_files_init(&client->tls, client->env.alloc, paths, out_problem) : 0;
}

static span_ns span_of(uint32_t ms, uint32_t otherwise) {
	return (span_ns)(ms ? ms : otherwise) * SPAN_MS;
}

static int set_up_loop(struct pawl *client, struct event_base *base, const char **out_problem) {
	client->own_base = base == NULL;
	client->base = base ? base : event_base_new();
	int error = client->base ? client_core_start_timers(client) : PAWL_EIO;
	error = error || !client->own_base ? error : wake_init(client);
	if (error) {
		*out_problem = "cannot create an event loop or a timer";
		return error;
	}
	failover_init(client);
	session_binding_init(client);
	int failed = map_init(&client->by_msgid, client->env.alloc);
	return failed ? failed : map_init(&client->by_watch, client->env.alloc);
}

static int set_up(struct pawl *client, const struct pawl_options *o, const char **out_problem) {
	uint64_t seed;
	if (RAND_bytes((unsigned char *)&seed, sizeof(seed)) != 1) {
		*out_problem = "the system provides no random numbers";
		return PAWL_EIO;
	}
	prng_init(&client->prng, seed);
	client->timeout = span_of(o->timeout_ms, TIMEOUT_MS_DEFAULT);
	client->lease_most = SPAN_MAX;
	client->connect_timeout = span_of(o->connect_timeout_ms, CONNECT_TIMEOUT_MS_DEFAULT);
	client->silence = span_of(o->silence_ms, SILENCE_MS_DEFAULT);
	int error = endpoint_list_parse(&client->endpoints, client->env.alloc,
		o->prefer_first ? NULL : &client->prng, o->endpoints, out_problem);
	client->prefer_first = o->prefer_first;
	client->endpoint_at = error || o->prefer_first ? 0
		: (size_t)prng_below(&client->prng, client->endpoints.count);
	error = error ? error : set_tls(client, o, out_problem);
	error = error ? error : set_self(client, o, out_problem);
	error = error ? error : set_trace(client, o, out_problem);
	return error ? error : set_up_loop(client, o->base, out_problem);
}

/* Returns a client that only needs to be set up; NULL: there is no memory. */
static struct pawl *client_blank(const struct env *env) {
	struct pawl *client = alloc_new(env->alloc, sizeof(*client));
	if (!client) {
		return NULL;
	}
	client->env = *env;
	client->handlers = &client_handlers;
	client->wake_fd = client->polled_fd = client->polled_inner = -1;
	for (size_t i = 0; i < SESSIONS; i++) {
		client->sessions[i].connection.fd = -1;
	}
	list_init(&client->queue);
	list_init(&client->flight);
	list_init(&client->resting);
	list_init(&client->named);
	list_init(&client->locks);
	list_init(&client->due);
	list_init(&client->watches);
	list_init(&client->elections);
	return client;
}

int client_core_new(const struct pawl_options *options, const struct env *env, struct pawl **out,
	const char **out_problem) {
	struct pawl *client = client_blank(env);
	if (!client) {
		*out_problem = pawl_error_message(PAWL_ENOMEM);
		return PAWL_ENOMEM;
	}
	*out_problem = NULL;
	int error = set_up(client, options, out_problem);
	if (error) {
		*out_problem = *out_problem ? *out_problem : pawl_error_message(error);
		client_core_destroy(client);
		return error;
	}
	*out = client;
	return 0;
}

/* The guest says nothing of itself: its requests are those of the host. */
static int set_up_guest(struct pawl *guest, struct pawl *host, const char *endpoints) {
	const char *problem;
	guest->guest_of = host;
	prng_init(&guest->prng, prng_next(&host->prng));
	guest->timeout = host->timeout;
	guest->lease_most = SPAN_MAX;
	guest->connect_timeout = host->connect_timeout;
	guest->silence = host->silence;
	memcpy(guest->server_name, host->server_name, sizeof(guest->server_name));
	tls_files_share(&guest->tls, &host->tls);
	int error = endpoint_list_parse(&guest->endpoints, guest->env.alloc, NULL, endpoints,
		&problem);
	return error ? error : set_up_loop(guest, host->base, &problem);
}

struct pawl *client_core_guest(struct pawl *host, const char *endpoints) {
	struct pawl *guest = client_blank(&host->env);
	if (guest && set_up_guest(guest, host, endpoints) != 0) {
		client_core_destroy(guest);
		return NULL;
	}
	return guest;
}

int pawl_new(const struct pawl_options *options, struct pawl **out_client,
	const char **out_message) {
	const char *problem;
	int error = client_core_new(options, env_system(), out_client, &problem);
	if (error && out_message) {
		*out_message = problem;
	}
	return error;
}
