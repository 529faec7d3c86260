/* locks.c: the commands about locks. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

/* ---- what the library tells by itself ---- */

/* Each lock of a set is lost by itself. */
static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct held *held = arg;
	held->cause = held->cause ? held->cause : cause;
	line_event("lost", json_pack("{ss ss sI so so}", "lock", held->name, "code",
		line_code(cause), "valid_ms", (json_int_t)pawl_lock_valid_ms(lock), "token",
		line_token(pawl_lock_token(lock)), "key", line_bytes(pawl_lock_key(lock))));
}

static void on_asked(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg) {
	struct held *held = arg;
	(void)lock;
	if (held->tells_asked) {
		line_event("asked", json_pack("{ss so so si}", "lock", held->name, "by",
			line_bytes(asked->by), "to", line_bytes(asked->to), "priority",
			(int)asked->priority));
	}
}

/* ---- acquiring ---- */

static void add_slots(json_t *ok, const struct pawl_lock *lock) {
	uint32_t slots[PAWL_PERMITS_MAX];
	size_t count = pawl_lock_slots(lock, slots, PAWL_PERMITS_MAX);
	if (!count) {
		return;
	}
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(list, json_integer(slots[i]));
	}
	json_object_set_new(ok, "slots", list);
}

static json_t *valid_of(const struct held *held) {
	if (held->election) {
		return json_integer((json_int_t)pawl_election_valid_ms(held->election));
	}
	int64_t least = held->count ? INT64_MAX : 0;
	for (size_t i = 0; i < held->count; i++) {
		int64_t valid = pawl_lock_error(held->locks[i]) ? 0
			: pawl_lock_valid_ms(held->locks[i]);
		least = valid < least ? valid : least;
	}
	return json_integer((json_int_t)least);
}

static json_t *token_of(const struct held *held) {
	return line_token(held->election ? pawl_election_token(held->election)
		: held->count ? pawl_lock_token(held->locks[0])
		: 0);
}

static json_t *describe_lock(struct held *held) {
	char id[PAWL_ID_TEXT];
	struct pawl_id lock_id = pawl_lock_id(held->locks[0]);
	pawl_id_format(&lock_id, id);
	json_t *ok = json_pack("{so so ss}", "token", token_of(held), "valid_ms", valid_of(held),
		"lock_id", id);
	add_slots(ok, held->locks[0]);
	return ok;
}

static json_t *describe_locks(struct held *held) {
	json_t *tokens = json_object();
	for (size_t i = 0; i < held->count; i++) {
		struct pawl_bytes key = pawl_lock_key(held->locks[i]);
		json_object_setn_new(tokens, key.data, key.size,
			line_token(pawl_lock_token(held->locks[i])));
	}
	return json_pack("{so so}", "tokens", tokens, "valid_ms", valid_of(held));
}

/* Takes the locks that were granted, and answers the command. */
static void on_acquired(struct command *command, struct pawl_lock *const *locks, size_t count,
	struct pawl_result *take_result, json_t *(*describe)(struct held *held)) {
	struct held *held = command->held;
	if (take_result->error) {
		held_free(held);
		line_result(command, take_result);
	} else {
		memcpy(held->locks, locks, count * sizeof(locks[0]));
		held->count = count;
		held->wanted = NULL;
		line_ok(command, describe(held));
	}
	pawl_result_free(take_result);
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	on_acquired(arg, &take_lock, 1, take_result, describe_lock);
}

static void on_locks(struct pawl_lock *const *locks, size_t count, struct pawl_result *take_result,
	void *arg) {
	on_acquired(arg, locks, count, take_result, describe_locks);
}

static bool is_shared(struct command *command) {
	const char *mode = param_has(command, "mode") ? param_text(command, "mode") : "exclusive";
	const bool shared = mode && strcmp(mode, "shared") == 0;
	if (mode && !shared && strcmp(mode, "exclusive") != 0) {
		command->bad = "mode";
	}
	return shared;
}

static struct pawl_lock_options options_of(struct command *command, struct held *held) {
	return (struct pawl_lock_options){
		.lease_ms = param_number(command, "lease_ms", 0),
		.wait_ms = param_wait(command, "wait_ms", 0),
		.owner = param_bytes(command, "owner"),
		.value = param_bytes(command, "value"),
		.label = param_bytes(command, "label"),
		.party = param_party(command, "party"),
		.terms = { .mode = is_shared(command) ? PAWL_SHARED : PAWL_EXCLUSIVE,
			.permits = param_number(command, "permits", 0),
			.of = param_number(command, "of", 0),
			.priority = param_signed(command, "priority"),
			.lock_delay_ms = param_number(command, "lock_delay_ms", 0),
			.release_on_disconnect = param_flag(command, "release_on_disconnect") },
		.on_lost = on_lost,
		.arg = held };
}

/* Answers the command, and forgets what was to be held, if that could not begin. */
static void acquire_started(struct command *command, int error) {
	if (command->bad || error) {
		held_free(command->held);
		command_started(command, error);
	}
}

void do_lock(struct command *command) {
	struct client *client = client_named(command);
	struct held *held = held_new(command, client);
	struct pawl_lock_options options = options_of(command, held);
	options.key = param_bytes(command, "key");
	const bool asked = param_flag(command, "asked");
	if (asked && held) {
		held->tells_asked = true;
		options.on_asked = on_asked;
	}
	acquire_started(command, command->bad ? 0
		: pawl_lock_start(client->pawl, &options, on_locked, command, &command->call));
}

void do_locks(struct command *command) {
	struct client *client = client_named(command);
	struct held *held = held_new(command, client);
	struct pawl_lock_options options = options_of(command, held);
	json_t *keys = json_object_get(command->params, "keys");
	struct pawl_key_item items[KEYS_MAX + 1] = { { .key = { NULL, 0 } } };
	/* The library refuses one key too many. */
	size_t count = json_array_size(keys);
	count = count > KEYS_MAX ? KEYS_MAX + 1 : count;
	for (size_t i = 0; i < count; i++) {
		items[i].key = param_item(json_array_get(keys, i));
	}
	acquire_started(command, command->bad ? 0
		: pawl_locks_start(client->pawl, &options, items, count, on_locks, command,
			&command->call));
}

/* ---- a held lock ---- */

/* Returns the only lock of that name; NULL: there is none (any more), and the command is
 * answered. */
static struct pawl_lock *one_lock(struct command *command) {
	struct held *held = held_named(command);
	if (!held || command->bad) {
		command_started(command, PAWL_EINVAL);
	} else if (held->count == 1) {
		return held->locks[0];
	} else {
		line_error(command, held->count || held->election ? PAWL_EINVAL : PAWL_ELOST, NULL);
	}
	return NULL;
}

static void on_extended(struct pawl_result *take_result, void *arg) {
	line_outcome(arg, take_result, json_pack("{so sI}", "token", line_token(take_result->token),
		"valid_ms", (json_int_t)pawl_result_valid_ms(take_result)));
}

/* Asks for another lease of a lock, by one of the functions that do so. */
static void ask_lease(struct command *command, int (*start)(struct pawl_lock *lock,
	uint32_t lease_ms, pawl_done_fn *done, void *arg, struct pawl_call **out_call),
	pawl_done_fn *done) {
	struct pawl_lock *lock = one_lock(command);
	const uint32_t lease_ms = param_number(command, "lease_ms", 0);
	if (lock) {
		const int lost = pawl_lock_error(lock);
		command_started(command, command->bad ? 0 : lost ? lost
			: start(lock, lease_ms, done, command, &command->call));
	}
}

void do_extend(struct command *command) {
	ask_lease(command, pawl_lock_extend_start, on_extended);
}

static void on_shortened(struct pawl_result *take_result, void *arg) {
	line_outcome(arg, take_result,
		json_pack("{sI}", "valid_ms", (json_int_t)pawl_result_valid_ms(take_result)));
}

void do_shorten(struct command *command) {
	ask_lease(command, pawl_lock_shorten_start, on_shortened);
}

void do_token(struct command *command) {
	struct held *held = held_named(command);
	if (!held) {
		command_started(command, 0);
		return;
	}
	line_ok(command, json_pack("{so}", "token", token_of(held)));
}

void do_valid(struct command *command) {
	struct held *held = held_named(command);
	if (!held) {
		command_started(command, 0);
		return;
	}
	const json_int_t at = line_now();
	line_ok_at(command, at, json_pack("{so}", "valid_ms", valid_of(held)));
}

void do_check(struct command *command) {
	struct held *held = held_named(command);
	if (!held) {
		command_started(command, 0);
		return;
	}
	int error = held->cause;
	error = !error && !held->count && !held->election ? PAWL_ELOST : error;
	for (size_t i = 0; !error && i < held->count; i++) {
		error = pawl_lock_error(held->locks[i]);
	}
	if (error) {
		line_error(command, error, NULL);
	} else {
		line_ok(command, json_object());
	}
}

void do_gate(struct command *command) {
	struct held *held = held_named(command);
	const uint32_t margin = param_number(command, "margin_ms", 0);
	if (!held || command->bad) {
		command_started(command, 0);
		return;
	}
	json_t *valid = valid_of(held);
	const json_int_t left = json_integer_value(valid);
	const bool accepted = !held->cause && left > 0 && left >= margin;
	json_decref(valid);
	json_t *ok = json_pack("{sb}", "accepted", accepted);
	if (accepted) {
		json_object_set_new(ok, "token", token_of(held));
	}
	line_ok(command, ok);
}

/* ---- letting go ---- */

static void on_released(struct pawl_result *take_result, void *arg) {
	line_outcome(arg, take_result, json_pack("{sb}", "released", take_result->released));
}

void do_release(struct command *command) {
	struct held *held = held_named(command);
	const uint32_t close_ms = param_number(command, "close_ms", 0);
	if (!held || command->bad) {
		command_started(command, 0);
		return;
	}
	if (held->election && close_ms) {
		command_started(command, PAWL_EINVAL);
		return;
	}
	held->given_up = true;
	if (held->election && pawl_election_leads(held->election)) {
		command_started(command,
			pawl_election_resign(held->election, on_released, command));
		return;
	}
	const size_t count = held->count;
	int error = 0;
	held->count = 0;
	/* All of them are released; the outcome of the last one is told. */
	for (size_t i = 0; i < count; i++) {
		const bool last = i + 1 == count;
		int failed = pawl_lock_release_closing_start(held->locks[i], close_ms,
			last ? on_released : NULL, command);
		error = last ? failed : error;
	}
	if (!count) {
		line_ok(command, json_pack("{sb}", "released", false));
	} else {
		command_started(command, error);
	}
}

/* In C programs free their handles themselves, and pawl_lock_free says that it releases nothing. */
void do_forget(struct command *command) {
	line_refused(command, "no_collector", "");
}

static void on_done(struct pawl_result *take_result, void *arg) {
	line_outcome(arg, take_result, json_object());
}

void do_downgrade(struct command *command) {
	struct pawl_lock *lock = one_lock(command);
	if (lock) {
		command_started(command,
			pawl_lock_downgrade_start(lock, on_done, command, &command->call));
	}
}

void do_update(struct command *command) {
	struct pawl_lock *lock = one_lock(command);
	if (!lock) {
		return;
	}
	struct pawl_bytes value = param_bytes(command, "value"),
		expect = param_bytes(command, "expect");
	command_started(command, command->bad ? 0
		: pawl_lock_update_start(lock, value, param_has(command, "expect") ? &expect : NULL,
			on_done, command, &command->call));
}

static void on_transferred(struct pawl_result *take_result, void *arg) {
	struct command *command = arg;
	if (command->held && take_result->error) {
		command->held->given_up = false;
	}
	line_outcome(command, take_result, json_pack("{sb}", "transferred", take_result->released));
}

void do_transfer(struct command *command) {
	struct held *held = held_named(command);
	struct pawl_bytes to = param_bytes(command, "to");
	if (held && held->election && !command->bad) {
		if (!pawl_election_leads(held->election)) {
			line_error(command, held->cause ? held->cause : PAWL_ELOST, NULL);
			return;
		}
		held->given_up = true;
		int error = pawl_election_transfer(held->election, to, on_transferred, command);
		held->given_up = !error;
		command_started(command, error);
		return;
	}
	struct pawl_lock *lock = one_lock(command);
	if (lock) {
		const int lost = pawl_lock_error(lock);
		command_started(command, lost ? lost
			: pawl_lock_transfer_start(lock, to, on_transferred, command));
	}
}
