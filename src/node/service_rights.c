/* service_rights.c: who may ask for what, and what the log says of those who may not. */
#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "service.h"

void service_deny(const struct service_call *call, struct slice key, const char *field, const char *message) {
	log_outside(call->driver->log, "denied", LOG_TEXT("what", client_method_name(call->request->method)), LOG_BYTES("key", key),
		LOG_WHO(call->who));
	service_refuse(call->driver, call->client, call->request->msgid, PAWL_EDENIED, field, message);
}

bool service_is_admin(const struct service_call *call, const char *message) {
	if (!call->admin) {
		const struct client_request *r = call->request;
		service_deny(call, client_method_changes(r->method) ? r->change.name : r->core.key, NULL, message);
	}
	return call->admin;
}

static bool rights_to(const struct service_call *call, struct slice key) {
	return call->trusted || call->admin
		|| acl_allows(call->driver->config, call->who->identity, client_method_class(call->request->method) == CLIENT_WRITES, key);
}

/* The first key of the request that its caller may not use; false: there is none. */
static bool rights_lack(const struct service_call *call, struct slice *out_key) {
	const struct client_request *request = call->request;
	*out_key = request->core.key;
	if (!(request->present & CLIENT_HAS_LOCKS)) {
		return !rights_to(call, *out_key);
	}
	for (uint32_t i = 0; i < request->core.lock_count; i++) {
		*out_key = request->core.locks[i].key;
		if (!rights_to(call, *out_key)) {
			return true;
		}
	}
	for (size_t i = 0; i < request->lock_count; i++) {
		*out_key = request->locks[i].key;
		if (!rights_to(call, *out_key)) {
			return true;
		}
	}
	return false;
}

/* To a key; the other methods ask for an administrator where they need one. */
static bool rights_needed(enum client_method method) {
	enum client_class class = client_method_class(method);
	return class == CLIENT_READS || class == CLIENT_WRITES;
}

bool service_may(const struct service_call *call) {
	const struct client_request *request = call->request;
	struct slice key;
	if (!rights_needed(request->method) || !rights_lack(call, &key)) {
		return true;
	}
	const char *field = request->present & CLIENT_HAS_LOCKS ? "locks" : request->present & CLIENT_HAS_PREFIX ? "prefix" : "key";
	service_deny(call, key, field, "the access rules of this node do not allow it to this identity");
	return false;
}

static const char *rights_method_of(enum core_op op) {
	enum core_op asked;
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		if (client_method_op((enum client_method)i, &asked) && asked == op) {
			return client_method_name((enum client_method)i);
		}
	}
	return "acquire";
}

void service_log_refusal(struct driver *d, uint64_t client, const struct core_reply *reply) {
	struct session_who who;
	bool barred = reply->op == CORE_EXTEND && !reply->field; /* by a break, which was logged */
	bool denied = reply->error == PAWL_EDENIED && !barred;
	if ((!denied && reply->error != PAWL_EFULL) || !sessions_who(d->sessions, client, &who)) {
		return;
	}
	if (denied) {
		log_outside(d->log, "denied", LOG_TEXT("what", rights_method_of(reply->op)), LOG_LOCK("lock_id", &reply->lock_id), LOG_WHO(&who));
	} else {
		log_outside(d->log, "no_room", LOG_TEXT("what", rights_method_of(reply->op)), LOG_TEXT("limit", reply->field ? reply->field : ""),
			LOG_WHO(&who));
	}
}
