/* locate.c: finds out where the endpoints are: looks names up in the background, and reads files of
 * endpoints. A list that changes leaves the sessions that there are alone. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "client_core.h"

/* A name whose addresses are known is looked up again at a new connection, but not so soon. */
#define LOOK_AGAIN (1 * SPAN_S)

/* The list may have changed, and had `count` endpoints before. The client is still about to take
 * the endpoint that was next; of a list of another length it asks all before it gives up. */
static void find_again(struct pawl *client, const struct endpoint *next, size_t count) {
	client->endpoint_at = endpoint_list_find(&client->endpoints, next, client->endpoint_at);
	if (client->endpoints.count != count) {
		client->failed_in_round = client->failed_for_good = 0;
	}
}

void locate_read_again(struct pawl *client) {
	const struct endpoint next = client->endpoints.items[client->endpoint_at];
	const size_t count = client->endpoints.count;
	endpoint_list_read_again(&client->endpoints);
	find_again(client, &next, count);
}

static bool any_look_up(const struct pawl *client) {
	bool any = false;
	for (size_t i = 0; i < client->endpoints.source_count; i++) {
		any = any || client->endpoints.sources[i].look_up;
	}
	return any;
}

/* Goes on with the sessions that wait for this source. */
static void tell_sessions(struct pawl *client, unsigned source, const char *problem) {
	for (size_t i = 0; i < SESSIONS && !client->dying; i++) {
		struct session *session = &client->sessions[i];
		if (!session_waits(session) || session->endpoint.source != source) {
			continue;
		}
		const struct endpoint *e = &client->endpoints.items[
			endpoint_list_find(&client->endpoints, &session->endpoint, 0)];
		if (e->source == source && endpoint_located(e)) {
			session_located(session, e);
		} else {
			session_failed(session, PAWL_EUNREACHABLE, problem);
		}
	}
}

static void on_looked_up(void *ctx, const struct look_up *look_up,
	const struct look_up_found *found) {
	struct pawl *client = ctx;
	struct endpoint_source *s = endpoint_list_looking(&client->endpoints, look_up);
	const struct endpoint next = client->endpoints.items[client->endpoint_at];
	const size_t count = client->endpoints.count;
	const unsigned source = s->given.source;
	s->look_up = NULL;
	client_core_enter(client);
	endpoint_list_found(&client->endpoints, s, found);
	find_again(client, &next, count);
	tell_sessions(client, source, found->count ? "there is no memory" : found->problem);
	if (client->located && !any_look_up(client)) {
		*client->located = true;
	}
	client_core_leave(client);
}

static void start(struct pawl *client, struct endpoint_source *s) {
	struct look_up_wanted wanted = { .srv = s->given.kind == ENDPOINT_SRV };
	memcpy(wanted.host, s->given.host, sizeof(wanted.host));
	memcpy(wanted.port, s->given.port, sizeof(wanted.port));
	s->looked_at = client_core_now(client).boot;
	s->look_up = look_up_start(client->base,
		client->env.look_up ? client->env.look_up : look_up_now, &wanted, on_looked_up,
		client);
}

static bool is_name(const struct endpoint_source *s) {
	return s->given.kind == ENDPOINT_NAME || s->given.kind == ENDPOINT_SRV;
}

const char *locate_look_up(struct pawl *client, const struct endpoint *endpoint) {
	struct endpoint_source *s = endpoint_list_source(&client->endpoints, endpoint->source);
	if (!s) {
		return "the file of endpoints does not name it any more";
	}
	bool again = !s->place_count
		|| client_core_now(client).boot - s->looked_at >= LOOK_AGAIN;
	if (is_name(s) && !s->look_up && again) {
		start(client, s);
	}
	return s->look_up ? NULL : "the name cannot be looked up now: no thread or no memory";
}

/* ---- pawl_look_up ---- */

struct patient {
	struct alarm alarm;
	bool over;
};

static void on_time_over(struct alarm *alarm) {
	CONTAINER_OF(alarm, struct patient, alarm)->over = true;
}

/* Looks up the names of which no address is known, all at the same time. */
static int look_up_all(struct pawl *client) {
	struct patient patient = { .alarm.ring = on_time_over };
	for (size_t i = 0; i < client->endpoints.source_count; i++) {
		struct endpoint_source *s = &client->endpoints.sources[i];
		if (is_name(s) && !s->look_up && !s->place_count) {
			start(client, s);
		}
	}
	if (!any_look_up(client)) {
		return 0;
	}
	client->located = &patient.over;
	agenda_set(&client->agenda, &patient.alarm,
		client_core_now(client).boot + client->connect_timeout);
	int error = client_core_wait(client, &patient.over, NULL);
	if (error != PAWL_ECANCELED) {
		agenda_clear(&client->agenda, &patient.alarm);
		client->located = NULL;
	}
	return error;
}

static bool is_repeated(const struct endpoint_list *list, size_t at) {
	bool repeated = false;
	for (size_t i = 0; i < at; i++) {
		repeated = repeated || strcmp(list->items[i].text, list->items[at].text) == 0;
	}
	return repeated;
}

/* The two addresses of a host in two families are one endpoint here. */
static int write_list(struct pawl *client) {
	const struct endpoint_list *list = &client->endpoints;
	char text[ENDPOINTS_MAX * ENDPOINT_TEXT_MAX];
	size_t size = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (!is_repeated(list, i)) {
			size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%s",
				i ? "," : "", list->items[i].text);
		}
	}
	kept_bytes_free(client->env.alloc, client->located_text);
	return kept_bytes_copy(client->env.alloc, (struct pawl_bytes){ text, size + 1 },
		&client->located_text);
}

int pawl_look_up(struct pawl *client, const char **out_endpoints) {
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	locate_read_again(client);
	int error = look_up_all(client);
	error = error ? error : write_list(client);
	if (!error) {
		*out_endpoints = client->located_text.data;
	}
	return error;
}
