/* trace.h: the traceparent of W3C Trace Context, by which a request is found again in what other
 * programs have recorded. */
#ifndef PAWL_BASE_TRACE_H
#define PAWL_BASE_TRACE_H

#include "slice.h"

/* The size of a traceparent in bytes: VERSION-TRACE_ID-PARENT_ID-FLAGS, with 2, 32, 16 and 2
 * hex digits. */
#define TRACE_BYTES 55

/* Returns whether the bytes are a traceparent: lower-case hex digits with dashes between the four
 * parts, ids that are not all zero, and a version other than ff. */
bool trace_valid(struct slice trace);

#endif
