/* unit.h: what every file of tests begins with: cmocka, with the headers that it needs before it,
 * and UNIT. The files of a folder are one program, and each is a group of tests in it. */
#ifndef PAWL_TESTS_UNIT_H
#define PAWL_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* The function that follows runs the tests of the file test_X.c, and returns how many failed. */
#define UNIT(x) \
	static int run_##x(const char *group_name); \
	__attribute__((constructor)) static void add_##x(void) { \
		static struct unit_group group = { .name = #x, .run = run_##x }; \
		unit_add(&group); \
	} \
	static int run_##x(const char *group_name)

/* A test that lets each allocation fail, one after the other, goes on by so many. A release build
 * lets each of them fail; with sanitizers, which make it far slower, it is every third. */
#ifdef SANITIZED
#define UNIT_STRIDE 3
#else
#define UNIT_STRIDE 1
#endif

struct unit_group {
	const char *name;
	int (*run)(const char *group_name);
	struct unit_group *next;
};

/* Called before main(). */
void unit_add(struct unit_group *group);
/* Returns the number that follows the option on the command line, or `absent`. */
uint64_t unit_option(const char *option, uint64_t absent);

#endif
