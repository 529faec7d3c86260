/* guardian.c: pawl run's side of the guardian. */
#include "guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reaper.h"

/* Opens the terminal if CMD is to have it: that is if pawl is the terminal's foreground job, and
 * reads and writes there. In a pipeline the other processes need the terminal as much, and it stays
 * with pawl's group. */
static int terminal_open(void) {
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		return -1;
	}
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int start_failed(struct guardian *g, int fd) {
	int error = errno;
	if (fd >= 0) {
		close(fd);
	}
	guardian_done(g);
	return error;
}

int guardian_start(struct guardian *g, const struct guardian_options *options) {
	static const struct sigaction usual = { .sa_handler = SIG_DFL };
	int pair[2];
	*g = (struct guardian){ .fd = -1, .terminal = -1 };
	/* A process that ignores SIGCHLD, as some parents make it do, is not told how its children
	 * ended. */
	sigaction(SIGCHLD, &usual, NULL);
	void *page = mmap(NULL, sizeof *g->shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED) {
		return errno;
	}
	g->shared = page;
	if (!reaper_become()
		|| socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)
			!= 0) {
		return start_failed(g, -1);
	}
	g->fd = pair[0];
	g->terminal = terminal_open();
	g->pid = fork();
	if (g->pid < 0) {
		return start_failed(g, pair[1]);
	}
	if (g->pid == 0) {
		close(pair[0]);
		g->fd = pair[1];
		guard_main(g, options);
	}
	close(pair[1]);
	/* The guardian does the same. It does not matter which of the two comes first. */
	setpgid(g->pid, g->pid);
	return 0;
}

void guardian_send(struct guardian *g, enum guardian_word word, int value) {
	struct guardian_message m = { word, value };
	/* If this fails, the guardian is gone or stuck. Then the deadline decides, which the
	 * guardian or pawl run enforces. */
	(void)send(g->fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void guardian_keep_connection(struct guardian *g, int fd) {
	struct guardian_message m = { GUARDIAN_TIE, 0 };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof fd)];
	} control = { .room = { 0 } };
	struct iovec bytes = { &m, sizeof m };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room,
		.msg_controllen = sizeof control.room };
	control.header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd),
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	/* This fails as guardian_send does. */
	(void)sendmsg(g->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int guardian_receive(struct guardian *g, struct guardian_message *out) {
	ssize_t n = recv(g->fd, out, sizeof *out, MSG_DONTWAIT);
	if (n == (ssize_t)sizeof *out) {
		if (out->word == GUARDIAN_STARTED) {
			g->group = out->value;
		}
		return 1;
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

void guardian_continue(const struct guardian *g) {
	siginfo_t info = { 0 };
	if (waitid(P_PID, (id_t)g->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid > 0) {
		kill(g->pid, SIGCONT);
	}
}

void guardian_replace(struct guardian *g) {
	struct timespec pause = { .tv_nsec = 1000000 };
	sigset_t child, before;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	pid_t group = g->group;
	int status;
	bool ended = false;
	do {
		reaper_signal(ended ? 0 : group, SIGKILL);
		/* This waits until a process has ended. What was forked meanwhile is killed in the
		 * next round. */
		sigtimedwait(&child, NULL, &pause);
		pause.tv_nsec = pause.tv_nsec < 200000000 ? 2 * pause.tv_nsec : pause.tv_nsec;
	} while (!reaper_collect(group, &status, &ended));
	/* A candidate that starts over passes this mask on to its next command. */
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void guardian_terminal(const struct guardian *g, bool give) {
	if (g->terminal < 0) {
		return;
	}
	sigset_t output, before;
	sigemptyset(&output);
	/* A process that is not in the foreground may change the foreground group only while it
	 * blocks this signal. */
	sigaddset(&output, SIGTTOU);
	sigprocmask(SIG_BLOCK, &output, &before);
	tcsetpgrp(g->terminal, give ? g->group : getpgrp());
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Waits for the end of the guardian. Nobody else hears any more that the guardian was stopped, so
 * without SIGCONT neither the guardian nor this process would ever end. */
static void await_end(pid_t guardian) {
	int status;
	pid_t ended;
	do {
		ended = waitpid(guardian, &status, WUNTRACED);
		if (ended > 0 && WIFSTOPPED(status)) {
			kill(guardian, SIGCONT);
		}
	} while (ended > 0 ? WIFSTOPPED(status) : errno == EINTR);
}

void guardian_done(struct guardian *g) {
	if (g->fd >= 0) {
		close(g->fd);
	}
	if (g->pid > 0) {
		await_end(g->pid);
	}
	if (g->terminal >= 0) {
		close(g->terminal);
	}
	munmap(g->shared, sizeof *g->shared);
	*g = (struct guardian){ .fd = -1, .terminal = -1 };
}
