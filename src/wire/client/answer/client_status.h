/* client_status.h: reading a status. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_STATUS_H
#define PAWL_WIRE_CLIENT_STATUS_H

#include "client_fact.h"

/* One pair of the result: the name has been read, the value comes. What is unknown is skipped. */
void client_status_take(struct unpack *u, struct slice name, struct client_status *out);

#endif
