/* problem.h: what is wrong with what the operator gave, as a sentence: what, where, and the
 * remedy. */
#ifndef PAWL_RIGHTS_PROBLEM_H
#define PAWL_RIGHTS_PROBLEM_H

struct problem {
	char text[768];
};

/* Sets the sentence, which is cut where it is too long. */
__attribute__((format(printf, 2, 3))) void problem_set(struct problem *p, const char *format, ...);

#endif
