/* config_value.c: parses durations, percentages, truth values and names. */
#include "config_value.h"

#include <string.h>

#include "ini_number.h"
#include "types.h"

const char *config_value_span(const char *text, span_ns *out) {
	static const char wanted[] = "not a duration: write a whole number and a unit, such as "
		"300ms, 5s or 2m (us, ms, s, m, h)";
	static const struct {
		const char *unit;
		span_ns ns;
	} units[] = { { "us", SPAN_US }, { "ms", SPAN_MS }, { "s", SPAN_S }, { "m", 60 * SPAN_S },
		{ "h", 3600 * SPAN_S } };
	uint64_t n;
	if (!ini_digits(&text, &n)) {
		return wanted;
	}
	if (n == 0 && *text == '\0') {
		*out = 0;
		return NULL;
	}
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strcmp(text, units[i].unit) == 0) {
			if (n > (uint64_t)(SPAN_MAX / units[i].ns)) {
				return "the duration is too long: at most about 290 years";
			}
			*out = (span_ns)n * units[i].ns;
			return NULL;
		}
	}
	return wanted;
}

const char *config_value_percent(const char *text, uint32_t *out_ppm) {
	static const char wanted[] = "not a percentage: write one from 0.0001 % to 10 %, such as "
		"1 % or 0.5 %";
	uint64_t whole, ppm = 0;
	if (!ini_digits(&text, &whole) || whole > 10) {
		return wanted;
	}
	/* What the next digit after the decimal point counts, in ppm. */
	uint64_t unit = 1000;
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9' && unit > 0; text++, unit /= 10) {
			ppm += (uint64_t)(*text - '0') * unit;
		}
	}
	while (*text == ' ') {
		text++;
	}
	ppm += whole * 10000;
	if (strcmp(text, "%") != 0 || ppm == 0 || ppm > 100000) {
		return wanted;
	}
	*out_ppm = (uint32_t)ppm;
	return NULL;
}

const char *config_value_bool(const char *text, bool *out) {
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0) {
		return "write yes or no";
	}
	*out = strcmp(text, "yes") == 0;
	return NULL;
}

const char *config_value_name(const char *text) {
	size_t size = strlen(text);
	if (size == 0 || size > NODE_NAME_MAX) {
		return "a name has 1 to 63 characters";
	}
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
			|| (c >= '0' && c <= '9');
		if (!letter && c != '-' && c != '.' && c != '_') {
			return "a name is made of letters, digits and - . _";
		}
	}
	return NULL;
}
