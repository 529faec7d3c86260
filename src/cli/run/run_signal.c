/* run_signal.c: the signals that pawl run and pawl elect get. They are meant for CMD if it runs.
 *
 * With a terminal CMD is in this process's job. What the terminal sends (Ctrl-C, Ctrl-\, and the
 * end of the terminal) goes to the whole job, so CMD has it already, and must not get it twice:
 * many programs take the second one for impatience. Ctrl-Z stops this process and CMD alike. The
 * lease is not renewed meanwhile; when it is over, the guardian, which is not stopped, ends CMD. */
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "run.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

bool signals_have_terminal(void) {
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
	}
	return fd >= 0;
}

static void hear(struct run *r, const struct signalfd_siginfo *signal) {
	const int number = (int)signal->ssi_signo;
	/* CMD may have a use for the other signals. */
	r->ends |= number == SIGTERM || number == SIGINT || number == SIGQUIT;
	if (!r->started) {
		/* These two are meant for CMD, which does not run yet. */
		if (number != SIGUSR1 && number != SIGUSR2) {
			run_interrupted(r, 128 + number);
		}
	} else if (!r->in_job || signal->ssi_code != SI_KERNEL) {
		guardian_send(&r->guardian, GUARDIAN_SIGNAL, number);
	}
}

static void read_signals(struct run *r) {
	struct signalfd_siginfo signal;
	while (read(r->signal_fd, &signal, sizeof signal) == (ssize_t)sizeof signal) {
		hear(r, &signal);
	}
}

static void on_signals(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	read_signals(arg);
}

/* What came before CMD was in the job is here by now, and has not reached CMD. */
void signals_command_joined(struct run *r) {
	read_signals(r);
	r->in_job = r->wanted.guarding.in_job;
}

/* Signals that were ignored when pawl started (nohup, a shell's background job) stay ignored, here
 * and in CMD. */
bool signals_watch(struct run *r) {
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	sigset_t watched;
	sigemptyset(&watched);
	for (size_t i = 0; i < COUNT(numbers); i++) {
		struct sigaction now;
		sigaction(numbers[i], NULL, &now);
		if (now.sa_handler != SIG_IGN) {
			sigaddset(&watched, numbers[i]);
		}
	}
	sigprocmask(SIG_BLOCK, &watched, &r->mask);
	r->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0) {
		return false;
	}
	r->signal_event = event_new(r->base, r->signal_fd, EV_READ | EV_PERSIST, on_signals, r);
	return r->signal_event && event_add(r->signal_event, NULL) == 0;
}
