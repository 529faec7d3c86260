/* service_audit.h: the lines that the service writes to the audit file. Part of service_impl.h. */
#ifndef PAWL_NODE_SERVICE_AUDIT_H
#define PAWL_NODE_SERVICE_AUDIT_H

#include "audit.h"
#include "client.h"
#include "core.h"
#include "rights.h"
#include "session_bindings.h"

struct request;
struct service;
struct service_call;

/* Keeps what the lines about a request need until its answer. `asked` is what the core is asked
 * for; NULL stands for the request itself. Returns 0 or PAWL_ENOMEM. */
__attribute__((cold)) int service_note(const struct service_call *call, struct request *open,
	const struct core_request *asked);
/* The request, which has a note, is answered by the core. */
__attribute__((cold)) void service_note_answered(struct service *s,
	const struct request *request, const struct core_reply *reply);
/* The request, which has a note, is answered by the node. */
__attribute__((cold)) void service_note_done(struct service *s, const struct request *request,
	int error);
/* The client of the request is gone before its answer. The ctx is the service. */
__attribute__((cold)) void service_note_gone(void *ctx, const struct request *request);

/* A request has been answered as soon as it was served. */
__attribute__((cold)) void service_audit_at_once(const struct service_call *call, int error);
/* A request was denied for lack of a right. `line` is that of the rule, or 0. */
__attribute__((cold)) void service_audit_denied(const struct service_call *call, struct slice key,
	enum right right, unsigned line);
/* The node releases a lock because the connection of its holder has ended. */
void service_audit_unbound(struct service *s, const struct session_binding *bound);
/* The node's own extension of a lock without an end was answered. */
void service_audit_kept(struct service *s, const struct kept_lock *kept,
	const struct core_reply *reply);
/* Something has happened in the node's own table. */
void service_audit_event(struct service *s, const struct core_watch_event *event);

/* Returns whether events of the core are wanted for the audit file. */
bool service_audit_watches(const struct service *s);

/* The functions below are in service_hold.c. Returns true if the request is one of an administrator
 * that has to wait until the audit file has it; it is served later. Otherwise it is to be served
 * now, or was refused. */
__attribute__((cold)) bool service_hold(const struct service_call *call);
int service_hold_init(struct service *s);
void service_hold_done(struct service *s);
/* Writes the line of a request that has not been served yet. */
bool service_audit_asked(const struct service_call *call, struct audit_receipt *receipt);
/* The client of a request that had to wait is gone. */
void service_audit_left(struct service *s, const struct client_request *request);

#endif
