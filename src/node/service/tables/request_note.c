/* request_note.c: a note is one piece of memory, which has the bytes of all its texts. */
#include "request_note.h"

static size_t note_size(const struct request_note *n) {
	return sizeof *n + n->key.size + n->owner.size + n->identity.size + n->peer.size
		+ n->subject.size + n->trace.size;
}

static uint8_t *note_put(uint8_t *to, struct slice *text) {
	uint8_t *end = slice_put(to, *text);
	text->data = to;
	return end;
}

struct request_note *request_note_new(const struct allocator *alloc,
	const struct request_note *from) {
	struct request_note *note = alloc_new(alloc, note_size(from));
	if (!note) {
		return NULL;
	}
	*note = *from;
	note->alloc = alloc;
	uint8_t *to = note_put((uint8_t *)(note + 1), &note->key);
	to = note_put(to, &note->owner);
	to = note_put(to, &note->identity);
	to = note_put(to, &note->peer);
	to = note_put(to, &note->subject);
	(void)note_put(to, &note->trace);
	return note;
}

void request_note_free(struct request_note *note) {
	if (note) {
		alloc_free(note->alloc, note, note_size(note));
	}
}
