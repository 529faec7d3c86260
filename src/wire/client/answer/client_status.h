/* client_status.h: how the client reads a status. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_STATUS_H
#define PAWL_WIRE_CLIENT_STATUS_H

#include "client_field.h"

/* Reads one pair of the result, whose name has been read already. A pair of an unknown name is
 * skipped. */
void client_status_take(struct unpack *u, struct slice name, struct client_status *out);

#endif
