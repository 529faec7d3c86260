/* script_form.h: which script is this? Clients of Redis send scripts in Lua, of which no two
 * libraries, and no two versions of one, have the same text; but the texts have few normal forms.
 * No script is ever run. */
#ifndef PAWL_REDIS_SCRIPT_FORM_H
#define PAWL_REDIS_SCRIPT_FORM_H

#include "buffer.h"
#include "slice.h"

/* The longest script that is looked at, in bytes, and the size of a digest. */
#define SCRIPT_BYTES_MAX ((size_t)16 << 10)
#define SCRIPT_SHA1_BYTES 20

/* Appends the normal form of a script, which is its words with single spaces between them:
 * - without a byte order mark, comments, line breaks and semicolons;
 * - all strings in double quotes; those in calls of redis.call and redis.pcall that are words, in
 *   lower case;
 * - local names as v1, v2, ... in the order in which they appear;
 * - without parentheses that change nothing;
 * - `if C then return X end return Y` at the end as `if C then return X else return Y end`.
 * Returns 0, PAWL_EINVAL if the text is no Lua, PAWL_ETOOLARGE or PAWL_ENOMEM. */
int script_form(struct slice script, const struct allocator *alloc, struct buffer *out);

/* Writes the SHA1 of the bytes, by which Redis names a script. */
void script_sha1(struct slice bytes, uint8_t out[SCRIPT_SHA1_BYTES]);
/* Reads 40 hex digits of either case. Returns false if the text is something else. */
bool script_sha1_parse(struct slice text, uint8_t out[SCRIPT_SHA1_BYTES]);
/* Writes 40 lower-case hex digits and a terminating 0. */
void script_sha1_print(const uint8_t sha1[SCRIPT_SHA1_BYTES],
	char out[2 * SCRIPT_SHA1_BYTES + 1]);

#endif
