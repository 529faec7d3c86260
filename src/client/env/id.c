/* id.c: the version, bytes of strings, and lock_ids. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "pawl/pawl.h"

const char *pawl_version(void) {
	return PAWL_VERSION;
}

struct pawl_bytes pawl_str(const char *s) {
	return (struct pawl_bytes){ s, s ? strlen(s) : 0 };
}

bool pawl_id_none(const struct pawl_id *id) {
	static const struct pawl_id none;
	return memcmp(id, &none, sizeof(none)) == 0;
}

int pawl_id_new(struct pawl_id *out_id) {
	struct pawl_id id = { 0 };
	while (pawl_id_none(&id)) {
		/* getrandom never cuts so few bytes short. */
		ssize_t n = getrandom(id.bytes, sizeof(id.bytes), 0);
		if (n < 0 && errno != EINTR) {
			return PAWL_EIO;
		}
	}
	*out_id = id;
	return 0;
}

static int hex_digit(char c) {
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int pawl_id_parse(const char *text, struct pawl_id *out_id) {
	struct pawl_id id;
	if (!text || strlen(text) != PAWL_ID_TEXT - 1) {
		return PAWL_EINVAL;
	}
	for (size_t i = 0; i < sizeof(id.bytes); i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
		if (high < 0 || low < 0) {
			return PAWL_EINVAL;
		}
		id.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*out_id = id;
	return 0;
}

void pawl_id_format(const struct pawl_id *id, char out_text[PAWL_ID_TEXT]) {
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < sizeof(id->bytes); i++) {
		out_text[2 * i] = digits[id->bytes[i] >> 4];
		out_text[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	out_text[PAWL_ID_TEXT - 1] = '\0';
}
