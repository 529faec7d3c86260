/* client_response.h: what the readers of responses share. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_RESPONSE_H
#define PAWL_WIRE_CLIENT_RESPONSE_H

#include "client_field.h"

/* A response that is being read. */
struct response_reader {
	struct unpack u;
	struct client_decoder *d;
	/* The method of the request. */
	enum client_method method;
	struct client_response *out;
	/* There was no memory for a list. */
	bool no_memory;
};

/* Reads the code of an error. Returns its PAWL_E..., or PAWL_EPROTOCOL for a code that only a later
 * version knows. */
int client_response_take_code(struct unpack *u);
/* Reads a struct client_entry. */
void client_response_take_entry(struct unpack *u, void *entry);
/* Reads the value if `name` is a list of this method's result; with `error`, a list of an error.
 * Returns false, and has read nothing, if it is not. */
bool client_response_take_lists(struct response_reader *r, struct slice name, bool error);

#endif
