/* channel.h: how the preloaded library asks the conductor (conductor.py). Each thread has a channel
 * of its own, a socket of whole messages. A thread runs only between an answer and its next call.
 * So of all threads of all processes one runs at a time. */
#ifndef PAWL_TEST_CHANNEL_H
#define PAWL_TEST_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest number of bytes that go with a call or an answer. Reads and writes are cut to it. */
#define CALL_BYTES_MAX (64u * 1024)

/* The calls in the order in which conductor.py lists them. */
enum call {
	CALL_HELLO, CALL_SOCKET, CALL_BIND, CALL_LISTEN, CALL_ACCEPT, CALL_CONNECT, CALL_SHUTDOWN,
	CALL_CLOSE, CALL_NAME, CALL_PEER_NAME, CALL_ERROR, CALL_READ, CALL_WRITE, CALL_EPOLL,
	CALL_EPOLL_CTL, CALL_EPOLL_WAIT, CALL_TIMER, CALL_TIMER_SET, CALL_COUNTER, CALL_PIPE,
	CALL_LOG, CALL_FILE_WRITE, CALL_FILE_SYNC, CALL_FILE_CREATE, CALL_FILE_RENAME,
	CALL_FILE_UNLINK, CALL_RANDOM, CALL_SPAWN, CALL_EXIT, CALL_JOIN, CALL_LOCK, CALL_UNLOCK,
	CALL_WAIT, CALL_SIGNAL,
};

struct call_out {
	uint32_t call;
	int32_t fd;
	int64_t a, b;
};

struct call_back {
	/* The result, or -1. */
	int64_t result;
	/* The errno of a result of -1. */
	int32_t error;
	/* A signal that the process gets now, or 0. */
	int32_t signal;
	/* What the clocks of this process show, in nanoseconds. */
	int64_t boot, wall;
};

/* Returns the time that the last answer has told: of CLOCK_REALTIME if `wall`, and of all other
 * clocks if not. In nanoseconds. */
int64_t channel_clock(bool wall);

/* Returns whether the thread has a channel. Without one, all calls are the kernel's. */
bool channel_open(void);

/* Asks the conductor, and waits until this thread is the one that runs. `data` goes with the call,
 * and up to `max` bytes of the answer's data come to `out`, and their number to `got`; each may be
 * NULL. Sets errno. Ends the process if the conductor is gone. */
int64_t channel_call(struct call_out call, const void *data, size_t size, void *out, size_t max,
	size_t *got);

/* The same without data. */
int64_t channel_ask(enum call call, int fd, int64_t a, int64_t b);

/* Makes a channel for a thread that is about to begin. Returns its descriptor. */
int channel_new(void);

/* Gives the calling thread its channel. */
void channel_take(int fd);

/* Tells the conductor that this thread ends, and closes the channel. */
void channel_end(void);

/* The function of the next library that has this name. */
void *channel_real(const char *name);

/* ISO C has no cast from what dlsym gives to a function. */
#define REAL(name) (((union { void *object; name##_function *function; }){ \
	.object = channel_real(#name) }).function)

#endif
