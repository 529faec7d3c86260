/* notes.h: what the refinement remembers of a node's keys and lock_ids, in order to know what the
 * node has to remember. */
#ifndef PAWL_REFINE_NOTES_H
#define PAWL_REFINE_NOTES_H

#include <stddef.h>

#include "machine.h"

/* One lock_id at one node. */
struct note {
	struct id128 lock_id;
	/* The number of the node's vote that this is about (see notes_tenure). */
	uint64_t tenure;
	/* Until when the node had a record of it; zero: it had none since it votes. */
	struct instant had;
	/* The highest ballot that was noted and lost. */
	struct ballot lost;
	/* The last name of an extension that was accepted, and what the record rested on before. */
	uint64_t extension, base;
	/* A commit of it was refused here. */
	bool refused;
	bool used;
};

/* A key as it was seen last. */
struct shadow {
	uint64_t hash;
	struct m_key *key;
};

struct notes {
	struct note *notes;
	size_t note_count, note_room;
	struct shadow *shadows;
	size_t shadow_count, shadow_room;
	/* How often the node has begun to vote, or started. */
	uint64_t tenure;
};

void notes_done(struct notes *n);
/* The node begins to vote, or starts anew: what it knew before does not count. */
void notes_tenure(struct notes *n);
/* Returns what is noted of the lock_id, and makes it if need be. */
struct note *notes_lock(struct notes *n, struct id128 lock_id);
/* Returns the key as it was seen last. It is empty at first. */
struct m_key *notes_key(struct notes *n, uint64_t hash);
void notes_copy(struct m_key *to, const struct m_key *from);
/* A key has changed at `now`. `m`: by this message, or NULL. */
void notes_changed(struct notes *n, const struct m_key *before, const struct m_key *after,
	struct instant now, const struct message *m);

#endif
