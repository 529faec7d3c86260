/* notify.h: tells systemd about the process if systemd has started it. It does nothing otherwise,
 * nor if pawld was built without libsystemd.
 */
#ifndef PAWL_NODE_NOTIFY_H
#define PAWL_NODE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* The node listens, or a reload is over. */
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
/* Sets the status line of systemctl. */
void notify_voting(bool voting);
/* Returns the time without notify_alive after which systemd ends the process, in microseconds; 0
 * means never. */
uint64_t notify_watchdog(void);
void notify_alive(void);

#endif
