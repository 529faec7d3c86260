/* sentence.h: why a request was refused, for a client of a dialect. */
#ifndef PAWL_DIALECT_SENTENCE_H
#define PAWL_DIALECT_SENTENCE_H

#include "client.h"

/* Room for a sentence, in bytes; what is longer is cut off. */
#define SENTENCE_BYTES 384

/* Writes the message of an error with the parameter or limit that it is about, as the command pawl
 * prints them. Returns the sentence, which is in `room`. */
struct slice sentence_of(const struct client_response *response, char room[SENTENCE_BYTES]);

#endif
