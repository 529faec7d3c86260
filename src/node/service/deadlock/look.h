/* look.h: looks for a deadlock that a request may be part of. One look runs at a time. This is
 * pure: time is an argument, and the owner carries the questions to the nodes and the facts back.
 *
 *   IDLE --begin--> ASKING --nothing new, a deadlock--> RESTING --100 ms--> CONFIRMING --> IDLE
 *                      \--nothing new, no deadlock--> IDLE
 *
 * A look asks all nodes, round after round, who holds the keys that it has heard of, and what the
 * parties wait for. What the nodes say may be of different moments. So a deadlock counts only if
 * the same requests wait and the same locks are held in two sets of answers, one of which was asked
 * for when the other was complete: a lock_id is used once, so all of them stood in between. */
#ifndef PAWL_NODE_DEADLOCK_LOOK_H
#define PAWL_NODE_DEADLOCK_LOOK_H

#include "clock.h"
#include "reduce.h"

/* How long a look rests before it asks again, and how long it waits for the answers of a round, in
 * nanoseconds. */
#define LOOK_RESTS (100 * SPAN_MS)
#define LOOK_ROUND (200 * SPAN_MS)
/* The most rounds of a look: a ring takes one for each of its members. */
#define LOOK_ROUNDS_MAX 64

enum look_state { LOOK_IDLE, LOOK_ASKING, LOOK_RESTING, LOOK_CONFIRMING };

struct look {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	enum look_state state;
	/* What has been heard in this set of answers; and in the first one. */
	struct facts *facts, *first;
	/* How many of the keys and parties of `facts` have been asked about. */
	uint32_t keys_asked, parties_asked;
	/* The number of the round under way, which answers name; and how many rounds this look has
	 * had. */
	uint64_t round;
	uint32_t rounds;
	/* Bit sets of peers: whose answers of the round have not come; and who has not answered in
	 * time, and is not asked again in this look. */
	uint64_t open, silent;
	/* When the round, or the rest, is over. */
	struct instant until;
};

enum look_step {
	/* Nothing to do before an answer comes, or before `until`. */
	LOOK_WAITS,
	/* Ask the nodes; then call look_asked. */
	LOOK_ASKS,
	/* The look is over: there is no deadlock. */
	LOOK_OVER,
	/* The look is over: there is one, in the facts of look_facts. */
	LOOK_FOUND
};

/* The allocator is borrowed. */
void look_init(struct look *l, const struct allocator *alloc, struct siphash_key hash_key);
void look_done(struct look *l);
/* Ends the look, if there is one. */
void look_end(struct look *l);

/* Begins a look for what the party waits for. There must be none. Returns false if there is no
 * memory. */
bool look_begin(struct look *l, struct id128 party);

/* Says what to do next. With LOOK_ASKS, *ask says what to ask about; its slices are good until
 * look_end. With LOOK_FOUND, *found is set; the owner calls look_end when it has used it. */
enum look_step look_next(struct look *l, struct instant now, struct waits_ask *ask,
	struct deadlock *found);
/* These peers, none of which is in look.silent, were asked under the number look.round. Their
 * answers are to come until LOOK_ROUND is over. */
void look_asked(struct look *l, uint64_t peers, struct instant now);

/* An answer comes: returns the set that takes its facts, or NULL if nobody waits for it. */
struct facts *look_answer(struct look *l, uint32_t peer, uint64_t round, bool cut);

#endif
