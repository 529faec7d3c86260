/* fake_node.h: a node for the tests of the client. It speaks the protocol on a loopback port, on
 * the test's own loop, and does what the test says. It keeps no leases. */
#ifndef PAWL_TESTS_FAKE_NODE_H
#define PAWL_TESTS_FAKE_NODE_H

#include <event2/event.h>

#include "client.h"
#include "prng.h"

/* A client may retain many connections that it has given up. */
#define FAKE_CONNS 80
#define FAKE_HELD_ANSWERS 64

enum fake_mood {
	FAKE_ANSWERS,
	/* It reads, and answers nothing at all. */
	FAKE_SILENT,
	/* It answers pings only. */
	FAKE_KEEPS_ONE_IN,
	/* It answers everything, and sends the answers at fake_let_go. */
	FAKE_HOLDS_BACK,
	/* It closes the connection instead of answering. */
	FAKE_HANGS_UP,
	/* It refuses the client as its last word, and closes the connection. */
	FAKE_REFUSES,
	/* It answers with what is no MessagePack-RPC. */
	FAKE_TALKS_ROT,
	/* It answers with some bits flipped. */
	FAKE_GARBLES,
	/* It sends half of an answer, and is silent from then on. */
	FAKE_STOPS_SHORT,
	/* It answers as a port with TLS does to a client that does not speak it. */
	FAKE_WANTS_TLS
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
	/* The random numbers for FAKE_GARBLES. */
	struct prng prng;

	enum fake_mood mood;
	/* The error that answers everything but pings; 0: success. */
	int error;
	/* What errors say of when to try again; 0: nothing. */
	span_ns retry_after;
	/* The error of every second lock of a batch. */
	int error_of_item;
	/* The permit numbers, as bits, for which each lock of a batch is said to have been
	 * extended; 0: the answer does not name any. */
	uint64_t numbers_of_item;
	/* The token of the last acquire. */
	uint64_t token;
	/* The time for which an answer says that a lock is valid, in thousandths of the lease
	 * (990). */
	uint32_t valid_permille;
	span_ns waited;

	/* The log of the events and the position in it, one for all watches. Events go to one watch
	 * of one connection, the last. Whoever asks for events `from` another log, or from a later
	 * position, is told of an overflow. */
	uint64_t log, sequence;
	/* How many numbers have been given to watches so far. */
	uint64_t watches;
	/* How many watches there may be in all (0: any number), and how many have been ended. */
	uint64_t watches_most, unwatched;
	/* The number of the last watch, if it has not ended; else 0. */
	uint64_t watch;
	struct fake_conn *watcher;
	/* A key of the list. Before the list is answered, an event says that it was released. NULL:
	 * there is no event. */
	const char *ends;
	/* Whether reads say of every key that it is held by `holder`. */
	bool held;
	struct core_entry holder;
	/* The only one that waits for any key; NULL: nobody does. */
	const char *waiter;
	/* The session bindings that the locks of extensions named, in order, as far as there is
	 * room, and which of them were named as orders. */
	uint32_t bindings[8];
	bool ordered[8];
	size_t binding_count;
	/* The next `unsure_binds` locks with a session binding are answered as perhaps lost
	 * (PAWL_EUNSURE). */
	unsigned unsure_binds;
	/* The value and the session binding of the last acquire. */
	char last_value[32];
	uint32_t last_binding;
	/* The `election` of the last acquire. */
	bool last_label_election;
	/* The error that answers acquires alone. */
	int acquire_error;
	/* The longest lease that is granted, in nanoseconds; 0: any. And the lease of the last
	 * acquire, and of the first lock of the last batch of extensions. */
	span_ns lease_most, last_lease;
	/* A request that extends the lock of this key is refused as a whole; NULL: none is. */
	const char *denied_key;
	/* The parameter `election`, or `party`, is refused, as by a node of an earlier release. */
	bool knows_no_elections, knows_no_parties;
	/* How many requests were refused for `party`. */
	unsigned parties_refused;
	/* The same of `trace`. */
	bool knows_no_traces;
	unsigned traces_refused;
	/* The error that answers pings. */
	int ping_error;
	/* With the error PAWL_EMOVED: the endpoints that it names, before a NULL. In batches it is
	 * the error of every second lock. */
	const char *moved_to[4];
	/* The deadline_kept of the last extension. */
	bool last_deadline_kept;

	unsigned asked[CLIENT_METHODS], accepted;
	/* The last request, without what it borrows. */
	struct client_request last;
	struct id128 last_lock_id;
	char last_key[64];
	/* The number of locks in the last batch, and in the largest one. */
	size_t locks_last, locks_max;
	/* How many reads brought bytes. */
	unsigned reads;
};

/* Listens; after that the port is known. */
void fake_open(struct fake_node *n);
/* Serves on that loop. */
void fake_attach(struct fake_node *n, struct event_base *base);
/* Sends what was held back. */
void fake_let_go(struct fake_node *n);
/* Closes every connection. */
void fake_hang_up(struct fake_node *n);
void fake_event(struct fake_node *n, enum core_watch_event_kind kind, const char *owner,
	const char *value, uint64_t token);
void fake_ask(struct fake_node *n, const char *by, const char *to, int32_t priority);
/* Like the two functions above, this one tells whoever watches. */
void fake_overflow(struct fake_node *n);
void fake_close(struct fake_node *n);

#endif
