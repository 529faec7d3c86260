/* Durations and numbers as people type them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_number_parse(const char *text, uint64_t *out_number) {
	if (*text < '0' || *text > '9') { /* strtoull would take signs and blanks */
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
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };

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
