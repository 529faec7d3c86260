/* client_list.h: lists of a message that is being decoded, in the decoder's memory. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_LIST_H
#define PAWL_WIRE_CLIENT_LIST_H

#include "client.h"

enum { CLIENT_LIST_FIRST, CLIENT_LIST_SECOND }; /* which of a message's lists: rooms of the decoder */

/* Room for item number `count`, after the `count` that are there; NULL: no memory. It grows as items are really there,
 * whatever was announced. Items may have moved: the list begins at room->items. */
void *client_list_room(const struct allocator *alloc, struct client_room *room, size_t count, size_t item_bytes);

#endif
