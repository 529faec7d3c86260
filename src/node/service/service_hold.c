/* service_hold.c: requests of administrators, which are served only after the audit file has said
 * that they were made. The loop goes on meanwhile.
 */
#include <event2/event.h>

#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

/* How many of these requests may wait for the file. */
#define HELD_MAX 64
/* How long a request waits for the disk. */
#define PATIENCE_S 5

/* A request that waits. */
struct service_held {
	struct list in;
	struct audit_receipt receipt;
	uint64_t client;
	struct instant since;
	/* The request, as its client might have sent it. */
	struct buffer bytes;
};

static const char held_refusal[] =
	"the audit file of this node could not be written, and with [audit] strict = yes nothing "
	"is done for an administrator without it: nothing was done. The node's log says what is "
	"wrong (audit_failed)";

static void held_free(struct service *s, struct service_held *h) {
	list_remove(&h->in);
	s->held_count--;
	audit_forget(s->audit, &h->receipt);
	buffer_done(&h->bytes);
	alloc_free(s->requests.alloc, h, sizeof *h);
}

static struct service_held *held_new(const struct service_call *call) {
	struct service *s = call->service;
	struct service_held *h = s->held_count < HELD_MAX
		? alloc_new(s->requests.alloc, sizeof *h) : NULL;
	if (!h) {
		return NULL;
	}
	buffer_init(&h->bytes, s->requests.alloc, client_request_limits.bytes);
	if (client_request_encode(call->request, &h->bytes) != 0) {
		buffer_done(&h->bytes);
		alloc_free(s->requests.alloc, h, sizeof *h);
		return NULL;
	}
	h->client = call->client;
	h->since = call->now;
	list_append(&s->held, &h->in);
	s->held_count++;
	return h;
}

static void held_refuse(struct service *s, uint64_t client, const struct client_request *request,
	int error, const char *why) {
	service_refuse(s, client, request->msgid, error, NULL, why);
	request_counts_at_once(&s->requests.counts, request->method, error);
}

static bool is_order(enum client_method method) {
	const enum right right = client_method_right(method);
	return right == RIGHT_BREAK || right == RIGHT_CLUSTER;
}

bool service_hold(const struct service_call *call) {
	static const struct timeval patience = { PATIENCE_S, 0 };
	struct service *s = call->service;
	if (s->held_before || !audit_wants(s->audit, AUDIT_ADMIN)
		|| !is_order(call->request->method)) {
		return false;
	}
	struct service_held *h = held_new(call);
	if (!h) {
		held_refuse(s, call->client, call->request, PAWL_EBUSY,
			"too many requests of administrators wait for the audit file of this node");
		return true;
	}
	if (service_audit_asked(call, &h->receipt)) {
		if (!event_pending(s->impatient, EV_TIMEOUT, NULL)) {
			event_add(s->impatient, &patience);
		}
		return true;
	}
	held_free(s, h);
	if (audit_settings(s->audit)->strict) {
		held_refuse(s, call->client, call->request, PAWL_EIO, held_refusal);
	}
	return audit_settings(s->audit)->strict;
}

/* Refuses the request, because its line is lost, or waits for too long. */
static void held_give_up(struct service *s, const struct service_held *h,
	const struct session_who *who, const struct client_request *request,
	enum audit_fate fate) {
	const struct service_call call = { .service = s, .client = h->client, .who = who,
		.request = request, .now = driver_now(s->driver) };
	held_refuse(s, h->client, request, PAWL_EIO, held_refusal);
	if (fate == AUDIT_WAITS) {
		/* A disk that is only slow writes the line "asked" in the end, so the line of the
		 * result must follow. */
		service_audit_at_once(&call, PAWL_EIO);
	}
}

/* Serves the request, or refuses it. */
static void held_go_on(struct service *s, const struct service_held *h,
	const struct client_request *request, enum audit_fate fate) {
	struct session_who who;
	struct session_progress progress = { .done = 0 };
	if (!sessions_who(s->sessions, h->client, &who)) {
		service_audit_left(s, request);
		return;
	}
	if (fate != AUDIT_WRITTEN && audit_settings(s->audit)->strict) {
		held_give_up(s, h, &who, request, fate);
	} else {
		/* Its caller may have lost the right meanwhile. */
		s->held_before = true;
		service_sessions_handlers.request(s, h->client, &who, request, &progress,
			driver_now(s->driver));
		s->held_before = false;
	}
}

static void held_end(struct service *s, struct service_held *h, enum audit_fate fate) {
	struct client_decoder decoder;
	struct client_request request;
	struct client_refusal refusal;
	client_decoder_init(&decoder, s->requests.alloc);
	/* It was decoded before, so it fails only for lack of memory. */
	if (client_request_decode(&decoder, buffer_slice(&h->bytes), &request, &refusal) == 0) {
		held_go_on(s, h, &request, fate);
	} else {
		held_refuse(s, h->client, &request, PAWL_EBUSY, NULL);
	}
	client_decoder_done(&decoder);
	held_free(s, h);
}

void service_audit_told(void *ctx) {
	struct service *s = ctx;
	struct list *n = list_first(&s->held);
	while (n) {
		struct service_held *h = CONTAINER_OF(n, struct service_held, in);
		const enum audit_fate fate = audit_fate(s->audit, &h->receipt);
		n = list_after(&s->held, n);
		if (fate != AUDIT_WAITS) {
			held_end(s, h, fate);
		}
	}
	driver_flush_later(s->driver);
}

/* The disk hangs. */
static void hold_on_impatient(evutil_socket_t fd, short what, void *ctx) {
	static const struct timeval again = { 1, 0 };
	struct service *s = ctx;
	const struct instant now = driver_now(s->driver);
	struct list *n;
	(void)fd;
	(void)what;
	while ((n = list_first(&s->held)) != NULL) {
		struct service_held *h = CONTAINER_OF(n, struct service_held, in);
		if (instant_elapsed_long(now, h->since) < PATIENCE_S * SPAN_S) {
			event_add(s->impatient, &again);
			break;
		}
		held_end(s, h, AUDIT_WAITS);
	}
	driver_flush_later(s->driver);
}

int service_hold_init(struct service *s) {
	list_init(&s->held);
	s->impatient = evtimer_new(s->driver->base, hold_on_impatient, s);
	return s->impatient ? 0 : PAWL_ENOMEM;
}

void service_hold_done(struct service *s) {
	struct list *n;
	if (s->impatient) {
		event_free(s->impatient);
	}
	while (s->held_count > 0 && (n = list_first(&s->held)) != NULL) {
		held_free(s, CONTAINER_OF(n, struct service_held, in));
	}
}
