/* peer_message.h: one message of a frame as bytes. Internal to the codec of peers. */
#ifndef PAWL_WIRE_PEER_MESSAGE_H
#define PAWL_WIRE_PEER_MESSAGE_H

#include "buffer.h"
#include "message.h"
#include "unpack.h"

#define PEER_ID_BYTES 18
uint8_t *peer_put_id(uint8_t *p, struct id128 id); /* PEER_ID_BYTES */
struct id128 peer_take_id(struct unpack *u);

/* Appends. 0, PAWL_ENOMEM, PAWL_ETOOLARGE: above the buffer's limit. A field out of range is a CHECK. */
int peer_message_encode(const struct message *m, struct buffer *out);
/* Reads one; u->bad: a kind or a field that is none. */
void peer_message_take(struct unpack *u, struct message *m);

#endif
