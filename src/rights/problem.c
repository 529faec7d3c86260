/* problem.c: writing down a problem. */
#include "problem.h"

#include <stdarg.h>
#include <stdio.h>

void problem_set(struct problem *p, const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(p->text, sizeof p->text, format, args);
	va_end(args);
}
