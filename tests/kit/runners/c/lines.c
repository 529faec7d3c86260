/* lines.c: writes what the runner has to say, one JSON object a line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runner.h"

json_int_t line_now(void) {
	struct timespec ts;
	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (json_int_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void put(json_t *take_line) {
	char *text = json_dumps(take_line, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(take_line);
	if (!text || printf("%s\n", text) < 0 || fflush(stdout) != 0) {
		/* Nobody listens any more. */
		exit(1);
	}
	free(text);
}

static void command_free(struct command *command) {
	list_remove(&command->link);
	if (command->timer) {
		event_free(command->timer);
	}
	if (command->held && command->held->wanted == command) {
		command->held->wanted = NULL;
	}
	json_decref(command->params);
	free(command);
}

void line_ok_at(struct command *command, json_int_t at, json_t *take_ok) {
	put(json_pack("{sI sI so}", "id", command->id, "at", at, "ok", take_ok));
	command_free(command);
}

void line_ok(struct command *command, json_t *take_ok) {
	line_ok_at(command, line_now(), take_ok);
}

static void put_error(struct command *command, json_t *take_error) {
	put(json_pack("{sI sI so}", "id", command->id, "at", line_now(), "error", take_error));
	command_free(command);
}

const char *line_code(int error) {
	return error == PAWL_EINVAL ? "bad_argument"
		: error == PAWL_ECANCELED ? "closed" /* the client was closed */
		: pawl_error_code(error);
}

void line_refused(struct command *command, const char *code, const char *message) {
	put_error(command, json_pack("{ss ss}", "code", code, "message", message));
}

void line_error(struct command *command, int error, const char *message) {
	line_refused(command, line_code(error), message ? message : pawl_error_message(error));
}

void line_result(struct command *command, const struct pawl_result *result) {
	json_t *error = json_pack("{ss ss}", "code", line_code(result->error), "message",
		result->message);
	const struct pawl_value *limit = pawl_value_get(result->tree, "limit_ms");
	if (*result->field) {
		json_object_set_new(error, "field", json_string(result->field));
	}
	if (limit && limit->kind == PAWL_INT) {
		json_object_set_new(error, "limit_ms", json_integer(limit->integer));
	}
	if (result->entry.held) {
		json_object_set_new(error, "holder", line_bytes(result->entry.owner));
	}
	if (result->key.size) {
		json_object_set_new(error, "key", line_bytes(result->key));
	}
	put_error(command, error);
}

void line_outcome(struct command *command, struct pawl_result *take_result, json_t *take_ok) {
	if (take_result->error) {
		json_decref(take_ok);
		line_result(command, take_result);
	} else {
		line_ok(command, take_ok);
	}
	pawl_result_free(take_result);
}

void line_event(const char *event, json_t *take_fields) {
	json_object_set_new(take_fields, "event", json_string(event));
	json_object_set_new(take_fields, "at", json_integer(line_now()));
	put(take_fields);
}

json_t *line_bytes(struct pawl_bytes bytes) {
	json_t *text = json_stringn(bytes.data ? bytes.data : "", bytes.size);
	if (text) {
		return text;
	}
	static const char digits[] = "0123456789abcdef";
	char *hex = calloc(1, 2 * bytes.size + 1);
	for (size_t i = 0; hex && i < bytes.size; i++) {
		const uint8_t byte = ((const uint8_t *)bytes.data)[i];
		hex[2 * i] = digits[byte >> 4];
		hex[2 * i + 1] = digits[byte & 15];
	}
	json_t *object = json_pack("{ss}", "hex", hex ? hex : "");
	free(hex);
	return object;
}

json_t *line_token(uint64_t token) {
	char text[24];
	(void)snprintf(text, sizeof(text), "%" PRIu64, token);
	return json_string(text);
}
