/* notes.c: the history that judgements need: since when a node has lacked a lock_id, which ballots
 * it has noted and lost, and what was released. */
#include "notes.h"

#include <stdlib.h>

#include "check.h"

void notes_done(struct notes *n) {
	for (size_t i = 0; i < n->shadow_room; i++) {
		free(n->shadows[i].key);
	}
	free(n->shadows);
	free(n->notes);
	*n = (struct notes){ .notes = NULL };
}

void notes_tenure(struct notes *n) {
	n->tenure++;
	for (size_t i = 0; i < n->shadow_room; i++) {
		if (n->shadows[i].key) {
			n->shadows[i].key->record_count = n->shadows[i].key->promise_count = 0;
		}
	}
}

static struct note *note_place(struct note *notes, size_t room, struct id128 lock_id) {
	size_t i = id128_word(lock_id) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (room - 1);
	while (notes[i].used && !id128_equal(notes[i].lock_id, lock_id)) {
		i = (i + 1) & (room - 1);
	}
	return &notes[i];
}

struct note *notes_lock(struct notes *n, struct id128 lock_id) {
	if (2 * n->note_count >= n->note_room) {
		const size_t room = n->note_room ? 2 * n->note_room : 256;
		struct note *notes = calloc(room, sizeof *notes);
		CHECK(notes != NULL);
		for (size_t i = 0; i < n->note_room; i++) {
			if (n->notes[i].used) {
				*note_place(notes, room, n->notes[i].lock_id) = n->notes[i];
			}
		}
		free(n->notes);
		n->notes = notes;
		n->note_room = room;
	}
	struct note *note = note_place(n->notes, n->note_room, lock_id);
	n->note_count += !note->used;
	if (!note->used || note->tenure != n->tenure) {
		*note = (struct note){ .lock_id = lock_id, .tenure = n->tenure, .used = true };
	}
	return note;
}

struct m_key *notes_key(struct notes *n, uint64_t hash) {
	if (2 * n->shadow_count >= n->shadow_room) {
		const size_t room = n->shadow_room ? 2 * n->shadow_room : 64;
		struct shadow *shadows = calloc(room, sizeof *shadows);
		CHECK(shadows != NULL);
		for (size_t i = 0; i < n->shadow_room; i++) {
			size_t at = n->shadows[i].hash & (room - 1);
			while (n->shadows[i].key && shadows[at].key) {
				at = (at + 1) & (room - 1);
			}
			if (n->shadows[i].key) {
				shadows[at] = n->shadows[i];
			}
		}
		free(n->shadows);
		n->shadows = shadows;
		n->shadow_room = room;
	}
	size_t i = hash & (n->shadow_room - 1);
	while (n->shadows[i].key && n->shadows[i].hash != hash) {
		i = (i + 1) & (n->shadow_room - 1);
	}
	if (n->shadows[i].key == NULL) {
		n->shadows[i] = (struct shadow){ hash, calloc(1, sizeof(struct m_key)) };
		CHECK(n->shadows[i].key != NULL);
		n->shadow_count++;
	}
	return n->shadows[i].key;
}

void notes_copy(struct m_key *to, const struct m_key *from) {
	memcpy(to->records, from->records, from->record_count * sizeof *from->records);
	memcpy(to->promises, from->promises, from->promise_count * sizeof *from->promises);
	to->record_count = from->record_count;
	to->promise_count = from->promise_count;
	to->seen = from->seen;
	to->clock = from->clock;
	to->more = from->more;
	to->unfinished = from->unfinished;
}

static bool releases(const struct message *m) {
	return (m->kind == MESSAGE_RELEASE && m->name == 0 && m->number == 0) ||
		m->kind == MESSAGE_HAND_OVER ||
		(m->kind == MESSAGE_BREAK && (m->flags & FLAG_NOW));
}

/* Section 2: a promise that is withdrawn is forgotten with its ballot, unless this master has
 * refused a commit of the attempt. So is one that is refused when it is asked for again. */
static bool forgets_ballot(const struct note *note, const struct message *m) {
	return m && (m->kind == MESSAGE_WITHDRAW || m->kind == MESSAGE_PROMISE) &&
		id128_equal(m->lock_id, note->lock_id) && !note->refused;
}

void notes_changed(struct notes *n, const struct m_key *before, const struct m_key *after,
	struct instant now, const struct message *m) {
	for (uint32_t i = 0; i < before->record_count; i++) {
		const struct m_record *r = &before->records[i];
		if (m_record_of(after, r->lock_id)) {
			continue;
		}
		struct note *note = notes_lock(n, r->lock_id);
		const bool released = m && releases(m) && id128_equal(m->lock_id, r->lock_id);
		/* Between two looks it may have ended right after the first one, whatever its end
		 * was: with a node that is gone, or when the masters compared their tables. */
		note->had = instant_later(note->had, m ? now : before->seen);
		if (!released) {
			note->lost = ballot_later(note->lost, r->prepared);
		}
	}
	for (uint32_t i = 0; i < before->promise_count; i++) {
		const struct m_promise *p = &before->promises[i];
		if (m_promise_of(after, p->lock_id) || m_record_of(after, p->lock_id)) {
			continue;
		}
		struct note *note = notes_lock(n, p->lock_id);
		if (!forgets_ballot(note, m) &&
			!(m && releases(m) && id128_equal(m->lock_id, p->lock_id))) {
			note->lost = ballot_later(note->lost, p->first);
		}
	}
	for (uint32_t i = 0; i < after->promise_count; i++) {
		const struct id128 id = after->promises[i].lock_id;
		if (m_promise_of(before, id) == NULL) {
			/* No commit of this promise was refused yet. */
			notes_lock(n, id)->refused = false;
		}
	}
}
