/* peer_note.c: encodes and decodes notes, which nodes send each other in addition to the frames. */
#include "pack.h"
#include "pawl/error.h"
#include "peer.h"
#include "unpack.h"

#define NOTE_KEY_BYTES_MAX 64
#define NOTE_RIGHTS "rights"

/* The text is a word or hex digits. Anything else is refused, because the text gets into logs. */
static bool note_text_valid(struct slice text) {
	for (size_t i = 0; i < text.size; i++) {
		uint8_t c = text.data[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'))) {
			return false;
		}
	}
	return text.size > 0;
}

bool peer_is_note(struct slice body) {
	struct unpack u = unpack_of(body);
	return unpack_peek(&u) == UNPACK_MAP;
}

int peer_note_encode(const struct peer_note *note, struct buffer *out) {
	static const uint8_t prefix[PEER_PREFIX_BYTES];
	size_t start = out->size;
	int error = buffer_append(out, prefix, sizeof prefix);
	if (error) {
		return error;
	}
	struct pack k;
	pack_begin(&k, out);
	pack_map(&k, 1);
	pack_text(&k, NOTE_RIGHTS);
	pack_text(&k, note->rights);
	error = pack_end(&k);
	if (error) {
		out->size = start;
		return error;
	}
	pack_put_be(out->data + start, out->size - start - PEER_PREFIX_BYTES, PEER_PREFIX_BYTES);
	return 0;
}

int peer_note_decode(struct slice body, struct peer_note *out) {
	struct unpack u = unpack_of(body);
	struct peer_note note = { .rights = "" };
	if (body.size > PEER_HELLO_BYTES_MAX) {
		return PAWL_EPROTOCOL;
	}
	uint32_t pairs = unpack_map(&u);
	for (uint32_t i = 0; i < pairs && !u.bad; i++) {
		struct slice key = unpack_str(&u, NOTE_KEY_BYTES_MAX);
		if (!slice_equal(key, slice_str(NOTE_RIGHTS))) {
			/* A later version may know this key. */
			unpack_skip(&u);
			continue;
		}
		struct slice text = unpack_str(&u, sizeof note.rights - 1);
		if (u.bad || !note_text_valid(text)) {
			return PAWL_EPROTOCOL;
		}
		*slice_put((uint8_t *)note.rights, text) = '\0';
	}
	if (u.bad || unpack_left(&u) != 0) {
		return PAWL_EPROTOCOL;
	}
	*out = note;
	return 0;
}
