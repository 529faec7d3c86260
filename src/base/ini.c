/* ini.c: reading an INI file line by line. */
#include "ini.h"

void ini_init(struct ini *ini, struct slice text) {
	ini->rest = text;
	ini->line = 0;
}

static bool ini_blank(uint8_t c) {
	return c == ' ' || c == '\t';
}

static struct slice ini_trim(struct slice s) {
	while (s.size > 0 && ini_blank(s.data[0])) {
		s = slice_of(s.data + 1, s.size - 1);
	}
	while (s.size > 0 && ini_blank(s.data[s.size - 1])) {
		s.size--;
	}
	return s;
}

static struct slice ini_take_line(struct ini *ini) {
	const uint8_t *end = memchr(ini->rest.data, '\n', ini->rest.size);
	size_t size = end ? (size_t)(end - ini->rest.data) : ini->rest.size;
	struct slice line = slice_of(ini->rest.data, size);
	size_t used = end ? size + 1 : size;
	ini->rest = slice_of(ini->rest.data + used, ini->rest.size - used);
	ini->line++;
	if (line.size > 0 && line.data[line.size - 1] == '\r') {
		line.size--;
	}
	return ini_trim(line);
}

static bool ini_copy(struct slice from, char *to, size_t max) {
	if (from.size == 0 || from.size > max) {
		return false;
	}
	memcpy(to, from.data, from.size);
	to[from.size] = '\0';
	return true;
}

static enum ini_kind ini_wrong(struct ini_item *out, const char *wrong) {
	out->wrong = wrong;
	return INI_WRONG;
}

/* Tells whether the value ends with a comment, which would become a part of it. */
static bool ini_has_comment(struct slice value) {
	for (size_t i = 1; i < value.size; i++) {
		if ((value.data[i] == '#' || value.data[i] == ';') &&
			ini_blank(value.data[i - 1])) {
			return true;
		}
	}
	return false;
}

static enum ini_kind ini_section(struct slice line, struct ini_item *out) {
	if (line.data[line.size - 1] != ']') {
		return ini_wrong(out,
			"a section without its closing ]: write [section] alone on the line");
	}
	out->where = ini_trim(slice_of(line.data + 1, line.size - 2));
	if (!ini_copy(out->where, out->name, INI_NAME_MAX)) {
		return ini_wrong(out,
			"a section without a name, or with one that is too long: write [section]");
	}
	return INI_SECTION;
}

static enum ini_kind ini_value(struct slice line, struct ini_item *out) {
	const uint8_t *equals = memchr(line.data, '=', line.size);
	if (!equals) {
		return ini_wrong(out,
			"neither a [section] nor `name = value`: start comments with # on a line "
			"of their own");
	}
	size_t at = (size_t)(equals - line.data);
	if (!ini_copy(ini_trim(slice_of(line.data, at)), out->name, INI_NAME_MAX)) {
		return ini_wrong(out,
			"no name before the =, or one that is too long: write `name = value`");
	}
	struct slice value = ini_trim(slice_of(equals + 1, line.size - at - 1));
	if (value.size == 0) {
		return ini_wrong(out,
			"no value after the =: give one, or remove the line to get the default");
	}
	if (ini_has_comment(value)) {
		return ini_wrong(out, "a comment after a value: put it on a line of its own");
	}
	if (value.data[0] == '"' || value.data[0] == '\'') {
		return ini_wrong(out, "a value in quotes: write it without");
	}
	if (!ini_copy(value, out->value, INI_VALUE_MAX)) {
		return ini_wrong(out, "the value is too long: at most 4095 bytes");
	}
	out->where = value;
	return INI_VALUE;
}

static bool ini_printable(struct slice line) {
	for (size_t i = 0; i < line.size; i++) {
		if ((line.data[i] < ' ' && line.data[i] != '\t') || line.data[i] == 0x7f) {
			return false;
		}
	}
	return true;
}

enum ini_kind ini_next(struct ini *ini, struct ini_item *out) {
	while (ini->rest.size > 0) {
		struct slice line = ini_take_line(ini);
		if (!ini_printable(line)) {
			return ini_wrong(out,
				"a control character: this is not a text file, or was damaged");
		}
		if (line.size == 0 || line.data[0] == '#' || line.data[0] == ';') {
			continue;
		}
		return line.data[0] == '[' ? ini_section(line, out) : ini_value(line, out);
	}
	return INI_END;
}
