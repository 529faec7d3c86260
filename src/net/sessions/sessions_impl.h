/* sessions_impl.h: what the parts of the sessions share; nobody else includes this. */
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

/* The credit for each turn, of a share and of a connection (see fair.h). The unit is one simple
 * request. */
#define SESSIONS_SHARE_QUANTUM 32
#define SESSIONS_CONNECTION_QUANTUM 8
/* How many bytes are read from one connection in one turn, and while turns are short or with TLS.
 * As records of one byte, the latter are 700 records, which take most of a millisecond. */
#define SESSIONS_READ_BYTES (64u << 10)
#define SESSIONS_READ_SHORT_BYTES (16u << 10)

/* A request that is decoded once and served in parts. It borrows from the stream's input. */
struct session_batch {
	struct client_decoder decoder;
	struct client_request request;
	struct session_progress progress;
	/* The size of the message in bytes. */
	size_t size;
};

/* The connection of one client. */
struct session {
	struct sessions *all;
	/* Link in sessions.among; and in sessions.dirty, while the connection has answers that
	 * sessions_flush has not written yet. */
	struct list among, dirty;
	/* Linked while the connection waits to read on, until somebody else has made room. */
	struct list starved;
	/* Linked once the connection is closed; its requests end when its turn comes. */
	struct list leaving;
	/* The other side closed the connection, and it is leaving. */
	bool left;

	/* Linked until the connection has shown a certificate or made a request. */
	struct stranger stranger;
	/* Element of sessions.by_id. */
	struct map_node node;

	/* The identity is NULL while it is not known yet who is at the other end. */
	struct share_pair share;
	/* The value of sessions.rules when the limits, and whether this is an administrator, were
	 * looked up. */
	uint32_t rules;
	bool admin;

	/* The place of this connection among those of its identity. */
	struct fair_flow flow;
	/* More has arrived on the socket, and is read when the turn of the connection comes. */
	bool unread;
	/* The last turn (sessions.turn) in which something of the connection was served. */
	uint64_t served_in;
	/* The bytes and records that the connection was charged for. */
	uint64_t charged_bytes, charged_records;
	/* What the connection has cost in the turn of the loop with this number, and the method
	 * of its last request in that turn, or CLIENT_METHODS. */
	int64_t cost;
	uint64_t cost_turn;
	enum client_method method;
	/* A request that is served in parts, and whose bytes are still in the stream; or NULL. */
	struct session_batch *batch;

	/* The number by which the owner knows the connection. It is not used again. */
	uint64_t id;
	/* Owned. */
	struct stream *stream;
	/* Where to append an answer in the client protocol: the stream's output, or `answers`. */
	struct buffer *out;
	/* What the connection takes, including this struct. */
	struct memory_account *memory;
	/* The protocol of the connection, if it is not the client protocol, and its state. */
	const struct dialect_use *use;
	void *dialect;
	/* The answer to the request of the dialect that is under way (`asked`), in the client
	 * protocol. */
	struct buffer answers;
	bool asked;
	/* That request may wait for others. */
	bool asks_to_wait;
	/* The next request of the command under way, which waits for the turn of the connection; or
	 * NULL. It belongs to the dialect. */
	const struct client_request *next;
	/* The dialect has told the client that it has taken something, and that has not left. */
	bool unsent;
	/* Finds the end of the request that is arriving. */
	struct client_scanner scanner;

	/* Whether the listener asks for certificates. */
	enum tls_client_auth auth;
	/* `local` and `inside` are as in struct session_who. `greeted`: the handshake is done.
	 * `closing`: no more requests are taken. `tls`: the connection is over TLS. */
	bool local, inside, greeted, closing, tls;

	/* The owner's watches. A connection with watches is not closed for its silence. */
	uint32_t watches;
	/* The owner wants to be told when everything has left. */
	bool crowded;
	/* The number of requests under way. */
	uint32_t open;
	/* How many bytes of values are under way for them (sessions_wait.c). */
	uint64_t values;
	/* The number of requests since the beginning. */
	uint64_t requests;

	/* When the connection began, and when it was heard last. */
	struct instant since, heard;
	/* If anything that was written has not left: the time since when nothing has left. */
	struct instant stuck;
	/* How many bytes had left when `stuck` was last determined. */
	uint64_t sent;
	/* How many bytes had been written before the last flush, sent or not. Over TLS they become
	 * more when they are encrypted. */
	uint64_t charged;

	/* Empty while it is not known yet, or if there is none. */
	char identity[TLS_NAME_MAX + 1];
	struct origin from;
};

/* All connections of clients. */
struct sessions {
	struct net_loop *loop;
	struct sessions_limits limits;
	const struct sessions_handlers *handlers;
	void *ctx;
	/* Decodes one request after the other, of all connections. */
	struct client_decoder decoder;
	/* All connections, the oldest first; and those that have answers to be written. */
	struct list among, dirty;
	/* Those of them that have much to be written. */
	struct list bulk;
	/* Ids count up, so they need no hash. */
	struct map by_id;
	/* The connection that is served, or was served last, which most searches are for; NULL:
	 * there is none, or it is gone. */
	struct session *latest;

	/* The connections that have shown no certificate and made no request. */
	struct strangers strangers;
	/* Counts of strangers since the start; see struct strangers_counts. */
	uint64_t evicted, refused;
	/* Of `refused`: those that came when there were too many. */
	uint64_t full;
	/* How many connections each listener has brought that are still there. */
	uint32_t by_listener[ORIGIN_LISTENERS];
	struct shares shares;
	struct memory_pool memory;

	/* The share that takes most of the memory; NULL means that it has to be determined. */
	const struct share *heaviest;
	/* The connection that needs more memory than there is in order to read on; 0 if there is
	 * none. */
	uint64_t wanting;
	/* How many bytes that connection needs. */
	uint64_t wanted;
	/* The most that all took when a connection had to go, since the owner asked. */
	uint64_t peak;
	/* How often the limits have changed. */
	uint32_t rules;

	/* The shares that have connections whose requests wait. */
	struct fair_queue ready;
	/* The turn of sessions_serve. */
	uint64_t turn;
	/* How many connections were read in this turn although it was not theirs, and what that
	 * has cost. */
	uint32_t read_at_once;
	int64_t read_cost;
	/* How many connections were served in this turn. */
	uint32_t served_now;
	/* The connection whose request was handed over last. */
	uint64_t served;
	/* When a request of another connection than `served` was last handed over. */
	struct instant shared;
	/* When a flow that asked for little was last served while one in debt waited. */
	struct instant mixed;
	/* In this turn, a flow got all that it asked for, and has credit left. */
	bool content;
	/* The last turn was short, because of `mixed`. */
	bool short_turns;

	/* The connections that wait to read on, until somebody else has made room. */
	struct list starved;
	/* Connections that are closed and wait for the turn in which they end. */
	struct list leaving;
	/* What the connections that have ended in this turn weighed. */
	uint64_t ended;

	/* How many bytes of values are under way for all connections. */
	uint64_t values;
	/* How long the later work on values will take, in nanoseconds, as far as it has not been
	 * taken off a turn. */
	span_ns expected;
	/* For how long answers have been written since the last turn, if that was more than a
	 * moment, and what has left has been forgotten, in nanoseconds. */
	span_ns spent;
	/* The number of the present turn of the loop, from 1 on, the connection that has cost most
	 * in it, and what that was. */
	uint64_t loop_turn;
	uint64_t costliest;
	int64_t most_cost;
	/* Who this was, if it has ended in the turn. */
	struct {
		enum client_method method;
		bool local, inside;
		char identity[TLS_NAME_MAX + 1];
		struct origin from;
	} gone;
	/* The cost of what was served since the clock was last read. */
	int64_t unlooked;
	/* The id that was given last. */
	uint64_t last_id;
	/* Goes off every second to close connections that are silent or do not read. */
	struct event *sweep;
};

/* The files of the sessions, in an order in which each calls only those before it; two of them, the
 * end of connections and the dialects, call each other:
 *
 *   fair, shares, memory          who comes next, and what is counted for whom
 *   session                       one connection: who it is, what it is told, what it costs
 *   sessions_wait                 who waits for a turn
 *   sessions_share                whether one request is too much; hands it over
 *   sessions_leave, _dialect      the end; other protocols
 *   sessions_strangers, _memory   who has to go for others
 *   sessions_serve, _flush, _list a turn: requests come in, and answers go out
 *   sessions                      connections from their beginning to their end
 */

/* ---- session.c ---- */

/* Returns NULL if the client is gone. */
struct session *sessions_find(const struct sessions *s, uint64_t client);
struct session_who session_who(const struct session *session);
/* The connection has something to write. */
void session_mark(struct session *session);
/* Tells the owner of trouble. */
void session_trouble(const struct session *session, const char *why);
/* The same for a connection that has not become a session. */
void sessions_trouble(struct sessions *s, const struct origin *from, const char *why);
/* Writes a refusal. Returns 0, or an error if it could not be written. */
int session_refuse(struct session *session, uint32_t msgid, const struct client_refusal *refusal);
/* Writes one refusal behind what was already answered, and closes. */
void session_refuse_and_close(struct session *session, uint32_t msgid,
	const struct client_refusal *refusal);

/* How many bytes of a request or an answer cost as much as a simple request. */
#define SESSIONS_BYTES_A_COST 4096u
/* Returns what a request of this size costs, in simple requests. */
int64_t session_cost_of(const struct client_request *request, size_t size);
/* Charges the session, in simple requests. */
void session_charge(struct session *session, int64_t cost);
/* Notes what the session has cost in this turn of the loop, for the log. */
void session_note_cost(struct session *session, int64_t cost);

/* ---- sessions_wait.c ---- */

/* Makes the session, whose stream's input is held or unread, wait for its turn. It does not wait
 * while session_has_enough. */
void session_wait(struct session *session);
/* The session leaves the queue if it waits, and so does its share if no other session of it
 * waits. */
void session_stop_waiting(struct session *session);
/* Returns whether something can be served without reading. */
bool session_has_work(const struct session *session);
/* Returns whether the values that are under way for the session have reached their limit, so that
 * none of its requests is served before some of them are answered. */
bool session_has_enough(const struct session *session);
/* The session has ended. */
void session_values_gone(struct session *session);
/* Whether what has arrived for the stream of the session is to be read at once. That is so for a
 * connection that asks for little, of an identity that does, and while nobody waits. Any other
 * connection is read when its turn comes, just as its requests are served then; otherwise a
 * thousand connections that send would all be read before anybody is served. */
bool session_reads_now(void *session);
/* Charges the session for what was read. What has arrived waits for a turn, so that what one turn
 * brings for it is served together with what that brings for the others, a piece of each at a
 * time. */
void session_on_received(void *session, struct instant now);

/* ---- sessions_share.c ---- */

/* How many connections, and requests under way, an administrator may have above the limits of its
 * share. */
#define SESSIONS_ADMIN_SPARE 16
/* Finds the shares of a session. The first is that of its identity, which is the account for a Unix
 * socket, or that of its address if it has no identity. The second is that of its address, if it
 * has one. Returns false if there is no memory. */
bool session_find_share(struct session *session);
/* Looks up the limits that hold for the session now, and whether it is an administrator. */
void session_look_up(struct session *session);
/* Returns whether the memory of all has come to that step, and the session belongs to the identity
 * that is refused then. */
bool session_fills_pool(const struct session *session, enum memory_step step);
/* Returns whether requests of this kind give something back, keep a lock, or ask whether the node
 * lives. They are let through where there is no room for others. */
bool session_is_urgent(const struct client_request *request);
/* Hands over a request, or a part of it, or refuses it for a limit. Returns 0, or an error if a
 * refusal could not be written. The session may be gone afterwards. */
int session_dispatch(struct session *session, const struct client_request *request,
	struct session_progress *progress, struct instant now);

/* ---- sessions_leave.c ---- */

/* Frees the session without telling anybody. */
void session_free(struct session *session);
/* Forgets the request that is served in parts, if there is one. */
void session_batch_free(struct session *session);
/* Frees the session. A `why` of NULL means that there is nothing to tell. */
void session_end(struct session *session, const char *why);
/* Ends the session, now or when its turn comes. */
void session_leave(struct session *session, const char *why);
/* Ends connections that wait for their end, as far as one turn may. */
void sessions_end_leaving(struct sessions *s);

/* ---- sessions_dialect.c ---- */

/* Returns false if there is no memory; session_dialect_close is needed then, too. */
bool session_dialect_open(struct session *session, const struct dialect_use *use);
void session_dialect_close(struct session *session);
/* Serves one command. Returns whether the next one may be served. The session may be gone
 * afterwards. */
bool session_dialect_serve(struct session *session, struct instant now);
/* Everything that was written has left, and it was `unsent`. */
void session_dialect_sent(struct session *session);
/* Returns whether so much has arrived behind the command under way that nothing more is read. */
bool session_dialect_is_full(const struct session *session);
/* To be called before a flush: turns the answer into what the client is told. Returns false if the
 * session is gone or closing. */
bool session_dialect_flush(struct session *session);
/* The client is gone. Asks for what undoes the command under way. Returns false if the session is
 * gone, too. */
bool session_dialect_leave(struct session *session);

/* ---- sessions_strangers.c ---- */

/* Returns false if all places are taken, and there is no stranger whose place the newcomer could
 * have. */
bool sessions_make_room(struct sessions *s, const struct stranger *newcomer);
/* To be called once the identity is known. Returns false if the identity, or the node, already has
 * as many connections as it may; then the connection is told. Without memory, the session is
 * gone. */
bool session_join(struct session *session);

/* ---- sessions_memory.c ---- */

void sessions_init_memory(struct sessions *s, struct alloc_counter *counter);
/* The stream's room(); `ctx` is the session. */
size_t session_room(void *ctx, const struct buffer *kept);
/* To be called after a session over TLS has read or written. */
void session_claim_tls(struct session *session);
/* To be called once a turn if memory.high is set. If too much memory is in use, the connections
 * that have most of it end. */
void sessions_make_memory(struct sessions *s);

/* ---- sessions_serve.c and sessions_flush.c ---- */

void sessions_init_decoder(struct sessions *s);
/* Everything that was written has left. `ctx` is the session. */
void session_on_drained(void *ctx);

#endif
