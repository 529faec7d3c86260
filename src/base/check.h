/* check.h: assertions that stay on. A failed CHECK is a bug in Pawl, never the outside world's
 * fault. */
#ifndef PAWL_BASE_CHECK_H
#define PAWL_BASE_CHECK_H

/* Prints "file:line: CHECK failed: expr" to stderr and aborts. */
_Noreturn void check_failed(const char *file, int line, const char *expr);

/* Sets a hook that runs before the message and the abort, for the simulator's trace. A test's hook
 * may leave by longjmp instead of returning. NULL takes the hook away. */
void check_hook_set(void (*hook)(const char *file, int line, const char *expr));

#define CHECK(x) (__builtin_expect(!(x), 0) ? check_failed(__FILE__, __LINE__, #x) : (void)0)

#endif
