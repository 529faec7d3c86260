/* check.c: what happens when a CHECK fails. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>

static void (*check_hook)(const char *file, int line, const char *expr);

void check_hook_set(void (*hook)(const char *file, int line, const char *expr)) {
	check_hook = hook;
}

_Noreturn void check_failed(const char *file, int line, const char *expr) {
	void (*hook)(const char *, int, const char *) = check_hook;
	if (hook) {
		/* A CHECK that fails inside the hook must not come back here. */
		check_hook = NULL;
		hook(file, line, expr);
	}
	fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expr);
	abort();
}
