/* stream_out.c: what a stream writes: sending, pausing, and closing. */
#include "stream_impl.h"

#include <errno.h>
#include <sys/socket.h>

#include "pawl/error.h"
#include "time_source.h"

/* How many bytes are encrypted at a time; more would hold a long backlog in memory twice. */
#define ENCRYPT_BYTES (64u * 1024)
/* How many bytes a stream writes in one turn of the loop. To write a megabyte takes the system up
 * to half a millisecond. */
#define PUSH_BYTES (128u * 1024)
/* How long a stream that closes waits for its last bytes to leave, in milliseconds. */
#define CLOSING_MS 1000
/* What the output buffer of an idle connection keeps, in bytes. */
#define IDLE_KEEP_BYTES 4096u
/* What the buffers of TLS keep in an idle connection, in bytes, in both directions together. */
#define IDLE_KEEP_TLS_BYTES (32u * 1024)

static struct slice stream_unsent(const struct stream *s) {
	return slice_of(s->out.data ? s->out.data + s->out_done : NULL, s->out.size - s->out_done);
}

/* Moves what is left to the front only when that is less than what has gone. So a long backlog
 * costs no more than its bytes. */
static void stream_out_advance(struct stream *s, size_t size) {
	s->out_done += size;
	if (s->out_done >= s->out.size - s->out_done) {
		buffer_consume(&s->out, s->out_done);
		s->out_done = 0;
		buffer_trim(&s->out, STREAM_KEEP_BYTES);
	}
}

/* Puts the next bytes for the socket in the place of what is to be encrypted. There may be none. */
static int stream_encrypt(struct stream *s, struct slice *bytes) {
	struct slice plain = *bytes;
	*bytes = tls_engine_outgoing(s->tls);
	if (bytes->size > 0 || plain.size == 0 || !tls_engine_ready(s->tls)) {
		return 0;
	}
	plain.size = plain.size < ENCRYPT_BYTES ? plain.size : ENCRYPT_BYTES;
	int error = tls_engine_write(s->tls, plain);
	if (error) {
		return error;
	}
	stream_out_advance(s, plain.size);
	*bytes = tls_engine_outgoing(s->tls);
	return 0;
}

void stream_listen(struct stream *s) {
	if (!s->paused && !s->unwatched && !s->starved && s->state != STREAM_OVER) {
		event_add(s->readable, NULL);
	}
}

bool stream_is_paused(const struct stream *s) {
	return s->pause_above > 0 && s->out.size - s->out_done > (s->paused ? 0 : s->pause_above);
}

/* Stops reading while the other side does not read our answers, because more requests from it would
 * only add to them. */
static void stream_pause(struct stream *s, bool paused) {
	s->paused = paused;
	if (paused) {
		event_del(s->readable);
	} else {
		stream_listen(s);
	}
}

int stream_flush(struct stream *s) {
	struct slice bytes;
	size_t left = PUSH_BYTES;
	int error;
	if (s->state == STREAM_OPENING || s->state == STREAM_OVER) {
		return 0;
	}
	for (;;) {
		bytes = stream_unsent(s);
		error = s->tls ? stream_encrypt(s, &bytes) : 0;
		if (error || bytes.size == 0 || left == 0) {
			break;
		}
		ssize_t n = send(s->fd, bytes.data, bytes.size < left ? bytes.size : left,
			MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			break;
		}
		if (n < 0) {
			s->closed_there = errno == EPIPE || errno == ECONNRESET;
			return PAWL_ECLOSED;
		}
		s->sent += (uint64_t)n;
		left -= (size_t)n;
		if (s->tls) {
			tls_engine_sent(s->tls, (size_t)n);
		} else {
			stream_out_advance(s, (size_t)n);
		}
	}
	if (s->pause_above > 0 && s->state == STREAM_OPEN && s->paused != stream_is_paused(s)) {
		stream_pause(s, !s->paused);
	}
	if (!error && bytes.size > 0) {
		/* The rest is written when the loop has looked at the sockets again. */
		event_add(s->writable, NULL);
	} else if (!error && s->state == STREAM_CLOSING && !s->shut) {
		s->shut = true;
		/* The other side reads our last bytes and then closes. */
		shutdown(s->fd, SHUT_WR);
	}
	return error;
}

struct buffer *stream_out(struct stream *s) {
	return &s->out;
}

size_t stream_backlog(const struct stream *s) {
	return s->out.size - s->out_done + (s->tls ? tls_engine_outgoing(s->tls).size : 0);
}

size_t stream_shed(struct stream *s, size_t most) {
	s->state = STREAM_OVER;
	handshakes_leave(&s->loop->handshakes, &s->turn);
	event_del(s->readable);
	event_del(s->writable);
	s->in_done = s->out_done = 0;
	size_t shed = buffer_shed(&s->in, most, STREAM_KEEP_BYTES);
	return shed + buffer_shed(&s->out, most - shed, STREAM_KEEP_BYTES);
}

void stream_tidy(struct stream *s) {
	buffer_trim(&s->out, IDLE_KEEP_BYTES);
	if (s->tls) {
		tls_engine_tidy(s->tls, IDLE_KEEP_TLS_BYTES);
	}
}

size_t stream_tls_bytes(const struct stream *s) {
	size_t bytes = s->tls ? tls_engine_bytes(s->tls) : 0;
	return bytes > IDLE_KEEP_TLS_BYTES ? bytes - IDLE_KEEP_TLS_BYTES : 0;
}

void stream_close(struct stream *s) {
	static const struct timeval closing =
		{ CLOSING_MS / 1000, CLOSING_MS % 1000 * 1000 };
	if (s->state != STREAM_OPEN) {
		s->state = STREAM_CLOSING;
		s->shut = true;
		event_active(s->writable, EV_TIMEOUT, 0);
		return;
	}
	if (s->tls) {
		struct slice rest;
		/* First encrypt all bytes that are left; then close_notify follows them. */
		while ((rest = stream_unsent(s)).size > 0 && tls_engine_write(s->tls, rest) == 0) {
			stream_out_advance(s, rest.size);
		}
		tls_engine_close(s->tls);
	}
	s->state = STREAM_CLOSING;
	s->closing = time_source_now();
	s->held = false;
	if (stream_flush(s) != 0) {
		event_active(s->writable, EV_TIMEOUT, 0);
	}
	event_add(s->readable, &closing);
}
