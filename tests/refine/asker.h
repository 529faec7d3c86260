/* asker.h: the coordinator of the abstract machine (docs/protocol.md, section 2): which rounds it
 * may send, and what it may answer, given what the masters have answered to it. */
#ifndef PAWL_REFINE_ASKER_H
#define PAWL_REFINE_ASKER_H

#include "core.h"
#include "machine.h"

/* What a master has said in a round. */
struct a_vote {
	bool asked, answered, released;
	/* It was asked once more since it answered. */
	bool again;
	enum status status;
	uint64_t token, noted, value;
	struct ballot ballot;
	uint32_t flags;
	/* For how long it has lacked the lock_id. */
	uint64_t age_us;
	/* It said that it lacked the lock_id already when it was asked, before it said that it has
	 * it. */
	bool lacked;
	/* When it was asked last, and when it answered. */
	struct instant asked_at, at;
	/* It was sent the record under this token, and has taken it. */
	bool learned;
	uint64_t sent_token;
};

/* One question to all masters, under one epoch. */
struct a_round {
	/* Its number, and how many rounds had begun when it began. */
	uint64_t round, number_seen;
	enum message_kind kind;
	struct id128 lock_id;
	uint64_t key, epoch, hash;
	struct instant sent;
	uint64_t token, lease_us;
	struct ballot ballot, prepared;
	/* The lock delay, which a commit's lease has in it. */
	span_ns delay;
	uint32_t masters, quorum;
	/* The master that has the request in its queue. */
	uint32_t home;
	/* A master that lies has answered, so nothing is known of what the coordinator may do. */
	bool lied;
	/* A release: q masters had acknowledged it when another epoch began. */
	bool acknowledged;
	struct a_vote votes[MASTERS_MAX];
};

/* A request of a client. */
struct a_request {
	uint64_t id, client;
	enum core_op op;
	struct id128 lock_id;
	struct instant arrived;
	span_ns lease;
	bool deadline_kept, ordered;
	/* This node had told the client over the same connection that it holds the lock, until
	 * then. */
	bool told;
	struct instant told_until;
	bool expect_value, expect_seq;
	uint64_t expected;
	struct ballot expected_seq;
};

/* A lock that this node has told a client that it holds: over which connection, and until when. */
struct a_granted {
	struct id128 lock_id;
	uint64_t client;
	struct instant until;
};

/* The last commit of an operation. What it has left is rolled back under its name, before the
 * attempt begins again. */
struct a_commit {
	uint64_t op, name, round;
};

enum { A_ROUNDS = 4096, A_REQUESTS = 512, A_GRANTED = 512, A_COMMITS = 512 };
struct asker {
	/* The first word of each round's lock_id, by which a round is found. */
	uint64_t words[A_ROUNDS], begun;
	struct a_round rounds[A_ROUNDS];
	struct a_request requests[A_REQUESTS];
	struct a_granted granted[A_GRANTED];
	struct a_commit commits[A_COMMITS];
};

struct a_granted *a_granted_place(struct asker *a, struct id128 lock_id);
/* Returns the round of that number; NULL: it is not known. */
const struct a_round *a_round_find(struct asker *a, uint64_t round);
/* Tells whether q masters have acknowledged the release. */
bool a_acknowledged(const struct a_round *r);
/* Tells whether the master has said that it lacked the lock_id already when it was asked. */
bool a_lacked(const struct a_vote *v, uint32_t drift_ppm);
/* Tells whether the round asks this. A hand-over is a release. */
bool a_of_kind(const struct a_round *r, enum message_kind kind);
void asker_asked(struct asker *a, const struct core_request *r, struct instant now);
/* A message leaves for the master at the index. `clock` was the node's before it began to handle
 * what makes it say this. */
const char *asker_says(struct asker *a, const struct m_node *node, uint32_t to,
	const struct message *m);
/* A master has answered, under the node's present epoch. */
void asker_hears(struct asker *a, const struct m_node *node, uint32_t from,
	const struct message *m);
/* A master that lies has answered something. */
void asker_lied(struct asker *a, const struct message *m);
/* A master tells that the attempt's promise is gone there. */
void asker_displaced(struct asker *a, uint32_t from, const struct message *m);
const char *asker_answers(struct asker *a, const struct m_node *node,
	const struct core_reply *reply);

#endif
