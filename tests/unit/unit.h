/* unit.h: includes cmocka with the headers that it needs before it. Test programs include this
 * first. */
#ifndef PAWL_TESTS_UNIT_H
#define PAWL_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
