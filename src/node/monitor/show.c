/* show.c: what the admin port shows under /v1/: the answers of the client protocol as JSON, under
 * the names of its methods. Whoever may read the port sees keys only with the right to read
 * them. */
#include <stdio.h>

#include "json_page.h"
#include "json_text.h"
#include "monitor.h"
#include "page_files.h"
#include "pawl/error.h"
#include "time_source.h"

/* Ids of requests have this bit, and those of probes do not. */
#define SHOW_ID ((uint64_t)1 << 60)
/* An identity that nobody has, so that no lock_id is shown: whoever knows a lock_id may end the
 * lock. */
#define SHOW_IDENTITY "\x01"
/* The largest number of entries of a list. */
#define SHOW_LIMIT 100

/* ---- JSON ---- */

/* Writes the result, or the error, of a response of the client protocol. It is an array of its
 * kind, its number, the error, and the result. */
static void show_response(struct page *p, const struct buffer *packed) {
	struct unpack u = unpack_of(buffer_slice(packed));
	unpack_array(&u);
	unpack_uint(&u, UINT64_MAX);
	unpack_uint(&u, UINT64_MAX);
	(void)unpack_nil(&u);
	json_page_object(p, &u);
}

static void show_begin(struct http_answer *answer, enum http_status status, const char *type) {
	buffer_clear(answer->body.to);
	answer->status = status;
	answer->type = type;
}

void show_begin_json(struct http_answer *answer) {
	show_begin(answer, HTTP_OK, "application/json");
}

void show_refuse(struct http_answer *answer, enum http_status status, const char *why) {
	show_begin(answer, status, "text/plain; charset=utf-8");
	page_text(&answer->body, why);
}

/* ---- what the node itself knows ---- */

static void put_status(const struct monitor *m, struct instant now, bool whose, struct page *p) {
	struct service_status status;
	struct allocator libc = alloc_libc(NULL);
	struct buffer packed;
	buffer_init(&packed, &libc, HTTP_BODY_BYTES_MAX);
	service_status_at(m->service, now, whose, &status);
	p->bad = p->bad || client_status_encode(0, &status.status, &packed) != 0;
	show_response(p, &packed);
	buffer_done(&packed);
}

static void put_top(const struct monitor *m, struct instant now, struct slice prefix,
	struct page *p) {
	struct allocator libc = alloc_libc(NULL);
	struct buffer packed;
	buffer_init(&packed, &libc, HTTP_BODY_BYTES_MAX);
	p->bad = p->bad || service_top_encode(m->service, now, prefix, 0, &packed) != 0;
	show_response(p, &packed);
	buffer_done(&packed);
}

void show_status(const struct monitor *m, struct instant now, struct http_answer *answer) {
	show_begin_json(answer);
	put_status(m, now, false, &answer->body);
	page_text(&answer->body, "\n");
}

/* ---- what the core is asked for ---- */

static struct monitor_ask *ask_find(struct monitor *m, uint64_t id) {
	for (size_t i = 0; i < HTTP_READERS_MAX; i++) {
		if (m->asks[i].id == id) {
			return &m->asks[i];
		}
	}
	return NULL;
}

static void ask_end(struct monitor_ask *ask) {
	buffer_done(&ask->list.items);
	request_note_free(ask->note);
	*ask = (struct monitor_ask){ .id = 0 };
}

void show_done(struct monitor *m) {
	for (size_t i = 0; i < HTTP_READERS_MAX; i++) {
		ask_end(&m->asks[i]);
	}
}

void show_ask(struct monitor *m, const struct core_request *asked, struct instant now,
	const struct monitor_reader *reader, struct request_note *take_note, uint64_t order,
	struct http_answer *answer) {
	struct monitor_ask *ask = ask_find(m, 0);
	struct core_request request = *asked;
	if (!ask) {
		request_note_free(take_note);
		orders_answer(&m->service->orders, order, PAWL_EBUSY);
		show_refuse(answer, HTTP_UNAVAILABLE, "too many requests are under way\n");
		return;
	}
	m->last_ask = (m->last_ask + 1) & (SHOW_ID - 1);
	ask->id = m->last_ask | SHOW_ID | DRIVER_PROBE;
	/* One byte may take JSON_TEXT_GROWTH bytes as JSON. */
	buffer_init(&ask->list.items, &m->alloc, HTTP_BODY_BYTES_MAX / 8);
	ask->note = take_note;
	ask->order = order;
	ask->reader = reader ? *reader : (struct monitor_reader){ .local = false };
	request.id = ask->id;
	if (request.identity.size == 0) {
		request.identity = slice_of(SHOW_IDENTITY, sizeof SHOW_IDENTITY);
	}
	request.client = DRIVER_PROBE;
	answer->later = ask->id;
	const struct core_event event = { .kind = CORE_REQUEST, .request = &request,
		.client = request.client };
	driver_step(m->driver, &event, now);
	if (core_out_unheard(m->driver->out)) {
		orders_answer(&m->service->orders, order, PAWL_EBUSY);
		ask_end(ask);
		answer->later = 0;
		show_refuse(answer, HTTP_UNAVAILABLE, "this node has no memory left\n");
	}
}

static void reader_of(const struct http_caller *caller, struct monitor_reader *out) {
	out->from = *caller->from;
	out->local = !caller->tls;
	if (caller->tls) {
		snprintf(out->identity, sizeof out->identity, "%s", caller->name);
	} else {
		origin_identity(caller->from, out->identity);
	}
}

/* The result borrows from the reader. */
static struct session_who reader_who(const struct monitor_reader *reader) {
	return (struct session_who){ .from = &reader->from, .local = reader->local,
		.identity = slice_str(reader->identity) };
}

struct show_reply {
	const struct monitor *monitor;
	const struct monitor_ask *ask;
	const struct core_reply *reply;
};

static void show_fill(void *ctx, struct http_answer *answer) {
	const struct show_reply *r = ctx;
	const struct client_context *context = &r->monitor->driver->context;
	struct buffer packed;
	buffer_init(&packed, &r->monitor->alloc, HTTP_BODY_BYTES_MAX);
	show_begin_json(answer);
	const struct session_who who = reader_who(&r->ask->reader);
	int error = r->reply->op == CORE_LIST && !r->reply->error
		? client_list_encode(0, &r->ask->list, r->reply, context, &packed)
		: r->reply->op == CORE_EXPLAIN && !r->reply->error
		? service_explain_encode(r->monitor->service, &who, 0, r->reply, &packed)
		: client_reply_encode(0, r->reply, context, &packed);
	answer->body.bad = answer->body.bad || error;
	show_response(&answer->body, &packed);
	page_text(&answer->body, "\n");
	buffer_done(&packed);
}

void show_heard(struct monitor *m, const struct core_reply *reply) {
	struct monitor_ask *ask = reply->id & SHOW_ID ? ask_find(m, reply->id) : NULL;
	if (!ask) {
		return;
	}
	if (reply->op == CORE_LIST && !reply->error) {
		ask->list.full = client_list_add(&ask->list, reply) != 0 || ask->list.full;
	}
	if (!reply->goes_on) {
		if (ask->note) {
			service_page_answered(m->service, ask->note, reply);
		}
		orders_answer(&m->service->orders, ask->order, reply->error);
		struct show_reply shown = { m, ask, reply };
		http_server_finish(m->http, ask->id, show_fill, &shown);
		ask_end(ask);
	}
}

/* ---- what happened last ---- */

/* An answer that is larger than this is not continued, in bytes. */
#define SHOW_RECENT_BYTES (HTTP_BODY_BYTES_MAX / 2)
/* An order takes less than this. */
#define SHOW_ORDER_BYTES 8192

static void put_bytes(struct page *p, const char *name, struct slice bytes) {
	const bool text = json_text_valid(bytes);
	page_text(p, ",\"");
	page_text(p, name);
	page_text(p, text ? "\":" : "_hex\":");
	page_json(p, bytes);
}

static void put_ago(struct page *p, struct instant now, int64_t at, bool first) {
	page_text(p, first ? "{\"ago_ms\":" : ",{\"ago_ms\":");
	page_signed(p, (now.boot - at) / SPAN_MS);
}

static void put_losses(const struct monitor *m, struct instant now, struct page *p) {
	struct lost_lease lost;
	for (uint32_t i = 0; p->to->size < SHOW_RECENT_BYTES
		&& core_lost(m->driver->core, i, &lost); i++) {
		put_ago(p, now, lost.at, i == 0);
		put_bytes(p, "cause", slice_str(figure_lost_name(lost.cause)));
		put_bytes(p, "key", lost.key);
		put_bytes(p, "owner", lost.owner);
		page_text(p, ",\"token\":");
		page_number(p, lost.token);
		page_text(p, "}");
	}
}

static void put_orders(const struct monitor *m, struct instant now, struct page *p) {
	const struct order *o;
	for (uint32_t i = 0; p->to->size < 2 * SHOW_RECENT_BYTES - SHOW_ORDER_BYTES
		&& (o = orders_last(&m->service->orders, i)) != NULL; i++) {
		put_ago(p, now, o->at, i == 0);
		put_bytes(p, "method", slice_str(o->method));
		put_bytes(p, "subject", slice_of(o->subject, o->subject_size));
		put_bytes(p, "identity", slice_of(o->who, o->who_size));
		if (o->answered) {
			put_bytes(p, "result", slice_str(pawl_error_code(o->result)));
		}
		page_text(p, "}");
	}
}

/* ---- requests ---- */

/* A request under /v1/, with the memory of its key. */
struct show {
	struct monitor *monitor;
	const struct http_caller *caller;
	const struct http_request *request;
	struct instant now;
	uint8_t bytes[KEY_MAX];
};

static bool show_allowed(const struct show *s, struct slice key, bool prefix,
	struct http_answer *answer) {
	struct monitor_reader reader;
	reader_of(s->caller, &reader);
	const struct session_who who = reader_who(&reader);
	const bool may = service_may_read(s->monitor->service, &who, key, prefix);
	if (!may) {
		show_refuse(answer, HTTP_FORBIDDEN,
			"the access rules do not let you read these keys\n");
	}
	return may;
}

/* Reads the parameter `prefix`, or `key`, which must not be empty. Returns false if there is
 * none. */
static bool show_key(struct show *s, bool prefix, struct slice *out, struct http_answer *answer) {
	const char *name = prefix ? "prefix" : "key";
	const bool named = http_query_has(s->request->query, name);
	const ssize_t size = http_query_value(s->request->query, name, s->bytes, sizeof s->bytes);
	*out = slice_of(s->bytes, size > 0 ? (size_t)size : 0);
	if ((named && size < 0) || (!prefix && size <= 0)) {
		show_refuse(answer, HTTP_BAD_REQUEST, prefix
			? "prefix must be at most 512 bytes, as %XX where it has to be\n"
			: "key must have 1 to 512 bytes, as %XX where it has to be\n");
		return false;
	}
	return show_allowed(s, *out, prefix, answer);
}

static void show_top(struct show *s, struct http_answer *answer) {
	struct slice prefix;
	if (show_key(s, true, &prefix, answer)) {
		show_begin_json(answer);
		put_top(s->monitor, s->now, prefix, &answer->body);
		page_text(&answer->body, "\n");
	}
}

static void show_own_status(struct show *s, struct http_answer *answer) {
	show_status(s->monitor, s->now, answer);
}

static void show_get(struct show *s, struct http_answer *answer) {
	struct core_request request = { .op = CORE_GET,
		.quorum = http_query_has(s->request->query, "quorum") };
	if (show_key(s, false, &request.key, answer)) {
		show_ask(s->monitor, &request, s->now, NULL, NULL, 0, answer);
	}
}

static void show_explain(struct show *s, struct http_answer *answer) {
	struct core_request request = { .op = CORE_EXPLAIN };
	if (show_key(s, false, &request.key, answer)) {
		struct monitor_reader reader;
		reader_of(s->caller, &reader);
		show_ask(s->monitor, &request, s->now, &reader, NULL, 0, answer);
	}
}

static void show_list(struct show *s, struct http_answer *answer) {
	struct core_request request = { .op = CORE_LIST, .limit = SHOW_LIMIT };
	if (show_key(s, true, &request.key, answer)) {
		show_ask(s->monitor, &request, s->now, NULL, NULL, 0, answer);
	}
}

static void show_waiters(struct show *s, struct http_answer *answer) {
	const bool prefix = !http_query_has(s->request->query, "key");
	struct core_request request = { .op = CORE_WAITERS, .prefix = prefix,
		.limit = prefix ? SHOW_LIMIT : 0 };
	if (show_key(s, prefix, &request.key, answer)) {
		show_ask(s->monitor, &request, s->now, NULL, NULL, 0, answer);
	}
}

/* Each second the page gets this, on one line. */
static void show_live(struct show *s, struct http_answer *answer) {
	if (show_allowed(s, slice_of(NULL, 0), true, answer)) {
		show_begin_json(answer);
		page_text(&answer->body, "{\"status\":");
		put_status(s->monitor, s->now, true, &answer->body);
		page_text(&answer->body, ",\"top\":");
		put_top(s->monitor, s->now, slice_of(NULL, 0), &answer->body);
		page_text(&answer->body, "}");
		answer->live = true;
	}
}

static void show_recent(struct show *s, struct http_answer *answer) {
	if (show_allowed(s, slice_of(NULL, 0), true, answer)) {
		show_begin_json(answer);
		page_text(&answer->body, "{\"losses\":[");
		put_losses(s->monitor, s->now, &answer->body);
		page_text(&answer->body, "],\"orders\":[");
		put_orders(s->monitor, s->now, &answer->body);
		page_text(&answer->body, "]}\n");
	}
}

/* Without the permission this is an answer, too, because browsers call others errors. */
static void show_actions(struct show *s, struct http_answer *answer) {
	char token[ACT_TOKEN_BYTES];
	show_begin_json(answer);
	if (act_permitted(s->monitor, s->caller)) {
		act_token(s->monitor, s->caller, token);
		page_text(&answer->body, "{\"permitted\":true,\"token\":\"");
		page_text(&answer->body, token);
		page_text(&answer->body, "\"}\n");
	} else {
		page_text(&answer->body, "{\"permitted\":false}\n");
	}
}

/* ---- the page ---- */

/* Nothing comes from elsewhere, and no other page may show this one or send anything from it. */
static const char page_fields[] =
	"Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
	"frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n";

static void show_page(const struct http_request *request, struct http_answer *answer) {
	for (size_t i = 0; i < page_file_count; i++) {
		const struct page_file *file = &page_files[i];
		if (slice_equal(request->path, slice_str(file->path))) {
			show_begin(answer, HTTP_OK, file->type);
			answer->fields = page_fields;
			page_slice(&answer->body, slice_of(file->data, file->size));
		}
	}
}

/* A page of somebody else may let its own name stand for this machine and then ask this port. The
 * browser names the host that it believes to ask, so without TLS only addresses are answered. */
static bool show_asked_by_address(const struct http_caller *caller,
	const struct http_request *request) {
	return caller->tls || caller->from->uid != ORIGIN_UNKNOWN
		|| http_host_is_address(request->host);
}

void show_answer(struct monitor *m, const struct http_caller *caller,
	const struct http_request *request, struct instant now, struct http_answer *answer) {
	static const struct {
		const char *path;
		void (*answer)(struct show *s, struct http_answer *answer);
	} paths[] = { { "/v1/status", show_own_status }, { "/v1/top", show_top },
		{ "/v1/get", show_get }, { "/v1/list", show_list },
		{ "/v1/waiters", show_waiters }, { "/v1/explain", show_explain },
		{ "/v1/live", show_live }, { "/v1/recent", show_recent },
		{ "/v1/actions", show_actions } };
	struct show show = { .monitor = m, .caller = caller, .request = request, .now = now };
	show_page(request, answer);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (slice_equal(request->path, slice_str(paths[i].path))) {
			if (show_asked_by_address(caller, request)) {
				paths[i].answer(&show, answer);
			} else {
				show_refuse(answer, HTTP_FORBIDDEN,
					"ask by an address or as localhost, not by a name\n");
			}
		}
	}
}
