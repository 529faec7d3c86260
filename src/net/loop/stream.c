/* stream.c: the life of a stream, and what it reads. stream_out.c has what it writes. */
#include "stream_impl.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"

/* How many bytes are read at a time during a handshake that takes turns. */
#define HANDSHAKE_READ_BYTES (16u * 1024)
/* The counterpart of STREAM_KEEP_BYTES for input that was held, which is a buffer that every
 * connection has. */
#define KEEP_HELD_BYTES 4096u
/* After we have closed, a connection that goes on sending gets at most this many more reads, and at
 * most this much time. Without the bound in time, each byte would put off the moment at which it is
 * closed. */
#define LAST_READS 64
#define LAST_READS_FOR SPAN_S
/* After this time, one late message of TLS (tls_engine.h) is forgiven. */
#define FORGIVE_AFTER SPAN_S

static void stream_destroy(struct stream *s) {
	if (s->readable) {
		event_free(s->readable);
	}
	if (s->writable) {
		event_free(s->writable);
	}
	tls_engine_free(s->tls);
	close(s->fd);
	buffer_done(&s->in);
	buffer_done(&s->out);
	alloc_free(s->alloc, s, sizeof *s);
}

void stream_enter(struct stream *s) {
	s->busy++;
}

void stream_leave(struct stream *s) {
	if (--s->busy == 0 && s->doomed) {
		stream_destroy(s);
	}
}

static void stream_over(struct stream *s, int error, const char *why) {
	if (s->doomed || s->state == STREAM_OVER) {
		return;
	}
	s->state = STREAM_OVER;
	handshakes_leave(&s->loop->handshakes, &s->turn);
	event_del(s->readable);
	event_del(s->writable);
	s->handlers->closed(s->ctx, error, why);
}

/* ---- in ---- */

static int stream_deliver(struct stream *s, struct slice bytes) {
	s->held = s->held || !s->handlers->data;
	if (s->in.size > 0 || s->held) {
		int error = buffer_append(&s->in, bytes.data, bytes.size);
		if (error || s->held) {
			return error;
		}
		bytes = buffer_slice(&s->in);
	}
	ssize_t taken = s->handlers->data(s->ctx, bytes, s->heard);
	if (taken < 0 || s->doomed) {
		return (int)taken;
	}
	CHECK((size_t)taken <= bytes.size);
	if (s->in.size > 0) {
		buffer_consume(&s->in, (size_t)taken);
		buffer_trim(&s->in, STREAM_KEEP_BYTES);
		return 0;
	}
	return buffer_append(&s->in, bytes.data + taken, bytes.size - (size_t)taken);
}

static void stream_become_open(struct stream *s) {
	s->state = STREAM_OPEN;
	s->handlers->ready(s->ctx);
}

static void stream_forgive(struct stream *s) {
	span_ns since = instant_elapsed_short(s->heard, s->forgiven);
	if (tls_engine_late(s->tls) == 0) {
		s->forgiven = s->heard;
	} else if (since >= FORGIVE_AFTER) {
		tls_engine_forgive(s->tls, (uint64_t)(since / FORGIVE_AFTER));
		s->forgiven = s->heard;
	}
}

static int stream_deliver_tls(struct stream *s, struct slice bytes) {
	stream_forgive(s);
	int error = tls_engine_feed(s->tls, bytes);
	/* What leaves is a part of the handshake, or the alert that says why it failed. */
	int flushed = stream_flush(s);
	if (error || flushed) {
		return error ? error : flushed;
	}
	if (s->state == STREAM_SHAKING && tls_engine_ready(s->tls)) {
		stream_become_open(s);
	}
	while (!s->doomed && s->state == STREAM_OPEN) {
		int n = tls_engine_read(s->tls, s->loop->plain, NET_SCRATCH_BYTES);
		if (n <= 0) {
			s->closed_there = n == PAWL_ECLOSED;
			s->ended = s->held ? n : 0;
			return s->held ? 0 : n;
		}
		error = stream_deliver(s, slice_of(s->loop->plain, (size_t)n));
		if (error) {
			return error;
		}
	}
	return 0;
}

/* Nothing came of a read. */
static int stream_receive_failed(struct stream *s, ssize_t n) {
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
		return 0;
	}
	s->closed_there = n == 0 || errno == ECONNRESET;
	return PAWL_ECLOSED;
}

/* We have closed, and the other side goes on sending. */
static int stream_drop(struct stream *s) {
	return ++s->dropped < LAST_READS
		&& instant_elapsed_short(s->heard, s->closing) < LAST_READS_FOR ? 0 : PAWL_ECLOSED;
}

/* Reads once. The time is read after that, as the protocol wants it (docs/protocol.md, Time: after
 * the last byte was received). */
static int stream_receive(struct stream *s) {
	bool paced = s->accepted && s->state == STREAM_SHAKING;
	size_t most = paced ? HANDSHAKE_READ_BYTES : s->read_max;
	if (s->state == STREAM_OPEN && s->handlers->room) {
		size_t room = s->handlers->room(s->ctx, &s->in);
		most = room < most ? room : most;
	}
	if (most == 0) {
		s->starved = true;
		event_del(s->readable);
		return 0;
	}
	/* What is read then follows what has been kept of a request, without being copied. */
	const bool in_place = s->state == STREAM_OPEN && !s->tls && s->in.size > 0
		&& s->in.capacity - s->in.size >= most;
	uint8_t *to = in_place ? s->in.data + s->in.size : s->loop->scratch;
	ssize_t n = recv(s->fd, to, most, 0);
	if (n <= 0) {
		return stream_receive_failed(s, n);
	}
	s->received += (uint64_t)n;
	s->heard = time_source_now();
	if (s->state == STREAM_CLOSING) {
		return stream_drop(s);
	}
	if (in_place) {
		buffer_commit(&s->in, (size_t)n);
		return stream_deliver(s, slice_of(NULL, 0));
	}
	struct slice bytes = slice_of(to, (size_t)n);
	if (paced && (s->shaken += bytes.size) > HANDSHAKE_BYTES_MAX) {
		stream_over(s, PAWL_ETLS, "the TLS handshake is too large");
		return 0;
	}
	return s->tls ? stream_deliver_tls(s, bytes) : stream_deliver(s, bytes);
}

static void stream_fail(struct stream *s, int error) {
	stream_over(s, error, error == PAWL_ETLS && s->tls ? tls_engine_why(s->tls) : NULL);
}

static void stream_read(struct stream *s, bool too_late) {
	s->busy++;
	int error = s->ended ? s->ended : too_late ? PAWL_ECLOSED : stream_receive(s);
	if (!s->doomed && s->state == STREAM_OPEN && s->handlers->received) {
		s->handlers->received(s->ctx, s->heard);
	}
	if (error && !s->doomed) {
		stream_fail(s, error);
	}
	stream_leave(s);
}

/* The socket is not watched for input until stream_watch_again. */
static void stream_unwatch(struct stream *s) {
	s->unwatched = true;
	event_del(s->readable);
}

static void stream_on_readable(evutil_socket_t fd, short what, void *ctx) {
	struct stream *s = ctx;
	(void)fd;
	/* The event is removed only now, because most often the input is released before more
	 * arrives. */
	if (s->held) {
		stream_unwatch(s);
		return;
	}
	if (s->accepted && s->state == STREAM_SHAKING && !(what & EV_TIMEOUT)) {
		event_del(s->readable);
		handshakes_wait(&s->loop->handshakes, &s->turn, s->urgent);
		return;
	}
	if (!(what & EV_TIMEOUT) && s->state == STREAM_OPEN && !s->ended && s->handlers->turn
		&& !s->handlers->turn(s->ctx)) {
		/* Here, too: most often the turn comes before the socket is looked at again. */
		if (s->late) {
			stream_unwatch(s);
		}
		s->late = true;
		return;
	}
	s->late = false;
	stream_read(s, what & EV_TIMEOUT);
}

static void stream_on_turn(void *ctx) {
	struct stream *s = ctx;
	event_add(s->readable, NULL);
	stream_read(s, false);
}

/* ---- input that is held ---- */

void stream_hold(struct stream *s) {
	s->held = true;
}

bool stream_is_held(const struct stream *s) {
	return s->held;
}

struct slice stream_input(const struct stream *s) {
	return slice_of(s->in.data ? s->in.data + s->in_done : NULL, s->in.size - s->in_done);
}

void stream_take(struct stream *s, size_t size) {
	CHECK(s->held && size <= s->in.size - s->in_done);
	s->in_done += size;
}

static void stream_watch_again(struct stream *s) {
	s->unwatched = false;
	stream_listen(s);
}

void stream_read_late(struct stream *s) {
	CHECK(s->busy > 0 && !s->held);
	s->late = false;
	if (s->unwatched) {
		stream_watch_again(s);
	}
	if (s->state == STREAM_OPEN && !s->doomed) {
		stream_read(s, false);
	}
}

void stream_release(struct stream *s) {
	CHECK(s->held);
	s->held = false;
	buffer_consume(&s->in, s->in_done);
	s->in_done = 0;
	buffer_trim(&s->in, KEEP_HELD_BYTES);
	if (s->unwatched) {
		stream_watch_again(s);
	}
	if (s->ended) {
		event_active(s->readable, EV_READ, 0);
	}
}

void stream_feed(struct stream *s) {
	s->starved = false;
	stream_listen(s);
}

void stream_set_read_max(struct stream *s, size_t bytes) {
	CHECK(bytes > 0 && bytes <= NET_SCRATCH_BYTES);
	s->read_max = bytes;
}

/* ---- opening ---- */

static int stream_opened(struct stream *s) {
	int error = 0;
	socklen_t size = sizeof error;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
		/* The side that connected left before we turned to it. */
		s->closed_there = s->accepted && error == ECONNRESET;
		return s->accepted ? PAWL_ECLOSED : PAWL_EUNREACHABLE;
	}
	event_add(s->readable, NULL);
	if (!s->tls) {
		stream_become_open(s);
		return 0;
	}
	s->state = STREAM_SHAKING;
	error = tls_engine_feed(s->tls, slice_of(NULL, 0));
	return error ? error : stream_flush(s);
}

static void stream_on_writable(evutil_socket_t fd, short what, void *ctx) {
	struct stream *s = ctx;
	(void)fd;
	s->busy++;
	if (!(what & EV_TIMEOUT) && s->state == STREAM_OPEN && s->handlers->writable) {
		s->handlers->writable(s->ctx);
		stream_leave(s);
		return;
	}
	int error;
	bool opening = s->state == STREAM_OPENING;
	/* stream_close found nothing to wait for. */
	if (what & EV_TIMEOUT) {
		error = PAWL_ECLOSED;
	} else {
		error = opening ? stream_opened(s) : stream_flush(s);
	}
	if (error && !s->doomed) {
		stream_fail(s, error);
	} else if (!opening && s->state == STREAM_OPEN && s->handlers->drained
		&& stream_backlog(s) == 0) {
		s->handlers->drained(s->ctx);
	}
	stream_leave(s);
}

/* ---- life ---- */

int stream_new(const struct stream_options *o, struct stream **out) {
	const struct allocator *alloc = o->alloc ? o->alloc : o->loop->alloc;
	struct stream *s = alloc_new(alloc, sizeof *s);
	if (!s) {
		close(o->take_fd);
		return PAWL_ENOMEM;
	}
	*s = (struct stream){ .loop = o->loop, .alloc = alloc, .handlers = o->handlers,
		.ctx = o->ctx, .fd = o->take_fd, .accepted = o->role == TLS_SERVER,
		.read_max = o->read_max ? o->read_max : NET_SCRATCH_BYTES,
		.pause_above = o->pause_above, .urgent = o->urgent };
	s->turn = (struct handshake){ .step = stream_on_turn, .ctx = s };
	buffer_init(&s->in, alloc, o->in_max + NET_SCRATCH_BYTES);
	buffer_init(&s->out, alloc, o->out_max);
	s->readable = event_new(o->loop->base, s->fd, EV_READ | EV_PERSIST, stream_on_readable, s);
	s->writable = event_new(o->loop->base, s->fd, EV_WRITE, stream_on_writable, s);
	s->tls = o->tls ? tls_engine_new(o->tls, o->role) : NULL;
	if (!s->readable || !s->writable || (o->tls && !s->tls)
		|| event_add(s->writable, NULL) != 0) {
		stream_destroy(s);
		return PAWL_ENOMEM;
	}
	*out = s;
	return 0;
}

void stream_free(struct stream *s) {
	if (!s || s->doomed) {
		return;
	}
	s->doomed = true;
	handshakes_leave(&s->loop->handshakes, &s->turn);
	event_del(s->readable);
	event_del(s->writable);
	if (s->busy == 0) {
		stream_destroy(s);
	}
}

SSL *stream_ssl(const struct stream *s) {
	return s->tls ? tls_engine_ssl(s->tls) : NULL;
}

struct stream_counts stream_counts(const struct stream *s) {
	return (struct stream_counts){ s->received, s->sent,
		s->tls ? tls_engine_records(s->tls) : 0 };
}

bool stream_waits_for_turn(const struct stream *s) {
	return list_linked(&s->turn.in);
}

bool stream_closed_there(const struct stream *s) {
	return s->closed_there;
}

void stream_reached_at(const struct stream *s, char out[ADDRESS_TEXT_BYTES]) {
	struct sockaddr_storage at = { 0 };
	socklen_t size = sizeof at;
	out[0] = '\0';
	if (getsockname(s->fd, (struct sockaddr *)&at, &size) == 0 && at.ss_family != AF_UNIX) {
		address_print((const struct sockaddr *)&at, size, out);
	}
}

bool stream_is_open(const struct stream *s) {
	return s->state == STREAM_OPEN;
}
