/* service.h: what clients ask of the node, and what the node remembers of them. Requests become
 * events of the core through the driver. Its replies, and the events of keys that are watched, come
 * back through struct driver_handlers. service_impl.h is the inside.
 */
#ifndef PAWL_NODE_SERVICE_H
#define PAWL_NODE_SERVICE_H

#include "driver.h"
#include "audit.h"
#include "client_status_fields.h"
#include "events.h"
#include "full.h"
#include "kept_locks.h"
#include "holdings.h"
#include "look.h"
#include "orders.h"
#include "session_bindings.h"
#include "requests.h"
#include "sessions.h"

/* The last watch event in the encoding of those who watch. */
struct service_event {
	/* The number of the event; 0 if there is none. */
	uint64_t number;
	struct buffer bytes;
};

/* The most rings that a node keeps to be shown. */
#define RINGS_KEPT 16

/* What the search for deadlocks keeps (service_deadlock.c). */
struct service_deadlocks {
	struct look look;
	/* Memory for a look, and for the rings that are shown. */
	const struct allocator *alloc;
	/* Goes off when there is something to do, if `armed`. */
	struct event *timer;
	bool armed;
	/* When the next look may begin, by CLOCK_BOOTTIME. */
	int64_t next_look;
	/* driver.tables at the beginning of the look. */
	uint64_t tables;
	/* How many deadlocks were reported here since the start. */
	uint64_t found;
	/* What each peer has asked for so far uses up its part until this instant of
	 * CLOCK_BOOTTIME. */
	int64_t paid[NODES_MAX];
	/* The rings that this node and others have found, as bodies of packets (peer_waits.h), each
	 * until it is shown no longer; an empty place has no bytes. */
	struct service_ring {
		struct buffer body;
		uint64_t number;
		int64_t until;
	} rings[RINGS_KEPT];
};

/* Room for a phrase that says why the node is not ready, in bytes: the name of a check of its
 * health and what that check says (HEALTH_WHY_BYTES in monitor/health.h). */
#define SERVICE_WHY_BYTES 1088

/* The service of a node. */
struct service {
	struct driver *driver;
	/* NULL until the node is started. */
	struct sessions *sessions;
	struct requests requests;
	struct events events;
	struct session_bindings session_bindings;
	struct holdings holdings;
	/* The locks that the node extends for their holders (service_keep.c), and the timer that
	 * goes off when one of them is to be extended. */
	struct kept_locks kept;
	struct event *keep;
	struct full full;
	struct service_deadlocks deadlocks;
	/* What operators have asked this node for last. */
	struct orders orders;

	/* The last watch event without lock_id, and with it. */
	struct service_event last_events[2];

	/* Goes off when nobody has watched anything for a while. */
	struct event *unwatched;
	/* Goes off when locks that count for a share may have ended. */
	struct event *sweep;
	/* Goes off in the next turn while watches must be judged by new access rules. */
	struct event *review;
	/* The processor time of this thread when it was last read, and when that was, by the
	 * coarse clock (see service_turn.c). */
	span_ns used, looked;
	/* Borrowed; NULL if there is no audit file. */
	struct audit *audit;
	/* Requests are remembered for the audit file, or for the log. */
	bool noting;
	/* Somebody watches, or did so a while ago; or the audit file has what happens to locks. */
	bool wants_events;
	/* Requests of administrators that wait for the audit file (service_hold.c), and the timer
	 * that goes off when they have waited too long. */
	struct list held;
	uint32_t held_count;
	/* The request that is being served had to wait for the audit file. */
	bool held_before;
	/* It was denied, and the audit file has the line. */
	bool told_denied;
	struct event *impatient;
	/* The error with which the request that is being served was refused; 0 for none. */
	int refused;
	/* Its number among the orders, until it is open; 0 if it is none. */
	uint64_t order;
	/* The id that the node used last for a request of its own. */
	uint64_t last_own;

	/* Says whether the node is ready for clients, or else why not, as a phrase. */
	bool (*ready)(void *ctx, char why[SERVICE_WHY_BYTES]);
	void *ready_ctx;

	void (*on_drain_request)(void *ctx, uint64_t request_id);
	void *ctx;
};

/* Sets the handlers of the driver, which is borrowed; `sessions` is set later. Memory for what
 * clients watch, which counts as theirs, comes from `client_alloc`. Returns 0 or PAWL_ENOMEM;
 * service_done is needed after an error, too. */
int service_init(struct service *s, struct driver *driver, const struct allocator *alloc,
	const struct allocator *client_alloc);
/* Closes all sessions. To be called before the driver is done. Accepts zeroed memory. */
void service_done(struct service *s);

/* From now on the service writes to this audit file, which is borrowed. */
void service_set_audit(struct service *s, struct audit *audit);
/* The handler `told` of the audit file; the ctx is the service. */
void service_audit_told(void *ctx);
/* To be called after the start, and after a reload, because settings of what is audited and logged
 * may have changed. */
void service_settings_changed(struct service *s);

/* Their ctx is the service. */
extern const struct sessions_handlers service_sessions_handlers;

/* What a node says of itself. */
struct service_status {
	struct client_status status;
	/* The memory of status.not_ready. */
	char not_ready[SERVICE_WHY_BYTES];
	/* That of status.audit_trouble. */
	char audit_trouble[AUDIT_WHY_BYTES];
};
/* Fills in what the node says of itself at `now`; with `whose` also who has filled its limits. It
 * borrows from the service and from *out, and is valid until the loop goes on. */
void service_status_at(const struct service *s, struct instant now, bool whose,
	struct service_status *out);

/* Appends the answer to a `top` with this prefix and msgid. Returns 0, PAWL_ENOMEM or
 * PAWL_ETOOLARGE. */
int service_top_encode(struct service *s, struct instant now, struct slice prefix, uint32_t msgid,
	struct buffer *out);

/* Appends the answer to an `explain`, which says in which deadlocks the key is, as far as the
 * caller may read the keys in them; NULL stands for somebody who may read nothing. Returns 0,
 * PAWL_ENOMEM or PAWL_ETOOLARGE. */
int service_explain_encode(const struct service *s, const struct session_who *who, uint32_t msgid,
	const struct core_reply *reply, struct buffer *to);

/* Returns whether the caller may read the key, or all keys that begin with it. */
bool service_may_read(const struct service *s, const struct session_who *who, struct slice key,
	bool prefix);
/* Returns whether the caller has the right to the key that the method needs. */
bool service_may_ask(const struct service *s, const struct session_who *who,
	enum client_method method, struct slice key);
/* Logs and remembers that an operator asks this node to take a lock from its holder. */
uint64_t service_note_order(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now);

/* What administrators do on the page of the admin port gets its lines in the audit file, too.
 * service_page_forbids returns whether the method must be on the disk before it is done, which the
 * page does not wait for. */
bool service_page_forbids(const struct service *s, enum client_method method);
/* They lacked the right that the method needs. */
void service_page_denied(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now);
/* They ask for something. Returns what service_page_answered needs, with memory from `alloc`; NULL
 * if there is no audit file, or no memory. request_note_free frees it. */
struct request_note *service_page_asked(struct service *s, const struct session_who *who,
	enum client_method method, const struct core_request *asked, struct instant now,
	const struct allocator *alloc);
void service_page_answered(struct service *s, const struct request_note *note,
	const struct core_reply *reply);

/* Returns whether a client with this name in its certificate may change the cluster. */
bool service_is_admin(const struct service *s, struct slice name);

/* From now on the node extends the lock, which the client has just taken, until it is released or
 * lost. Nobody else gets it before `until`. Returns 0, PAWL_EFULL or PAWL_ENOMEM. */
int service_keep(struct service *s, uint64_t client, struct slice key, struct id128 lock_id,
	struct instant until);
/* Returns the identity under which a client holds locks; it may be empty. It is borrowed from the
 * connection. */
struct slice service_client_identity(const struct service *s, uint64_t client);

/* Answers a `drain`. */
void service_answer_done(struct service *s, uint64_t request_id, int error);

/* To be called after a reload. It ends the connections that watch what they may not read any more,
 * or that watch as administrators and are none any more, and those that wait for what they may not
 * have any more. This takes several turns of the loop. A connection is told nothing until its
 * watches have been judged. */
void service_rules_changed(struct service *s);

#endif
