/* sessions_host.h: a node that serves sessions, for the tests of sessions. It answers everything,
 * when it is told to. */
#ifndef PAWL_TESTS_SESSIONS_HOST_H
#define PAWL_TESTS_SESSIONS_HOST_H

/* This one comes before unistd.h. */
#include "sessions.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_fixture.h"
#include "pawl/error.h"
#include "time_source.h"

#define KIB ((size_t)1024)

/* An allocator that refuses one of its calls, or none. */
struct fussy {
	struct allocator libc;
	/* The number of the call that is refused; negative: none is. */
	int refuse_at, calls;
	bool refused;
};

static inline void *fussy_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct fussy *f = ctx;
	if (new_size > old_size && f->calls++ == f->refuse_at) {
		f->refused = true;
		return NULL;
	}
	return f->libc.resize(f->libc.ctx, p, old_size, new_size);
}

#define HOST_KEPT 64

/* The node of the test. It answers everything with a ping's answer, in the order in which it is
 * told to. */
struct host {
	struct net_fixture f;
	struct fussy fussy;
	/* Counts the memory of everything here. */
	struct alloc_counter memory;
	struct sessions *sessions;
	unsigned requests, gone, troubles, refused, drained;
	/* How many requests and watches there are to forget of each client that leaves, by its id;
	 * and how many have been forgotten. */
	uint32_t kept[HOST_KEPT], forgotten;
	/* The client that is gone has closed its connection itself. */
	bool closed_there;
	uint64_t client;
	/* The node is not to answer yet. */
	bool hold;
	/* How long it takes to handle a request, and to forget some of what a client had, in
	 * nanoseconds. */
	span_ns takes, forgetting;
	/* The size of the value that every request brings, in bytes. */
	uint64_t value;
	/* Requests wait to be served. */
	bool ready;
	/* How many pieces of requests came before the first ping; and the number of the piece after
	 * which the client is dropped, 0: none. */
	unsigned before_ping, drop_after;
	bool pinged;
	/* How many pieces of requests came, and of how many parts the largest one was. */
	size_t pieces, most;
	bool local;
	enum client_method method;
	size_t locks;
	/* The limits of whoever connects now; NULL: those of all clients. */
	const struct share_limits *own;
	/* Whoever connects now is an administrator. */
	bool admin;
	/* How many requests were refused because their client had had enough, and what the last one
	 * was told. */
	unsigned over;
	span_ns retry_after;
	char limit[64];
};

static inline void host_answer(struct host *h) {
	struct buffer *to = sessions_answer(h->sessions, h->client);
	if (to && client_ping_encode(1, "0", "host", to) != 0) {
		sessions_drop(h->sessions, h->client);
	}
}

static inline void host_take(span_ns time) {
	const struct instant begun = time_source_now();
	while (instant_elapsed_short(time_source_now(), begun) < time) {
	}
}

static inline void host_request(void *ctx, uint64_t client, const struct session_who *who,
	const struct client_request *request, struct session_progress *progress,
	struct instant now) {
	struct host *h = ctx;
	(void)now;
	host_take(h->takes);
	size_t left = request->lock_count - progress->done,
		piece = left < progress->most ? left : progress->most;
	progress->done += piece;
	h->pieces++;
	h->most = piece > h->most ? piece : h->most;
	h->pinged = h->pinged || request->method == CLIENT_PING;
	h->before_ping += !h->pinged;
	if (h->pieces == h->drop_after) {
		sessions_drop(h->sessions, client);
		return;
	}
	if (progress->done < request->lock_count) {
		return;
	}
	h->requests++;
	sessions_value_begun(h->sessions, client, h->value);
	h->client = client;
	h->local = who->local;
	h->method = request->method;
	h->locks = request->lock_count;
	assert_true(slice_equal(who->identity, slice_str(who->local ? "plain" : "")));
	if (!h->hold) {
		host_answer(h);
	}
}

static inline uint32_t host_forget(void *ctx, uint64_t client, uint32_t most) {
	struct host *h = ctx;
	uint32_t *kept = &h->kept[client < HOST_KEPT ? client : 0];
	uint32_t forgotten = *kept < most ? *kept : most;
	*kept -= forgotten;
	h->forgotten += forgotten;
	host_take(h->forgetting);
	return forgotten;
}

static inline void host_gone(void *ctx, uint64_t client, bool closed_there) {
	struct host *h = ctx;
	h->gone++;
	h->closed_there = closed_there;
	h->client = client;
}

static inline void host_trouble(void *ctx, const struct session_who *who, const char *why) {
	struct host *h = ctx;
	assert_non_null(why);
	assert_non_null(who->from);
	h->troubles++;
}

static inline void host_refused(void *ctx) {
	struct host *h = ctx;
	h->refused++;
}

static inline void host_drained(void *ctx, uint64_t client) {
	struct host *h = ctx;
	assert_int_equal(client, h->client);
	h->drained++;
}

static inline void host_ready(void *ctx) {
	struct host *h = ctx;
	h->ready = true;
}

/* The test says whose limits are its own, and who is an administrator. */
static inline bool host_own_limits(void *ctx, const struct session_who *who,
	struct share_limits *limits) {
	const struct host *h = ctx;
	(void)who;
	if (h->own) {
		*limits = *h->own;
	}
	return h->admin;
}

static inline void host_over(void *ctx, const struct session_who *who,
	const struct client_refusal *refusal) {
	struct host *h = ctx;
	assert_non_null(who->from);
	h->over++;
	h->retry_after = refusal->retry_after;
	snprintf(h->limit, sizeof h->limit, "%.*s", (int)refusal->field.size,
		(const char *)refusal->field.data);
}

static const struct sessions_handlers host_handlers = { host_ready, host_request, host_forget,
	host_gone, host_trouble, host_refused, host_drained, host_own_limits, host_over };

static inline void host_init(struct host *h, int refuse_at) {
	memset(h, 0, sizeof *h);
	net_fixture_init(&h->f);
	/* This is the memory of the loop, which counts with the rest from now on. */
	h->memory.used = 2 * NET_SCRATCH_BYTES;
	h->fussy = (struct fussy){ .libc = alloc_libc(&h->memory), .refuse_at = refuse_at };
	h->f.alloc = (struct allocator){ fussy_resize, &h->fussy };
}

static inline int host_open(struct host *h, uint32_t clients, uint32_t requests) {
	const struct sessions_options o = { .loop = &h->f.loop, .memory = &h->memory,
		.limits = { .clients = clients, .requests_per_client = requests,
			.strangers = { 64, 64, 64 << 20 } }, .handlers = &host_handlers, .ctx = h };
	return sessions_new(&o, &h->sessions);
}

static inline void host_done(struct host *h) {
	sessions_free(h->sessions);
	net_fixture_done(&h->f);
}

/* Opens one that never lacks memory. */
static inline void host_begin(struct host *h, uint32_t clients, uint32_t requests) {
	host_init(h, -1);
	assert_int_equal(host_open(h, clients, requests), 0);
}

/* Connects a client that is known only by this address, and speaks this dialect (NULL: none).
 * Returns the client's end. */
static inline int host_connect_by(struct host *h, const char *address,
	const struct dialect_use *use) {
	int fds[2];
	struct origin from;
	net_fixture_pair(fds);
	origin_named(address, &from);
	sessions_accept(h->sessions, fds[0], NULL, TLS_CLIENT_OFF, true, &from, use);
	net_fixture_settle(&h->f);
	return fds[1];
}

static inline int host_connect_from(struct host *h, const char *address) {
	return host_connect_by(h, address, NULL);
}

static inline int host_connect(struct host *h) {
	return host_connect_from(h, "test");
}

/* A dialect of a test has its server as its state. */
static inline void *host_dialect_open(const struct allocator *alloc,
	const struct dialect_node *node, void *server, uint64_t number, const char *from) {
	(void)alloc;
	(void)node;
	(void)number;
	(void)from;
	return server;
}

static inline void host_serve(struct host *h) {
	do {
		h->ready = false;
		net_fixture_settle(&h->f);
		while (sessions_serve(h->sessions)) {
		}
		net_fixture_settle(&h->f);
	} while (h->ready);
}

static inline void host_run(struct host *h) {
	host_serve(h);
	sessions_flush(h->sessions);
	net_fixture_settle(&h->f);
}

static inline void send_bytes(int fd, const void *bytes, size_t size) {
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

static inline void send_request(int fd, const struct client_request *request) {
	struct allocator libc = alloc_libc(NULL);
	struct buffer out;
	buffer_init(&out, &libc, 1 << 20);
	assert_int_equal(client_request_encode(request, &out), 0);
	send_bytes(fd, out.data, out.size);
	buffer_done(&out);
}

static inline void send_ping(int fd) {
	const struct client_request ping = { .msgid = 1, .method = CLIENT_PING };
	send_request(fd, &ping);
}

static inline void send_status(int fd) {
	const struct client_request status = { .msgid = 1, .method = CLIENT_STATUS };
	send_request(fd, &status);
}

static inline size_t answers(int fd) {
	static uint8_t bytes[65536];
	ssize_t n = recv(fd, bytes, sizeof bytes, 0);
	size_t count = 0, at = 0, size;
	struct client_scanner scanner = { 0 };
	while (n > 0 && client_scan(&scanner, &client_response_limits,
		slice_of(bytes + at, (size_t)n - at), &size) == CLIENT_SCAN_COMPLETE) {
		at += size;
		count++;
	}
	return count;
}

static const struct sessions_limits open_limits = { .clients = 100, .requests_per_client = 100,
	.strangers = { 64, 64, 64 << 20 } };

static inline void host_start(struct host *h, const struct sessions_limits *limits) {
	host_begin(h, 100, 100);
	sessions_set_limits(h->sessions, limits);
}

/* Sends so much of a request that nothing can be done with it yet. */
static inline void send_half(struct host *h, int fd, size_t size) {
	static const uint8_t head[] = { 0x94, 0x00, 0x01, 0xa3, 'g', 'e', 't', 0x91, 0x81, 0xa3,
		'k', 'e', 'y', 0xc6, 0x00, 0x30, 0x00, 0x00 };
	static uint8_t piece[4096];
	send_bytes(fd, head, sizeof head);
	for (size_t sent = 0; sent < size; sent += sizeof piece) {
		if (send(fd, piece, sizeof piece, MSG_NOSIGNAL) < 0) {
			/* The connection was closed, or nobody reads. */
			return;
		}
		host_run(h);
	}
}

static inline bool add_received(void *ctx, const struct session_view *view) {
	*(uint64_t *)ctx += view->received;
	return true;
}

/* Returns how many bytes have been read from all connections. */
static inline uint64_t received(const struct host *h) {
	uint64_t bytes = 0;
	sessions_each(h->sessions, 0, add_received, &bytes);
	return bytes;
}

static inline bool gone(struct host *h, uint64_t client) {
	struct session_who who;
	return !sessions_who(h->sessions, client, &who);
}

#endif
