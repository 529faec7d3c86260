/* peer_note.c: encodes and decodes notes, which nodes send each other in addition to the frames. */
#include <string.h>

#include "pack.h"
#include "pawl/error.h"
#include "peer.h"
#include "unpack.h"

#define NOTE_KEY_BYTES_MAX 64
#define NOTE_RIGHTS "rights"
#define NOTE_SERIAL "serial"
#define NOTE_ENDS "ends"

/* A text of a note gets into logs and onto terminals, so all but these characters are refused. */
#define NOTE_RIGHTS_CHARS "0123456789abcdefghijklmnopqrstuvwxyz"
/* A serial number should be positive, but some authorities have given others, and certificates with
 * them are valid. */
#define NOTE_SERIAL_CHARS "-0123456789ABCDEF"

/* Reads a text of these characters, for which there is room for `size` bytes with the 0 at the
 * end. */
static void note_take_text(struct unpack *u, const char *chars, char *out, size_t size) {
	struct slice text = unpack_str(u, size - 1);
	u->bad = u->bad || text.size == 0;
	for (size_t i = 0; i < text.size && !u->bad; i++) {
		u->bad = text.data[i] == '\0' || !strchr(chars, text.data[i]);
	}
	if (!u->bad) {
		*slice_put((uint8_t *)out, text) = '\0';
	}
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
	pack_map(&k, note->serial[0] ? 3 : 1);
	pack_text(&k, NOTE_RIGHTS);
	pack_text(&k, note->rights);
	if (note->serial[0]) {
		pack_text(&k, NOTE_SERIAL);
		pack_text(&k, note->serial);
		pack_text(&k, NOTE_ENDS);
		pack_uint(&k, note->ends);
	}
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
	struct peer_note note = { .ends = 0 };
	if (body.size > PEER_HELLO_BYTES_MAX) {
		return PAWL_EPROTOCOL;
	}
	uint32_t pairs = unpack_map(&u);
	for (uint32_t i = 0; i < pairs && !u.bad; i++) {
		struct slice key = unpack_str(&u, NOTE_KEY_BYTES_MAX);
		if (slice_equal(key, slice_str(NOTE_RIGHTS))) {
			note_take_text(&u, NOTE_RIGHTS_CHARS, note.rights, sizeof note.rights);
		} else if (slice_equal(key, slice_str(NOTE_SERIAL))) {
			note_take_text(&u, NOTE_SERIAL_CHARS, note.serial, sizeof note.serial);
		} else if (slice_equal(key, slice_str(NOTE_ENDS))) {
			note.ends = unpack_uint(&u, UINT64_MAX);
		} else {
			/* A later version may know this key. */
			unpack_skip(&u);
		}
	}
	if (u.bad || unpack_left(&u) != 0) {
		return PAWL_EPROTOCOL;
	}
	*out = note;
	return 0;
}
