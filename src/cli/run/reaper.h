/* reaper.h: ending everything that a command started.
 *
 * The caller is a "child subreaper": what CMD leaves behind becomes its child, however deep it was and whatever session it
 * moved to. So two things hold: everything that CMD started is found by walking down from the caller, and when the caller
 * has no child left, nothing of it runs any more.
 *
 * Limits: a process that changed its user (sudo, set-user-id) cannot be killed without the right to; one that hangs in the
 * kernel (state D) dies only when the kernel lets go; what was started by somebody else on CMD's behalf (systemd-run, a
 * daemon, another machine) is not CMD's child. Fencing tokens are for these.
 */
#ifndef PAWL_CLI_REAPER_H
#define PAWL_CLI_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

bool reaper_become(void); /* makes the caller the subreaper of what it starts; false: the kernel refused */

/* Sends the signal to the process group (at once: a fork cannot slip through) and to every other descendant of the caller
 * that /proc shows. Whoever starts processes meanwhile is found next time: repeat a SIGKILL until reaper_collect is true.
 * group 0: only by /proc. Once the group's leader is collected its number may become somebody else's: then pass 0. */
void reaper_signal(pid_t group, int signal_number);

/* Collects children that have ended; sets *out_status and *out_ended if `pid` was among them. True: none is left. */
bool reaper_collect(pid_t pid, int *out_status, bool *out_ended);

#endif
