/* service_status.c: what the node says of itself when it is asked for its status. */
#include "service_impl.h"

static void service_status_peers(const struct service *s, struct client_status *status) {
	for (uint32_t i = 0; i < status->peer_count && i < core_peer_count(s->driver->core); i++) {
		bool self = i == core_self(s->driver->core);
		const struct tls_identity *c = self
			? &s->driver->own_certificate : peers_certificate(s->driver->peers, i);
		const struct peer_note *note = peers_note(s->driver->peers, i);
		/* The link was made with the certificate of that time. The peer may have told of a
		 * newer one. */
		const bool told = !self && note && note->serial[0];
		if (c && c->serial[0]) {
			status->peers[i].serial = slice_str(told ? note->serial : c->serial);
			status->peers[i].certificate_ends = told ? note->ends : (uint64_t)c->ends;
			status->peers[i].certificate_role = slice_str(node_role_name(c->role));
		}
		status->peers[i].rights =
			slice_str(self ? s->driver->rights : note ? note->rights : "");
		status->peers[i].version =
			slice_str(self ? PAWL_VERSION : peers_release(s->driver->peers, i));
		status->peers[i].trouble =
			slice_str(self ? "" : peers_trouble(s->driver->peers, i));
	}
}

static void service_count_strangers(const struct service *s, struct client_status *out) {
	const struct strangers_counts clients = sessions_strangers(s->sessions),
		peers = peers_strangers(s->driver->peers);
	out->handshakes = clients.now + peers.now;
	out->handshakes_evicted = clients.evicted + peers.evicted;
	out->handshakes_refused = clients.refused + peers.refused;
}

/* Only administrators see all clients, and who has filled a limit (service_clients.c). */
static void service_status_limits(const struct service *s, bool whose,
	struct client_status *out) {
	_Static_assert(FULL_KINDS <= CLIENT_STATUS_LIMITS_MAX, "all limits must have room");
	for (unsigned i = 0; i < FULL_KINDS; i++) {
		const struct full_row *row = &s->full.rows[i];
		if (row->near || row->reached) {
			out->limits[out->limit_count++] = (struct client_status_limit){
				slice_str(full_name((enum full_what)i)), row->used, row->limit,
				row->reached, whose && row->reached ? row->most : 0,
				slice_str(whose && row->reached ? row->whose : "") };
		}
	}
}

void service_status_at(const struct service *s, struct instant now, bool whose,
	struct service_status *out) {
	struct client_status *status = &out->status;
	struct core_status core;
	*out = (struct service_status){ .not_ready = "" };
	core_status(s->driver->core, s->driver->last, &core);
	client_status_of_core(status, &core, core_config(s->driver->core), &s->driver->context);
	status->version = slice_str(PAWL_VERSION);
	status->rights = slice_str(s->driver->rights);
	status->clients = sessions_count(s->sessions);
	status->watches = events_count(&s->events);
	status->quota_refused = sessions_refused(s->sessions);
	service_count_strangers(s, status);
	status->events = s->events.told;
	status->uptime = instant_elapsed_long(now, s->driver->started);
	service_status_limits(s, whose, status);
	service_status_peers(s, status);
	status->ready = s->ready(s->ready_ctx, out->not_ready);
	status->not_ready = slice_str(out->not_ready);
	if (s->audit && audit_fails(s->audit, out->audit_trouble)) {
		status->audit_trouble = slice_str(out->audit_trouble);
	}
}

void service_status(const struct service_call *call) {
	struct service *s = call->service;
	struct service_status answer;
	service_status_at(s, call->now, service_has(s, call->who, RIGHT_CLUSTER), &answer);
	struct buffer *to = sessions_answer(s->sessions, call->client);
	service_told(s, call->client,
		to ? client_status_encode(call->request->msgid, &answer.status, to) : 0);
}
