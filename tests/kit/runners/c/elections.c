/* elections.c: the commands about elections. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static json_t *describe_leader(struct pawl_bytes owner, struct pawl_bytes value, uint64_t token) {
	return json_pack("{so so so}", "owner", line_bytes(owner), "value", line_bytes(value),
		"token", line_token(token));
}

/* ---- campaigns ---- */

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	struct held *held = arg;
	struct command *command = held->wanted;
	if (command) {
		held->wanted = NULL;
		line_ok(command, json_pack("{so sI}", "token", line_token(token), "valid_ms",
			(json_int_t)pawl_election_valid_ms(election)));
	}
}

/* A leader that yields to somebody who has asked for it is lost, too; its code is `asked`. */
static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	struct held *held = arg;
	if (held->given_up || held->cause) {
		return;
	}
	held->cause = cause ? cause : PAWL_ELOST;
	line_event("lost", json_pack("{ss ss sI so}", "lock", held->name, "code",
		cause ? line_code(cause) : "asked", "valid_ms",
		(json_int_t)pawl_election_valid_ms(election), "token",
		line_token(pawl_election_token(election))));
}

static void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	struct held *held = arg;
	struct command *command = held->wanted;
	(void)election, (void)observing;
	if (command) {
		held_free(held);
		line_error(command, error, message);
	}
}

void campaign_end(struct held *held) {
	(void)pawl_election_resign(held->election, NULL, NULL);
	held_free(held);
}

static void on_waited(evutil_socket_t fd, short what, void *arg) {
	struct command *command = arg;
	(void)fd, (void)what;
	campaign_end(command->held);
	line_error(command, PAWL_ETIMEOUT, NULL);
}

/* Sets when the campaign ends without being elected. */
static void wait_for(struct command *command, uint32_t wait_ms) {
	if (wait_ms != PAWL_FOREVER) {
		struct timeval tv = { .tv_sec = wait_ms / 1000,
			.tv_usec = (long)(wait_ms % 1000) * 1000 };
		command->timer = evtimer_new(command->runner->base, on_waited, command);
		if (!command->timer || evtimer_add(command->timer, &tv) != 0) {
			abort();
		}
	}
}

void do_campaign(struct command *command) {
	struct client *client = client_named(command);
	struct held *held = held_new(command, client);
	struct pawl_election_options options = { .name = param_bytes(command, "name"),
		.owner = param_bytes(command, "candidate"), .value = param_bytes(command, "value"),
		.lease_ms = param_number(command, "lease_ms", 0),
		.priority = param_signed(command, "priority"),
		.release_on_disconnect = param_flag(command, "release_on_disconnect"),
		.on_leading = on_leading, .on_stepped_down = on_stepped_down,
		.on_failed = on_failed, .arg = held };
	const uint32_t wait_ms = param_wait(command, "wait_ms", PAWL_FOREVER);
	int error = command->bad ? 0
		: pawl_election_new(client->pawl, &options, &held->election);
	error = error || command->bad ? error : pawl_election_campaign(held->election);
	if (error || command->bad) {
		held_free(held);
		command_started(command, error);
	} else {
		wait_for(command, wait_ms);
	}
}

static void on_proclaimed(struct pawl_result *take_result, void *arg) {
	struct command *command = arg;
	if (take_result->error) {
		line_result(command, take_result);
	} else {
		line_ok(command, json_object());
	}
	pawl_result_free(take_result);
}

void do_proclaim(struct command *command) {
	struct held *held = held_named(command);
	struct pawl_bytes value = param_bytes(command, "value");
	if (!held || command->bad) {
		command_started(command, 0);
	} else if (!held->election || !pawl_election_leads(held->election)) {
		line_error(command, held->election ? PAWL_ELOST : PAWL_EINVAL, NULL);
	} else {
		command_started(command,
			pawl_election_proclaim(held->election, value, on_proclaimed, command));
	}
}

/* ---- who leads ---- */

static void on_read(struct pawl_result *take_result, void *arg) {
	struct command *command = arg;
	const struct pawl_entry *e = &take_result->entry;
	if (take_result->error) {
		line_result(command, take_result);
	} else {
		line_ok(command, json_pack("{so}", "leader", e->held
			? describe_leader(e->owner, e->value, e->token) : json_null()));
	}
	pawl_result_free(take_result);
}

void do_leader(struct command *command) {
	struct client *client = client_named(command);
	struct pawl_request request = { .method = PAWL_GET, .key = param_bytes(command, "name"),
		.quorum = true };
	command_started(command, command->bad ? 0
		: pawl_start(client->pawl, &request, on_read, command, &command->call));
}

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct watching *watching = arg;
	(void)election;
	line_event("leader", json_pack("{ss so}", "watch", watching->name, "leader", leader
		? describe_leader(leader->owner, leader->value, leader->token) : json_null()));
}

static void on_ended(struct pawl_election *election, int error, const char *message, bool observing,
	void *arg) {
	struct watching *watching = arg;
	(void)election, (void)observing;
	line_event("ended", json_pack("{ss ss ss}", "watch", watching->name, "code",
		line_code(error), "message", message));
}

void do_observe(struct command *command) {
	struct client *client = client_named(command);
	struct watching *watching = watching_new(command, client);
	struct pawl_election_options options = { .name = param_bytes(command, "name"),
		.observe_only = true, .on_leader = on_leader, .on_failed = on_ended,
		.arg = watching };
	int error = command->bad ? 0
		: pawl_election_new(client->pawl, &options, &watching->observer);
	if (error || command->bad) {
		watching_free(watching);
		command_started(command, error);
	} else {
		line_ok(command, json_object());
	}
}
