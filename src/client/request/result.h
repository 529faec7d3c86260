/* result.h: the outcome of a request as the program gets it. Its box is made before the request is
 * sent, so that there is an outcome even when memory runs out. */
#ifndef PAWL_CLIENT_RESULT_H
#define PAWL_CLIENT_RESULT_H

#include "client.h"
#include "env.h"
#include "request_copy.h"
#include "pawl/pawl.h"

struct result_box {
	/* This must be the first member, because the program has a pointer to it. */
	struct pawl_result result;
	struct env env;
	struct arena arena;

	/* The end of valid_ms. */
	struct instant valid_until;

	/* PAWL_WATCH: the number of the watch at the node, and the position at which it begins. */
	uint64_t watch;
	uint8_t position[POSITION_BYTES];

	/* PAWL_EXTEND that was refused as PAWL_ETOOLONG, or whose locks were: the longest lease
	 * that the cluster allows; 0 if the node has not said it. */
	span_ns lease_most;

	/* PAWL_EXTEND of several locks, of which some have moved: their cluster has refused several
	 * of them together as PAWL_EDENIED, because of one of them at least. */
	bool denied_together;
};

/* Returns NULL if there is no memory. Free the box with pawl_result_free. */
struct result_box *result_new(const struct env *env, enum pawl_method method);
static inline struct result_box *result_box(struct pawl_result *result) {
	return (struct result_box *)(void *)result;
}

/* Sets an outcome without an answer. `why` is copied if there is memory for it; NULL means the
 * error's own text. */
void result_fail(struct result_box *box, int error, const char *why);
/* Returns a sentence for places where the message stands alone: it also names the parameter in
 * question. The sentence is in `room`, or it is the message itself. */
const char *result_sentence(const struct pawl_result *result, char *room, size_t size);
/* Sets the outcome to what the node's answer says. `message` is the whole response, which has been
 * decoded into `r`. */
void result_answer(struct result_box *box, const struct client_response *r, struct slice message,
	const char *endpoint, struct instant sent_at);

#endif
