/* notify.h: what systemd is told, when it started us. Does nothing otherwise, and where libsystemd was not there to build with. */
#ifndef PAWL_NODE_NOTIFY_H
#define PAWL_NODE_NOTIFY_H

#include <stdbool.h>

void notify_ready(void);              /* listening; also the end of a reload */
void notify_reloading(void);
void notify_stopping(void);
void notify_voting(bool voting);      /* the status line of systemctl */

#endif
