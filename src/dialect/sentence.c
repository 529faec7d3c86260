/* sentence.c: see sentence.h. */
#include "sentence.h"

#include <stdio.h>

#include "pawl/error.h"

static int shown(struct slice text) {
	return text.size < SENTENCE_BYTES ? (int)text.size : SENTENCE_BYTES;
}

struct slice sentence_of(const struct client_response *response, char room[SENTENCE_BYTES]) {
	const struct slice field = response->field;
	const struct slice message = response->message.size ? response->message
		: slice_str(pawl_error_message(response->error));
	/* Such a message is about the parameter, so the name of that comes first. */
	const bool first = response->error == PAWL_EBADREQUEST || response->error == PAWL_ETOOLARGE;
	/* The name of the limit that is reached. */
	const bool last = response->error == PAWL_EFULL || response->error == PAWL_EQUOTA;
	const struct slice head = first ? field : slice_of("", 0);
	snprintf(room, SENTENCE_BYTES, "%.*s%s%.*s", shown(head), (const char *)head.data,
		head.size ? " " : "", shown(message), (const char *)message.data);
	if (field.size && last) {
		const size_t used = strlen(room);
		snprintf(room + used, SENTENCE_BYTES - used, " (%.*s)", shown(field),
			(const char *)field.data);
	}
	return slice_str(room);
}
