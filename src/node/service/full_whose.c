/* full_whose.c: the name of who has filled a limit, as people may be shown it. This is pure. */
#include <stdio.h>
#include <string.h>

#include "full.h"
#include "json_text.h"

/* Longer names are cut off, so that every address has room behind them. */
#define WHOSE_NAME_MAX 160u

/* Makes the bytes text that every terminal may be sent. */
static void whose_clean(char *text, size_t size) {
	const bool utf8 = json_text_valid(slice_of(text, size));
	for (size_t i = 0; i < size; i++) {
		const unsigned char c = (unsigned char)text[i];
		if (c < ' ' || c == 0x7f || (c >= 0x80 && !utf8)) {
			text[i] = '?';
		}
	}
}

void full_whose(const uint8_t *name, size_t size, const char *from, char out[FULL_WHOSE_BYTES]) {
	size_t used = size < WHOSE_NAME_MAX ? size : WHOSE_NAME_MAX;
	while (used > 0 && used < size && (name[used] & 0xc0) == 0x80) {
		/* This would cut a character in two. */
		used--;
	}
	if (used) {
		memcpy(out, name, used);
	}
	out[used] = '\0';
	whose_clean(out, used);
	if (from) {
		snprintf(out + used, FULL_WHOSE_BYTES - used, "%s%s", used ? " from " : "", from);
	}
}
