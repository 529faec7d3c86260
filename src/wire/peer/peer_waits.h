/* peer_waits.h: what nodes ask and tell each other about clients that wait, so that deadlocks
 * between clients are found (docs/architecture.md, Deadlocks between clients). Nothing of the
 * protocol depends on it. It goes in packets between the frames, whose body is a map with the one
 * key "waits", to nodes that have PEER_FEATURE_WAITS:
 *
 *   ASK    {"waits": [1, round, [key, ...], [party, ...]]}
 *   FACTS  {"waits": [2, round, cut, [wait, ...], [hold, ...]]}
 *   RING   {"waits": [3, number, refused, [[owner, key, node], ...]]}
 *
 *   wait = [party, lock_id, key, of, count, owner, request, since_ms, free]
 *   hold = [party, lock_id, key, of, count]
 *
 * Keys, owners, parties and lock_ids are bin, node names are str. */
#ifndef PAWL_WIRE_PEER_WAITS_H
#define PAWL_WIRE_PEER_WAITS_H

#include "buffer.h"
#include "message.h"

/* A client waits for a lock on a key. */
struct wait_fact {
	struct id128 party, lock_id;
	struct slice key, owner;
	/* The mode and the number of permits, as in struct terms. */
	uint16_t of, count;
	/* The number of the request at its node. A request for several keys has a fact for each key
	 * that it still lacks. */
	uint64_t request;
	/* When the request arrived, by the wall clock of its node: milliseconds since 1970. */
	uint64_t since_ms;
	/* The request may be served whatever others hold, or its party has more requests than are
	 * told. */
	bool free;
};

/* A client holds a lock on a key. */
struct hold_fact {
	struct id128 party, lock_id;
	struct slice key;
	uint16_t of, count;
};

/* One member of a ring waits for the key, which the next one holds. */
struct ring_member {
	struct slice owner, key;
	/* The name of the node that serves the member. */
	struct slice node;
};

/* The most keys, and the most parties, that one packet asks about. */
#define WAITS_ASKED_MAX 64
/* The most members of a ring that are told. */
#define RING_MEMBERS_MAX 16
/* The largest body of one of these packets. */
#define WAITS_BYTES_MAX 65536u

enum waits_kind { WAITS_ASK = 1, WAITS_FACTS = 2, WAITS_RING = 3 };

/* What was asked. */
struct waits_ask {
	struct slice keys[WAITS_ASKED_MAX];
	struct id128 parties[WAITS_ASKED_MAX];
	uint32_t key_count, party_count;
};

/* A ring that was found. */
struct waits_ring {
	struct ring_member members[RING_MEMBERS_MAX];
	uint32_t count;
	/* The youngest waiter has got the error `deadlock`. */
	bool refused;
};

/* A packet, decoded. */
struct waits_packet {
	enum waits_kind kind;
	/* ASK, FACTS: the number of the round of the node that asks. RING: names the ring. */
	uint64_t round;
	/* FACTS: something was left out; and the facts, for waits_read. */
	bool cut;
	struct slice facts;
	struct waits_ask ask;
	struct waits_ring ring;
};

/* Who hears facts, one by one. */
struct waits_reader {
	void *ctx;
	void (*wait)(void *ctx, const struct wait_fact *fact);
	void (*hold)(void *ctx, const struct hold_fact *fact);
};

/* Tells whether the body of a packet is one of these. */
bool waits_is_packet(struct slice body);
/* Returns 0 or PAWL_EPROTOCOL; close the link then. The slices point into `body`. */
int waits_decode(struct slice body, struct waits_packet *out);
/* Hands the facts of a packet that was decoded to the reader. */
void waits_read(const struct waits_packet *packet, const struct waits_reader *reader);

/* Append a whole packet. They return 0, PAWL_ENOMEM or PAWL_ETOOLARGE, and the buffer is unchanged
 * after an error. */
int waits_ask_encode(uint64_t round, const struct waits_ask *ask, struct buffer *out);
int waits_ring_encode(uint64_t number, const struct waits_ring *ring, struct buffer *out);

/* An answer while it is put together: the facts as they are encoded so far. */
struct waits_answer {
	struct buffer waits, holds;
	uint32_t wait_count, hold_count;
	/* A fact had no room. */
	bool cut;
};
/* `alloc` is borrowed. */
void waits_answer_init(struct waits_answer *a, const struct allocator *alloc);
void waits_answer_done(struct waits_answer *a);
/* Add a fact; without room for it, `cut` is set. */
void waits_answer_wait(struct waits_answer *a, const struct wait_fact *fact);
void waits_answer_hold(struct waits_answer *a, const struct hold_fact *fact);
int waits_answer_encode(uint64_t round, const struct waits_answer *a, struct buffer *out);

#endif
