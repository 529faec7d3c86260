/* unit: the program of a folder of tests.
 *
 *     unit [GROUP]... [--OPTION NUMBER]...
 *
 * runs the named groups, or all of them. A group is the file test_GROUP.c. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct unit_group *groups;
static char **words;

void unit_add(struct unit_group *group) {
	group->next = groups;
	groups = group;
}

uint64_t unit_option(const char *option, uint64_t absent) {
	for (char **word = words; *word; word++) {
		if (strcmp(*word, option) == 0 && word[1]) {
			return strtoull(word[1], NULL, 10);
		}
	}
	return absent;
}

/* Returns how many tests failed, or -1 if there is no such group. */
static int run(const char *name) {
	for (const struct unit_group *group = groups; group; group = group->next) {
		if (strcmp(group->name, name) == 0) {
			return group->run(name);
		}
	}
	(void)fprintf(stderr, "there is no group %s, only:", name);
	for (const struct unit_group *group = groups; group; group = group->next) {
		(void)fprintf(stderr, " %s", group->name);
	}
	(void)fprintf(stderr, "\n");
	return -1;
}

int main(int argc, char **argv) {
	int failed = 0;
	words = argv + 1;
	if (argc == 1 || strncmp(argv[1], "--", 2) == 0) {
		for (const struct unit_group *group = groups; group; group = group->next) {
			failed |= group->run(group->name);
		}
	}
	for (; *words && strncmp(*words, "--", 2) != 0; words++) {
		failed |= run(*words);
	}
	return failed ? 1 : 0;
}
