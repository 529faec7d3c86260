/* peer.c: encodes and decodes packets, and frames as their bodies. */
#include "peer.h"

#include "check.h"
#include "pack.h"
#include "pawl/error.h"
#include "peer_message.h"

#define FRAME_FLAGS (FRAME_VOTING | FRAME_COMPLETE)
#define FRAME_ELEMENTS 7
/* The most bytes of a frame before its first message, with the prefix of the packet. */
#define FRAME_HEAD_MAX (PEER_PREFIX_BYTES + 1 + 4 * 9 + PEER_ID_BYTES + 5 + 5)
#define PEER_CAPACITY_MIN 64

/* ---- packets ---- */

enum peer_scan peer_scan(struct slice in, size_t body_max, struct slice *out_body,
	size_t *out_need) {
	size_t need = PEER_PREFIX_BYTES;
	if (in.size >= need) {
		size_t size = (size_t)in.data[0] << 24 | (size_t)in.data[1] << 16 |
			(size_t)in.data[2] << 8 | in.data[3];
		if (size == 0 || size > body_max) {
			return PEER_SCAN_GARBAGE;
		}
		need += size;
		if (in.size >= need) {
			*out_body = slice_of(in.data + PEER_PREFIX_BYTES, size);
			return PEER_SCAN_COMPLETE;
		}
	}
	if (out_need) {
		*out_need = need;
	}
	return PEER_SCAN_MORE;
}

/* ---- encoding ---- */

/* Appends the head of a frame. The prefix before it is written later, when the size is known. */
static int peer_head_encode(const struct frame *frame, struct buffer *out) {
	CHECK((frame->flags & ~FRAME_FLAGS) == 0);
	const int error = buffer_room(out, FRAME_HEAD_MAX);
	if (error) {
		return error;
	}
	uint8_t *start = out->data + out->size;
	uint8_t *p = pack_put_array(start + PEER_PREFIX_BYTES, FRAME_ELEMENTS);
	p = pack_put_uint(p, frame->epoch);
	p = pack_put_uint(p, frame->config_hash);
	p = peer_put_id(p, frame->sender);
	p = pack_put_uint(p, frame->boot);
	p = pack_put_uint(p, frame->clock);
	p = pack_put_uint(p, frame->flags);
	p = pack_put_array(p, (uint32_t)frame->count);
	buffer_commit(out, (size_t)(p - start));
	return 0;
}

void peer_copies_clear(struct peer_copies *c) {
	c->from = NULL;
	c->count = 0;
}

/* Appends the messages from `first` on that stand one after the other in the buffer from which is
 * copied. The numbers grow in each frame, so that *next, the place to go on at, only goes ahead.
 * Sets *count to the number of messages. */
static int peer_copy(const struct frame *frame, size_t first, const struct peer_copies *c,
	size_t *next, size_t *count, struct buffer *out) {
	const struct message *m = &frame->messages[first];
	while (*next < c->count && c->of[*next].same < m->same) {
		++*next;
	}
	const struct peer_copy *of = &c->of[*next];
	size_t n = 0, bytes = 0;
	while (first + n < frame->count && *next + n < c->count && of[n].same == m[n].same &&
		of[n].at == of[0].at + bytes) {
		bytes += of[n++].size;
	}
	*count = n;
	*next += n;
	return n > 0 ? buffer_append(out, c->from->data + of[0].at, bytes) : 0;
}

/* Appends the messages, and remembers where they stand if others are to be copied from this
 * buffer. */
static int peer_messages_encode(const struct frame *frame, struct peer_copies *c,
	struct buffer *out) {
	const bool copies = c && c->from && c->from != out;
	size_t next = 0, n = 0;
	int error = 0;
	for (size_t i = 0; i < frame->count && !error; i += n) {
		const struct message *m = &frame->messages[i];
		const size_t at = out->size;
		n = 0;
		if (copies && m->same) {
			error = peer_copy(frame, i, c, &next, &n, out);
		}
		if (error || n > 0) {
			continue;
		}
		n = 1;
		error = peer_message_encode(m, out);
		if (m->same && c && !copies && !error && c->count < sizeof c->of / sizeof *c->of) {
			c->from = out;
			c->of[c->count++] = (struct peer_copy){ m->same, at, out->size - at };
		}
	}
	return error;
}

int peer_frame_encode_copies(const struct frame *frame, struct peer_copies *copies,
	struct buffer *out) {
	const size_t start = out->size, known = copies ? copies->count : 0;
	int error =
		frame->count > PEER_MESSAGES_MAX ? PAWL_ETOOLARGE : peer_head_encode(frame, out);
	error = error ? error : peer_messages_encode(frame, copies, out);
	if (!error && out->size - start - PEER_PREFIX_BYTES > PEER_BODY_BYTES_MAX) {
		error = PAWL_ETOOLARGE;
	}
	if (error) {
		out->size = start;
		if (copies) {
			copies->count = known;
		}
		return error;
	}
	pack_put_be(out->data + start, out->size - start - PEER_PREFIX_BYTES, PEER_PREFIX_BYTES);
	return 0;
}

int peer_frame_encode(const struct frame *frame, struct buffer *out) {
	return peer_frame_encode_copies(frame, NULL, out);
}

/* ---- decoding ---- */

void peer_decoder_init(struct peer_decoder *d, const struct allocator *alloc) {
	*d = (struct peer_decoder){ .alloc = alloc };
}

void peer_decoder_done(struct peer_decoder *d) {
	if (d->messages) {
		alloc_free(d->alloc, d->messages, d->capacity * sizeof *d->messages);
	}
	*d = (struct peer_decoder){ 0 };
}

/* Makes room for more messages. It doubles as messages really come, whatever the frame has
 * announced. */
static bool peer_decoder_grow(struct peer_decoder *d) {
	size_t capacity = d->capacity ? d->capacity * 2 : PEER_CAPACITY_MIN;
	struct message *grown = alloc_resize(d->alloc, d->messages, d->capacity * sizeof *grown,
		capacity * sizeof *grown);
	if (!grown) {
		return false;
	}
	d->messages = grown;
	d->capacity = capacity;
	return true;
}

/* Reads what stands before the messages. */
static int peer_head_decode(struct slice body, struct peer_progress *out) {
	if (body.size == 0 || body.size > PEER_BODY_BYTES_MAX) {
		return PAWL_EPROTOCOL;
	}
	struct unpack u = unpack_of(body);
	struct frame head = { 0 };
	u.bad = unpack_array(&u) != FRAME_ELEMENTS;
	head.epoch = unpack_uint(&u, UINT64_MAX);
	head.config_hash = unpack_uint(&u, UINT64_MAX);
	head.sender = peer_take_id(&u);
	head.boot = unpack_uint(&u, UINT64_MAX);
	head.clock = unpack_uint(&u, UINT64_MAX);
	head.flags = (uint32_t)unpack_uint(&u, FRAME_FLAGS);
	const size_t count = unpack_array(&u);
	if (u.bad || count > PEER_MESSAGES_MAX) {
		return PAWL_EPROTOCOL;
	}
	*out = (struct peer_progress){ .head = head, .begun = true, .left = count,
		.at = body.size - unpack_left(&u) };
	return 0;
}

int peer_frame_decode_some(struct peer_decoder *d, struct slice body, size_t most,
	struct peer_progress *progress, struct frame *out) {
	const message_set last = most == SIZE_MAX ? 0 : MESSAGES_LONG;
	int error = progress->begun ? 0 : peer_head_decode(body, progress);
	if (error) {
		return error;
	}
	struct unpack u = unpack_of(slice_of(body.data + progress->at, body.size - progress->at));
	size_t n = 0;
	for (bool goes_on = true; goes_on && n < progress->left && n < most; n++) {
		if (n == d->capacity && !peer_decoder_grow(d)) {
			return PAWL_ENOMEM;
		}
		peer_message_take(&u, &d->messages[n]);
		if (u.bad) {
			return PAWL_EPROTOCOL;
		}
		goes_on = !(last & MESSAGE_BIT(d->messages[n].kind));
	}
	if (n == progress->left && unpack_left(&u) != 0) {
		return PAWL_EPROTOCOL;
	}
	progress->left -= n;
	progress->at = body.size - unpack_left(&u);
	*out = progress->head;
	out->messages = d->messages;
	out->count = n;
	out->more = progress->left > 0;
	return 0;
}

int peer_frame_decode(struct peer_decoder *d, struct slice body, struct frame *out) {
	struct peer_progress whole = { .begun = false };
	return peer_frame_decode_some(d, body, SIZE_MAX, &whole, out);
}
