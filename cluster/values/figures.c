/* figures.c: groups of keys and modes of locks, as those who watch over a node count them. */
#include "core_figures.h"

/* Prefixes are short, so that one loop costs less than to measure and to compare them. */
static bool begins_with(struct slice key, const char *prefix) {
	size_t n = 0;
	while (n < key.size && prefix[n] && (uint8_t)prefix[n] == key.data[n]) {
		n++;
	}
	return !prefix[n];
}

uint32_t key_groups_search(const struct key_groups *groups, struct slice key) {
	for (uint32_t i = 0; i < groups->count; i++) {
		if (begins_with(key, groups->prefixes[i])) {
			return i;
		}
	}
	return KEY_GROUPS_MAX;
}

const char *figure_mode_name(enum figure_mode mode) {
	static const char *const names[FIGURE_MODES] = { "exclusive", "shared", "semaphore" };
	return names[mode];
}

const char *figure_lost_name(enum figure_lost cause) {
	static const char *const names[FIGURE_LOSSES] = { "expired", "taken" };
	return names[cause];
}
