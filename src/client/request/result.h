/* result.h: what came out of a request, as the program gets it. The box is made before the request is sent, so that there is
 * an outcome even when memory runs out. */
#ifndef PAWL_CLIENT_RESULT_H
#define PAWL_CLIENT_RESULT_H

#include "client.h"
#include "env.h"
#include "request_copy.h"
#include "pawl/pawl.h"

struct result_box {
	struct pawl_result result; /* first: the program has a pointer to it */
	struct env env;
	struct arena arena;
	struct instant valid_until; /* what valid_ms counts to */
	uint64_t watch;             /* PAWL_WATCH: its number at the node, and where it begins */
	uint8_t position[POSITION_BYTES];
};

struct result_box *result_new(const struct env *env, enum pawl_method method); /* NULL: no memory */
static inline struct result_box *result_box(struct pawl_result *result) {
	return (struct result_box *)(void *)result;
}

/* An outcome without an answer. `why` is copied, where there is memory for it; NULL: the error's own text. */
void result_fail(struct result_box *box, int error, const char *why);
/* What there is to say where the message travels alone: with the parameter that it is about. In `room`, or the message itself. */
const char *result_sentence(const struct pawl_result *result, char *room, size_t size);
/* The outcome that the node's answer tells. `message` is the whole response that was decoded into `r`. */
void result_answer(struct result_box *box, const struct client_response *r, struct slice message, const char *endpoint,
	struct instant sent_at);

#endif
