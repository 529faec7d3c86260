/* endpoints.h: a node that a test has started (pawld --dev --print-endpoints): it says where it
 * listens, and it does not outlive its test. */
#ifndef PAWL_NODE_ENDPOINTS_H
#define PAWL_NODE_ENDPOINTS_H

#include <event2/event.h>

#include "config_file.h"
#include "node.h"

/* Prints one line of JSON: the address of each listener, and the process id. */
void endpoints_print(const struct node *node, const struct node_config *config);

/* Calls `ended` in the loop once the standard input has ended, if that is a pipe or a socket:
 * whoever has started the process is then gone, or wants it to end. (A terminal, a file or
 * /dev/null says nothing of that.) Returns 0 or PAWL_ENOMEM. Free *out, which may be NULL, with
 * endpoints_input_free. */
int endpoints_end_with_input(struct event_base *base, void (*ended)(void *ctx), void *ctx,
	struct event **out);
void endpoints_input_free(struct event *take_input);

#endif
