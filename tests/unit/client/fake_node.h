/* fake_node.h: a node for the tests of the client: speaks the protocol on a loopback port, on the
 * test's own loop, and does what the test says. It keeps no leases. */
#ifndef PAWL_TESTS_FAKE_NODE_H
#define PAWL_TESTS_FAKE_NODE_H

#include <event2/event.h>

#include "client.h"
#include "prng.h"

#define FAKE_CONNS 16
#define FAKE_HELD_ANSWERS 64

enum fake_mood {
	FAKE_ANSWERS,
	/* reads, answers nothing at all */
	FAKE_SILENT,
	/* answers pings only */
	FAKE_KEEPS_ONE_IN,
	/* answers everything at fake_let_go */
	FAKE_HOLDS_BACK,
	/* closes the connection instead of answering */
	FAKE_HANGS_UP,
	/* answers what is no MessagePack-RPC */
	FAKE_TALKS_ROT,
	/* answers with some bits turned over */
	FAKE_GARBLES
};

struct fake_node;
struct fake_conn {
	struct fake_node *node;
	int fd;
	struct event *event;
	struct buffer in, out;
	struct client_scanner scanner;
};

struct fake_node {
	struct event_base *base;
	int fd;
	unsigned port;
	char endpoint[32];
	struct event *event;
	struct fake_conn conns[FAKE_CONNS];
	struct allocator alloc;
	struct client_decoder decoder;
	/* for FAKE_GARBLES */
	struct prng prng;

	enum fake_mood mood;
	/* answered to everything but pings, 0: success */
	int error;
	/* said with errors; 0: nothing is */
	span_ns retry_after;
	/* of every second lock of a batch */
	int error_of_item;
	/* permits that each lock of a batch is answered to have been extended for, as bits; 0: it
	 * is not said */
	uint64_t numbers_of_item;
	/* of the last acquire */
	uint64_t token;
	/* of the lease; 990 */
	uint32_t valid_permille;
	span_ns waited;

	/* What is watched: one position for all, one watch a connection is told of, the last. */
	/* `from` of another log, or above, is answered with an overflow */
	uint64_t log, sequence;
	/* numbers given so far */
	uint64_t watches;
	/* the last one that has not been ended */
	uint64_t watch;
	struct fake_conn *watcher;
	/* before a list is answered: that this key, which is in it, was released; NULL: nothing */
	const char *ends;
	/* what reads say of every key: held by `holder` */
	bool held;
	struct core_entry holder;
	/* the only one that waits for any key; NULL: nobody does */
	const char *waiter;
	/* named by the locks of the extensions, in order; as far as there is room */
	uint32_t bindings[8];
	size_t binding_count;
	/* so many locks with a bond are answered that they were perhaps lost */
	unsigned unsure_binds;
	/* of an acquire, as the next */
	char last_value[32];
	uint32_t last_bond;
	/* answered to acquires alone */
	int acquire_error;
	/* answered to pings */
	int ping_error;
	/* deadline_kept of the last extension */
	bool last_kept;

	unsigned asked[CLIENT_METHODS], accepted;
	/* without what it borrows */
	struct client_request last;
	struct id128 last_lock_id;
	char last_key[64];
	/* in a batch */
	size_t locks_last, locks_max;
	/* how many reads brought requests */
	unsigned reads;
};

/* listens; the port is known */
void fake_open(struct fake_node *n);
/* serves on that loop */
void fake_attach(struct fake_node *n, struct event_base *base);
/* sends what was held back */
void fake_let_go(struct fake_node *n);
/* closes every connection */
void fake_hang_up(struct fake_node *n);
void fake_event(struct fake_node *n, enum core_watch_event_kind kind, const char *owner,
	const char *value, uint64_t token);
void fake_ask(struct fake_node *n, const char *by, const char *to, int32_t priority);
/* these three tell whoever watches */
void fake_overflow(struct fake_node *n);
void fake_close(struct fake_node *n);

#endif
