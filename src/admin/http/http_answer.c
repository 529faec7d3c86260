/* http_answer.c: asks the owner for answers, and writes them. */
#include <string.h>

#include "http_impl.h"

void http_write_event(struct http_connection *c, const struct http_answer *answer) {
	struct page p = { .to = stream_out(c->stream) };
	page_text(&p, "data: ");
	page_slice(&p, buffer_slice(answer->body.to));
	page_text(&p, "\n\n");
	c->last = p.bad;
}

void http_write(struct http_connection *c, bool head, const struct http_answer *answer) {
	struct page p = { .to = stream_out(c->stream) };
	page_text(&p, "HTTP/1.1 ");
	page_number(&p, (uint64_t)answer->status);
	page_text(&p, " ");
	page_text(&p, http_status_text(answer->status));
	page_text(&p, "\r\nContent-Type: ");
	page_text(&p, c->live_size ? "text/event-stream" : answer->type);
	if (!c->live_size) {
		page_text(&p, "\r\nContent-Length: ");
		page_number(&p, answer->body.to->size);
	}
	page_text(&p, "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
	page_text(&p, answer->fields);
	page_text(&p, c->last || c->live_size ? "Connection: close\r\n\r\n"
		: "Connection: keep-alive\r\n\r\n");
	c->last = c->last || p.bad;
	if (c->live_size && !p.bad) {
		http_write_event(c, answer);
	} else if (!head) {
		page_slice(&p, buffer_slice(answer->body.to));
		c->last = c->last || p.bad;
	}
}

void http_say(struct http_answer *answer, enum http_status status) {
	buffer_clear(answer->body.to);
	answer->status = status;
	answer->type = "text/plain; charset=utf-8";
	answer->fields = status == HTTP_METHOD_NOT_ALLOWED ? "Allow: GET, HEAD\r\n" : "";
	answer->body.bad = false;
	page_text(&answer->body, http_status_text(status));
	page_text(&answer->body, "\n");
}

static unsigned http_live_count(const struct http_server *s) {
	unsigned count = 0;
	const struct list *all = &s->readers.all;
	for (struct list *at = list_first(all); at; at = list_after(all, at)) {
		count += CONTAINER_OF(at, struct http_connection, among)->live_size > 0;
	}
	return count;
}

void http_begin_live(struct http_connection *c, const struct http_request *request,
	struct http_answer *answer) {
	size_t size = request->path.size + 1 + request->query.size;
	if (size > sizeof c->live) {
		http_say(answer, HTTP_URI_TOO_LONG);
	} else if (http_live_count(c->server) >= HTTP_LIVE_MAX) {
		http_say(answer, HTTP_UNAVAILABLE);
	} else {
		memcpy(c->live, request->path.data, request->path.size);
		c->live[request->path.size] = '?';
		if (request->query.size > 0) {
			memcpy(c->live + request->path.size + 1, request->query.data,
				request->query.size);
		}
		c->live_size = size;
	}
}

void http_ask(const struct http_connection *c, const struct http_request *request,
	struct http_answer *answer) {
	const struct http_server *s = c->server;
	const struct http_caller caller = { .from = &c->from, .tls = c->tls, .name = c->name,
		.certificate = c->certificate };
	s->handlers->answer(s->ctx, &caller, request, answer);
	if (answer->body.bad) {
		http_say(answer, HTTP_INTERNAL_ERROR);
		answer->live = false;
	}
}
