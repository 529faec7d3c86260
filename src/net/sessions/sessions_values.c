/* sessions_values.c: bounds the values that are under way for clients: those that their requests
 * have brought, and those that they have asked for. What such a request costs comes mostly after it
 * was handed over, when the masters are sent the value or the answer is made. */
#include "sessions_impl.h"

#include "check.h"

/* How many bytes of values may be under way for all connections together. That is less than what
 * waits for a peer when its link is given up. */
#define VALUES_MAX (16u << 20)
/* A connection may begin another value while its own values take at most 1 / VALUES_PART of what is
 * left of VALUES_MAX. So a connection that is alone gets about a fifth of VALUES_MAX, many
 * connections get equal parts, and one that has no value under way may always begin. */
#define VALUES_PART 4
/* To send or to copy VALUE_PIECE bytes later takes VALUE_PIECE_TIME. */
#define VALUE_PIECE 4096u
#define VALUE_PIECE_TIME (8 * SPAN_US)

bool session_has_enough(const struct session *session) {
	const uint64_t all = session->all->values;
	return session->values > (all < VALUES_MAX ? VALUES_MAX - all : 0) / VALUES_PART;
}

void sessions_value_begun(struct sessions *s, uint64_t client, uint64_t bytes) {
	struct session *session = sessions_find(s, client);
	if (session) {
		session->values += bytes;
		s->values += bytes;
		s->expected += (span_ns)(bytes / VALUE_PIECE) * VALUE_PIECE_TIME;
	}
}

void sessions_value_done(struct sessions *s, uint64_t client, uint64_t bytes) {
	struct session *session = sessions_find(s, client);
	if (session && bytes > 0) {
		CHECK(bytes <= session->values);
		session->values -= bytes;
		s->values -= bytes;
		session_wait(session);
	}
}

void session_values_gone(struct session *session) {
	session->all->values -= session->values;
	session->values = 0;
}
