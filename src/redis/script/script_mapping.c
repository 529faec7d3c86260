/* script_mapping.c: scripts that no library is known to send, as the operator has named them. */
#include <stdio.h>
#include <stdlib.h>

#include "script.h"

static const enum script_kind kinds[] = { SCRIPT_TAKE, SCRIPT_RENEW, SCRIPT_ADD,
	SCRIPT_ADD_OR_RENEW, SCRIPT_RENEW_OR_TAKE, SCRIPT_RELEASE, SCRIPT_READ,
	SCRIPT_LEFT_IF_MINE };

/* The longest description, in bytes with its end. */
#define MEANING_BYTES 256
/* The most keys of a script, and the greatest number of an argument. */
#define KEYS_MAX 64
#define ARGUMENT_MAX 99
/* The range of the numbers that a script may answer instead of acting. */
#define ANSWER_LEAST (-99)
#define ANSWER_MOST 99

static const char *mapping_kind(const char *word, struct script_meaning *out) {
	for (size_t i = 0; word && i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(word, script_kind_name(kinds[i])) == 0) {
			out->kind = kinds[i];
			return NULL;
		}
	}
	return "begin with take, renew, add, add-or-renew, renew-or-take, release, read or "
		"left-if-mine";
}

static bool mapping_number(const char *word, long least, long most, long *out) {
	char *end;
	const long number = strtol(word, &end, 10);
	if (end == word || *end != '\0' || number < least || number > most) {
		return false;
	}
	*out = number;
	return true;
}

static const char *mapping_keys(const char *word, struct script_meaning *out) {
	long number = SCRIPT_ANY_KEYS;
	if (strcmp(word, "any") != 0 && !mapping_number(word, 1, KEYS_MAX, &number)) {
		return "keys is a number from 1 to 64, or any";
	}
	out->keys = (uint8_t)number;
	return NULL;
}

static const char *mapping_argument(const char *word, uint8_t *out) {
	long number;
	if (*out || !mapping_number(word, 1, ARGUMENT_MAX, &number)) {
		return "value, length, flag and database are the numbers of arguments, from 1 on, "
			"each given once";
	}
	*out = (uint8_t)number;
	return NULL;
}

static const char *mapping_instead(const char *word, int8_t *out) {
	long number = SCRIPT_NIL;
	if (strcmp(word, "nil") != 0
		&& !mapping_number(word, ANSWER_LEAST, ANSWER_MOST, &number)) {
		return "held and free are what the script answers then: a number from -99 to 99, "
			"or nil";
	}
	*out = (int8_t)number;
	return NULL;
}

static const char *mapping_answer(const char *word, struct script_meaning *out) {
	static const char *const names[] = { [SCRIPT_SAYS_ONE] = "one",
		[SCRIPT_SAYS_COUNT] = "count", [SCRIPT_SAYS_OK] = "ok" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(word, names[i]) == 0) {
			out->answer = (enum script_answer)i;
			return NULL;
		}
	}
	return "answer is one, count or ok";
}

static const char *mapping_unit(const char *word, struct script_meaning *out) {
	out->seconds = strcmp(word, "s") == 0;
	return out->seconds || strcmp(word, "ms") == 0 ? NULL : "unit is ms or s";
}

/* Reads one word after the kind. */
static const char *mapping_word(char *word, struct script_meaning *out) {
	char *value = strchr(word, '=');
	const struct {
		const char *name;
		uint8_t *number;
	} arguments[] = { { "value", &out->value }, { "length", &out->length },
		{ "flag", &out->flag }, { "database", &out->database } };
	if (value) {
		*value++ = '\0';
		for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
			if (strcmp(word, arguments[i].name) == 0) {
				return mapping_argument(value, arguments[i].number);
			}
		}
		if (strcmp(word, "keys") == 0) {
			return mapping_keys(value, out);
		}
		if (strcmp(word, "held") == 0 || strcmp(word, "free") == 0) {
			return mapping_instead(value,
				word[0] == 'h' ? &out->other : &out->gone);
		}
		if (strcmp(word, "answer") == 0) {
			return mapping_answer(value, out);
		}
		if (strcmp(word, "unit") == 0) {
			return mapping_unit(value, out);
		}
	}
	return "after the meaning come keys=, value=, length=, unit=, flag=, database=, answer=, "
		"held= and free=";
}

/* Checks that the script has the arguments that its meaning needs, and no others. */
static const char *mapping_check(const struct script_meaning *m) {
	const bool lasts = m->kind == SCRIPT_RENEW || m->kind == SCRIPT_ADD
		|| m->kind == SCRIPT_ADD_OR_RENEW || m->kind == SCRIPT_RENEW_OR_TAKE;
	const bool may_flag = m->kind == SCRIPT_ADD_OR_RENEW || m->kind == SCRIPT_RENEW_OR_TAKE;
	if (!m->value != (m->kind == SCRIPT_READ)) {
		return m->value ? "read compares no value: leave out value="
			: "value= is missing: the argument with the value of the lock";
	}
	if (lasts && !m->length) {
		return "length= is missing: the argument with the length of the lease";
	}
	if (m->length && !lasts && m->kind != SCRIPT_TAKE) {
		return "this meaning has no length: leave out length=";
	}
	if (m->flag && !may_flag) {
		return "only add-or-renew and renew-or-take have a flag";
	}
	if (m->keys != 1 && (m->kind == SCRIPT_READ || m->kind == SCRIPT_LEFT_IF_MINE
			|| m->kind == SCRIPT_RENEW_OR_TAKE)) {
		/* Each key would have a reply of its own; or some keys would be taken and others
		 * renewed, and it would not be known which of them are to be released when the
		 * client leaves. */
		return "read, left-if-mine and renew-or-take have one key: leave out keys=";
	}
	return m->kind == SCRIPT_ADD_OR_RENEW && !m->flag
		? "flag= is missing: the argument that is 0 to add and anything else to set" : NULL;
}

const char *script_mapping_read(const char *sha1, const char *meaning, struct script_mapping *out) {
	struct script_mapping mapping = { .meaning = { .form = "", .keys = 1,
		.library = "[redis.scripts]" } };
	char text[MEANING_BYTES], *rest = NULL;
	if (!script_sha1_parse(slice_str(sha1), mapping.sha1)) {
		return "write the SHA1 of the script, in 40 hex digits, before the =";
	}
	if (strlen(meaning) >= sizeof text) {
		return "the meaning is too long: at most 255 bytes";
	}
	snprintf(text, sizeof text, "%s", meaning);
	const char *wrong = mapping_kind(strtok_r(text, " \t", &rest), &mapping.meaning);
	for (char *word; !wrong && (word = strtok_r(NULL, " \t", &rest)) != NULL;) {
		wrong = mapping_word(word, &mapping.meaning);
	}
	wrong = wrong ? wrong : mapping_check(&mapping.meaning);
	if (!wrong) {
		*out = mapping;
	}
	return wrong;
}

const struct script_meaning *script_mappings_find(const struct script_mappings *m,
	const uint8_t sha1[SCRIPT_SHA1_BYTES]) {
	for (uint32_t i = 0; i < m->count; i++) {
		if (memcmp(m->list[i].sha1, sha1, SCRIPT_SHA1_BYTES) == 0) {
			return &m->list[i].meaning;
		}
	}
	return NULL;
}
