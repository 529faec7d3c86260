/* drain.h: a planned stop (docs/protocol.md, section 4): stop voting, then write what is known to the side file.
 *
 *   RUNNING --drain_ask--> WRITING (the core is drained, the file is being synced) --> DONE: every asker is told
 */
#ifndef PAWL_NODE_DRAIN_H
#define PAWL_NODE_DRAIN_H

#include "config_file.h"
#include "driver.h"
#include "list.h"

typedef void drain_done(void *ctx, uint64_t tag, int error);

enum drain_state { DRAIN_NONE, DRAIN_WRITING, DRAIN_DONE };

struct drain {
	struct driver *driver;
	char dir[CONFIG_PATH_MAX];
	struct id128 node_id;
	enum drain_state state;
	int error;
	struct job *job;
	struct event *told;
	struct list askers;
};

int drain_init(struct drain *d, struct driver *driver, const char *dir, struct id128 node_id); /* driver borrowed */
void drain_stop(struct drain *d); /* waits for a sync under way; nobody is told; accepts zeroed memory */

/* `done` is called once, on the loop, never from within. 0 or PAWL_ENOMEM. */
int drain_ask(struct drain *d, drain_done *done, void *ctx, uint64_t tag);

#endif
