/* client_list.h: the lists of a message that is being decoded, in the memory of the decoder. Only
 * the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_LIST_H
#define PAWL_WIRE_CLIENT_LIST_H

#include "client.h"

/* The first and the second list of a message, as an index of the decoder's rooms. */
enum { CLIENT_LIST_FIRST, CLIENT_LIST_SECOND };

/* Returns the memory for one more item behind the `count` that are there, or NULL if there is no
 * memory. The room grows as items really come, whatever the message has announced. The items may
 * have moved; the list begins at room->items. */
void *client_list_room(const struct allocator *alloc, struct client_room *room, size_t count,
	size_t item_bytes);

#endif
