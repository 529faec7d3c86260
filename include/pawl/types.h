/* types.h: the small types that requests, results and the other headers share: bytes, lock_ids and
 * lock terms. pawl.h includes it.
 */
#ifndef PAWL_TYPES_H
#define PAWL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bytes and identities ---- */

/* Keys, owners and values may contain any bytes. The bytes that the library hands out are followed
 * by a NUL, which `size` does not count. */
struct pawl_bytes {
	/* This may be NULL only if size is 0. */
	const void *data;
	/* The number of bytes. */
	size_t size;
};

/* Returns the bytes of a string without its NUL, borrowed from the string. NULL gives {NULL, 0}. */
struct pawl_bytes pawl_str(const char *s);

/* A lock_id: the identity of one acquisition. All zeroes mean that there is none. Use each lock_id
 * once; docs/client-guide.md says when one may be repeated. */
struct pawl_id {
	uint8_t bytes[16];
};

/* The size in bytes of a lock_id as text: 32 hex digits and a NUL. */
#define PAWL_ID_TEXT 33

/* Draws a random lock_id. Returns 0, or PAWL_EIO when the system has no randomness. */
int pawl_id_new(struct pawl_id *out_id);
/* Reads a lock_id from 32 hex digits of either case. Returns 0 or PAWL_EINVAL. */
int pawl_id_parse(const char *text, struct pawl_id *out_id);
/* Writes a lock_id as 32 lower-case hex digits and a NUL. */
void pawl_id_format(const struct pawl_id *id, char out_text[PAWL_ID_TEXT]);
/* Returns whether all bytes are zero, which means that there is no lock_id. */
bool pawl_id_none(const struct pawl_id *id);

/* ---- waiting ---- */

/* A wait_ms without an end. */
#define PAWL_FOREVER UINT32_MAX

/* ---- lock terms ---- */

enum pawl_mode {
	/* Nobody else holds the key. */
	PAWL_EXCLUSIVE,
	/* Other shared holders may hold the key as well. This is for readers. */
	PAWL_SHARED,
	/* The holder has some permits of a semaphore. This mode appears only in results: a request
	 * for permits sets `permits` and `of` instead. */
	PAWL_PERMITS
};

/* The largest number of permits that one semaphore may have. */
#define PAWL_PERMITS_MAX 128

/* What a lock excludes, how it is waited for, and how it ends. A zero field means the default: an
 * exclusive lock without priority, lock delay or session binding. All users of a semaphore must
 * give the same `of`: permits of semaphores of different sizes exclude each other. Only shared
 * holders, and permits of the same semaphore, go together; everything else is exclusive. */
struct pawl_terms {
	/* PAWL_EXCLUSIVE or PAWL_SHARED. It is ignored if permits is not 0. */
	enum pawl_mode mode;
	/* How many permits of a semaphore are wanted, and how many the semaphore has in all (1 to
	 * PAWL_PERMITS_MAX). */
	uint32_t permits, of;
	/* Waiters with a higher priority are served first; among equal priorities the first comer
	 * is served first. */
	int32_t priority;
	/* How long the key stays closed, in ms, after the lease has run out or the connection has
	 * broken without a release. */
	uint32_t lock_delay_ms;
	/* The lock ends with this client's connection. When the process dies, the node sees that at
	 * once and frees the lock within milliseconds, without waiting for the end of the lease.
	 * When the node is gone or hangs, the lock stays, and the library binds it to its next
	 * connection; the lock is lost only if that cannot be done in time. A plain PAWL_ACQUIRE
	 * may not use this (PAWL_EINVAL). */
	bool release_on_disconnect;
};

#ifdef __cplusplus
}
#endif
#endif
