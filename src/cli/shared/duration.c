/* duration.c: durations and numbers as people type them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_number_parse(const char *text, uint64_t *out_number) {
	if (*text < '0' || *text > '9') {
		/* strtoull would accept signs and blanks. */
		return false;
	}
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (errno || *end) {
		return false;
	}
	*out_number = n;
	return true;
}

bool cli_duration_parse(const char *text, uint32_t *out_ms) {
	static const struct {
		const char *name;
		uint32_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
		{ "d", 86400000 } };

	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 9) {
		return false;
	}
	uint64_t n = strtoull(text, NULL, 10);
	if (n == 0 && text[digits] == '\0') {
		*out_ms = 0;
		return true;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(text + digits, units[i].name) == 0) {
			uint64_t ms = n * units[i].ms;
			if (ms > UINT32_MAX) {
				return false;
			}
			*out_ms = (uint32_t)ms;
			return true;
		}
	}
	return false;
}

bool cli_wait_parse(const char *text, uint32_t *out_ms) {
	if (strcmp(text, "forever") == 0) {
		*out_ms = PAWL_FOREVER;
		return true;
	}
	return cli_duration_parse(text, out_ms);
}

bool cli_integer_parse(const char *text, int32_t *out_number) {
	bool negative = *text == '-';
	uint64_t number;
	if (!cli_number_parse(text + (negative || *text == '+'), &number)
		|| number > (uint64_t)INT32_MAX + negative) {
		return false;
	}
	*out_number = (int32_t)(negative ? -(int64_t)number : (int64_t)number);
	return true;
}

bool cli_hex_parse(const char *text, unsigned char *out, size_t room, size_t *out_size) {
	static const char digits[] = "0123456789abcdef";
	size_t n = strlen(text);
	if (n == 0 || n % 2 || n / 2 > room) {
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		const char *at = strchr(digits, text[i] | 0x20);
		if (!at) {
			return false;
		}
		unsigned digit = (unsigned)(at - digits);
		out[i / 2] = (unsigned char)(i % 2 ? out[i / 2] | digit : digit << 4);
	}
	*out_size = n / 2;
	return true;
}
