/* text.h: copying texts without ever overrunning. */
#ifndef PAWL_BASE_TEXT_H
#define PAWL_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Copies a text with its end. False: it does not fit, and *out is an empty text. */
static inline bool text_copy(char *out, size_t size, const char *from) {
	size_t used = strlen(from);
	bool fits = used < size;
	memcpy(out, from, fits ? used : 0);
	out[fits ? used : 0] = '\0';
	return fits;
}

#endif
