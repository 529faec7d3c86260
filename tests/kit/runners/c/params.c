/* params.c: reads the parameters of a command. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static json_t *param(const struct command *command, const char *name) {
	return json_object_get(command->params, name);
}

bool param_has(const struct command *command, const char *name) {
	return param(command, name) != NULL;
}

static void note_bad(struct command *command, const char *name) {
	command->bad = command->bad ? command->bad : name;
}

static int digit(char c) {
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Puts the bytes into the place of their hex digits, which live as long as the command. */
static struct pawl_bytes from_hex(json_t *object) {
	json_t *hex = json_object_get(object, "hex");
	const char *text = json_string_value(hex);
	const size_t size = json_string_length(hex);
	char *bytes = text && size % 2 == 0 ? calloc(1, size / 2 + 1) : NULL;
	for (size_t i = 0; bytes && i < size / 2; i++) {
		const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
		if (high < 0 || low < 0) {
			free(bytes);
			return (struct pawl_bytes){ NULL, 0 };
		}
		bytes[i] = (char)(high * 16 + low);
	}
	if (!bytes) {
		return (struct pawl_bytes){ NULL, 0 };
	}
	/* A JSON string holds any bytes if nobody checks them. */
	json_t *kept = json_stringn_nocheck(bytes, size / 2);
	free(bytes);
	json_object_set_new_nocheck(object, "bytes", kept);
	return (struct pawl_bytes){ json_string_value(kept), size / 2 };
}

struct pawl_bytes param_item(json_t *item) {
	return json_is_object(item) ? from_hex(item)
		: (struct pawl_bytes){ json_string_value(item), json_string_length(item) };
}

struct pawl_bytes param_bytes(struct command *command, const char *name) {
	json_t *value = param(command, name);
	if (!value || json_is_null(value)) {
		return (struct pawl_bytes){ NULL, 0 };
	}
	struct pawl_bytes bytes = param_item(value);
	if (!bytes.data) {
		note_bad(command, name);
	}
	return bytes;
}

const char *param_text(struct command *command, const char *name) {
	const char *text = json_string_value(param(command, name));
	if (!text) {
		note_bad(command, name);
	}
	return text;
}

static json_int_t integer(struct command *command, const char *name, json_int_t least,
	json_int_t most, json_int_t otherwise) {
	json_t *value = param(command, name);
	if (!value) {
		return otherwise;
	}
	const json_int_t number = json_integer_value(value);
	if (!json_is_integer(value) || number < least || number > most) {
		note_bad(command, name);
		return otherwise;
	}
	return number;
}

uint32_t param_number(struct command *command, const char *name, uint32_t otherwise) {
	return (uint32_t)integer(command, name, 0, UINT32_MAX, otherwise);
}

int32_t param_signed(struct command *command, const char *name) {
	return (int32_t)integer(command, name, INT32_MIN, INT32_MAX, 0);
}

uint64_t param_token(struct command *command, const char *name) {
	const char *text = param_text(command, name);
	char *end = NULL;
	errno = 0;
	const uint64_t token = text ? strtoull(text, &end, 10) : 0;
	if (text && (!*text || *end || *text == '-' || errno)) {
		note_bad(command, name);
	}
	return token;
}

bool param_flag(struct command *command, const char *name) {
	json_t *value = param(command, name);
	if (value && !json_is_boolean(value)) {
		note_bad(command, name);
	}
	return json_is_true(value);
}

uint32_t param_wait(struct command *command, const char *name, uint32_t otherwise) {
	return json_is_null(param(command, name)) ? PAWL_FOREVER
		: param_number(command, name, otherwise);
}

struct pawl_id param_party(struct command *command, const char *name) {
	struct pawl_id party = { { 0 } };
	const char *text = param_has(command, name) ? param_text(command, name) : NULL;
	if (text && pawl_id_parse(text, &party) != 0) {
		note_bad(command, name);
	}
	return party;
}
