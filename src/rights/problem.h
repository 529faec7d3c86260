/* problem.h: what is wrong with what the operator gave, in words: what, where, and the remedy. */
#ifndef PAWL_RIGHTS_PROBLEM_H
#define PAWL_RIGHTS_PROBLEM_H

struct problem {
	char text[768];
};

__attribute__((format(printf, 2, 3))) void problem_set(struct problem *p, const char *format, ...);

#endif
