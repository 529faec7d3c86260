/* json_text.h: writes text as JSON wants it. This is pure. */
#ifndef PAWL_BASE_JSON_TEXT_H
#define PAWL_BASE_JSON_TEXT_H

#include "slice.h"

/* The most bytes that one byte of text can take in JSON: \u001f. */
#define JSON_TEXT_GROWTH 6

/* Returns whether the bytes are UTF-8 as RFC 3629 defines it, without surrogates and overlong
 * forms. */
bool json_text_valid(struct slice text);

/* Writes the inside of a JSON string, without the quotes. `text` is UTF-8, and `out` has room for
 * JSON_TEXT_GROWTH times as many bytes. Returns how many bytes it wrote. The result has no control
 * characters and no line ends. */
size_t json_text_escape(char *out, struct slice text);

/* Writes two hex digits for each byte of `bytes`. Returns how many bytes it wrote. */
size_t json_text_hex(char *out, struct slice bytes);

#endif
