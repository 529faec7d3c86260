/* json.c: JSON for programs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

static void *must(void *p) {
	if (!p) {
		fprintf(stderr, "pawl: out of memory\n");
		exit(CLI_REFUSED);
	}
	return p;
}

int output_json(json_t *take_object) {
	char *text = must(
		json_dumps(take_object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9)));
	puts(text);
	/* Programs read this output line by line. */
	fflush(stdout);
	free(text);
	json_decref(take_object);
	return 0;
}

void output_json_set(json_t *object, const char *name, json_t *take_value) {
	if (json_object_set_new(object, name, must(take_value)) != 0) {
		must(NULL);
	}
}

char *output_hex(struct pawl_bytes bytes) {
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes.data;
	char *out = must(malloc(2 * bytes.size + 1));
	for (size_t i = 0; i < bytes.size; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[2 * bytes.size] = '\0';
	return out;
}

static void set_hex(json_t *object, const char *name, struct pawl_bytes bytes) {
	char *hex = output_hex(bytes);
	output_json_set(object, name, json_string(hex));
	free(hex);
}

void output_json_bytes(json_t *object, const char *name, struct pawl_bytes bytes) {
	json_t *text = json_stringn(bytes.size ? bytes.data : "", bytes.size);
	if (text) {
		output_json_set(object, name, text);
		return;
	}
	char *hex_name = must(malloc(strlen(name) + sizeof "_hex"));
	memcpy(hex_name, name, strlen(name));
	memcpy(hex_name + strlen(name), "_hex", sizeof "_hex");
	set_hex(object, hex_name, bytes);
	free(hex_name);
}

void output_json_id(json_t *object, const char *name, const struct pawl_id *id) {
	char text[PAWL_ID_TEXT];
	pawl_id_format(id, text);
	output_json_set(object, name, json_string(text));
}

static json_t *from_value(const struct pawl_value *v);

/* lock_ids and the names of writes are bytes that nobody reads, so they are always hexadecimal,
 * even if they look like text. */
static bool is_opaque(const struct pawl_value *name, const struct pawl_value *v) {
	return v->kind == PAWL_BYTES
		&& (strcmp(name->bytes.data, "lock_id") == 0
			|| strcmp(name->bytes.data, "value_seq") == 0);
}

/* A hash is a name and no number, and JSON's readers would round it. */
static void set_hash(json_t *object, const char *name, uint64_t hash) {
	char text[17];
	snprintf(text, sizeof text, "%016" PRIx64, hash);
	output_json_set(object, name, json_string(text));
}

static json_t *from_map(const struct pawl_value *map) {
	json_t *object = must(json_object());
	for (size_t i = 0; i < map->count; i++) {
		const struct pawl_value *name = &map->items[2 * i], *v = &map->items[2 * i + 1];
		if (name->kind != PAWL_TEXT && name->kind != PAWL_BYTES) {
			continue;
		}
		if (v->kind == PAWL_INT && strcmp(name->bytes.data, "config_hash") == 0) {
			set_hash(object, name->bytes.data, (uint64_t)v->integer);
		} else if (is_opaque(name, v)) {
			set_hex(object, name->bytes.data, v->bytes);
		} else if (v->kind == PAWL_TEXT || v->kind == PAWL_BYTES) {
			output_json_bytes(object, name->bytes.data, v->bytes);
		} else {
			output_json_set(object, name->bytes.data, from_value(v));
		}
	}
	return object;
}

static json_t *from_array(const struct pawl_value *array) {
	json_t *out = must(json_array());
	for (size_t i = 0; i < array->count; i++) {
		if (json_array_append_new(out, from_value(&array->items[i])) != 0) {
			must(NULL);
		}
	}
	return out;
}

static json_t *from_bytes(struct pawl_bytes bytes) {
	json_t *text = json_stringn(bytes.size ? bytes.data : "", bytes.size);
	if (!text) {
		char *hex = output_hex(bytes);
		text = json_string(hex);
		free(hex);
	}
	return must(text);
}

static json_t *from_value(const struct pawl_value *v) {
	switch (v->kind) {
	case PAWL_NIL:
		return must(json_null());
	case PAWL_BOOL:
		return must(json_boolean(v->boolean));
	case PAWL_INT:
		/* JSON's integers are signed here. A larger number loses its last digits rather
		 * than its sign. */
		return must(v->above ? json_real((double)(uint64_t)v->integer)
			: json_integer(v->integer));
	case PAWL_REAL:
		return must(json_real(v->real));
	case PAWL_TEXT:
	case PAWL_BYTES:
		return from_bytes(v->bytes);
	case PAWL_ARRAY:
		return from_array(v);
	case PAWL_MAP:
		return from_map(v);
	}
	return must(NULL);
}

json_t *output_json_tree(const struct pawl_value *map) {
	return map && map->kind == PAWL_MAP ? from_map(map) : must(json_object());
}
