/* client_pieces.h: answers of the server that are put together piece by piece, so that no piece takes long. */
#ifndef PAWL_WIRE_CLIENT_PIECES_H
#define PAWL_WIRE_CLIENT_PIECES_H

#include "client.h"

/* The answer to a `list` whose entries come in several replies: those that are there so far, encoded. */
struct client_list {
	struct buffer items; /* of client_response_limits at most */
	uint32_t count;
	bool full; /* what comes now is left out, and the answer says `more` */
};
int client_list_add(struct client_list *list, const struct core_reply *reply); /* 0 or PAWL_ENOMEM */
/* `last`: the last of the replies, which was added. */
int client_list_encode(uint32_t msgid, const struct client_list *list, const struct core_reply *last, const struct client_facts *facts, struct buffer *out);
/* Results are added in the order of the request's `locks`, as they come; then the response has all of them. */
int client_batch_add(struct buffer *items, const struct client_extended *item, const struct client_facts *facts);
int client_batch_encode(uint32_t msgid, const struct buffer *items, uint32_t count, struct buffer *out);

#endif
