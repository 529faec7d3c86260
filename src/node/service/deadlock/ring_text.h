/* ring_text.h: a ring of clients that wait for each other, in words. This is pure. */
#ifndef PAWL_NODE_DEADLOCK_RING_TEXT_H
#define PAWL_NODE_DEADLOCK_RING_TEXT_H

#include "peer_waits.h"

/* Room for the text of a ring, in bytes with the 0 at the end. */
#define RING_TEXT_BYTES 1024

/* Writes "a waits for k1, which b holds; b waits for k2, which a holds". What has no room is left
 * out, and "and N more" says so; `count` is how many members there are in all. Bytes that are not
 * printable ASCII are shown as '?'. */
void ring_text(const struct waits_ring *ring, uint32_t count, char out[RING_TEXT_BYTES]);

#endif
