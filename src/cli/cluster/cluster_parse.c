/* cluster_parse.c: reads lists of nodes and drifts of clocks, as people type them. */
#include <string.h>

#include "cluster.h"

const char *cluster_nodes_parse(char *text, bool master, struct pawl_change_node *nodes,
	size_t *count) {
	char *rest = text;
	while (rest) {
		char *name = strsep(&rest, ",");
		char *address = strchr(name, '=');
		if (address) {
			*address++ = '\0';
		}
		if (!*name) {
			return "a name is empty";
		}
		if (address && !strchr(address, ':')) {
			return "an address is not host:port";
		}
		for (size_t i = 0; i < *count; i++) {
			if (strcmp(nodes[i].name, name) == 0) {
				return "a node is given twice";
			}
		}
		if (*count >= PAWL_CHANGE_NODES_MAX) {
			return "more than 48 nodes";
		}
		nodes[(*count)++] = (struct pawl_change_node){ name, address, master };
	}
	return NULL;
}

/* Reads the digits behind the point. `unit` is how many millionths make up 1: "5" of 10000 is
 * 5000. */
static bool parse_fraction(const char *digits, size_t size, uint32_t unit, uint32_t *out) {
	*out = 0;
	for (size_t i = 0; i < size; i++) {
		unit /= 10;
		if (unit == 0) {
			/* The number is finer than one in a million. */
			return false;
		}
		*out += (uint32_t)(digits[i] - '0') * unit;
	}
	return true;
}

bool cluster_drift_parse(const char *text, uint32_t *out_ppm) {
	static const char digit[] = "0123456789";
	size_t whole = strspn(text, digit), fraction = 0;
	const char *unit = text + whole;
	if (*unit == '.') {
		fraction = strspn(unit + 1, digit);
		unit += 1 + fraction;
	}
	bool percent = strcmp(unit, "%") == 0, ppm = strcmp(unit, "ppm") == 0;
	if (whole == 0 || whole > 7 || (text[whole] == '.' && fraction == 0)
		|| (!percent && (!ppm || fraction > 0))) {
		return false;
	}
	uint32_t number = 0, parts;
	for (size_t i = 0; i < whole; i++) {
		number = number * 10 + (uint32_t)(text[i] - '0');
	}
	uint32_t scale = percent ? 10000 : 1;
	if (number > 1000000 / scale
		|| !parse_fraction(text + whole + 1, fraction, scale, &parts)) {
		return false;
	}
	if (number * scale + parts > 1000000) {
		return false;
	}
	*out_ppm = number * scale + parts;
	return true;
}
