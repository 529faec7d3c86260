/* audit_lines.c: reads audit files. */
#include "audit_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output.h"

/* The longest line that a node writes has a few KiB. */
#define AUDIT_LINE_MAX (1u << 20)

struct reading {
	struct audit_lines *to;
	const char *file;
	uint64_t number, boot;
	/* The number of the last line, if that is no JSON object; otherwise 0. */
	uint64_t cut;
	bool opened;
};

void *audit_grown(void *at, size_t count, size_t *capacity, size_t size) {
	if (count < *capacity) {
		return at;
	}
	*capacity = *capacity ? 2 * *capacity : 1024;
	at = realloc(at, *capacity * size);
	if (!at) {
		fputs("pawl: audit: out of memory\n", stderr);
		exit(2);
	}
	return at;
}

/* ---- names ---- */

static uint32_t name_of(struct audit_names *names, const char *text) {
	if (!names->numbers) {
		names->numbers = json_object();
	}
	const json_t *known = json_object_get(names->numbers, text);
	if (known) {
		return (uint32_t)json_integer_value(known);
	}
	char *copy = strdup(text);
	names->texts = audit_grown(names->texts, names->count, &names->capacity,
		sizeof *names->texts);
	if (!copy || json_object_set_new(names->numbers, text,
		json_integer((json_int_t)names->count))) {
		fputs("pawl: audit: out of memory\n", stderr);
		exit(2);
	}
	names->texts[names->count] = copy;
	return (uint32_t)names->count++;
}

const char *audit_lines_text(const struct audit_lines *lines, uint32_t number) {
	return number == AUDIT_NONE ? "" : lines->names.texts[number];
}

void audit_lines_free(struct audit_lines *lines) {
	for (size_t i = 0; i < lines->names.count; i++) {
		free(lines->names.texts[i]);
	}
	json_decref(lines->names.numbers);
	free(lines->names.texts);
	free(lines->lines);
}

/* ---- fields ---- */

static bool wrong(const struct reading *r, const char *what) {
	output_line(stderr, "pawl: audit check: %s, line %llu: %s", r->file,
		(unsigned long long)r->number, what);
	return false;
}

static uint32_t hex_name_of(const struct reading *r, const char *digits) {
	char marked[2200];
	snprintf(marked, sizeof marked, "hex:%s", digits);
	return name_of(&r->to->names, marked);
}

/* Bytes that are no UTF-8 are in NAME_hex: they get a name that no text has, and so does a text
 * with a zero byte in it. */
static uint32_t text_field(const struct reading *r, const json_t *object, const char *name) {
	char hex_name[32];
	const json_t *value = json_object_get(object, name);
	if (json_is_string(value)) {
		const char *text = json_string_value(value);
		const size_t size = json_string_length(value);
		if (strlen(text) == size) {
			return name_of(&r->to->names, text);
		}
		char *digits = output_hex((struct pawl_bytes){ text, size });
		const uint32_t number = hex_name_of(r, digits);
		free(digits);
		return number;
	}
	snprintf(hex_name, sizeof hex_name, "%s_hex", name);
	value = json_object_get(object, hex_name);
	return json_is_string(value) ? hex_name_of(r, json_string_value(value)) : AUDIT_NONE;
}

static int64_t number_field(const json_t *object, const char *name) {
	return json_integer_value(json_object_get(object, name));
}

static bool text_is(const json_t *object, const char *name, const char *text) {
	const char *value = json_string_value(json_object_get(object, name));
	return value && strcmp(value, text) == 0;
}

static bool time_field(const json_t *object, int64_t *out_us) {
	const char *text = json_string_value(json_object_get(object, "ts"));
	struct tm tm = { 0 };
	const char *rest = text && strlen(text) == strlen("2026-11-26T18:38:14.123456Z")
		? strptime(text, "%Y-%m-%dT%H:%M:%S.", &tm) : NULL;
	int64_t us = 0;
	for (int i = 0; rest && i < 6; i++, rest++) {
		if (*rest < '0' || *rest > '9') {
			return false;
		}
		us = 10 * us + (*rest - '0');
	}
	*out_us = (int64_t)timegm(&tm) * 1000000 + us;
	return rest && strcmp(rest, "Z") == 0;
}

static enum audit_action action_of(const char *text) {
	static const char *const names[] = { [AUDIT_OPEN] = "open", [AUDIT_CLOSE] = "close",
		[AUDIT_EPOCH] = "epoch", [AUDIT_ACQUIRE] = "acquire", [AUDIT_EXTEND] = "extend",
		[AUDIT_RELEASE] = "release", [AUDIT_TRANSFER] = "transfer",
		[AUDIT_DOWNGRADE] = "downgrade", [AUDIT_LOST] = "lost", [AUDIT_BREAK] = "break",
		[AUDIT_FORCE] = "cluster_force" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(text, names[i]) == 0) {
			return (enum audit_action)i;
		}
	}
	return AUDIT_OTHER;
}

static struct audit_mode mode_of(const json_t *object) {
	struct audit_mode mode = { .exclusive = text_is(object, "mode", "exclusive"),
		.shared = text_is(object, "mode", "shared"),
		.of = (uint64_t)number_field(object, "of") };
	size_t i;
	const json_t *slot, *slots = json_object_get(object, "slots");
	json_array_foreach(slots, i, slot) {
		const json_int_t n = json_integer_value(slot);
		if (n >= 0 && n < 128) {
			mode.slots[n / 64] |= (uint64_t)1 << (n % 64);
		}
	}
	return mode;
}

static bool take_object(struct reading *r, const json_t *object) {
	struct audit_lines *to = r->to;
	struct audit_line line = { .file = r->file, .number = r->number };
	const char *action = json_string_value(json_object_get(object, "action"));
	if (!action || !json_is_integer(json_object_get(object, "seq"))
		|| !json_is_integer(json_object_get(object, "mono_us"))
		|| !json_is_string(json_object_get(object, "node"))) {
		return wrong(r, "this is no line of an audit file: it lacks node, seq, action or "
			"mono_us");
	}
	if (!time_field(object, &line.ts)) {
		return wrong(r, "ts is no time such as 2026-11-26T18:38:14.123456Z");
	}
	line.action = action_of(action);
	if (line.action == AUDIT_OPEN) {
		if (number_field(object, "format") != 1) {
			return wrong(r, "this program knows format 1 of audit files only");
		}
		r->opened = true;
		r->boot = (uint64_t)number_field(object, "boot");
	}
	if (!r->opened) {
		return wrong(r, "the first line of a file says that it was opened: this file "
			"lacks its beginning");
	}
	line.boot = r->boot;
	line.node = text_field(r, object, "node");
	line.key = text_field(r, object, "key");
	line.lock = text_field(r, object, "lock");
	line.owner = text_field(r, object, "owner");
	line.seq = (uint64_t)number_field(object, "seq");
	line.token = (uint64_t)number_field(object, "token");
	line.dropped = (uint64_t)number_field(object, "dropped");
	line.mono = number_field(object, "mono_us");
	line.took = number_field(object, "took_us");
	line.valid_ms = number_field(object, "valid_ms");
	line.drift_ppm = number_field(object, "drift_ppm");
	line.mode = mode_of(object);
	line.ok = text_is(object, "result", "ok");
	line.denied = text_is(object, "result", "denied");
	line.not_found = text_is(object, "result", "not_found");
	line.taken = text_is(object, "cause", "taken");
	line.now = json_is_true(json_object_get(object, "now"));
	line.shorten = json_is_true(json_object_get(object, "shorten"));
	line.holders = text_is(object, "what", "holders") || text_is(object, "what", "all");
	to->lines = audit_grown(to->lines, to->count, &to->capacity, sizeof *to->lines);
	to->lines[to->count++] = line;
	return true;
}

/* A crash may cut off a line. The next start gives it an end, and goes on behind it. */
static bool cut_by_crash(struct reading *r, const json_t *next) {
	if (r->cut && !(text_is(next, "action", "open") && text_is(next, "cause", "start"))) {
		r->number = r->cut;
		return wrong(r, "this is no JSON object");
	}
	r->cut = 0;
	return true;
}

static bool take_text(struct reading *r, const char *text, size_t size) {
	json_error_t problem;
	json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);
	if (!json_is_object(object)) {
		json_decref(object);
		object = NULL;
	}
	bool taken = cut_by_crash(r, object);
	if (taken && object) {
		taken = take_object(r, object);
	} else if (taken) {
		r->cut = r->number;
	}
	json_decref(object);
	return taken;
}

bool audit_lines_read(struct audit_lines *lines, const char *file) {
	struct reading r = { .to = lines, .file = file };
	FILE *in = fopen(file, "r");
	if (!in) {
		output_line(stderr, "pawl: audit check: %s: %s", file, strerror(errno));
		return false;
	}
	char *text = NULL;
	size_t room = 0;
	ssize_t size;
	bool good = true;
	while (good && (size = getline(&text, &room, in)) > 0) {
		r.number++;
		if (text[size - 1] != '\n') {
			break;
		}
		good = size <= AUDIT_LINE_MAX ? take_text(&r, text, (size_t)size - 1)
			: wrong(&r, "the line is too long");
	}
	if (good && ferror(in)) {
		output_line(stderr, "pawl: audit check: %s: %s", file, strerror(errno));
		good = false;
	}
	free(text);
	fclose(in);
	return good && cut_by_crash(&r, NULL);
}
