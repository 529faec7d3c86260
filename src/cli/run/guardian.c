/* guardian.c: pawl run's side of the guardian. */
#include "guardian.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reaper.h"

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
	*g = (struct guardian){ .fd = -1 };
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
			g->command = out->value;
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
	int status;
	bool ended = false;
	do {
		reaper_signal(ended ? 0 : g->command, SIGKILL);
		/* This waits until a process has ended. What was forked meanwhile is killed in the
		 * next round. */
		sigtimedwait(&child, NULL, &pause);
		pause.tv_nsec = pause.tv_nsec < 200000000 ? 2 * pause.tv_nsec : pause.tv_nsec;
	} while (!reaper_collect(g->command, &status, &ended));
	/* A candidate that starts over passes this mask on to its next command. */
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
	munmap(g->shared, sizeof *g->shared);
	*g = (struct guardian){ .fd = -1 };
}
