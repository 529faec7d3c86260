/* rest.c: keeps calls until they are sent again: those that a node has refused because their
 * identity has reached a limit (docs/client-protocol.md, Errors), and those that may wait and that
 * every node has refused. */
#include "call.h"

#include "check.h"

static void on_rested(struct alarm *alarm) {
	flight_again(CONTAINER_OF(alarm, struct pawl_call, rest));
}

void call_rest(struct pawl_call *call, span_ns pause) {
	struct pawl *client = call->client;
	flight_end(&call->last);
	list_remove(&call->link);
	list_append(&client->resting, &call->link);
	call->rest.ring = on_rested;
	agenda_set(&client->agenda, &call->rest,
		clock_saturating_add(client_core_now(client).boot, pause));
}

/* The call is not sent again before the time that the node has given. The library adds up to half
 * of that time at random, so that calls that were refused together do not come back together. */
bool call_back_off(struct pawl_call *call, const struct client_response *r) {
	struct pawl *client = call->client;
	if (call->borrows || r->error != PAWL_EQUOTA
		|| !(r->present & CLIENT_RESULT_RETRY_AFTER)) {
		return false;
	}
	span_ns pause = prng_between(&client->prng, r->retry_after,
		r->retry_after + r->retry_after / 2);
	int64_t again = clock_saturating_add(client_core_now(client).boot, pause);
	if (again >= call->deadline) {
		return false;
	}
	/* The refusal had no effect, so this send does not count. */
	call->sends--;
	call_rest(call, pause);
	return true;
}
