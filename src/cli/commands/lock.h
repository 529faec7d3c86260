/* lock.h: what the commands about the lease of a lock share. */
#ifndef PAWL_CLI_LOCK_H
#define PAWL_CLI_LOCK_H

#include <jansson.h>

#include "cli.h"

/* Stands for a lease that is not given. */
#define LOCK_LEASE_OPEN UINT32_MAX

/* Leaves the lease open if it is not given: then the cluster may allow less than the default. */
void lock_read_lease(const struct cli_command_line *line, struct pawl_request *request);
/* Reads the option --order; 0: it is not given. */
uint32_t lock_read_order(const struct cli_command_line *line, uint64_t number);
/* Sets valid_ms to the time that is left now, and not to the time at the sending of the request,
 * because that is what the reader can still use. */
void lock_set_time_left(json_t *object, const struct pawl_result *result);

#endif
