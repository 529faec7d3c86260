/* service_rights.c: decides who may ask for what, and logs who may not. */
#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

/* ---- one caller ---- */

struct rights_caller service_caller(const struct session_who *who) {
	const struct origin *from = who->from;
	return (struct rights_caller){ .identity = who->identity, .gids = from->gids,
		.gid_count = from->gid_count, .more_gids = from->more_gids };
}

/* Without a file of rules, everybody who gets in may use every key, and whoever is on this machine
 * may change the cluster. */
bool service_judge(const struct service *s, const struct session_who *who,
	const struct rights_question *question, struct rights_verdict *out) {
	const struct rights *rules = s->driver->config->rights;
	const enum right right = question->right;
	*out = (struct rights_verdict){ .allowed = who->inside || (!rules
		&& (who->local || (right != RIGHT_BREAK && right != RIGHT_CLUSTER))) };
	if (!out->allowed && rules) {
		const struct rights_caller caller = service_caller(who);
		*out = rights_judge(rules, &caller, question);
	}
	return out->allowed;
}

bool service_has(const struct service *s, const struct session_who *who, enum right right) {
	const struct rights_question question = { .right = right, .key = slice_of(NULL, 0),
		.prefix = RIGHT_HAS_KEY(right) };
	struct rights_verdict verdict;
	return service_judge(s, who, &question, &verdict);
}

bool service_is_admin(const struct service *s, struct slice name) {
	struct origin nowhere;
	origin_named("", &nowhere);
	const struct session_who who = { .identity = name, .from = &nowhere };
	return service_has(s, &who, RIGHT_CLUSTER);
}

bool service_may_read(const struct service *s, const struct session_who *who, struct slice key,
	bool prefix) {
	const struct rights_question question = { .right = RIGHT_READ, .key = key,
		.prefix = prefix };
	struct rights_verdict verdict;
	return service_judge(s, who, &question, &verdict);
}

bool service_may_ask(const struct service *s, const struct session_who *who,
	enum client_method method, struct slice key) {
	const struct rights_question question = { .right = client_method_right(method),
		.key = key };
	struct rights_verdict verdict;
	return service_judge(s, who, &question, &verdict);
}

bool service_may_watch(const struct service *s, const struct session_who *who, struct slice subject,
	bool prefix) {
	const struct rights_question question = { .right = RIGHT_WATCH, .key = subject,
		.prefix = prefix };
	struct rights_verdict verdict;
	return service_judge(s, who, &question, &verdict);
}

struct slice service_owner(const struct service *s, const struct session_who *who) {
	bool proven = who->inside || !who->local
		|| (s->driver->config->tls.on && who->from->uid != ORIGIN_UNKNOWN);
	return proven ? who->identity : slice_of(NULL, 0);
}

/* ---- one request ---- */

struct rights_denial {
	struct rights_question question;
	struct rights_verdict verdict;
};

/* Judges one key of the request, and the request's priority there. Returns true if the caller lacks
 * the right. */
static bool rights_lack_key(const struct service_call *call, struct slice key, bool prefix,
	struct rights_denial *out) {
	const struct client_request *r = call->request;
	out->question = (struct rights_question){ .right = client_method_right(r->method),
		.key = key, .prefix = prefix };
	if (!service_judge(call->service, call->who, &out->question, &out->verdict)) {
		return true;
	}
	if (!(r->present & CLIENT_HAS_PRIORITY) || r->core.terms.priority <= 0) {
		return false;
	}
	out->question.right = RIGHT_PRIORITY;
	out->question.priority = r->core.terms.priority;
	return !service_judge(call->service, call->who, &out->question, &out->verdict);
}

static const char *rights_field(const struct client_request *r, enum right right) {
	if (!RIGHT_HAS_KEY(right)) {
		return NULL;
	}
	return right == RIGHT_PRIORITY ? "priority"
		: r->present & CLIENT_HAS_LOCKS ? "locks"
		: r->present & CLIENT_HAS_PREFIX ? "prefix" : "key";
}

/* Tells the client which right it lacks. Whose rules they are, and where they stand, is only for
 * the log. */
static void rights_refuse(const struct service_call *call, const struct rights_denial *denial) {
	const struct client_request *r = call->request;
	const struct service *s = call->service;
	enum right right = denial->question.right;
	char message[256];
	struct slice what = client_method_changes(r->method)
		? r->change.name : denial->question.key;
	log_untrusted(s->driver->log, "denied", LOG_TEXT("what", client_method_name(r->method)),
		LOG_BYTES("key", what), LOG_WHO(call->who), LOG_TEXT("right", right_name(right)),
		LOG_KNOWN("rule", denial->verdict.line ? (int64_t)denial->verdict.line : -1),
		LOG_GIVEN("trace", r->trace));
	if (s->audit) {
		service_audit_denied(call, denial->question.key, right, denial->verdict.line);
	}
	if (!s->driver->config->rights) {
		snprintf(message, sizeof message,
			"this requires the right %s. Without access rules ([acl] file), only "
			"clients on the node's machine, on a listener "
			"without TLS, have it", right_name(right));
	} else if (right == RIGHT_PRIORITY && denial->verdict.priority > 0) {
		snprintf(message, sizeof message,
			"the access rules allow you priorities up to %lld here ('pawl can' "
			"shows which rule)", (long long)denial->verdict.priority);
	} else {
		snprintf(message, sizeof message,
			"the access rules do not give you the right %s%s ('pawl can' shows why)",
			right_name(right),
			denial->verdict.part ? " to all of these keys; ask for a narrower prefix"
			: RIGHT_HAS_KEY(right) ? " to this key" : "");
	}
	service_refuse(call->service, call->client, r->msgid, PAWL_EDENIED,
		rights_field(r, right), message);
}

/* Refuses the request for the first of its keys that the caller may not use in this way. Everybody
 * may ask whether a quorum answers. */
bool service_may(const struct service_call *call) {
	const struct client_request *r = call->request;
	struct rights_denial denial;
	bool prefix = r->method == CLIENT_LIST || r->method == CLIENT_TOP
		|| (r->present & CLIENT_HAS_PREFIX);
	bool lacks = false;
	if (client_method_right(r->method) == RIGHT_NONE || (r->method == CLIENT_GET
			&& slice_equal(r->core.key, slice_str(CLIENT_PROBE_KEY)))) {
		return true;
	}
	if (!(r->present & CLIENT_HAS_LOCKS)) {
		lacks = rights_lack_key(call, r->core.key, prefix, &denial);
	}
	for (uint32_t i = 0; !lacks && i < r->core.lock_count; i++) {
		lacks = rights_lack_key(call, r->core.locks[i].key, false, &denial);
	}
	for (size_t i = 0; !lacks && i < r->lock_count; i++) {
		lacks = rights_lack_key(call, r->locks[i].key, false, &denial);
	}
	if (lacks) {
		rights_refuse(call, &denial);
	}
	return !lacks;
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

void service_log_refusal(struct service *s, const struct request *request,
	const struct core_reply *reply) {
	struct session_who who;
	/* The lock was barred by a break, which was logged. */
	bool barred = reply->op == CORE_EXTEND && !reply->field;
	bool denied = reply->error == PAWL_EDENIED && !barred;
	if ((!denied && reply->error != PAWL_EFULL)
		|| !sessions_who(s->sessions, request->client, &who)) {
		return;
	}
	const struct slice trace = request->note ? request->note->trace : slice_of(NULL, 0);
	if (denied) {
		log_untrusted(s->driver->log, "denied",
			LOG_TEXT("what", rights_method_of(reply->op)),
			LOG_LOCK("lock_id", &reply->lock_id), LOG_WHO(&who),
			LOG_GIVEN("trace", trace));
	} else {
		log_untrusted(s->driver->log, "no_room",
			LOG_TEXT("what", rights_method_of(reply->op)),
			LOG_TEXT("limit", reply->field ? reply->field : ""), LOG_WHO(&who),
			LOG_GIVEN("trace", trace));
	}
}
