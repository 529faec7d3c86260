/* walks.c: draws the walks, and says which rules they need. */
#include "walks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int without = -1;
bool broken;
static bool traced;
static uint64_t dice;

void say(const char *format, ...) {
	if (traced) {
		va_list args;
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
	}
}

uint32_t throw_of(uint32_t sides) {
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)((dice >> 32) % sides);
}

static bool breaks(const struct walks *w, uint64_t seed) {
	dice = seed * 0x9E3779B97F4A7C15u + 1;
	broken = false;
	w->walk();
	return broken;
}

/* Returns 0 if no walk breaks anything. */
static uint64_t first_broken(const struct walks *w, uint64_t walks) {
	for (uint64_t seed = 1; seed <= walks; seed++) {
		if (breaks(w, seed)) {
			return seed;
		}
	}
	return 0;
}

static int all_rules(const struct walks *w, uint64_t walks) {
	uint64_t seed = first_broken(w, walks);
	printf("all rules: %s %llu\n", seed ? "BROKEN by walk" : "nothing is broken in",
		(unsigned long long)(seed ? seed : walks));
	int failed = seed != 0;
	for (without = 0; without < w->rule_count; without++) {
		seed = first_broken(w, w->most);
		printf("without \"%s\": %s %llu\n", w->rules[without], seed ? "broken by walk"
			: "FOUND NOTHING in", (unsigned long long)(seed ? seed : w->most));
		failed |= seed == 0;
	}
	return failed;
}

int walks_main(const struct walks *w, int argc, char **argv) {
	uint64_t walks = w->walks;
	bool trace = false;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--walks") == 0 && i + 1 < argc) {
			walks = strtoull(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--without") == 0 && i + 1 < argc) {
			without = (int)strtol(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--trace") == 0) {
			trace = true;
		} else {
			fprintf(stderr, "usage: %s [--walks N] [--without RULE [--trace]]\n",
				w->program);
			return 2;
		}
	}
	if (without < 0 && !trace) {
		return all_rules(w, walks);
	}
	const uint64_t seed = first_broken(w, walks);
	traced = trace;
	return seed ? breaks(w, seed) : 0;
}
