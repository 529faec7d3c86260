/* client_response.h: what the readers of responses share. Internal to the codec. */
#ifndef PAWL_WIRE_CLIENT_RESPONSE_H
#define PAWL_WIRE_CLIENT_RESPONSE_H

#include "client_fact.h"

struct response_reader {
	struct unpack u;
	struct client_decoder *d;
	enum client_method method;
	struct client_response *out;
	bool no_memory;
};

int client_response_take_code(struct unpack *u); /* of an error: PAWL_E..., PAWL_EPROTOCOL: a later version's */
void client_response_take_entry(struct unpack *u, void *entry);
/* Reads the value if the name is that of a list of this method's result, resp. of errors; false: it is not, nothing was read. */
bool client_response_take_lists(struct response_reader *r, struct slice name, bool error);

#endif
