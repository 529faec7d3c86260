/* service_can.c: `can`: answers whether the rules allow a method, and which rule does or does not
 * allow it.
 */
#include <stdio.h>

#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"

#define CAN_GIDS_MAX 1024

struct can {
	const struct service_call *call;
	uint32_t gids[CAN_GIDS_MAX];
	struct rights_caller caller;
	struct rights_question question;
	char why[RIGHTS_WHY_BYTES];
};

/* Returns whether the request is about somebody else than the caller. */
static bool can_other(const struct service_call *call) {
	const struct client_request *r = call->request;
	return (r->present & CLIENT_HAS_OWNER) && !slice_equal(r->core.owner, call->who->identity)
		&& !(call->who->identity.size == 0
		&& slice_equal(r->core.owner, slice_str(RIGHTS_ANONYMOUS)));
}

/* Describes the caller itself, or one as the request describes it. */
static void can_describe(struct can *can) {
	const struct client_request *r = can->call->request;
	can->caller = service_caller(can->call->who);
	if (!can_other(can->call)) {
		return;
	}
	can->caller = (struct rights_caller){ .identity = r->core.owner, .gids = can->gids };
	for (size_t at = 0; at + 4 <= r->core.value.size && can->caller.gid_count < CAN_GIDS_MAX;
		at += 4) {
		const uint8_t *p = r->core.value.data + at;
		can->gids[can->caller.gid_count++] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16
			| (uint32_t)p[2] << 8 | p[3];
	}
}

/* Without a file of rules, what counts is whether the caller is on this machine. */
static struct rights_verdict can_judge_open(struct can *can) {
	bool local = slice_has_prefix(can->caller.identity, slice_str(RIGHTS_UNIX))
		|| slice_equal(can->caller.identity, slice_str(RIGHTS_PLAIN));
	const struct session_who who = { .identity = can->caller.identity, .local = local,
		.from = can->call->who->from };
	struct rights_verdict verdict;
	service_judge(can->call->service, &who, &can->question, &verdict);
	snprintf(can->why, sizeof can->why,
		verdict.allowed
		? "this node has no access rules ([acl] file), so everybody who can "
			"connect may do this"
		: "this node has no access rules ([acl] file), so only clients on the same "
			"machine, on a listener without TLS, may do this");
	return verdict;
}

static struct rights_verdict can_judge(struct can *can, struct client_can *answer) {
	const struct rights *rules = can->call->service->driver->config->rights;
	if (!rules) {
		return can_judge_open(can);
	}
	struct rights_verdict verdict = rights_judge(rules, &can->caller, &can->question);
	rights_explain(rules, &can->caller, &can->question, &verdict, can->why);
	answer->file = slice_str(rights_file(rules));
	answer->line = verdict.line;
	return verdict;
}

static void can_answer(struct can *can) {
	const struct service_call *call = can->call;
	struct service *s = call->service;
	struct client_can answer = { .right = slice_str(right_name(can->question.right)),
		.identity = can->caller.identity, .rights = slice_str(s->driver->rights),
		.node = slice_str(s->driver->context.node) };
	struct rights_verdict verdict = can_judge(can, &answer);
	if (verdict.allowed && can->question.priority > 0) {
		can->question.right = RIGHT_PRIORITY;
		verdict = can_judge(can, &answer);
		answer.right = slice_str(right_name(can->question.right));
	}
	answer.allowed = verdict.allowed;
	answer.why = slice_str(can->why);
	struct buffer *to = sessions_answer(s->sessions, call->client);
	service_told(s, call->client,
		to ? client_can_encode(call->request->msgid, &answer, to) : 0);
}

void service_can(const struct service_call *call) {
	const struct client_request *r = call->request;
	struct can can = { .call = call };
	bool prefix;
	if (!rights_of_method(r->core.to, &can.question.right, &prefix)) {
		service_refuse(call->service, call->client, r->msgid, PAWL_EBADREQUEST, "method",
			"is not a method that clients can call");
		return;
	}
	if (can_other(call) && !service_has(call->service, call->who, RIGHT_CLUSTER)) {
		service_refuse(call->service, call->client, r->msgid, PAWL_EDENIED, "identity",
			"asking about another identity requires the right 'cluster'");
		return;
	}
	can.question.key = RIGHT_HAS_KEY(can.question.right) ? r->core.key : slice_of(NULL, 0);
	can.question.prefix = prefix || (r->present & CLIENT_HAS_PREFIX);
	can.question.priority = r->core.terms.priority;
	can_describe(&can);
	can_answer(&can);
}
