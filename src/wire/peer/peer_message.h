/* peer_message.h: one message of a frame as bytes. Only the codec of the peers includes this
 * header. */
#ifndef PAWL_WIRE_PEER_MESSAGE_H
#define PAWL_WIRE_PEER_MESSAGE_H

#include "buffer.h"
#include "message.h"
#include "unpack.h"

/* How many bytes an id takes, and the functions that write and read one. */
#define PEER_ID_BYTES 18
uint8_t *peer_put_id(uint8_t *p, struct id128 id);
struct id128 peer_take_id(struct unpack *u);

/* Appends the message. A field that is out of range is a CHECK. Returns 0, PAWL_ENOMEM, or
 * PAWL_ETOOLARGE if the buffer's limit is reached. */
int peer_message_encode(const struct message *m, struct buffer *out);
/* Reads a message. u->bad is set if its kind is unknown, or if a field is not what it has to be. */
void peer_message_take(struct unpack *u, struct message *m);

#endif
