/* drain.h: a planned stop (docs/protocol.md, section 4): the node stops voting, and then writes
 * what it knows to the side file.
 *
 *   RUNNING --drain_ask--> ANNOUNCED --drain_wait--> WRITING --> DONE
 *
 * While ANNOUNCED, the node says that it is not ready, and still votes. While WRITING, the core is
 * drained and the file is being synced. When it is DONE, every asker is told.
 */
#ifndef PAWL_NODE_DRAIN_H
#define PAWL_NODE_DRAIN_H

#include "config_file.h"
#include "driver.h"
#include "list.h"

/* Tells an asker the end: `error` is 0 or PAWL_EIO. `tag` is that of drain_ask. */
typedef void drain_done(void *ctx, uint64_t tag, int error);

enum drain_state { DRAIN_NONE, DRAIN_ANNOUNCED, DRAIN_WRITING, DRAIN_DONE };

struct drain {
	struct driver *driver;
	char dir[CONFIG_PATH_MAX];
	/* The identity of this node, for the side file. */
	struct id128 node_id;
	enum drain_state state;
	/* DRAIN_DONE: what the askers are told. */
	int error;
	/* DRAIN_WRITING: writes the side file in another thread. */
	struct job *job;
	/* Tells the askers on the next turn of the loop; and ends ANNOUNCED. */
	struct event *told, *announced;
	/* Called when the stop begins, before the node stops voting. May be NULL. */
	void (*on_begin)(void *ctx);
	void *ctx;
	/* Those who are told the end (drain_ask). */
	struct list askers;
};

/* Returns 0 or PAWL_ENOMEM. The driver is borrowed. */
int drain_init(struct drain *d, struct driver *driver, const char *dir, struct id128 node_id);
/* Waits for a sync that is under way. Nobody is told. Accepts zeroed memory. */
void drain_stop(struct drain *d);

/* `done` is called once, on the loop, never from within this call. Returns 0 or PAWL_ENOMEM. */
int drain_ask(struct drain *d, drain_done *done, void *ctx, uint64_t tag);

#endif
