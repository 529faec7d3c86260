/* http_server.c: connections, their turns and their deadlines. */
#include "http_impl.h"

#include <event2/event.h>

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"

/* The room for the status line and the header fields of an answer, in bytes. */
#define HTTP_ANSWER_HEAD_BYTES 1024
/* How many bytes are read at a time. */
#define HTTP_READ_BYTES 4096
/* How long a connection may take, in seconds: for its handshake and a request, from the first byte
 * on; without a request; and for reading an answer. */
#define HTTP_REQUEST_S 10
#define HTTP_IDLE_S 120
#define HTTP_ANSWER_S 10
/* The answers of each line together take at most one part in this many of the time of the
 * thread. */
#define HTTP_SHARE 100
/* How much of this time may be saved up for several answers at once. */
#define HTTP_SAVED (2 * SPAN_S)
/* How long the next answer waits at most, in the line of probes and in that of all others. If an
 * answer took longer than a hundredth of this, the thread did not run meanwhile, and clients need
 * not pay for that. */
#define HTTP_PROBES_OWED (5 * SPAN_MS)
#define HTTP_READS_OWED SPAN_S

/* ---- connections ---- */

static void http_end(struct http_connection *c) {
	const struct http_server *s = c->server;
	list_remove(&c->among);
	list_remove(&c->ready);
	c->places->count--;
	stream_free(c->stream);
	event_free(c->deadline);
	alloc_free(s->loop->alloc, c, sizeof *c);
}

static void http_set_deadline(struct http_connection *c, int seconds) {
	const struct timeval left = { seconds, 0 };
	event_add(c->deadline, &left);
}

static void http_on_deadline(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	http_end(ctx);
}

/* The connection has done something, so that it is the last one to make room. */
static void http_touch(struct http_connection *c) {
	list_remove(&c->among);
	list_append(&c->places->all, &c->among);
}

/* ---- places ---- */

/* Returns the newcomer that makes room for another one: the first whose client is not welcome, or
 * not known yet; if there is none, the one that has been silent for longest. */
static struct list *http_newcomer_to_go(const struct http_places *newcomers) {
	const struct list *all = &newcomers->all;
	for (struct list *at = list_first(all); at; at = list_after(all, at)) {
		if (!CONTAINER_OF(at, struct http_connection, among)->welcome) {
			return at;
		}
	}
	return list_first(all);
}

/* Returns the reader that makes room for another one: the one that has been silent for longest.
 * Those whose request waits for its turn stay as long as others can go. */
static struct list *http_reader_to_go(const struct http_places *readers) {
	const struct list *all = &readers->all;
	for (struct list *at = list_first(all); at; at = list_after(all, at)) {
		if (!list_linked(&CONTAINER_OF(at, struct http_connection, among)->ready)) {
			return at;
		}
	}
	return list_first(all);
}

static void http_take_place(struct http_connection *c, struct http_places *places) {
	list_append(&places->all, &c->among);
	places->count++;
	c->places = places;
}

/* The connection asks for more than a probe. */
static void http_become_reader(struct http_connection *c) {
	struct http_places *readers = &c->server->readers;
	if (c->places == readers) {
		return;
	}
	list_remove(&c->among);
	c->places->count--;
	if (readers->count >= HTTP_READERS_MAX) {
		http_end(CONTAINER_OF(http_reader_to_go(readers), struct http_connection, among));
	}
	http_take_place(c, readers);
}

/* ---- turns ---- */

static void http_next_turn(struct http_line *line) {
	if (list_empty(&line->ready)) {
		return;
	}
	int64_t wait = line->used_until - time_source_now().boot;
	wait = wait > 0 ? wait : 0;
	const struct timeval at = { (time_t)(wait / SPAN_S),
		(suseconds_t)(wait % SPAN_S / SPAN_US) };
	event_add(line->turn, &at);
}

/* A request has come, or bytes that are none and are refused. */
static void http_wait_for_turn(struct http_connection *c, enum http_read read,
	const struct http_request *request) {
	struct http_server *s = c->server;
	bool brief = read != HTTP_READ_COMPLETE || !c->welcome || s->handlers->is_probe(request);
	struct http_line *line = brief ? &s->probes : &s->reads;
	stream_hold(c->stream);
	if (!brief) {
		http_become_reader(c);
	}
	if (!list_linked(&c->ready)) {
		list_append(&line->ready, &c->ready);
	}
	http_next_turn(line);
}

/* An answer uses up the share of the thread for a hundred times as long as it took. */
static void http_charge(struct http_line *line, struct instant begun) {
	struct instant now = time_source_now();
	int64_t until = line->used_until > now.boot - HTTP_SAVED ? line->used_until
		: now.boot - HTTP_SAVED;
	until += HTTP_SHARE * instant_elapsed_short(now, begun);
	line->used_until = until < now.boot + line->owed_max ? until : now.boot + line->owed_max;
}

/* ---- requests ---- */

/* `refused` is HTTP_OK, or why the request is refused. */
static void http_answer(struct http_connection *c, const struct http_request *request,
	enum http_status refused) {
	struct http_server *s = c->server;
	struct http_answer answer = { .body = { .to = &s->body } };
	bool asked = refused == HTTP_OK && c->welcome;
	http_say(&answer, asked ? HTTP_NOT_FOUND : c->welcome ? refused : HTTP_FORBIDDEN);
	if (asked) {
		http_ask(c, request, &answer);
	}
	c->last = !asked || !request->keep_alive || (request->post && answer.status != HTTP_OK
		&& !answer.later);
	c->later = answer.later;
	c->later_head = request->head;
	if (answer.live && !request->head) {
		http_begin_live(c, request, &answer);
	}
	if (!answer.later) {
		http_write(c, request->head, &answer);
	}
	buffer_trim(&s->body, HTTP_BODY_BYTES_MAX / 4);
}

/* Reads on, or waits for the turn if the next request is there already. */
static void http_read_on(struct http_connection *c) {
	struct http_request request;
	enum http_status status;
	size_t size;
	struct slice input = stream_input(c->stream);
	enum http_read read = input.size > 0
		? http_request_read(input, &request, &size, &status) : HTTP_READ_MORE;
	if (read != HTTP_READ_MORE) {
		http_wait_for_turn(c, read, &request);
		return;
	}
	http_set_deadline(c, input.size > 0 ? HTTP_REQUEST_S : HTTP_IDLE_S);
	stream_release(c->stream);
}

/* All of the answer has left. */
static void http_on_written(struct http_connection *c) {
	c->writing = false;
	http_touch(c);
	if (c->last) {
		stream_close(c->stream);
	} else if (c->live_size) {
		/* What a reader of events sends is not read. */
		stream_hold(c->stream);
	} else {
		http_read_on(c);
	}
}

/* Sends what was written. */
static void http_send(struct http_connection *c) {
	c->writing = true;
	http_set_deadline(c, HTTP_ANSWER_S);
	if (stream_flush(c->stream) != 0) {
		http_end(c);
	} else if (stream_backlog(c->stream) == 0) {
		http_on_written(c);
	}
}

/* Makes the next event of a stream. The host was judged at its beginning. */
static void http_serve_live(struct http_connection *c) {
	struct http_server *s = c->server;
	struct http_answer answer = { .body = { .to = &s->body } };
	const uint8_t *mark = memchr(c->live, '?', c->live_size);
	const size_t path = (size_t)(mark - (const uint8_t *)c->live);
	const struct http_request request = { .path = slice_of(c->live, path),
		.query = slice_of(mark + 1, c->live_size - path - 1),
		.host = slice_str("localhost") };
	list_remove(&c->ready);
	http_say(&answer, HTTP_NOT_FOUND);
	http_ask(c, &request, &answer);
	if (answer.live) {
		http_write_event(c, &answer);
	} else {
		c->last = true;
	}
	buffer_trim(&s->body, HTTP_BODY_BYTES_MAX / 4);
	http_send(c);
}

static void http_serve(struct http_connection *c) {
	struct http_request request;
	enum http_status refused;
	size_t size = 0;
	enum http_read read = http_request_read(stream_input(c->stream), &request, &size, &refused);
	CHECK(read != HTTP_READ_MORE);
	list_remove(&c->ready);
	http_answer(c, &request, refused);
	stream_take(c->stream, read == HTTP_READ_COMPLETE ? size : 0);
	if (c->later) {
		http_set_deadline(c, HTTP_ANSWER_S);
	} else {
		http_send(c);
	}
}

void http_server_finish(struct http_server *s, uint64_t later,
	void (*fill)(void *ctx, struct http_answer *out), void *ctx) {
	struct http_answer answer = { .body = { .to = &s->body } };
	const struct list *all = &s->readers.all;
	struct list *at = list_first(all);
	while (at && CONTAINER_OF(at, struct http_connection, among)->later != later) {
		at = list_after(all, at);
	}
	if (!at) {
		return;
	}
	struct http_connection *c = CONTAINER_OF(at, struct http_connection, among);
	struct instant begun = time_source_now();
	c->later = 0;
	http_say(&answer, HTTP_INTERNAL_ERROR);
	fill(ctx, &answer);
	if (answer.body.bad) {
		http_say(&answer, HTTP_INTERNAL_ERROR);
	}
	http_write(c, c->later_head, &answer);
	buffer_trim(&s->body, HTTP_BODY_BYTES_MAX / 4);
	http_charge(&s->reads, begun);
	http_send(c);
}

static void http_on_turn(evutil_socket_t fd, short what, void *ctx) {
	struct http_line *line = ctx;
	struct list *first = list_first(&line->ready);
	(void)fd;
	(void)what;
	if (first) {
		struct instant begun = time_source_now();
		struct http_connection *c = CONTAINER_OF(first, struct http_connection, ready);
		if (c->live_size) {
			http_serve_live(c);
		} else {
			http_serve(c);
		}
		http_charge(line, begun);
	}
	http_next_turn(line);
}

/* A second is over: every stream gets its next event, unless its reader is slow. */
static void http_on_second(evutil_socket_t fd, short what, void *ctx) {
	struct http_server *s = ctx;
	(void)fd;
	(void)what;
	const struct list *all = &s->readers.all;
	for (struct list *at = list_first(all); at; at = list_after(all, at)) {
		struct http_connection *c = CONTAINER_OF(at, struct http_connection, among);
		if (c->live_size && !c->writing && !list_linked(&c->ready)) {
			list_append(&s->reads.ready, &c->ready);
		}
	}
	http_next_turn(&s->reads);
}

/* ---- the events of a stream ---- */

static void http_on_ready(void *ctx) {
	struct http_connection *c = ctx;
	const struct http_server *s = c->server;
	SSL *ssl = stream_ssl(c->stream);
	if (!ssl) {
		return;
	}
	if (tls_peer_has_certificate(ssl)) {
		(void)tls_peer_name(ssl, TLS_NAME_CLIENT, c->name);
		tls_peer_digest(ssl, c->certificate);
	}
	c->welcome = s->handlers->may(s->ctx, slice_str(c->name));
	if (!c->welcome) {
		s->handlers->trouble(s->ctx, &c->from,
			"its certificate is neither an administrator's nor in [admin] readers");
	}
}

static ssize_t http_on_data(void *ctx, struct slice bytes, struct instant now) {
	struct http_connection *c = ctx;
	struct http_request request;
	enum http_status status;
	size_t size;
	(void)now;
	enum http_read read = http_request_read(bytes, &request, &size, &status);
	if (read != HTTP_READ_MORE) {
		http_touch(c);
		http_wait_for_turn(c, read, &request);
	} else if (stream_input(c->stream).size == 0) {
		/* This is the first piece of a request. */
		http_set_deadline(c, HTTP_REQUEST_S);
	}
	return 0;
}

static void http_on_closed(void *ctx, int error, const char *why) {
	struct http_connection *c = ctx;
	const struct http_server *s = c->server;
	if (error == PAWL_ETLS) {
		s->handlers->trouble(s->ctx, &c->from, why ? why : pawl_error_message(error));
	}
	http_end(c);
}

static void http_on_drained(void *ctx) {
	struct http_connection *c = ctx;
	if (c->writing) {
		http_on_written(c);
	}
}

static const struct stream_handlers http_stream_handlers = { .ready = http_on_ready,
	.data = http_on_data, .closed = http_on_closed, .drained = http_on_drained };

/* ---- life ---- */

void http_server_accept(struct http_server *s, int take_fd, SSL_CTX *tls,
	const struct origin *from) {
	if (s->newcomers.count >= HTTP_NEWCOMERS_MAX) {
		http_end(CONTAINER_OF(http_newcomer_to_go(&s->newcomers), struct http_connection,
			among));
	}
	struct http_connection *c = alloc_new(s->loop->alloc, sizeof *c);
	struct event *deadline = c ? evtimer_new(s->loop->base, http_on_deadline, c) : NULL;
	const struct stream_options options = { .loop = s->loop, .take_fd = take_fd, .tls = tls,
		.role = TLS_SERVER, .in_max = HTTP_HEAD_BYTES_MAX,
		.out_max = HTTP_BODY_BYTES_MAX + HTTP_ANSWER_HEAD_BYTES,
		.read_max = HTTP_READ_BYTES, .handlers = &http_stream_handlers, .ctx = c };
	struct stream *stream = NULL;
	/* stream_new takes over the socket, whatever happens. */
	int error = stream_new(&options, &stream);
	if (!c || !deadline || error) {
		stream_free(stream);
		if (deadline) {
			event_free(deadline);
		}
		if (c) {
			alloc_free(s->loop->alloc, c, sizeof *c);
		}
		s->handlers->trouble(s->ctx, from, "out of memory");
		return;
	}
	*c = (struct http_connection){ .server = s, .stream = stream, .deadline = deadline,
		.from = *from, .tls = tls, .welcome = !tls };
	http_take_place(c, &s->newcomers);
	http_set_deadline(c, HTTP_REQUEST_S);
}

/* Returns false if there is no memory. */
static bool http_line_init(struct http_line *line, struct http_server *s, int64_t owed_max) {
	*line = (struct http_line){ .server = s, .owed_max = owed_max };
	list_init(&line->ready);
	line->turn = evtimer_new(s->loop->base, http_on_turn, line);
	return line->turn != NULL;
}

static void http_line_done(const struct http_line *line) {
	if (line->turn) {
		event_free(line->turn);
	}
}

int http_server_new(const struct http_options *options, struct http_server **out) {
	struct http_server *s = alloc_new(options->loop->alloc, sizeof *s);
	if (!s) {
		return PAWL_ENOMEM;
	}
	*s = (struct http_server){ .loop = options->loop, .handlers = options->handlers,
		.ctx = options->ctx };
	list_init(&s->newcomers.all);
	list_init(&s->readers.all);
	buffer_init(&s->body, s->loop->alloc, HTTP_BODY_BYTES_MAX);
	static const struct timeval second = { 1, 0 };
	bool lines = http_line_init(&s->probes, s, HTTP_PROBES_OWED)
		&& http_line_init(&s->reads, s, HTTP_READS_OWED);
	s->second = event_new(s->loop->base, -1, EV_PERSIST, http_on_second, s);
	if (!lines || !s->second || event_add(s->second, &second) != 0) {
		http_server_free(s);
		return PAWL_ENOMEM;
	}
	*out = s;
	return 0;
}

static void http_end_places(struct http_places *places) {
	struct list *first;
	while ((first = list_first(&places->all)) != NULL) {
		http_end(CONTAINER_OF(first, struct http_connection, among));
	}
}

void http_server_end_all(struct http_server *s) {
	http_end_places(&s->newcomers);
	http_end_places(&s->readers);
}

void http_server_free(struct http_server *s) {
	if (!s) {
		return;
	}
	http_server_end_all(s);
	http_line_done(&s->probes);
	http_line_done(&s->reads);
	if (s->second) {
		event_free(s->second);
	}
	buffer_done(&s->body);
	alloc_free(s->loop->alloc, s, sizeof *s);
}
