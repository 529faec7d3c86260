/* reaper.h: ends everything that a command has started.
 *
 * The caller is a "child subreaper": what CMD leaves behind becomes a child of the caller, however
 * deep it was, and whatever session it has moved to. So two things hold: everything that CMD
 * started can be found by walking down from the caller, and when the caller has no child left,
 * nothing of it runs any more.
 *
 * There are limits. A process that does nothing but fork and end, in a group that the caller cannot
 * signal, may be one step ahead of every walk. A process that has changed its user (sudo,
 * set-user-id) can be killed only by somebody with the right to do so. A process that hangs in the
 * kernel (state D) dies only when the kernel lets go. What somebody else started on CMD's behalf
 * (systemd-run, a daemon, another machine) is not a child of CMD. Fencing tokens are for these. */
#ifndef PAWL_CLI_REAPER_H
#define PAWL_CLI_REAPER_H

#include <stdbool.h>
#include <sys/types.h>

/* Makes the caller the subreaper of what it starts. Returns false if the kernel has refused. */
bool reaper_become(void);

/* Sends the signal to the process group (at once, so that no fork can slip through), and to every
 * other descendant of the caller that /proc shows. A process that is started meanwhile is found the
 * next time, so repeat a SIGKILL until reaper_collect returns true. `group` is the id of a child,
 * which may lead a group or not: as long as the child is there, no other group can have its number.
 * Once it has been collected, pass 0, so that only /proc is used. */
void reaper_signal(pid_t group, int signal_number);

/* Sends the signal to a child that has not been collected, and to the descendants of the caller
 * that are in its process group. */
void reaper_pass_on(pid_t child, int signal_number);

/* Collects the children that have ended, and sets *out_status and *out_ended if `pid` was among
 * them. Returns true if no child is left. */
bool reaper_collect(pid_t pid, int *out_status, bool *out_ended);

#endif
