/* fake_node.c: the node for the tests of the client, see fake_node.h. */
#include "fake_node.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "client_pieces.h"
#include "client_reply.h"
#include "pack.h"

void fake_open(struct fake_node *n) {
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(addr);
	*n = (struct fake_node){ .alloc = alloc_libc(NULL), .valid_permille = 990, .held = true };
	n->holder = (struct core_entry){ .owner = slice_str("somebody"),
		.value = slice_str("something"), .token = 41, .remaining = 5 * SPAN_S,
		.value_seq = { 1, 2, 3 } };
	n->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	CHECK(n->fd >= 0 && bind(n->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
		listen(n->fd, 16) == 0);
	CHECK(getsockname(n->fd, (struct sockaddr *)&addr, &size) == 0);
	n->port = ntohs(addr.sin_port);
	n->log = n->port;
	n->sequence = 100;
	(void)snprintf(n->endpoint, sizeof(n->endpoint), "127.0.0.1:%u", n->port);
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		n->conns[i].fd = -1;
		n->conns[i].node = n;
	}
}

static void conn_close(struct fake_conn *c) {
	if (c->node->watcher == c) {
		c->node->watcher = NULL;
		c->node->watch = 0;
	}
	if (c->fd >= 0) {
		event_free(c->event);
		close(c->fd);
		buffer_done(&c->in);
		buffer_done(&c->out);
		c->fd = -1;
	}
}

static const struct config_node missing = { .name = "gone", .master = true };
static const struct config_node *const peers[] = { &missing };
static struct client_context context = { .node = "fake", .role = "master", .peers = peers,
	.peer_count = 1 };

/* Writes a `moved` as an error map: a node of this release has no such answer. */
static void put_moved(const struct fake_node *n, struct pack *k) {
	uint32_t count = 0;
	while (n->moved_to[count]) {
		count++;
	}
	pack_map(k, 3);
	pack_text(k, "code");
	pack_text(k, "moved");
	pack_text(k, "cell");
	pack_text(k, "west");
	pack_text(k, "endpoints");
	pack_array(k, count);
	for (uint32_t i = 0; i < count; i++) {
		pack_str(k, slice_str(n->moved_to[i]));
	}
}

static void answer_moved(const struct fake_node *n, const struct client_request *r,
	struct buffer *out) {
	struct pack k;
	const bool batch = r->present & CLIENT_HAS_LOCKS && r->method == CLIENT_EXTEND;
	client_reply_begin(&k, r->msgid, out);
	if (batch) {
		pack_nil(&k);
		pack_map(&k, 1);
		pack_text(&k, "locks");
		pack_array(&k, (uint32_t)r->lock_count);
	} else {
		put_moved(n, &k);
		pack_nil(&k);
	}
	for (size_t i = 0; batch && i < r->lock_count; i++) {
		pack_map(&k, i % 2 ? 1 : 2);
		pack_text(&k, i % 2 ? "error" : "valid_ms");
		if (i % 2) {
			put_moved(n, &k);
		} else {
			pack_uint(&k, 5000);
			pack_text(&k, "token");
			pack_uint(&k, 70 + i);
		}
	}
	CHECK(pack_end(&k) == 0);
}

static void answer_batch(struct fake_node *n, const struct client_request *r, struct buffer *out) {
	struct client_extended items[CLIENT_LOCKS_MAX];
	n->locks_last = r->lock_count;
	n->locks_max = r->lock_count > n->locks_max ? r->lock_count : n->locks_max;
	n->last_deadline_kept = r->core.deadline_kept;
	n->last_lease = r->lock_count ? r->locks[0].lease : 0;
	for (size_t i = 0; i < r->lock_count; i++) {
		if (n->binding_count < sizeof(n->bindings) / sizeof(n->bindings[0])) {
			n->ordered[n->binding_count] = r->locks[i].ordered;
			n->bindings[n->binding_count++] = r->locks[i].binding;
		}
		const bool unsure = r->locks[i].binding && n->unsure_binds;
		n->unsure_binds -= unsure;
		int error = unsure ? PAWL_EUNSURE : i % 2 == 1 ? n->error_of_item : 0;
		error = n->lease_most && r->locks[i].lease > n->lease_most ? PAWL_ETOOLONG : error;
		items[i] = (struct client_extended){ .error = error, .lock_id = r->locks[i].lock_id,
			.limit = error == PAWL_ETOOLONG ? n->lease_most : 0,
			.token = n->token, .acks = 3, .quorum = 2,
			.valid = r->locks[i].lease / 1000 * n->valid_permille };
		if (n->numbers_of_item) {
			items[i].mode = (struct client_lock_mode){ CLIENT_PERMITS, 1, PERMITS_MAX,
				{ { n->numbers_of_item, 0 } } };
		}
	}
	struct buffer encoded;
	buffer_init(&encoded, out->alloc, client_response_limits.bytes);
	for (uint32_t i = 0; i < r->lock_count; i++) {
		CHECK(client_batch_add(&encoded, &items[i], &context) == 0);
	}
	CHECK(client_batch_encode(r->msgid, &encoded, (uint32_t)r->lock_count, out) == 0);
	buffer_done(&encoded);
}

static bool extends_denied(const struct fake_node *n, const struct client_request *r) {
	for (size_t i = 0; n->denied_key && i < r->lock_count; i++) {
		if (slice_equal(r->locks[i].key, slice_str(n->denied_key))) {
			return true;
		}
	}
	return false;
}

static struct core_reply reply_of(struct fake_node *n, const struct client_request *r) {
	struct core_reply reply = { .op = r->core.op, .error = n->error, .quorum = 2, .votes = 3,
		.acks = 3 };
	reply.lock_id = r->core.lock_id;
	reply.token = r->method == CLIENT_ACQUIRE ? ++n->token : n->token;
	reply.valid = r->core.lease / 1000 * n->valid_permille;
	reply.waited = n->waited;
	reply.released = r->method == CLIENT_RELEASE;
	reply.value_seq = (struct ballot){ 7, 8, 9 };
	reply.epoch = 5;
	reply.settled = true;
	reply.missing = 1;
	reply.why = slice_str(client_method_changes(r->method) ? "look out" : "");
	reply.terms = (struct terms){ .of = r->core.terms.of, .count = r->core.terms.count };
	for (uint32_t i = 0; terms_semaphore(&reply.terms) && i < reply.terms.count; i++) {
		/* The permits are 1, 3, 5, ... */
		reply.terms.set.w[0] |= UINT64_C(1) << (2 * i + 1);
	}
	reply.reached = 2;
	if (n->held && (r->method == CLIENT_GET || r->method == CLIENT_WAIT ||
		r->method == CLIENT_WATCH || n->error == PAWL_EHELD)) {
		reply.held = true;
		reply.entry = n->holder;
		reply.entry.key = r->core.key;
	}
	return reply;
}

static void answer_watch(struct fake_conn *c, const struct client_request *r) {
	struct fake_node *n = c->node;
	struct core_reply view = reply_of(n, r);
	struct client_position position = r->present & CLIENT_HAS_FROM ? r->from
		: (struct client_position){ n->log, n->sequence };
	view.op = CORE_GET;
	n->watch = ++n->watches;
	n->watcher = c;
	CHECK(client_watch_encode(r->msgid, n->watch, position, r->core.prefix ? NULL : &view,
		&context, &c->out) == 0);
	if (position.log != n->log || position.sequence > n->sequence) {
		struct client_event overflow = { .type = CLIENT_EVENT_OVERFLOW, .watch = n->watch,
			.position = { n->log, n->sequence } };
		CHECK(client_event_encode(&overflow, &c->out) == 0);
	}
}

/* The list has two keys, on two pages. */
static void answer_list(struct fake_conn *c, const struct client_request *r) {
	struct core_reply reply = { .op = CORE_LIST, .count = c->node->held,
		.more = r->core.after.size == 0 };
	struct core_entry entry = c->node->holder;
	entry.key = slice_str(reply.more ? "p1" : "p2");
	entry.holders = 1;
	reply.entries = &entry;
	if (c->node->ends) {
		const struct core_watch_event watch_event = { .kind = WATCH_EVENT_RELEASED,
			.key = slice_str(c->node->ends), .token = entry.token };
		struct client_event event = client_event_of(&watch_event, false);
		event.watch = c->node->watch;
		event.position = (struct client_position){ c->node->log, ++c->node->sequence };
		CHECK(client_event_encode(&event, &c->out) == 0);
		c->node->ends = NULL;
	}
	CHECK(client_reply_encode(r->msgid, &reply, &context, &c->out) == 0);
}

static void answer_waiters(struct fake_conn *c, const struct client_request *r) {
	struct core_waiter waiter = { .owner = slice_str(c->node->waiter ? c->node->waiter : ""),
		.node = { { 1 } } };
	struct core_reply reply = { .op = CORE_WAITERS, .waiters = &waiter,
		.count = c->node->waiter != NULL };
	CHECK(client_reply_encode(r->msgid, &reply, &context, &c->out) == 0);
}

static void answer_group(struct fake_conn *c, const struct client_request *r) {
	struct fake_node *n = c->node;
	struct core_lock_got got[CORE_LOCKS_MAX];
	struct core_reply reply = { .op = CORE_ACQUIRE_ALL,
		.valid = r->core.lease / 1000 * n->valid_permille, .got = got,
		.count = r->core.lock_count };
	for (uint32_t i = 0; i < r->core.lock_count; i++) {
		got[i] = (struct core_lock_got){ .key = r->core.locks[i].key,
			.lock_id = r->core.locks[i].lock_id, .token = ++n->token,
			.terms.of = r->core.locks[i].of };
	}
	CHECK(client_reply_encode(r->msgid, &reply, &context, &c->out) == 0);
}

void fake_event(struct fake_node *n, enum core_watch_event_kind kind, const char *owner,
	const char *value, uint64_t token) {
	const struct core_watch_event watch_event = { .kind = kind, .key = slice_str("k"),
		.owner = slice_str(owner), .value = slice_str(value), .token = token };
	struct client_event event = client_event_of(&watch_event, false);
	CHECK(n->watcher);
	event.watch = n->watch;
	event.position = (struct client_position){ n->log, ++n->sequence };
	CHECK(client_event_encode(&event, &n->watcher->out) == 0);
	fake_let_go(n);
}

void fake_ask(struct fake_node *n, const char *by, const char *to, int32_t priority) {
	CHECK(n->watcher);
	struct client_event event = { .type = CLIENT_EVENT_ASKED, .watch = n->watch,
		.position = { n->log, ++n->sequence }, .entry.key = slice_str("k"),
		.by = slice_str(by), .to = slice_str(to), .priority = priority };
	CHECK(client_event_encode(&event, &n->watcher->out) == 0);
	fake_let_go(n);
}

void fake_overflow(struct fake_node *n) {
	CHECK(n->watcher);
	struct client_event event = { .type = CLIENT_EVENT_OVERFLOW, .watch = n->watch,
		.position = { n->log, ++n->sequence } };
	CHECK(client_event_encode(&event, &n->watcher->out) == 0);
	fake_let_go(n);
}

static void answer(struct fake_conn *c, const struct client_request *r) {
	struct fake_node *n = c->node;
	int error = 0;
	if (n->knows_no_traces && (r->present & CLIENT_HAS_TRACE)) {
		const struct client_refusal refusal = { .error = PAWL_EBADREQUEST,
			.field = slice_str("trace") };
		n->traces_refused++;
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_PING && n->ping_error) {
		const struct client_refusal refusal = { .error = n->ping_error };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_PING) {
		error = client_ping_encode(r->msgid, "9.9", "fake", &c->out);
	} else if (n->error == PAWL_EMOVED) {
		answer_moved(n, r, &c->out);
	} else if (extends_denied(n, r)) {
		const struct client_refusal refusal = { .error = PAWL_EDENIED };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_EXTEND && (r->present & CLIENT_HAS_LOCKS) && !n->error
		&& !(n->knows_no_parties && (r->present & CLIENT_HAS_PARTY))) {
		answer_batch(n, r, &c->out);
	} else if (r->method == CLIENT_DRAIN || r->method == CLIENT_STATUS ||
		r->method == CLIENT_UNWATCH) {
		n->unwatched += r->method == CLIENT_UNWATCH;
		n->watch = r->method == CLIENT_UNWATCH && r->watch == n->watch ? 0 : n->watch;
		error = client_done_encode(r->msgid, &c->out);
	} else if (n->knows_no_parties && (r->present & CLIENT_HAS_PARTY)) {
		const struct client_refusal refusal = { .error = PAWL_EBADREQUEST,
			.field = slice_str("party") };
		n->parties_refused++;
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (n->knows_no_elections && (r->present & CLIENT_HAS_ELECTION)) {
		const struct client_refusal refusal = { .error = PAWL_EBADREQUEST,
			.field = slice_str("election") };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_ACQUIRE && n->acquire_error) {
		struct client_refusal refusal = { .error = n->acquire_error,
			.retry_after = n->retry_after };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (n->error && n->error != PAWL_EHELD) {
		struct client_refusal refusal = { .error = n->error,
			.retry_after = n->retry_after };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_WATCH && n->watches_most
		&& n->watches - n->unwatched >= n->watches_most) {
		const struct client_refusal refusal = { .error = PAWL_EFULL };
		error = client_refusal_encode(r->msgid, &refusal, &c->out);
	} else if (r->method == CLIENT_WATCH) {
		answer_watch(c, r);
	} else if (r->method == CLIENT_LIST) {
		answer_list(c, r);
	} else if (r->method == CLIENT_WAITERS) {
		answer_waiters(c, r);
	} else if (r->method == CLIENT_ACQUIRE && r->core.lock_count) {
		answer_group(c, r);
	} else {
		struct core_reply reply = reply_of(n, r);
		n->last_lease = r->method == CLIENT_ACQUIRE ? r->core.lease : n->last_lease;
		if (r->method == CLIENT_ACQUIRE && n->lease_most &&
			r->core.lease + r->core.terms.delay > n->lease_most) {
			reply.error = PAWL_ETOOLONG;
			reply.field = "lease_ms";
			reply.limit = n->lease_most;
		}
		error = client_reply_encode(r->msgid, &reply, &context, &c->out);
	}
	CHECK(error == 0);
}

static void conn_flush(struct fake_conn *c) {
	while (c->out.size) {
		ssize_t sent = send(c->fd, c->out.data, c->out.size, MSG_NOSIGNAL);
		if (sent <= 0) {
			/* The client is gone: what is asked of this node is too small for a send to
			 * block. */
			return;
		}
		buffer_consume(&c->out, (size_t)sent);
	}
}

static void note(struct fake_node *n, const struct client_request *r) {
	n->asked[r->method]++;
	n->last = *r;
	n->last_lock_id = r->core.lock_id;
	size_t size = r->core.key.size < sizeof(n->last_key) - 1 ? r->core.key.size
		: sizeof(n->last_key) - 1;
	if (size) {
		memcpy(n->last_key, r->core.key.data, size);
	}
	n->last_key[size] = '\0';
	if (r->method == CLIENT_ACQUIRE) {
		n->last_binding = r->core.terms.binding;
		n->last_label_election = r->label.election;
		(void)snprintf(n->last_value, sizeof(n->last_value), "%.*s",
			(int)r->core.value.size, (const char *)r->core.value.data);
	}
}

/* Returns false when it has closed the connection. */
static bool serve(struct fake_conn *c, const struct client_request *r) {
	struct fake_node *n = c->node;
	note(n, r);
	switch (n->mood) {
	case FAKE_ANSWERS:
	case FAKE_HOLDS_BACK:
	case FAKE_GARBLES:
		answer(c, r);
		return true;
	case FAKE_STOPS_SHORT:
		answer(c, r);
		c->out.size /= 2;
		n->mood = FAKE_SILENT;
		return true;
	case FAKE_SILENT:
		return true;
	case FAKE_KEEPS_ONE_IN:
		if (r->method == CLIENT_PING) {
			answer(c, r);
		}
		return true;
	case FAKE_HANGS_UP:
		conn_close(c);
		return false;
	case FAKE_REFUSES:
		CHECK(client_refusal_encode(0, &(struct client_refusal){ .error = PAWL_EDENIED },
			&c->out) == 0);
		conn_flush(c);
		conn_close(c);
		return false;
	case FAKE_TALKS_ROT:
		CHECK(buffer_append(&c->out, "HTTP/1.1 400 Bad Request\r\n\r\n", 28) == 0);
		return true;
	case FAKE_WANTS_TLS:
		CHECK(buffer_append(&c->out, "\x15\x03\x03\x00\x02\x02\x46", 7) == 0);
		return true;
	}
	return true;
}

static void garble(struct fake_conn *c) {
	struct prng *p = &c->node->prng;
	for (uint64_t i = prng_below(p, 4); c->out.size && i > 0; i--) {
		c->out.data[prng_below(p, c->out.size)] ^= (uint8_t)(1u << prng_below(p, 8));
	}
}

static void serve_all(struct fake_conn *c) {
	size_t size;
	while (client_scan(&c->scanner, &client_request_limits, buffer_slice(&c->in),
		&size) == CLIENT_SCAN_COMPLETE) {
		struct client_request r;
		struct client_refusal refusal;
		if (client_request_decode(&c->node->decoder, slice_of(c->in.data, size), &r,
			&refusal) != 0) {
			CHECK(client_refusal_encode(r.msgid, &refusal, &c->out) == 0);
		} else if (!serve(c, &r)) {
			return;
		}
		buffer_consume(&c->in, size);
	}
	if (c->node->mood == FAKE_GARBLES) {
		garble(c);
	}
	if (c->node->mood != FAKE_HOLDS_BACK) {
		conn_flush(c);
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
	struct fake_conn *c = arg;
	(void)what;
	uint8_t *room = buffer_reserve(&c->in, 1 << 16);
	CHECK(room);
	ssize_t got = recv((int)fd, room, 1 << 16, 0);
	if (got <= 0) {
		if (got == 0 || errno != EAGAIN) {
			conn_close(c);
		}
		return;
	}
	buffer_commit(&c->in, (size_t)got);
	c->node->reads++;
	serve_all(c);
}

static void on_accept(evutil_socket_t fd, short what, void *arg) {
	struct fake_node *n = arg;
	(void)what;
	struct fake_conn *c = n->conns;
	while (c->fd >= 0) {
		c++;
		CHECK(c < n->conns + FAKE_CONNS);
	}
	int accepted = accept4((int)fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (accepted < 0) {
		return;
	}
	int on = 1;
	CHECK(setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	*c = (struct fake_conn){ .node = n, .fd = accepted };
	buffer_init(&c->in, &n->alloc, 8 << 20);
	buffer_init(&c->out, &n->alloc, 8 << 20);
	c->event = event_new(n->base, accepted, EV_READ | EV_PERSIST, on_readable, c);
	CHECK(c->event && event_add(c->event, NULL) == 0);
	n->accepted++;
}

void fake_attach(struct fake_node *n, struct event_base *base) {
	n->base = base;
	client_decoder_init(&n->decoder, &n->alloc);
	n->event = event_new(base, n->fd, EV_READ | EV_PERSIST, on_accept, n);
	CHECK(n->event && event_add(n->event, NULL) == 0);
}

void fake_let_go(struct fake_node *n) {
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		if (n->conns[i].fd >= 0) {
			conn_flush(&n->conns[i]);
		}
	}
}

void fake_hang_up(struct fake_node *n) {
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		conn_close(&n->conns[i]);
	}
}

void fake_close(struct fake_node *n) {
	fake_hang_up(n);
	if (n->event) {
		event_free(n->event);
	}
	client_decoder_done(&n->decoder);
	close(n->fd);
}
