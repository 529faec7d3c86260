/* text.h: copies of texts that never overrun. */
#ifndef PAWL_RIGHTS_TEXT_H
#define PAWL_RIGHTS_TEXT_H

#include <stdbool.h>
#include <string.h>

/* False, and an empty text, when it does not fit with its end. */
static inline bool text_copy(char *out, size_t size, const char *from) {
	size_t used = strlen(from);
	bool fits = used < size;
	memcpy(out, from, fits ? used : 0);
	out[fits ? used : 0] = '\0';
	return fits;
}

#endif
