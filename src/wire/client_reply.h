/* client_reply.h: what all responses share. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_REPLY_H
#define PAWL_WIRE_CLIENT_REPLY_H

#include "client_fact.h"

/* The head of a response; then come the error and the result, one of them nil. */
void client_reply_begin(struct pack *k, uint32_t msgid, struct buffer *out);
/* The map of an error. */
void client_reply_put_error(struct pack *k, const struct core_reply *reply, const struct client_facts *facts);

#endif
