/* service_impl.h: inside the service of clients: one request, and what its parts share. */
#ifndef PAWL_NODE_SERVICE_IMPL_H
#define PAWL_NODE_SERVICE_IMPL_H

#include <event2/event.h>

#include "log.h"
#include "rights.h"
#include "service.h"

struct service_call {
	struct service *service;
	uint64_t client;
	const struct session_who *who;
	const struct client_request *request;
	struct session_progress *progress;
	struct instant now;
};

/* Who it is and where it comes from, as every line of the log about a client says it: an identity that was not proven is empty. */
#define LOG_WHO(who) \
	LOG_BYTES("identity", (who)->identity), LOG_TEXT("from", (who)->from->address), LOG_KNOWN("uid", (who)->from->uid), \
		LOG_KNOWN("pid", (who)->from->pid)

/* service.c */
struct core_request service_core_request(const struct service_call *call);
void service_step(const struct service_call *call, const struct core_request *request);
void service_refuse(struct service *s, uint64_t client, uint32_t msgid, int error, const char *field, const char *message);
/* It is refused: the node counts it, and says so. */
void service_note_quota(struct service *s, uint64_t client, const struct share_quota *quota);
void service_refuse_quota(struct service *s, uint64_t client, uint32_t msgid, const struct share_quota *quota);
/* An answer that cannot be put into the client's buffer: it does not read, or there is no memory. Better no connection than
 * an answer that never comes. */
void service_sever(struct service *s, uint64_t client);
/* Around an answer that shows values, which many requests at once may ask for: it leaves the last of the buffer's room to small answers, and to
 * those that say that it was refused, and keeps below what its client may have of memory. service_view_end takes what begin returned and the encoder's
 * error; PAWL_EBUSY: the refusal is in its place. */
struct service_view {
	struct buffer *to;
	size_t max;   /* of the buffer, otherwise */
	bool crowded; /* it is its client's memory that bounds the answer */
};
struct service_view service_view_begin(const struct service *s, uint64_t client, struct buffer *to);
int service_view_end(struct service *s, uint64_t client, const struct service_view *view, uint32_t msgid, int error);

/* service_answer.c */
void service_answer(struct service *s, const struct core_reply *reply); /* one reply of the core */

/* service_rights.c */
struct rights_caller service_caller(const struct session_who *who);
/* Whether the rules, or their absence, allow it; *out says why. */
bool service_judge(const struct service *s, const struct session_who *who, const struct rights_question *question,
	struct rights_verdict *out);
/* Whether it has the right to every key. With BREAK to every key it is told the lock_ids of others, too: it could end their locks
 * anyway. */
bool service_has(const struct service *s, const struct session_who *who, enum right right);
bool service_may_watch(const struct service *s, const struct session_who *who, struct slice subject, bool prefix);
/* The name under which its locks are held: other nodes go by it, so it is one that means the same there. Without TLS nobody
 * proves who it is to all nodes, and all have the empty one. */
struct slice service_owner(const struct service *s, const struct session_who *who);
/* False: its caller has not got the right that the request needs; it was refused then, and the log says so. */
bool service_may(const struct service_call *call);
/* Logs a reply of the core that refuses for lack of rights or room. */
void service_log_refusal(struct service *s, uint64_t client, const struct core_reply *reply);

/* service_shares.c */
int service_shares_init(struct service *s, const struct allocator *alloc, struct siphash_key hash_key); /* 0 or PAWL_ENOMEM */
bool service_terms(const struct service *s, const struct session_who *who, struct share_limits *limits);
/* True: its caller has as much as it may, and the request was refused. */
bool service_share_full(const struct service_call *call, const struct core_request *request);
bool service_share_watched_enough(struct service *s, uint64_t client, uint32_t msgid); /* of a watch, likewise */
void service_share_take(const struct service_call *call, const struct core_request *request, struct request *open);
void service_share_answered(struct service *s, struct request *request, const struct core_reply *reply);

/* service_can.c */
void service_can(const struct service_call *call);

/* service_clients.c */
void service_clients(const struct service_call *call);
void service_kick(const struct service_call *call);

/* service_watch.c */
extern const struct events_port service_events_port; /* ctx: the service */
void service_take_news(struct service *s);     /* from the core to those who watch */
void service_serve_watches(struct service *s); /* those that are behind; after a flush of the sessions */
void service_on_unwatched(evutil_socket_t fd, short what, void *ctx);
void service_watch(const struct service_call *call);
void service_unwatch(const struct service_call *call);
/* The answer of the core to the look that comes with a watch; `watch` is gone with its request. */
void service_watch_begin(struct service *s, uint64_t client, uint32_t msgid, const struct requests_watch *watch,
	const struct core_reply *view);
void service_watch_forget(struct service *s, uint64_t client);

/* service_review.c */
void service_on_review(evutil_socket_t fd, short what, void *ctx);

/* service_binding.c: before the core is asked, when it has answered, and when the client is gone. */
int service_binding_ask(const struct service_call *call, const struct core_request *request); /* 0 or PAWL_ENOMEM */
void service_binding_answered(struct service *s, uint64_t client, const struct core_reply *reply);
void service_binding_gone(struct service *s, uint64_t client, bool closed_there);
/* Once a turn: ends some of the locks of clients that are gone. True: there are more. */
bool service_binding_serve(struct service *s);

#endif
