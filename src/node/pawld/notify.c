/* notify.c: messages to systemd, or nothing if pawld was built without libsystemd. */
#include "notify.h"

#ifdef HAVE_SYSTEMD
#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void notify_ready(void) {
	sd_notify(0, "READY=1");
}

/* Type=notify-reload wants to know to which reload this is the answer. */
void notify_reloading(void) {
	struct timespec now = { .tv_sec = 0 };
	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		(int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void notify_stopping(void) {
	sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void notify_voting(bool voting) {
	sd_notify(0,
		voting ? "STATUS=voting" : "STATUS=does not vote yet: see the log, or pawl status");
}

uint64_t notify_watchdog(void) {
	uint64_t us = 0;
	return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}

void notify_alive(void) {
	sd_notify(0, "WATCHDOG=1");
}
#else
void notify_ready(void) {
}

void notify_reloading(void) {
}

void notify_stopping(void) {
}

void notify_voting(bool voting) {
	(void)voting;
}

uint64_t notify_watchdog(void) {
	return 0;
}

void notify_alive(void) {
}
#endif
