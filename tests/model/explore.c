/* explore.c: pawl-explore goes through every order of events of tiny clusters, depth first.
 *
 *   pawl-explore [--seconds N] [--scope NAME] [--seed N] [--path 3,0,1,...]
 *
 * N counts seconds of processor time, so that a busy machine does not make the search shorter. For
 * each scope it prints how many states there are, how many events led to them, and whether that
 * is all of them. A violation ends it with status 1. It prints the events that led there, and the
 * path that plays them again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "explore.h"
#include "prng.h"

#define DEPTH_MAX 400
#define REGION_BYTES ((size_t)2 << 20)

#define ONCE .acquires = 1, .keeps_deadline = true
static const struct scope scopes[] = {
	{ .name = "two contend", .clients = { { .node = 0, ONCE }, { .node = 1, ONCE } } },
	{ .name = "hand over", .clients = { { .node = 0, ONCE, .waits = true, .releases = 1 },
		{ .node = 1, ONCE, .waits = true } } },
	{ .name = "a lease ends", .passes = 4, .slow = 1,
		.clients = { { .node = 0, ONCE }, { .node = 1, ONCE } } },
	{ .name = "an extension", .passes = 5,
		.clients = { { .node = 0, ONCE, .extends = 1 }, { .node = 1, ONCE } } },
	{ .name = "a blind one", .granted = true, .passes = 5, .slow = 1, .clients = {
		{ .node = 0, .acquires = 1, .extends = 1 }, { .node = 1, ONCE, .releases = 1 } } },
	{ .name = "a link breaks", .breaks = 1,
		.clients = { { .node = 0, ONCE }, { .node = 1, ONCE } } },
	{ .name = "a restart", .passes = 4, .slow = 1, .restarts = 1, .restarted = 3,
		.clients = { { .node = 1, ONCE }, { .node = 0, ONCE, .later = true } } },
	{ .name = "a repeat", .restarts = 1, .restarted = 1,
		.clients = { { .node = 0, ONCE, .repeats = 1 }, { .node = 1, ONCE } } },
	{ .name = "two updates", .granted = true,
		.clients = { { .node = 0, ONCE, .updates = 1 }, { .node = 1, .updates = 1 } } },
	{ .name = "half updates", .granted = true, .breaks = 1, .passes = 2,
		.clients = { { .node = 0, ONCE, .updates = 1 }, { .node = 1, .updates = 1 } } },
	{ .name = "one to three", .masters = 1, .outside = 2, .aims = { AIM_GROW }, .granted = true,
		.clients = { { .node = 0, ONCE, .releases = 1 },
		{ .node = 0, ONCE, .waits = true } } },
	{ .name = "one to two", .masters = 1, .outside = 1, .aims = { AIM_GROW }, .granted = true,
		.passes = 5, .slow = 1, .restarts = 1,
		.clients = { { .node = 0, ONCE }, { .node = 0, ONCE, .later = true } } },
	{ .name = "a copy ahead", .masters = 1, .outside = 1, .aims = { AIM_GROW }, .granted = true,
		.passes = 3, .slow = 1, .clients = {
		{ .node = 0, .acquires = 1, .closes = true, .extends = 1 }, { .node = 0, ONCE } } },
	{ .name = "two operators", .aims = { AIM_SHRINK, AIM_TIMING },
		.clients = { { .node = 0 }, { .node = 1 } } },
	{ .name = "a lying master", .aims = { AIM_TIMING }, .lies = 2,
		.clients = { { .node = 0 } } },
	{ .name = "an outsider lies", .masters = 2, .outside = 1, .aims = { AIM_TIMING }, .lies = 1,
		.clients = { { .node = 0 } } },
	{ .name = "a replacement", .masters = 2, .outside = 1, .aims = { AIM_REPLACE },
		.granted = true, .passes = 5, .slow = 1, .restarts = 1,
		.clients = { { .node = 0, ONCE }, { .node = 1, ONCE } } },
	{ .name = "one of three", .outside = 1, .aims = { AIM_REPLACE }, .granted = true,
		.clients = { { .node = 0, ONCE }, { .node = 1, ONCE } } },
	{ .name = "a change", .outside = 1, .aims = { AIM_REPLACE }, .passes = 6, .slow = 2,
		.restarts = 1, .walks = true, .clients = {
		{ .node = 0, ONCE, .extends = 1 },
			{ .node = 1, .acquires = 2, .keeps_deadline = true } } },
	{ .name = "two readers", .clients = { { .node = 0, ONCE, .of = MODE_SHARED },
		{ .node = 1, ONCE, .of = MODE_SHARED } } },
	{ .name = "a reader",
		.clients = { { .node = 0, ONCE, .of = MODE_SHARED, .waits = true, .releases = 1 },
		{ .node = 1, ONCE, .waits = true } } },
	{ .name = "of one node",
		.clients = { { .node = 1, ONCE, .waits = true, .releases = 1 },
		{ .node = 0, ONCE, .waits = true, .releases = 1 },
		{ .node = 0, ONCE, .waits = true } } },
	{ .name = "readers repeat", .restarts = 1, .restarted = 1,
		.clients = { { .node = 0, ONCE, .of = MODE_SHARED, .repeats = 1 },
		{ .node = 1, ONCE, .of = MODE_SHARED } } },
	{ .name = "two permits",
		.clients = { { .node = 0, ONCE, .of = 2 }, { .node = 1, ONCE, .of = 2 } } },
	{ .name = "three permits", .granted = true, .breaks = 1,
		.clients = { { .node = 0, ONCE, .of = 2 }, { .node = 1, ONCE, .of = 2 },
		{ .node = 2, ONCE, .of = 2 } } },
	{ .name = "a permit back", .granted = true, .passes = 4, .slow = 1, .clients = {
		{ .node = 0, ONCE, .of = 1, .releases = 1 }, { .node = 1, ONCE, .of = 1 } } },
	{ .name = "permits repeat", .restarts = 1, .restarted = 1, .clients = {
		{ .node = 0, ONCE, .of = 2, .repeats = 1 }, { .node = 1, ONCE, .of = 2 } } },
	{ .name = "permits last", .granted = true, .passes = 5, .slow = 1, .clients = {
		{ .node = 0, ONCE, .of = 2, .extends = 1 }, { .node = 1, ONCE, .of = 2 } } },
	{ .name = "permits in doubt", .passes = 6, .slow = 1, .restarts = 2, .walks = true,
		.clients = {
		{ .node = 0, .of = 2, .keeps_deadline = true, .acquires = 1, .extends = 3,
			.repeats = 2 },
		{ .node = 1, .of = 2, .keeps_deadline = true, .acquires = 1, .extends = 3,
			.repeats = 1 },
		{ .node = 2, .of = 2, .acquires = 1, .extends = 2, .repeats = 1,
			.later = true } } },
	{ .name = "a downgrade", .granted = true, .clients = { { .node = 0, ONCE, .downgrades = 1 },
		{ .node = 1, ONCE, .of = MODE_SHARED }, { .node = 2, ONCE } } },
	{ .name = "downgraded", .granted = true, .passes = 4,
		.clients = { { .node = 0, ONCE, .downgrades = 1, .extends = 1 },
		{ .node = 1, ONCE, .of = MODE_SHARED } } },
	{ .name = "downgrade cut", .granted = true, .breaks = 1, .clients = {
		{ .node = 0, ONCE, .downgrades = 1 }, { .node = 1, ONCE, .of = MODE_SHARED } } },
	{ .name = "succession", .granted = true, .clients = { { .node = 0, ONCE, .transfers = 1 },
		{ .node = 1, ONCE, .waits = true } } },
	{ .name = "the important", .granted = true,
		.clients = { { .node = 0, ONCE, .releases = 1 }, { .node = 1, ONCE, .waits = true },
		{ .node = 2, ONCE, .waits = true, .priority = 1 } } },
	{ .name = "who shares", .passes = 8, .slow = 2, .restarts = 1, .breaks = 1, .walks = true,
		.clients = {
		{ .node = 0, .waits = true, .keeps_deadline = true, .acquires = 2, .extends = 2,
			.downgrades = 1, .releases = 1, .repeats = 1 },
		{ .node = 1, .of = MODE_SHARED, .acquires = 2, .extends = 1, .releases = 1,
			.repeats = 1 },
		{ .node = 2, .of = MODE_SHARED, .acquires = 2, .waits = true, .transfers = 1 } } },
	{ .name = "semaphore", .passes = 8, .slow = 2, .restarts = 1, .breaks = 2, .walks = true,
		.clients = {
		{ .node = 0, .of = 2, .keeps_deadline = true, .acquires = 2, .extends = 2,
			.releases = 1, .repeats = 2 },
		{ .node = 1, .of = 2, .acquires = 2, .extends = 2, .releases = 1, .repeats = 2 },
		{ .node = 2, .of = 2, .acquires = 2, .releases = 2, .repeats = 1 } } },
	{ .name = "everything", .passes = 8, .slow = 2, .restarts = 1, .breaks = 1, .walks = true,
		.clients = {
		{ .node = 0, .waits = true, .keeps_deadline = true, .acquires = 2, .extends = 1,
			.releases = 1, .repeats = 1 },
		{ .node = 1, .acquires = 2, .extends = 1, .releases = 1, .repeats = 1 } } },
};
#define SCOPES (sizeof scopes / sizeof *scopes)

struct level {
	void *saved;
	size_t capacity;
	struct choice choices[CHOICES_MAX];
	uint32_t count, next;
};

struct explorer {
	struct region *region;
	/* It lives in the region. */
	struct world *world;
	struct level levels[DEPTH_MAX];
	uint32_t depth, deepest;
	/* A hash table with open addressing. */
	uint64_t *seen;
	size_t seen_size, seen_count;
	uint64_t events, seed;
	struct timespec until;
};

/* ---- states seen ---- */

static bool put(uint64_t *table, size_t size, uint64_t h) {
	size_t at = (size_t)h & (size - 1);
	for (; table[at]; at = (at + 1) & (size - 1)) {
		if (table[at] == h) {
			return false;
		}
	}
	table[at] = h;
	return true;
}

/* True if the state is new. */
static bool remember(struct explorer *e, uint64_t h) {
	h = h ? h : 1;
	if (2 * e->seen_count >= e->seen_size) {
		size_t size = e->seen_size ? 2 * e->seen_size : (size_t)1 << 16;
		uint64_t *table = calloc(size, sizeof *table);
		CHECK(table != NULL);
		for (size_t i = 0; i < e->seen_size; i++) {
			if (e->seen[i]) {
				put(table, size, e->seen[i]);
			}
		}
		free(e->seen);
		e->seen = table;
		e->seen_size = size;
	}
	bool fresh = put(e->seen, e->seen_size, h);
	e->seen_count += fresh;
	return fresh;
}

/* ---- depth first ---- */

static void enter(struct explorer *e) {
	CHECK(e->depth < DEPTH_MAX);
	struct level *l = &e->levels[e->depth++];
	size_t size = region_used(e->region);
	if (l->capacity < size) {
		free(l->saved);
		l->saved = malloc(size + size / 4);
		CHECK(l->saved != NULL);
		l->capacity = size + size / 4;
	}
	l->next = 0;
	l->count = world_choices(e->world, l->choices);
	if (l->count > 1) {
		region_save(e->region, l->saved);
	}
	e->deepest = e->depth > e->deepest ? e->depth : e->deepest;
}

static void tell(struct explorer *e, const struct scope *scope) {
	const char *violation = e->world->violation;
	uint32_t depth = e->depth;
	printf("violation in \"%s\": %s\nplay it again: pawl-explore --scope '%s' --path ",
		scope->name, violation, scope->name);
	for (uint32_t i = 0; i < depth; i++) {
		printf("%s%u", i ? "," : "", e->levels[i].next - 1);
	}
	printf("\n");
}

static bool time_over(const struct explorer *e) {
	struct timespec now;
	if (e->events % 64) {
		return false;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec > e->until.tv_sec ||
		(now.tv_sec == e->until.tv_sec && now.tv_nsec >= e->until.tv_nsec);
}

/* 1: all of it was explored; 0: the time was over; -1: there is a violation. */
static int explore(struct explorer *e, const struct scope *scope) {
	remember(e, world_hash(e->world));
	enter(e);
	while (e->depth) {
		struct level *l = &e->levels[e->depth - 1];
		if (l->next == l->count) {
			e->depth--;
			continue;
		}
		if (l->next) {
			region_restore(e->region, l->saved);
		}
		world_apply(e->world, l->choices[l->next++]);
		e->events++;
		if (e->world->violation) {
			tell(e, scope);
			return -1;
		}
		if (remember(e, world_hash(e->world))) {
			enter(e);
		}
		if (time_over(e)) {
			return 0;
		}
	}
	return 1;
}

/* Walks at random from the beginning to where nothing is left, until the time is over. */
static int walk(struct explorer *e, const struct scope *scope) {
	struct prng prng;
	prng_init(&prng, e->seed);
	enter(e);
	region_save(e->region, e->levels[0].saved);
	for (;;) {
		struct level *l = &e->levels[e->depth - 1];
		l->count = world_choices(e->world, l->choices);
		if (l->count == 0 || e->depth == DEPTH_MAX) {
			region_restore(e->region, e->levels[0].saved);
			e->depth = 1;
			continue;
		}
		l->next = (uint32_t)prng_below(&prng, l->count);
		world_apply(e->world, l->choices[l->next++]);
		e->events++;
		remember(e, world_hash(e->world));
		if (e->world->violation) {
			tell(e, scope);
			return -1;
		}
		if (time_over(e)) {
			return 0;
		}
		e->depth++;
		e->deepest = e->depth > e->deepest ? e->depth : e->deepest;
	}
}

static void play(struct world *w, const char *path) {
	for (const char *at = path; *at;) {
		struct choice choices[CHOICES_MAX];
		char text[256], *rest;
		uint32_t count = world_choices(w, choices), n = (uint32_t)strtoul(at, &rest, 10);
		if (n >= count || rest == at) {
			printf("there is no choice %u (of %u)\n", n, count);
			return;
		}
		world_describe(w, choices[n], text, sizeof text);
		printf("%4lld  %-50s", (long long)w->events, text);
		world_apply(w, choices[n]);
		for (uint32_t i = 0; i < CLIENTS; i++) {
			printf("  client %u: %s", i + 1, w->clients[i].state != CLIENT_HOLDS ? "-"
				: w->stage->now < w->clients[i].believed_until ? "holds" : "held");
		}
		printf("%s%s\n", w->violation ? "  VIOLATION: " : "",
			w->violation ? w->violation : "");
		at = *rest == ',' ? rest + 1 : rest;
	}
}

/* ---- the scopes ---- */

static int run(const struct scope *scope, double seconds, uint64_t seed, const char *path) {
	struct explorer *e = calloc(1, sizeof *e);
	CHECK(e != NULL);
	e->seed = seed;
	e->region = region_new(REGION_BYTES);
	struct allocator memory = region_allocator(e->region);
	/* The cores borrow it for as long as they live. */
	struct allocator *inside = alloc_new(&memory, sizeof *inside);
	*inside = memory;
	e->world = world_new(scope, inside);
	int result = 1;
	if (path) {
		play(e->world, path);
	} else {
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &e->until);
		long long end = e->until.tv_nsec + (long long)(seconds * 1e9);
		e->until.tv_sec += (time_t)(end / 1000000000);
		e->until.tv_nsec = (long)(end % 1000000000);
		result = scope->walks ? walk(e, scope) : explore(e, scope);
		printf("%-14s %9zu states, %10llu events, at most %u deep: %s\n", scope->name,
			e->seen_count, (unsigned long long)e->events, e->deepest,
			result > 0 ? "all of them" : result == 0 ? "time was over" : "VIOLATION");
		fflush(stdout);
	}
	for (uint32_t i = 0; i < DEPTH_MAX; i++) {
		free(e->levels[i].saved);
	}
	free(e->seen);
	region_free(e->region);
	free(e);
	return result;
}

int main(int argc, char **argv) {
	double seconds = 60;
	const char *only = NULL, *path = NULL, *seed = "1";
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		const char **text = !strcmp(argv[i], "--scope") ? &only : !strcmp(argv[i], "--path")
			? &path : !strcmp(argv[i], "--seed") ? &seed : NULL;
		if (!value || (!text && strcmp(argv[i], "--seconds") != 0)) {
			fprintf(stderr, "usage: pawl-explore "
				"[--seconds N] [--scope NAME] [--seed N] [--path N,N,...]\n");
			return 2;
		}
		if (text) {
			*text = value;
		} else {
			seconds = strtod(value, NULL);
		}
	}
	int passed = 0, failed = 0;
	for (size_t i = 0; i < SCOPES; i++) {
		if (!only || strcmp(only, scopes[i].name) == 0) {
			double share = only ? seconds : seconds / (double)(SCOPES - i);
			struct timespec before, after;
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
			int result = run(&scopes[i], share, strtoull(seed, NULL, 10), path);
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
			seconds -= (double)(after.tv_sec - before.tv_sec) +
				(double)(after.tv_nsec - before.tv_nsec) / 1e9;
			*(result < 0 ? &failed : &passed) += 1;
		}
	}
	printf("passed=%d failed=%d skipped=0\n", passed, failed);
	return failed ? 1 : 0;
}
