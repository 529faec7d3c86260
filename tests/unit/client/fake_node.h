/* fake_node.h: a node for the tests of the client: speaks the protocol on a loopback port, on the test's own loop, and does what
 * the test says. It keeps no leases. */
#ifndef PAWL_TESTS_FAKE_NODE_H
#define PAWL_TESTS_FAKE_NODE_H

#include <event2/event.h>

#include "client.h"
#include "prng.h"

#define FAKE_CONNS 16
#define FAKE_HELD_ANSWERS 64

enum fake_mood {
	FAKE_ANSWERS,
	FAKE_SILENT,       /* reads, answers nothing at all */
	FAKE_KEEPS_ONE_IN, /* answers pings only */
	FAKE_HOLDS_BACK,   /* answers everything at fake_let_go */
	FAKE_HANGS_UP,     /* closes the connection instead of answering */
	FAKE_TALKS_ROT,    /* answers what is no MessagePack-RPC */
	FAKE_GARBLES       /* answers with some bits turned over */
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
	struct prng prng; /* for FAKE_GARBLES */

	enum fake_mood mood;
	int error;             /* answered to everything but pings, 0: success */
	span_ns retry_after;   /* said with errors; 0: nothing is */
	int error_of_item;     /* of every second lock of a batch */
	uint64_t numbers_of_item; /* permits that each lock of a batch is answered to have been extended for, as bits; 0: it is not said */
	uint64_t token;        /* of the last acquire */
	uint32_t valid_permille; /* of the lease; 990 */
	span_ns waited;

	/* What is watched: one position for all, one watch a connection is told of, the last. */
	uint64_t log, sequence; /* `from` of another log, or above, is answered with an overflow */
	uint64_t watches;       /* numbers given so far */
	uint64_t watch;         /* the last one that has not been ended */
	struct fake_conn *watcher;
	const char *ends;       /* before a list is answered: that this key, which is in it, was released; NULL: nothing */
	bool held;              /* what reads say of every key: held by `holder` */
	struct core_entry holder;
	const char *waiter;     /* the only one that waits for any key; NULL: nobody does */
	uint32_t bindings[8];      /* named by the locks of the extensions, in order; as far as there is room */
	size_t binding_count;
	unsigned unsure_binds;  /* so many locks with a bond are answered that they were perhaps lost */
	char last_value[32];    /* of an acquire, as the next */
	uint32_t last_bond;
	int acquire_error;      /* answered to acquires alone */
	int ping_error;         /* answered to pings */
	bool last_kept;         /* deadline_kept of the last extension */

	unsigned asked[CLIENT_METHODS], accepted;
	struct client_request last; /* without what it borrows */
	struct id128 last_lock_id;
	char last_key[64];
	size_t locks_last, locks_max; /* in a batch */
	unsigned reads;               /* how many reads brought requests */
};

void fake_open(struct fake_node *n);                             /* listens; the port is known */
void fake_attach(struct fake_node *n, struct event_base *base);  /* serves on that loop */
void fake_let_go(struct fake_node *n);                           /* sends what was held back */
void fake_hang_up(struct fake_node *n);                          /* closes every connection */
void fake_event(struct fake_node *n, enum core_watch_event_kind kind, const char *owner, const char *value, uint64_t token);
void fake_ask(struct fake_node *n, const char *by, const char *to, int32_t priority);
void fake_overflow(struct fake_node *n);                         /* these three tell whoever watches */
void fake_close(struct fake_node *n);

#endif
