/* client_list.h: lists of a message that is being decoded, in the decoder's memory. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_LIST_H
#define PAWL_WIRE_CLIENT_LIST_H

#include "client.h"

/* Room for item number `count`, after the `count` that are there; NULL: no memory. It grows as items are really there,
 * whatever was announced. Items may have moved: the list begins at d->items. */
void *client_list_room(struct client_decoder *d, size_t count, size_t item_bytes);

#endif
