/* election_observe.c: who leads, as the watch on the election's key tells it; and the requests to a
 * leader to yield. */
#include <string.h>

#include "check.h"
#include "election.h"

#define ASK_FIRST (50 * SPAN_MS)

/* ---- the leader that is known ---- */

void election_leader_free(struct pawl_election *e) {
	alloc_free(e->client->env.alloc, e->leader.block, e->leader.size);
	e->leader = (struct observed_leader){ 0 };
}

static size_t put(uint8_t **at, const void *data, size_t size) {
	if (size) {
		memcpy(*at, data, size);
	}
	(*at)[size] = '\0';
	*at += size + 1;
	return size;
}

static int remember(struct pawl_election *e, const struct pawl_entry *entry) {
	size_t label = strlen(entry->label), host = strlen(entry->host);
	struct observed_leader known = { .known = true, .token = entry->token, .pid = entry->pid };
	known.size = entry->owner.size + entry->value.size + label + host + 4;
	known.block = alloc_new(e->client->env.alloc, known.size);
	if (!known.block) {
		return PAWL_ENOMEM;
	}
	uint8_t *at = known.block;
	known.owner_size = put(&at, entry->owner.data, entry->owner.size);
	known.value_size = put(&at, entry->value.data, entry->value.size);
	known.label_size = put(&at, entry->label, label);
	known.host_size = put(&at, entry->host, host);
	election_leader_free(e);
	e->leader = known;
	return 0;
}

static bool same(struct pawl_bytes a, struct pawl_bytes b) {
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

struct pawl_leader election_leader(const struct pawl_election *e) {
	const struct observed_leader *k = &e->leader;
	const uint8_t *value = k->block + k->owner_size + 1, *label = value + k->value_size + 1;
	struct pawl_leader leader = { .owner = { k->block, k->owner_size },
		.value = { value, k->value_size }, .token = k->token, .label = (const char *)label,
		.host = (const char *)(label + k->label_size + 1), .pid = k->pid };
	leader.self = !e->options.observe_only && same(leader.owner, e->options.owner);
	return leader;
}

/* Returns false if the election is gone. */
static bool tell_leader(struct pawl_election *e) {
	bool gone = false;
	if (!e->options.on_leader) {
		return true;
	}
	struct pawl_leader leader;
	if (e->leader.known) {
		leader = election_leader(e);
	}
	election_enter(e, &gone);
	e->options.on_leader(e, e->leader.known ? &leader : NULL, e->options.arg);
	return election_left(e, &gone);
}

/* ---- a candidate that takes over ---- */

static void forget_result(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	(void)call;
	(void)ctx;
	pawl_result_free(take_result);
}

/* Asks often at first. The leader checks whether the candidate that asks waits, and that
 * candidate's place in the queue may not be there yet. */
void election_ask(struct pawl_election *e) {
	struct pawl *client = e->client;
	if (!e->options.takeover || !election_campaigns(e) || !e->leader.known || client->dying) {
		return;
	}
	struct pawl_request request = { .method = PAWL_ASK_RELEASE, .key = e->options.name,
		.owner = e->options.owner, .terms.priority = e->options.priority };
	(void)call_start(client,
		&(struct call_start){ .request = &request, .internal = true, .end = forget_result },
		NULL);
	span_ns lease = (span_ns)(e->options.lease_ms ? e->options.lease_ms : LEASE_MS_DEFAULT)
		* SPAN_MS;
	span_ns pause = ASK_FIRST << (e->asks < 16 ? e->asks : 16);
	pause = pause < lease / 3 ? pause : lease / 3;
	e->asks++;
	agenda_set(&client->agenda, &e->ask,
		client_core_now(client).boot + prng_between(&client->prng, pause / 2, pause));
}

static void on_ask_alarm(struct alarm *alarm) {
	election_ask(CONTAINER_OF(alarm, struct pawl_election, ask));
}

/* ---- events ---- */

static void on_holder(struct pawl_election *e, const struct pawl_entry *entry) {
	e->present_seen = true;
	if (entry->token < e->token_highest) {
		/* This comes from a node that knows less than another one did. */
		return;
	}
	struct pawl_leader old = { .token = 0 };
	if (e->leader.known) {
		old = election_leader(e);
	}
	if (e->leader.known && old.token == entry->token && same(old.owner, entry->owner)
		&& same(old.value, entry->value)) {
		return;
	}
	bool another = !e->leader.known || !same(old.owner, entry->owner);
	if (remember(e, entry) != 0) {
		watch_reread(e->watch);
		return;
	}
	e->token_highest = entry->token;
	if (tell_leader(e) && another) {
		e->asks = 0;
		election_ask(e);
	}
}

static void on_nobody(struct pawl_election *e) {
	election_leader_free(e);
	agenda_clear(&e->client->agenda, &e->ask);
	(void)tell_leader(e);
}

/* The name counts as well, because this node may know the leader under an earlier token than
 * another node did. */
static void on_gone(struct pawl_election *e, const struct pawl_entry *entry) {
	if (e->leader.known
		&& (entry->token >= e->leader.token
			|| same(entry->owner, election_leader(e).owner))) {
		on_nobody(e);
	}
}

static void on_current(struct pawl_election *e) {
	bool first = !e->ever_current, seen = e->present_seen;
	e->ever_current = true;
	e->present_seen = false;
	if (!seen && (first || e->leader.known)) {
		on_nobody(e);
	}
}

/* docs/client-guide.md, Elections: a leader that is asked in favour of a named candidate hands over
 * to it. Otherwise it hands over to the one that asks if that one has a higher priority. */
static void on_asked(struct pawl_election *e, const struct pawl_event *event) {
	struct pawl_asked asked = { .by = event->entry.owner, .to = event->to,
		.priority = event->priority };
	enum pawl_asked_answer answer = PAWL_ASKED_USUAL;
	if (e->state != ELECTION_LEADING || !election_leads(e)) {
		return;
	}
	if (e->options.on_asked) {
		bool gone;
		election_enter(e, &gone);
		answer = e->options.on_asked(e, &asked, e->options.arg);
		if (!election_left(e, &gone)) {
			return;
		}
	}
	struct pawl_bytes to = asked.to.size ? asked.to : asked.by;
	bool yields = asked.to.size || asked.priority > e->options.priority;
	if (answer == PAWL_ASKED_USUAL && yields && !same(to, e->options.owner)) {
		/* If this cannot begin, the leader goes on, and will be asked again. */
		(void)election_hand_over(e, to, true, NULL, NULL);
	}
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct pawl_election *e = arg;
	(void)watch;
	switch (event->type) {
	case PAWL_EVENT_PRESENT:
	case PAWL_EVENT_ACQUIRED:
	case PAWL_EVENT_UPDATED:
		on_holder(e, &event->entry);
		return;
	case PAWL_EVENT_RELEASED:
	case PAWL_EVENT_EXPIRED:
	case PAWL_EVENT_LOST:
		on_gone(e, &event->entry);
		return;
	case PAWL_EVENT_CURRENT:
		on_current(e);
		return;
	case PAWL_EVENT_OVERFLOW:
		e->present_seen = false;
		return;
	case PAWL_EVENT_ASKED:
		on_asked(e, event);
		return;
	case PAWL_EVENT_DOWNGRADED:
		return;
	}
}

static void on_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	struct pawl_election *e = arg;
	e->watch = NULL;
	bool alive = election_tell_failed(e, error, message);
	(void)alive;
	pawl_watch_free(watch);
}

int election_observe(struct pawl_election *e) {
	e->ask.ring = on_ask_alarm;
	struct pawl_watch_options options = { .key = e->options.name, .on_event = on_event,
		.on_ended = on_ended, .arg = e };
	int error = pawl_watch_start(e->client, &options, &e->watch);
	if (!error) {
		e->watch->quiet = true;
	}
	return error;
}
