/* client_pieces.h: the answers that the server puts together piece by piece, so that no piece takes
 * long. */
#ifndef PAWL_WIRE_CLIENT_PIECES_H
#define PAWL_WIRE_CLIENT_PIECES_H

#include "client.h"

/* The answer to a `list` whose entries come in several replies of the core. */
struct client_list {
	/* The entries that have come so far, encoded: client_response_limits.bytes at most. */
	struct buffer items;
	uint32_t count;
	/* There is no room for more. What comes from now on is left out, and the answer says
	 * `more`. */
	bool full;
};
/* Adds the entries of a reply. Returns 0 or PAWL_ENOMEM. */
int client_list_add(struct client_list *list, const struct core_reply *reply);
/* Appends the whole response. `last` is the last of the replies, which has been added already. */
int client_list_encode(uint32_t msgid, const struct client_list *list,
	const struct core_reply *last, const struct client_context *context, struct buffer *out);

/* Adds a result of an `extend` with `locks` to `items`. The results are added in the order of the
 * request's locks. */
int client_batch_add(struct buffer *items, const struct client_extended *item,
	const struct client_context *context);
/* Appends the response with the `count` results that were added. */
int client_batch_encode(uint32_t msgid, const struct buffer *items, uint32_t count,
	struct buffer *out);

#endif
