/* service_impl.h: one request of a client, and what the parts of the service share. Nobody else
 * includes this.
 */
#ifndef PAWL_NODE_SERVICE_IMPL_H
#define PAWL_NODE_SERVICE_IMPL_H

#include <event2/event.h>

#include "log.h"
#include "rights.h"
#include "service.h"
#include "service_audit.h"

/* One request while it is served. */
struct service_call {
	struct service *service;
	uint64_t client;
	const struct session_who *who;
	const struct client_request *request;
	struct session_progress *progress;
	struct instant now;
	/* Something of the request is to be remembered until its answer. */
	bool notes;
};

/* The fields that say who a client is and where it comes from, in every log line about a client. An
 * identity that was not proven is empty. */
#define LOG_WHO(who) \
	LOG_BYTES("identity", (who)->identity), LOG_TEXT("from", (who)->from->address), \
		LOG_KNOWN("uid", (who)->from->uid), \
		LOG_KNOWN("pid", (who)->from->pid)

/* The files of the service, in an order in which each calls only those before it; `hold` calls
 * `service` for a request that has waited:
 *
 *   tell                     refusals
 *   rights                   who may do what
 *   audit, slow, full, turn  what is written down
 *   shares, keep, binding, deadlock, watch
 *                            what stays of requests: shares and holdings, locks that the node
 *                            extends or ends itself, waits, watches
 *   answer                   replies of the core
 *   ask                      requests for the core
 *   status, can, top, clients
 *                            what the node answers itself
 *   service, hold, review    each method; requests that must wait for the audit file; new rules
 *   life                     from the start to the end
 */

/* ---- service_tell.c ---- */

/* Tells the core that the client is gone. */
void service_tell_gone(struct service *s, uint64_t client);
/* Ends a connection whose buffer cannot take an answer, because the client does not read or there
 * is no memory. It is better to have no connection than an answer that never comes. */
void service_sever(struct service *s, uint64_t client);

/* An answer to the client was written with this error; 0: it was, or the client is gone. To be
 * called for each answer outside of a flush. */
void service_told(struct service *s, uint64_t client, int error);
/* Answers a request of which there is nothing to say but that it is done. */
void service_tell_done(struct service *s, uint64_t client, uint32_t msgid);
/* Answers a request with a refusal; `field` and `message` may be NULL. */
void service_refuse(struct service *s, uint64_t client, uint32_t msgid, int error,
	const char *field, const char *message);

/* The handler `over` of the sessions: logs a refusal for a quota. */
void service_log_quota(void *ctx, const struct session_who *who,
	const struct client_refusal *refusal);
/* The client has been refused for a quota: counts that, and logs it. */
void service_note_quota(struct service *s, uint64_t client, const struct share_quota *quota);
/* Refuses a request for a quota, which also counts it and logs it. */
void service_refuse_quota(struct service *s, uint64_t client, uint32_t msgid,
	const struct share_quota *quota);

/* To be called around an answer that shows values, which many requests at once may ask for. It
 * leaves the last of the buffer's space to small answers, and to those that say that the request
 * was refused; and it keeps the answer below what its client may have of memory. service_view_end
 * takes what service_view_begin returned, and the encoder's error. PAWL_EBUSY means that the
 * refusal has taken the place of the answer. */
struct service_view {
	struct buffer *to;
	/* The limit of the buffer outside of the answer, in bytes. */
	size_t max;
	/* The answer is bounded by its client's memory. */
	bool crowded;
};
struct service_view service_view_begin(const struct service *s, uint64_t client, struct buffer *to);
int service_view_end(struct service *s, uint64_t client, const struct service_view *view,
	uint32_t msgid, int error);

/* ---- service_rights.c ---- */

struct rights_caller service_caller(const struct session_who *who);

/* Returns whether the rules, or their absence, allow what is asked. *out says why. */
bool service_judge(const struct service *s, const struct session_who *who,
	const struct rights_question *question, struct rights_verdict *out);

/* Returns whether the client has the right to every key. A client with BREAK to every key is also
 * told the lock_ids of others, because it could end their locks anyway. */
bool service_has(const struct service *s, const struct session_who *who, enum right right);
/* Returns whether the client may watch the key, or all keys with the prefix. */
bool service_may_watch(const struct service *s, const struct session_who *who,
	struct slice subject, bool prefix);

/* Returns the identity under which the client's locks are held. Other nodes go by it, so it must
 * mean the same there. Without TLS nobody proves who it is to all nodes, so all have the empty
 * identity. */
struct slice service_owner(const struct service *s, const struct session_who *who);

/* Returns false if the caller lacks the right that the request needs. Then the request was refused,
 * and the log says so. */
bool service_may(const struct service_call *call);

/* Logs a reply of the core that refuses for lack of rights or of room. */
void service_log_refusal(struct service *s, const struct request *request,
	const struct core_reply *reply);

/* ---- service_shares.c ---- */

/* service_shares_init returns 0 or PAWL_ENOMEM. */
int service_shares_init(struct service *s, const struct allocator *alloc,
	struct siphash_key hash_key);
/* The handler `own_limits` of the sessions (sessions.h). */
bool service_own_limits(const struct service *s, const struct session_who *who,
	struct share_limits *limits);

/* Counts what a request may take, before the core is asked. Returns false if the caller has as much
 * as it may: then nothing is counted, and *out_full says what it is to be refused for. */
bool service_share_take(const struct service_call *call, const struct core_request *request,
	struct request *open, struct share_quota *out_full);
/* Returns true if the caller watches as much as it may, and the watch was refused. */
bool service_share_watched_enough(struct service *s, uint64_t client, uint32_t msgid);
/* Counts what the request got, and no longer what it did not get. */
void service_share_answered(struct service *s, struct request *request,
	const struct core_reply *reply);

/* ---- service_keep.c ---- */

/* service_keep_init returns 0 or PAWL_ENOMEM. */
int service_keep_init(struct service *s, const struct allocator *alloc);
/* Accepts what service_keep_init left half done. */
void service_keep_done(struct service *s);
/* To be called while locks are kept, before the core is asked to release one for a client. */
void service_keep_asked(struct service *s, const struct core_request *request);
/* To be called for each reply while locks are kept. */
void service_keep_ended(struct service *s, const struct core_reply *reply);
/* To be called for the reply to each request of the node's own. */
void service_keep_answered(struct service *s, const struct core_reply *reply);

/* See service_status.c. */
void service_status(const struct service_call *call);

/* See service_slow.c: logs the request, which has a note, if its answer took long. */
__attribute__((cold)) void service_slow(struct service *s, const struct request *request,
	const struct core_reply *reply);
/* See service_can.c. */
void service_can(const struct service_call *call);
/* See service_top.c. */
void service_top(const struct service_call *call);

/* ---- service_clients.c ---- */

void service_clients(const struct service_call *call);
void service_kick(const struct service_call *call);

/* ---- service_watch.c ---- */

/* The ctx of the port is the service. */
extern const struct events_port service_events_port;
/* To be called when events_is_open or service_audit_watches may have changed. */
void service_want_events(struct service *s);
/* Takes the events from the core to those who watch. */
void service_take_events(struct service *s);
/* Serves the watchers that are behind. To be called after a flush of the sessions, if there are
 * any. */
void service_serve_watches(struct service *s);
/* The timer `unwatched` of the service has gone off. */
void service_on_unwatched(evutil_socket_t fd, short what, void *ctx);
/* Events are wanted from now on. Returns 0 or PAWL_ENOMEM. */
int service_watch_open(struct service *s);
/* Stops wanting events only after a while in which nobody watches. A client that has lost its
 * connection comes back soon, and goes on from where it was. */
void service_watch_settle(struct service *s);
/* Begins a watch from this position on, and answers its request. `view` is what the core says of
 * the key; NULL for a prefix. */
void service_watch_begin(struct service *s, uint64_t client, uint32_t msgid, struct slice subject,
	bool prefix, const struct events_position *from, const struct core_reply *view);
void service_unwatch(const struct service_call *call);
/* The client is gone, and so are its watches. */
uint32_t service_watch_forget(struct service *s, uint64_t client, uint32_t most);

/* ---- service_deadlock.c ---- */

/* service_deadlock_init returns 0 or PAWL_ENOMEM. */
int service_deadlock_init(struct service *s, const struct allocator *alloc,
	struct siphash_key hash_key);
void service_deadlock_done(struct service *s);
/* A request begins to wait at `now`. */
void service_deadlock_waits(struct service *s, struct requests_wait *wait, struct instant now);
/* To be called after a reload, which may have switched looking on. */
void service_deadlock_settings(struct service *s);
/* The handler `on_waits` of the driver. */
int service_deadlock_packet(void *ctx, uint32_t peer, struct slice body);
/* The request was ended because of a deadlock (reply->wait_cut): makes *changed say so, and returns
 * it. */
const struct core_reply *service_deadlock_reply(const struct request *request,
	const struct core_reply *reply, struct core_reply *changed);
/* Writes the rings in which clients wait for the key, or hold it, as far as the caller may read
 * their keys, and nothing of them if `who` is NULL; at most RINGS_KEPT. Returns how many. */
uint32_t service_deadlock_rings(const struct service *s, const struct session_who *who,
	struct slice key, struct waits_ring out[RINGS_KEPT]);

/* ---- deadlock_tell.c ---- */

/* Tell the reader who holds the key, as far as this
 * node has granted it, and what these parties and the party wait for here. Both return what that
 * cost, in facts; more than FACTS_TOLD_MAX means that not everything was told. */
#define FACTS_TOLD_MAX 512u
uint32_t deadlock_tell_key(struct service *s, struct slice key, const struct waits_reader *reader);
uint32_t deadlock_tell_party(struct service *s, struct id128 party,
	const struct waits_reader *reader);

/* ---- service_answer.c ---- */

/* Handles one reply of the core; the ctx is the service. */
void service_answer(void *ctx, const struct core_reply *reply);

/* ---- service_ask.c ---- */

/* Fills in what the core is asked for. The bytes are borrowed from the call. */
void service_core_request(const struct service_call *call, struct core_request *out);
/* Counts an open request from now on; `key` is the first that it asks for, or empty. The request
 * may wait for others for as long as `wait`, in nanoseconds. */
void service_count(const struct service_call *call, struct request *open, struct slice key,
	span_ns wait);
/* Steps the core with a request at the time of the call. If the core has no memory for the answer,
 * the client gets `busy`. */
void service_step(const struct service_call *call, const struct core_request *request);
/* Asks the core for what the client asks for: as one request, or as one for each of its `locks`. */
void service_call_core(const struct service_call *call);
void service_call_batch(const struct service_call *call);

/* To be called at the end of each turn of the loop (service_turn.c). */
void service_turn_over(struct service *s);

/* See service_review.c. */
void service_on_review(evutil_socket_t fd, short what, void *ctx);

/* ---- service_binding.c ---- */

/* Called before the core is asked with a binding, when it has answered while there are bindings,
 * and when the client is gone. service_binding_ask returns 0 or PAWL_ENOMEM. */
int service_binding_ask(const struct service_call *call, const struct core_request *request);
void service_binding_answered(struct service *s, uint64_t client, const struct core_reply *reply);
void service_binding_gone(struct service *s, uint64_t client, bool closed_there);
/* To be called once a turn. Ends some of the locks of clients that are gone. Returns true if there
 * are more. */
bool service_binding_serve(struct service *s);

#endif
