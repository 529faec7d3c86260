/* log_json.c: log lines as objects of JSON. */
#include "json_text.h"
#include "log_text.h"

/* Room for the end of an object whose fields did not all fit. */
static const char log_json_cut[] = ",\"truncated\":true";

static void log_json_string(struct log_text *t, struct slice s) {
	char piece[JSON_TEXT_GROWTH + 1];
	for (size_t i = 0; i < s.size; i++) {
		piece[json_text_escape(piece, slice_of(s.data + i, 1))] = '\0';
		log_chars(t, piece);
	}
}

static void log_json_name(struct log_text *t, const char *name, bool hex) {
	log_chars(t, ",\"");
	log_chars(t, name);
	log_chars(t, hex ? "_hex\":" : "\":");
}

/* Writes at most `max` bytes of the value. A character is not cut in two. */
static void log_json_bytes(struct log_text *t, const char *name, struct slice s, size_t max) {
	bool hex = !json_text_valid(s);
	struct slice shown = slice_of(s.data, s.size < max ? s.size : max);
	while (!hex && !json_text_valid(shown)) {
		shown.size--;
	}
	log_json_name(t, name, hex);
	log_char(t, '"');
	if (hex) {
		log_hex(t, shown.data, shown.size);
	} else {
		log_json_string(t, shown);
	}
	log_chars(t, shown.size < s.size ? "...\"" : "\"");
}

static void log_json_field(struct log_text *t, const struct log_field *f) {
	switch (f->kind) {
	case LOG_KIND_TEXT:
		log_json_bytes(t, f->name, f->bytes, LOG_TEXT_SHOWN);
		return;
	case LOG_KIND_BYTES:
		log_json_bytes(t, f->name, f->bytes, LOG_BYTES_SHOWN);
		return;
	case LOG_KIND_NUMBER:
		log_json_name(t, f->name, false);
		log_number(t, f->number);
		return;
	case LOG_KIND_SPAN:
		log_json_name(t, f->name, false);
		log_char(t, '"');
		log_span(t, f->number);
		log_char(t, '"');
		return;
	case LOG_KIND_LOCK:
	case LOG_KIND_NODE:
		/* Whoever knows all of a lock_id may release the lock. */
		log_json_name(t, f->name, false);
		log_char(t, '"');
		log_hex(t, f->id->b, f->kind == LOG_KIND_LOCK ? 4 : sizeof f->id->b);
		log_chars(t, f->kind == LOG_KIND_LOCK ? "...\"" : "\"");
		return;
	case LOG_KIND_NONE:
	case LOG_KIND_END:
		return;
	}
}

void log_json(struct log_text *t, enum log_level level, const char *event,
	const struct log_field *fields, uint64_t suppressed) {
	struct log_text body = *t;
	const struct log_field more = LOG_NUMBER("suppressed", suppressed);
	bool cut = false;
	body.size -= sizeof log_json_cut + sizeof "}";
	log_chars(&body, "{\"ts\":\"");
	log_time(&body);
	log_chars(&body, "\",\"level\":\"");
	log_chars(&body, log_level_name(level));
	log_chars(&body, "\",\"event\":\"");
	log_chars(&body, event);
	log_char(&body, '"');
	if (suppressed > 0) {
		log_json_field(&body, &more);
	}
	for (const struct log_field *f = fields; f->kind != LOG_KIND_END; f++) {
		const size_t before = body.used;
		log_json_field(&body, f);
		if (body.used + 1 >= body.size) {
			body.used = before;
			cut = true;
		}
	}
	t->used = body.used;
	log_chars(t, cut ? log_json_cut : "");
	log_char(t, '}');
}
