/* request_note.h: what is remembered of a request until its answer, for the audit file and for the
 * lines of the log that name it. Only requests that may need it have one. */
#ifndef PAWL_NODE_REQUEST_NOTE_H
#define PAWL_NODE_REQUEST_NOTE_H

#include "client.h"

struct request_note {
	const struct allocator *alloc;
	enum client_method method;
	struct id128 lock_id;
	/* break: at once. extend: the lease becomes shorter. */
	bool now, shorten;
	/* The method is in the log when it was slow, but not in the audit file. */
	bool unaudited;
	/* CLOCK_BOOTTIME, in nanoseconds, at which the request began to be served. */
	int64_t begun;
	/* Each of these may be empty. `subject` is what is neither a key nor an owner: a node, a
	 * connection, or the owner of a waiter. Their bytes stand behind
	 * the struct. */
	struct slice key, owner, identity, peer, subject, trace;
};

/* Copies `from`, whose slices point anywhere. Memory comes from `alloc`, which must outlive the
 * note. Returns NULL if there is none. */
struct request_note *request_note_new(const struct allocator *alloc,
	const struct request_note *from);
/* Accepts NULL. */
void request_note_free(struct request_note *note);

#endif
