/* json_text.c: the check for UTF-8, and the escapes of JSON. */
#include "json_text.h"

/* Returns how many bytes the character at the front takes, or 0 if it is not UTF-8. */
static size_t json_text_character(struct slice s) {
	const uint8_t *p = s.data;
	if (p[0] < 0x80) {
		return 1;
	}
	size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || s.size < size) {
		return 0;
	}
	for (size_t i = 1; i < size; i++) {
		if ((p[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool surrogate = p[0] == 0xed && p[1] > 0x9f;
	bool beyond = p[0] == 0xf4 && p[1] > 0x8f;
	return overlong || surrogate || beyond ? 0 : size;
}

bool json_text_valid(struct slice text) {
	while (text.size > 0) {
		size_t size = json_text_character(text);
		if (size == 0) {
			return false;
		}
		text = slice_of(text.data + size, text.size - size);
	}
	return true;
}

size_t json_text_hex(char *out, struct slice bytes) {
	for (size_t i = 0; i < bytes.size; i++) {
		out[2 * i] = "0123456789abcdef"[bytes.data[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[bytes.data[i] & 15];
	}
	return 2 * bytes.size;
}

size_t json_text_escape(char *out, struct slice text) {
	char *to = out;
	for (size_t i = 0; i < text.size; i++) {
		uint8_t c = text.data[i];
		if (c == '"' || c == '\\') {
			*to++ = '\\';
			*to++ = (char)c;
		} else if (c < ' ' || c == 0x7f) {
			memcpy(to, "\\u00", 4);
			to += 4;
			to += json_text_hex(to, slice_of(&c, 1));
		} else {
			*to++ = (char)c;
		}
	}
	return (size_t)(to - out);
}
