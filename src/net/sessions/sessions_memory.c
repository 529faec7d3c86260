/* sessions_memory.c: what happens when connections take too much memory, and who has to give some
 * of it back (memory.h).
 *
 * If an identity or an address has too much, its connections that have most must go. If many
 * together fill the node's memory, the connections of the identity that has most must go. Nobody
 * else's request is refused for that.
 */
#include "sessions_impl.h"

#include "check.h"
#include "pawl/error.h"

/* How many bytes are read at once from a connection that has reached its limit. It still reads, so
 * that a release gets through. */
#define LAST_READS_BYTES 4096u

static const char share_why[] = "the connections of this identity or address use more memory than "
	"allowed (client_memory_per_identity, client_memory_per_address), and this "
	"connection uses most of it";
static const char pool_why[] = "this node's memory for connections is full (client_memory): this "
	"identity uses most of it, and this connection most of that";

static const struct client_refusal answer_refusal = { .error = PAWL_EFULL,
	.field = { (const uint8_t *)"client_memory", 13 }, .retry_after = SPAN_S,
	.message = "this node's memory for connections is full (client_memory): there is no "
		"room for this answer" };

static void sessions_on_high(void *ctx) {
	struct sessions *s = ctx;
	s->handlers->ready(s->ctx);
}

void sessions_init_memory(struct sessions *s, struct alloc_counter *counter) {
	s->memory = (struct memory_pool){ .alloc = s->loop->alloc, .counter = counter,
		.limit = s->limits.memory, .on_high = sessions_on_high, .ctx = s };
}

/* The session cannot read on before another connection has ended, in this turn. */
static void session_want(const struct session *session, uint64_t bytes) {
	struct sessions *s = session->all;
	s->memory.high = true;
	s->wanting = session->id;
	s->wanted = bytes;
	sessions_on_high(s);
}

size_t session_room(void *ctx, const struct buffer *kept) {
	struct session *session = ctx;
	struct sessions *s = session->all;
	const size_t piece = session->tls || s->short_turns
		? SESSIONS_READ_SHORT_BYTES : SESSIONS_READ_BYTES;
	if (!s->memory.high && memory_easy(session->memory, 2 * (kept->size + piece))) {
		return piece;
	}
	bool full = memory_share_full(session->memory, MEMORY_LIMIT)
		|| session_fills_pool(session, MEMORY_LIMIT);
	size_t most = full ? LAST_READS_BYTES : piece, left = kept->capacity - kept->size;
	uint64_t rest = memory_rest(session->memory);
	/* A smaller read may do. */
	if (buffer_growth(kept, most) > rest) {
		most = left > LAST_READS_BYTES ? left : LAST_READS_BYTES;
	}
	if (!s->memory.high && buffer_growth(kept, most) > rest) {
		session_want(session, buffer_growth(kept, most));
	}
	if (s->memory.high && !list_linked(&session->starved)) {
		list_append(&s->starved, &session->starved);
	}
	return s->memory.high ? 0 : most;
}

void session_claim_tls(struct session *session) {
	memory_claim(session->memory, MEMORY_TLS, stream_tls_bytes(session->stream));
}

/* ---- who has to go ---- */

struct memory_culprit {
	/* The share that has too much, or NULL if none has. */
	const struct share *share;
	const char *why;
	/* How many bytes have to be given back. */
	uint64_t over;
};

static bool share_high(const struct share *share) {
	return memory_share_room(share, MEMORY_HIGH) == 0;
}

/* Finds out who must give memory back so that this session can read on. */
static struct memory_culprit sessions_culprit_wanted(const struct sessions *s,
	const struct session *session) {
	if (s->wanted <= memory_rest(session->memory)) {
		return (struct memory_culprit){ 0 };
	}
	if (memory_pool_full(&s->memory, s->wanted, memory_end(session->memory))) {
		return (struct memory_culprit){ shares_heaviest(&s->shares), pool_why, s->wanted };
	}
	uint64_t identity = memory_share_room(session->share.identity, MEMORY_LIMIT),
		address = memory_share_room(session->share.address, MEMORY_LIMIT);
	if (s->wanted > identity) {
		return (struct memory_culprit){ session->share.identity, share_why,
			s->wanted - identity };
	}
	return (struct memory_culprit){ session->share.address, share_why, s->wanted - address };
}

static struct memory_culprit memory_culprit_of_share(const struct share *share) {
	return (struct memory_culprit){ share, share_why,
		share->used[SHARE_MEMORY] - share->limits.max[SHARE_MEMORY] };
}

static struct memory_culprit sessions_culprit(const struct sessions *s) {
	for (const struct share *share = shares_after(&s->shares, 0); share;
		share = shares_next(share)) {
		if (share_high(share)) {
			return memory_culprit_of_share(share);
		}
	}
	if (!memory_pool_full(&s->memory, 0, MEMORY_HIGH)) {
		return (struct memory_culprit){ 0 };
	}
	return (struct memory_culprit){ shares_heaviest(&s->shares), pool_why,
		s->memory.counter->used - s->memory.limit };
}

static bool session_is_of(const struct session *session, const struct share *share) {
	return session->share.identity == share || session->share.address == share;
}

/* Returns how many bytes the largest connection of the share has. Returns 0 if a connection of it
 * is leaving, because what that gives back may be enough. This is asked in each turn until then, so
 * the connections are not walked for that. */
static uint64_t sessions_largest(const struct sessions *s, const struct share *share) {
	uint64_t largest = 0;
	for (struct list *at = share->leaving ? NULL : list_first(&s->among); at;
		at = list_after(&s->among, at)) {
		const struct session *session = CONTAINER_OF(at, struct session, among);
		if (session_is_of(session, share) && session->memory->used > largest) {
			largest = session->memory->used;
		}
	}
	return largest;
}

/* Ends the largest of the culprit's connections, and those with at least half as much, until enough
 * is given back. Returns how many bytes that gives back. */
static uint64_t sessions_end_largest(struct sessions *s, const struct memory_culprit *culprit) {
	const uint64_t largest = sessions_largest(s, culprit->share);
	uint64_t freed = 0;
	struct list *next;
	for (struct list *at = largest ? list_first(&s->among) : NULL;
		at && freed < culprit->over; at = next) {
		struct session *session = CONTAINER_OF(at, struct session, among);
		/* session_leave removes no session but its own. */
		next = list_after(&s->among, at);
		if (session_is_of(session, culprit->share)
			&& session->memory->used >= largest / 2) {
			freed += session->memory->used;
			session_leave(session, culprit->why);
		}
	}
	return freed;
}

static void sessions_feed(struct sessions *s) {
	struct list *first;
	while ((first = list_first(&s->starved)) != NULL) {
		list_remove(first);
		stream_feed(CONTAINER_OF(first, struct session, starved)->stream);
	}
}

void sessions_make_memory(struct sessions *s) {
	struct session *wanting = sessions_find(s, s->wanting);
	uint64_t used = sessions_memory(s);
	s->peak = used > s->peak ? used : s->peak;
	s->memory.high = false;
	s->heaviest = NULL;
	s->wanting = 0;
	struct memory_culprit culprit = wanting
		? sessions_culprit_wanted(s, wanting) : (struct memory_culprit){ 0 };
	bool wanted = culprit.share;
	culprit = wanted ? culprit : sessions_culprit(s);
	uint64_t freed = culprit.share ? sessions_end_largest(s, &culprit) : 0;
	if (wanted && freed == 0 && list_empty(&s->leaving)) {
		/* Nobody else can make room for this session. */
		session_leave(wanting, culprit.why);
	}
	sessions_feed(s);
}

/* ---- for the owner ---- */

uint64_t sessions_memory(const struct sessions *s) {
	return s->memory.counter ? s->memory.counter->used : 0;
}

uint64_t sessions_memory_most(struct sessions *s) {
	uint64_t used = sessions_memory(s), most = used > s->peak ? used : s->peak;
	s->peak = 0;
	return most;
}

const struct allocator *sessions_alloc(const struct sessions *s, uint64_t client) {
	const struct session *session = sessions_find(s, client);
	return session ? &session->memory->alloc : NULL;
}

uint64_t sessions_room(const struct sessions *s, uint64_t client) {
	const struct session *session = sessions_find(s, client);
	return session ? memory_room(session->memory) : 0;
}

void sessions_say_full(const struct sessions *s, uint64_t client, struct share_quota *out) {
	const struct session *session = sessions_find(s, client);
	out->refusal = answer_refusal;
	if (session) {
		shares_full(&session->share, SHARE_MEMORY, memory_room(session->memory) + 1, 0,
			out);
	}
}
