/* reads.c: the commands that read, watch and ask, and the fence store. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

/* ---- requests ---- */

static void start(struct command *command, const struct pawl_request *request, pawl_done_fn *done) {
	command_started(command, command->bad ? 0
		: pawl_start(command->client->pawl, request, done, command, &command->call));
}

static void on_got(struct pawl_result *take_result, void *arg) {
	const struct pawl_entry *e = &take_result->entry;
	json_t *ok = json_pack("{sb}", "held", e->held);
	if (e->held) {
		json_object_set_new(ok, "owner", line_bytes(e->owner));
		json_object_set_new(ok, "value", line_bytes(e->value));
		json_object_set_new(ok, "token", line_token(e->token));
	}
	line_outcome(arg, take_result, ok);
}

void do_get(struct command *command) {
	client_named(command);
	start(command, &(struct pawl_request){ .method = PAWL_GET,
		.key = param_bytes(command, "key"), .quorum = param_flag(command, "quorum") },
		on_got);
}

static void on_waiters(struct pawl_result *take_result, void *arg) {
	json_t *owners = json_array();
	for (size_t i = 0; i < take_result->waiter_count; i++) {
		json_array_append_new(owners, line_bytes(take_result->waiters[i].owner));
	}
	line_outcome(arg, take_result, json_pack("{so}", "owners", owners));
}

void do_waiters(struct command *command) {
	client_named(command);
	start(command, &(struct pawl_request){ .method = PAWL_WAITERS,
		.key = param_bytes(command, "key") }, on_waiters);
}

static json_t *text_of(const struct pawl_value *map, const char *name) {
	const struct pawl_value *v = pawl_value_get(map, name);
	return v && (v->kind == PAWL_TEXT || v->kind == PAWL_BYTES) ? line_bytes(v->bytes)
		: json_null();
}

static void on_explained(struct pawl_result *take_result, void *arg) {
	const struct pawl_value *masters = pawl_value_get(take_result->tree, "masters");
	json_t *list = json_array();
	for (size_t i = 0; masters && masters->kind == PAWL_ARRAY && i < masters->count; i++) {
		json_array_append_new(list, json_pack("{so so}", "node",
			text_of(&masters->items[i], "node"), "state",
			text_of(&masters->items[i], "state")));
	}
	line_outcome(arg, take_result, json_pack("{so}", "masters", list));
}

void do_explain(struct command *command) {
	client_named(command);
	start(command, &(struct pawl_request){ .method = PAWL_EXPLAIN,
		.key = param_bytes(command, "key") }, on_explained);
}

static void on_reached(struct pawl_result *take_result, void *arg) {
	line_outcome(arg, take_result,
		json_pack("{sI}", "reached", (json_int_t)take_result->reached));
}

void do_ask_release(struct command *command) {
	client_named(command);
	start(command, &(struct pawl_request){ .method = PAWL_ASK_RELEASE,
		.key = param_bytes(command, "key"), .to = param_bytes(command, "to"),
		.terms.priority = param_signed(command, "priority") }, on_reached);
}

/* ---- watches ---- */

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct watching *watching = arg;
	const struct pawl_entry *e = &event->entry;
	(void)watch;
	json_t *fields = json_pack("{ss ss}", "watch", watching->name, "type",
		pawl_event_name(event->type));
	if (e->key.size) {
		json_object_set_new(fields, "key", line_bytes(e->key));
	}
	if (e->token) {
		json_object_set_new(fields, "owner", line_bytes(e->owner));
		json_object_set_new(fields, "value", line_bytes(e->value));
		json_object_set_new(fields, "token", line_token(e->token));
	}
	line_event("change", fields);
}

static void on_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	struct watching *watching = arg;
	(void)watch;
	line_event("ended", json_pack("{ss ss ss}", "watch", watching->name, "code",
		line_code(error), "message", message));
}

void do_watch(struct command *command) {
	struct client *client = client_named(command);
	struct watching *watching = watching_new(command, client);
	const bool prefix = param_has(command, "prefix");
	struct pawl_watch_options options = {
		.key = param_bytes(command, prefix ? "prefix" : "key"), .prefix = prefix,
		.on_event = on_event, .on_ended = on_ended, .arg = watching };
	int error = command->bad ? 0
		: pawl_watch_start(client->pawl, &options, &watching->watch);
	if (error || command->bad) {
		watching_free(watching);
		command_started(command, error);
	} else {
		line_ok(command, json_object());
	}
}

void do_stop(struct command *command) {
	struct watching *watching = watching_named(command);
	if (!watching) {
		command_started(command, 0);
		return;
	}
	watching_free(watching);
	line_ok(command, json_object());
}

/* ---- fencing ---- */

void do_fence(struct command *command) {
	const char *file = param_text(command, "file");
	struct pawl_bytes key = param_bytes(command, "key");
	const uint64_t token = param_token(command, "token");
	struct pawl_fence *fence = NULL;
	if (command->bad) {
		command_started(command, 0);
		return;
	}
	int error = pawl_fence_open(file, &fence);
	error = error ? error
		: pawl_fence_store_check(fence, key, token, PAWL_EXCLUSIVE, NULL);
	pawl_fence_close(fence);
	if (error && error != PAWL_ELOST) {
		line_error(command, error, NULL);
	} else {
		line_ok(command, json_pack("{sb}", "accepted", error == 0));
	}
}
