/* guard.c: the life of the guardian itself. Once it runs, nothing in this file waits for pawl run,
 * for the network or for a disk.
 *
 *   waiting --START--> running --(1)--> ending --grace or trust is over--> killing
 *      |                                   |                                  |
 *      '--pawl run gone--> exit            '----- nothing left: GONE, exit ---'
 *
 *   (1): the deadline is near, pawl run is gone, END has come, or CMD has ended.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guardian.h"
#include "output.h"
#include "reaper.h"

/* When pawl run is gone, CMD dies with it, but may tidy up for this long. */
#define ORPHAN_GRACE_NS 500000000
/* The guardian keeps this many connections, the latest ones, because what is held may be tied to
 * one before the last. */
#define CONNECTIONS_MAX 4
/* The guardian never sleeps for longer than this, because the timer follows one clock and the
 * deadline two. */
#define LOOK_NS 1000000000
/* The first pause before another SIGKILL. The pauses become longer, because some processes cannot
 * be killed. */
#define KILL_AGAIN_NS 2000000
#define KILL_AGAIN_MAX_NS 250000000

enum guard_state { GUARD_WAITING, GUARD_RUNNING, GUARD_ENDING, GUARD_KILLING };

struct guard {
	const struct guardian *link;
	const struct guardian_options *options;

	/* The signal mask that this process began with, which CMD gets. */
	sigset_t mask;
	int signals, timer;
	enum guard_state state;

	/* The process id of CMD. */
	pid_t command;

	/* The status of CMD, once `ended` is set. */
	int status;
	bool ended, orphaned;

	/* Copies of the strings of the options. */
	char **argv, *key;

	/* When CMD is killed, in ns of CLOCK_BOOTTIME; for GUARD_ENDING. */
	int64_t kill_at_ns;
	int64_t kill_wait_ns;

	/* The connections; -1 means that the place is free. */
	int connections[CONNECTIONS_MAX];

	/* How many connections there have been in all. */
	size_t connection_count;
};

static void say(const struct guard *g, enum guardian_word word, int value) {
	struct guardian_message m = { word, value };
	/* If pawl run is gone, nobody needs the message. */
	(void)send(g->link->fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Says that nothing is left of CMD, and ends. If words were left unread, the kernel would discard
 * this one, so no more are let in, and those that are there are read. */
_Noreturn static void say_gone(const struct guard *g, int status) {
	struct guardian_message unread;
	shutdown(g->link->fd, SHUT_RD);
	while (recv(g->link->fd, &unread, sizeof unread, MSG_DONTWAIT) > 0) {
	}
	say(g, GUARDIAN_GONE, status);
	_exit(0);
}

/* Returns the only group that CMD can lead, as long as CMD still owns that number; otherwise 0. */
static pid_t group(const struct guard *g) {
	return g->ended ? 0 : g->command;
}

/* ---- starting CMD ---- */

static void set_environment(const struct guard *g) {
	const struct guardian_shared *s = g->link->shared;
	if (setenv("PAWL_KEY", g->key, 1) || setenv("PAWL_LOCK_ID", s->lock_id, 1)
		|| setenv("PAWL_TOKEN", s->token, 1)
		|| (*s->slots ? setenv("PAWL_SLOTS", s->slots, 1) : unsetenv("PAWL_SLOTS"))
		|| (*s->tokens ? setenv("PAWL_TOKENS", s->tokens, 1)
			: unsetenv("PAWL_TOKENS"))) {
		perror("pawl: environment");
		_exit(126);
	}
}

_Noreturn static void become_command(const struct guard *g, pid_t guardian) {
	if (!g->options->in_job) {
		setpgid(0, 0);
	}
	prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
	if (getppid() != guardian) {
		/* The guardian died before the line above. */
		_exit(126);
	}
	set_environment(g);
	sigprocmask(SIG_SETMASK, &g->mask, NULL);
	execvp(g->argv[0], g->argv);
	int error = errno;
	output_line(stderr, "pawl: cannot run %s: %s", g->argv[0], strerror(error));
	/* These are the statuses that shells use. */
	_exit(error == ENOENT ? 127 : 126);
}

static void start(struct guard *g, int value) {
	(void)value;
	pid_t self = getpid();
	g->command = fork();
	if (g->command == 0) {
		become_command(g, self);
	}
	if (g->command < 0) {
		perror("pawl: fork");
		say_gone(g, 126 << 8);
	}
	if (g->options->in_job) {
		/* CMD is born into the job only if this process is in it until now. It takes a
		 * session of its own, because a process of CMD's session would be to the kernel
		 * the shell that continues CMD after Ctrl-Z, also if there is none. */
		setsid();
	} else {
		/* CMD does the same. It does not matter which of the two comes first. */
		setpgid(g->command, g->command);
	}
	g->state = GUARD_RUNNING;
	say(g, GUARDIAN_STARTED, (int)g->command);
}

/* ---- ending it ---- */

/* Ends CMD within the grace. If it is being ended already, this can only shorten the time that it
 * has left: what was granted before may belong to somebody else by now. */
static void begin_end(struct guard *g, int64_t grace_ns) {
	const int64_t kill_at_ns = trust_boot_now() + grace_ns;
	switch (g->state) {
	case GUARD_WAITING:
	case GUARD_KILLING:
		break;
	case GUARD_RUNNING:
		g->state = GUARD_ENDING;
		g->kill_at_ns = kill_at_ns;
		reaper_signal(group(g), SIGTERM);
		/* A process that is stopped could not obey the signal. */
		reaper_signal(group(g), SIGCONT);
		break;
	case GUARD_ENDING:
		g->kill_at_ns = kill_at_ns < g->kill_at_ns ? kill_at_ns : g->kill_at_ns;
		break;
	}
}

/* Makes the moves that time brings. */
static void check_deadlines(struct guard *g) {
	const struct guardian_shared *s = g->link->shared;
	int64_t left = trust_left(&s->trust), margin = s->margin_ns, grace = s->grace_ns;
	if (g->state == GUARD_RUNNING && left <= margin + grace) {
		say(g, GUARDIAN_LATE, 0);
		begin_end(g, grace);
	}
	if (g->state == GUARD_ENDING && (left <= margin || trust_boot_now() >= g->kill_at_ns)) {
		g->state = GUARD_KILLING;
	}
	if (g->state == GUARD_KILLING) {
		reaper_signal(group(g), SIGKILL);
		g->kill_wait_ns = g->kill_wait_ns ? 2 * g->kill_wait_ns : KILL_AGAIN_NS;
		g->kill_wait_ns = g->kill_wait_ns < KILL_AGAIN_MAX_NS ? g->kill_wait_ns
			: KILL_AGAIN_MAX_NS;
	}
}

static void arm_timer(const struct guard *g) {
	const struct guardian_shared *s = g->link->shared;
	int64_t wait = LOOK_NS, left = trust_left(&s->trust) - s->margin_ns;
	switch (g->state) {
	case GUARD_WAITING:
		break;
	case GUARD_RUNNING:
		wait = left - s->grace_ns;
		break;
	case GUARD_ENDING:
		wait = g->kill_at_ns - trust_boot_now();
		wait = left < wait ? left : wait;
		break;
	case GUARD_KILLING:
		wait = g->kill_wait_ns;
		break;
	}
	wait = wait > LOOK_NS ? LOOK_NS : wait < 1 ? 1 : wait;
	struct itimerspec t = { .it_value = { wait / 1000000000, wait % 1000000000 } };
	timerfd_settime(g->timer, 0, &t, NULL);
}

/* ---- what the two sides say ---- */

static void pass_on(struct guard *g, int signal_number) {
	if (!g->ended) {
		reaper_pass_on(g->command, signal_number);
	}
}

static void end(struct guard *g, int at_once) {
	begin_end(g, at_once ? 0 : g->link->shared->grace_ns);
}

/* CMD must not be started any more. */
static void end_unstarted(struct guard *g, int at_once) {
	(void)at_once;
	say_gone(g, SIGTERM);
}

/* What each word does in each state. `receive` has already kept the descriptor of a GUARDIAN_TIE,
 * and the words after GUARDIAN_END are the guardian's own. */
static void (*const moves[][GUARDIAN_END + 1])(struct guard *g, int value) = {
	[GUARD_WAITING] = { [GUARDIAN_START] = start, [GUARDIAN_END] = end_unstarted },
	[GUARD_RUNNING] = { [GUARDIAN_SIGNAL] = pass_on, [GUARDIAN_END] = end },
	[GUARD_ENDING] = { [GUARDIAN_SIGNAL] = pass_on, [GUARDIAN_END] = end },
	/* SIGKILL is under way, and nothing changes that. */
	[GUARD_KILLING] = { NULL },
};

static void hear_message(struct guard *g, const struct guardian_message *m) {
	if (m->word <= GUARDIAN_END && moves[g->state][m->word]) {
		moves[g->state][m->word](g, m->value);
	}
}

static void keep_connection(struct guard *g, int fd) {
	int *place = &g->connections[g->connection_count++ % CONNECTIONS_MAX];
	if (*place >= 0) {
		close(*place);
	}
	*place = fd;
}

/* Receives a message, and keeps the descriptor that came with it. Returns what recv returns. */
static ssize_t receive(struct guard *g, struct guardian_message *out) {
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { out, sizeof *out };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room,
		.msg_controllen = sizeof control.room };
	/* CMD does not inherit the descriptor. */
	ssize_t n = recvmsg(g->link->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_type == SCM_RIGHTS) {
		int fd;
		memcpy(&fd, CMSG_DATA(header), sizeof fd);
		keep_connection(g, fd);
	}
	return n;
}

static void hear(struct guard *g) {
	struct guardian_message m;
	ssize_t n;
	while ((n = receive(g, &m)) == (ssize_t)sizeof m) {
		hear_message(g, &m);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	/* The other end is closed, so pawl run is gone, for whatever reason. */
	g->orphaned = true;
	if (g->state == GUARD_WAITING) {
		_exit(0);
	}
	const int64_t grace = g->link->shared->grace_ns;
	begin_end(g, ORPHAN_GRACE_NS < grace ? ORPHAN_GRACE_NS : grace);
}

static void collect(struct guard *g) {
	struct signalfd_siginfo info[8];
	while (read(g->signals, info, sizeof info) > 0) {
		/* One signal may stand for many. reaper_collect finds out who has ended. */
	}
	if (g->state == GUARD_WAITING) {
		return;
	}
	if (reaper_collect(g->command, &g->status, &g->ended)) {
		say_gone(g, g->status);
	}
	if (g->ended) {
		/* CMD may have left processes running. */
		begin_end(g, g->link->shared->grace_ns);
	}
}

/* ---- its life ---- */

/* On a machine that is busy or out of memory the guardian should still be in time. It goes without
 * if it has no right to real-time scheduling or to locked memory; the margin before the deadline is
 * there for that case. */
static void become_prompt(void) {
	const struct sched_param least = { .sched_priority = 1 };
	/* CMD is not affected by this. */
	(void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least);
	(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}

static void out_of_memory(void) {
	fprintf(stderr, "pawl: out of memory\n");
	_exit(1);
}

/* Copies CMD's arguments, because the title is written over them. */
static void copy_arguments(struct guard *g) {
	size_t count = 0;
	while (g->options->command[count]) {
		count++;
	}
	g->argv = calloc(count + 1, sizeof *g->argv);
	for (size_t i = 0; g->argv && i < count; i++) {
		g->argv[i] = strdup(g->options->command[i]);
		if (!g->argv[i]) {
			out_of_memory();
		}
	}
	g->key = strdup(g->options->key);
	if (!g->argv || !g->key) {
		out_of_memory();
	}
}

/* Gives the guardian another name and other arguments, so that whoever kills pawl by its name or
 * arguments does not also kill the guardian. */
static void take_title(const struct guard *g) {
	prctl(PR_SET_NAME, "lease-guardian", 0UL, 0UL, 0UL);
	if (g->options->title) {
		memset(g->options->title, 0, g->options->title_size);
		snprintf(g->options->title, g->options->title_size, "lease-guardian of %ld",
			(long)getppid());
	}
}

static void guard_init(struct guard *g) {
	sigset_t all;
	/* Signals for the job reach CMD or pawl run. The guardian stays until both are done. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &g->mask);
	if (!g->options->in_job) {
		setpgid(0, 0);
	}
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	g->signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	/* This clock also counts the time of a suspend. */
	g->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!reaper_become() || g->signals < 0 || g->timer < 0) {
		perror("pawl: guardian");
		_exit(1);
	}
	become_prompt();
	copy_arguments(g);
	take_title(g);
}

void guard_main(const struct guardian *link, const struct guardian_options *options) {
	struct guard g = { .link = link, .options = options };
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		g.connections[i] = -1;
	}
	guard_init(&g);
	for (;;) {
		arm_timer(&g);
		struct pollfd fds[] = {
			{ .fd = g.timer, .events = POLLIN },
			{ .fd = g.signals, .events = POLLIN },
			{ .fd = g.orphaned ? -1 : g.link->fd, .events = POLLIN },
		};
		if (poll(fds, sizeof fds / sizeof *fds, -1) < 0 && errno != EINTR) {
			/* CMD dies with the guardian. */
			abort();
		}
		check_deadlines(&g);
		collect(&g);
		if (fds[2].fd >= 0) {
			hear(&g);
		}
	}
}
