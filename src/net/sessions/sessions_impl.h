/* sessions_impl.h: inside the sessions: what their parts share. */
#ifndef PAWL_NET_SESSIONS_IMPL_H
#define PAWL_NET_SESSIONS_IMPL_H

#include <event2/event.h>

#include "fair.h"
#include "list.h"
#include "map.h"
#include "memory.h"
#include "sessions.h"
#include "shares.h"
#include "stream.h"

/* Credits are in units of one simple request (see fair.h). */
#define SESSIONS_SHARE_QUANTUM 32
#define SESSIONS_CONNECTION_QUANTUM 8
#define SESSIONS_READ_BYTES (64u << 10) /* taken from one connection in one turn */

struct session_batch { /* decoded once; borrows from the stream's input */
	struct client_decoder decoder;
	struct client_request request;
	struct session_progress progress;
	size_t size; /* of the message */
};

struct session {
	struct sessions *all;
	struct list among, dirty;
	struct list starved; /* linked: it reads on when somebody else has made room */
	struct list leaving; /* linked: it is closed, and its requests end when its turn comes */
	bool left;           /* the other side closed it, and it is leaving */
	struct stranger stranger; /* until it has shown a certificate or made a request */
	struct map_node node;
	struct share_pair share;     /* identity NULL: it is not known yet who it is */
	uint32_t rules;              /* under which its limits, and whether it is an administrator, were looked up */
	bool admin;
	struct fair_flow flow;       /* among the connections of its identity */
	struct session_batch *batch; /* a request that is served in parts, and whose bytes are still in the stream; NULL: none */
	uint64_t id;
	struct stream *stream;
	struct memory_account *memory; /* what it takes, itself included */
	struct client_scanner scanner;
	enum tls_client_auth auth;
	bool local, inside, greeted, closing, tls;
	uint32_t watches; /* of the owner's: silence is no reason to close it */
	bool crowded; /* the owner wants to hear when everything has left */
	uint32_t open; /* requests under way */
	uint64_t requests; /* since the beginning */
	struct instant since, heard;
	struct instant stuck; /* since when none of what was written has left, if anything is left */
	uint64_t sent;        /* bytes that had left when that was looked at */
	size_t charged;       /* bytes unsent after the last flush: what is more now has been written since */
	char identity[TLS_NAME_MAX + 1];
	struct origin from;
};

struct sessions {
	struct net_loop *loop;
	struct sessions_limits limits;
	const struct sessions_handlers *handlers;
	void *ctx;
	struct client_decoder decoder;
	struct list among, dirty;
	struct map by_id; /* ids count up: no hash needed */
	struct strangers strangers;
	uint64_t evicted, refused; /* of them */
	struct shares shares;
	struct memory_pool memory;
	const struct share *heaviest; /* that has most of it; NULL: to be looked for */
	uint64_t wanting; /* the connection that needs more of it than there is in order to read on; 0: none */
	uint64_t wanted;  /* so much */
	uint64_t peak;    /* what all took when somebody had to go, since the owner asked */
	uint32_t rules; /* how often the limits have changed */
	struct fair_queue ready; /* shares with connections whose requests wait */
	uint64_t turn;    /* of sessions_serve */
	uint64_t served;       /* the connection whose request was handed over last */
	struct instant shared; /* when it was another one */
	struct instant mixed;  /* when one that asked for little was served while one in debt waited */
	bool content;          /* in this turn one got all that it asked for, and has credit left */
	struct list starved;
	struct list leaving;   /* connections that are closed and had much under way: one of them ends in a turn */
	int64_t unlooked; /* cost of what was served since the clock was looked at */
	uint64_t last_id;
	struct event *sweep;
};

struct session *sessions_find(const struct sessions *s, uint64_t client); /* NULL: it is gone */
void session_free(struct session *session);
void session_mark(struct session *session); /* it has something to write */
int session_refuse(struct session *session, uint32_t msgid, const struct client_refusal *refusal);
/* The last words: one refusal, behind what was answered already. */
void session_refuse_and_close(struct session *session, uint32_t msgid, const struct client_refusal *refusal);
struct session_who session_who(const struct session *session);
void session_leave(struct session *session, const char *why); /* ends it, now or when its turn comes */
void session_end(struct session *session, const char *why); /* frees it; why may be NULL: nothing to tell */

/* sessions_strangers.c */
void session_trouble(const struct session *session, const char *why);
void sessions_trouble(struct sessions *s, const struct origin *from, const char *why); /* of a connection that has not become a session */
void sessions_evict(struct stranger *take_stranger);
/* False: all places are taken, and there is no stranger whose place the newcomer could have. */
bool sessions_make_room(struct sessions *s, const struct stranger *newcomer);

/* sessions_serve.c */
bool session_keeps(enum client_method method); /* it gives back, or keeps a lock: let through where there is no room for others */
void session_wait(struct session *session); /* its stream's input is held: it is served when its turn comes */
void session_stop_waiting(struct session *session);
void session_charge_written(struct session *session); /* before a flush: answers cost by their size */
void session_batch_free(struct session *session);
void sessions_init_decoder(struct sessions *s);

/* sessions_share.c */
/* Its identity is known. False: that has as many connections as it may, or the node has, and the connection is told; without memory it is gone. */
bool session_join(struct session *session);
/* What refuses the request, because its identity or address has had enough; NULL: nothing does. In `room`, until that is used again. */
const struct client_refusal *session_over_quota(struct session *session, const struct client_request *request, struct instant now,
	struct share_quota *room);
/* It is what an administrator needs to see and to mend what somebody does to the node. */
bool session_mends(const struct session *session, enum client_method method);
void session_part(struct session *session);

/* sessions_memory.c */
void sessions_init_memory(struct sessions *s, struct alloc_counter *counter);
size_t session_room(void *ctx, const struct buffer *kept); /* of its stream */
/* As session_over_quota. */
const struct client_refusal *session_over_memory(struct session *session, enum client_method method, struct share_quota *room);
void session_claim_tls_bytes(struct session *session);
static inline void session_claim_tls(struct session *session) { /* after it has read or written */
	if (session->tls) {
		session_claim_tls_bytes(session);
	}
}
/* Once a turn: where there is too much, the connections that have most of it end. */
void sessions_make_memory(struct sessions *s); /* where memory.high is set */

#endif
