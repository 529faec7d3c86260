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

/* The units, the longest first. */
static const struct {
	const char *name;
	uint32_t ms;
} units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };

#define UNITS (sizeof units / sizeof *units)

/* Returns the index of the unit that is named by these letters; UNITS means that there is none. */
static size_t unit_of(const char *letters, size_t size) {
	size_t i = 0;
	while (i < UNITS
		&& (strlen(units[i].name) != size || memcmp(units[i].name, letters, size) != 0)) {
		i++;
	}
	return i;
}

/* Reads a number of up to 9 digits, and a fraction of up to 3 as thousandths. Returns what follows
 * it; NULL if there is no such number. */
static const char *read_number(const char *text, uint64_t *out_whole, uint64_t *out_thousandths) {
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 9) {
		return NULL;
	}
	*out_whole = strtoull(text, NULL, 10);
	*out_thousandths = 0;
	text += digits;
	if (*text != '.') {
		return text;
	}
	size_t fraction = strspn(++text, "0123456789");
	uint64_t worth = 100;
	for (size_t i = 0; i < fraction && i < 3; i++, worth /= 10) {
		*out_thousandths += worth * (uint64_t)(text[i] - '0');
	}
	return fraction >= 1 && fraction <= 3 ? text + fraction : NULL;
}

/* Each part has a smaller unit than the one before it, so that 5m10m is no duration. */
bool cli_duration_parse(const char *text, uint32_t *out_ms) {
	uint64_t sum = 0, whole, thousandths;
	size_t next = 0;
	if (strcmp(text, "0") == 0) {
		*out_ms = 0;
		return true;
	}
	do {
		text = read_number(text, &whole, &thousandths);
		if (!text) {
			return false;
		}
		size_t letters = strspn(text, "dhms"), unit = unit_of(text, letters);
		if (unit == UNITS || unit < next || thousandths * units[unit].ms % 1000 != 0) {
			return false;
		}
		sum += whole * units[unit].ms + thousandths * units[unit].ms / 1000;
		next = unit + 1;
		text += letters;
	} while (*text);
	if (sum > UINT32_MAX) {
		return false;
	}
	*out_ms = (uint32_t)sum;
	return true;
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
