/* script_form.c: the words of a script, and what is the same in all that mean the same. */
#include "script_form.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

/* How many words a script may have, how many opening parentheses, and how many local names. For
 * each parenthesis all words behind it may be looked at, while the node does nothing else. */
#define WORDS_MAX 1024
#define PARENTHESES_MAX 64
#define LOCALS_MAX 64

enum word_kind { WORD_NAME, WORD_NUMBER, WORD_STRING, WORD_SIGN };

struct word {
	enum word_kind kind;
	/* The number of a local name, from 1; 0 for everything else. */
	uint16_t local;
	/* A string that is written in lower case. */
	bool lower;
	/* The word, without the quotes of a string; borrowed from the script. */
	struct slice text;
};

struct form {
	struct word words[WORDS_MAX];
	size_t count, parentheses;
	struct slice locals[LOCALS_MAX];
	size_t local_count;
};

/* ---- words ---- */

static bool is_letter(uint8_t c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(uint8_t c) {
	return c >= '0' && c <= '9';
}

static bool is_blank(uint8_t c) {
	return c == ' ' || c == ';' || (c >= '\t' && c <= '\r');
}

static bool starts(struct slice in, size_t at, const char *text) {
	const size_t size = strlen(text);
	return at <= in.size && in.size - at >= size && memcmp(in.data + at, text, size) == 0;
}

/* Returns where the next thing begins that means something. */
static size_t skip(struct slice in, size_t at) {
	while (at < in.size) {
		if (is_blank(in.data[at])) {
			at++;
		} else if (starts(in, at, "--[[")) {
			while (at < in.size && !starts(in, at, "]]")) {
				at++;
			}
			at += starts(in, at, "]]") ? 2 : 0;
		} else if (starts(in, at, "--")) {
			while (at < in.size && in.data[at] != '\n') {
				at++;
			}
		} else {
			break;
		}
	}
	return at;
}

/* Reads a string from its opening quotes on. Returns where it ends, or 0 if it does not. */
static size_t read_string(struct slice in, size_t at, struct word *out) {
	const bool brackets = starts(in, at, "[[");
	const uint8_t quote = in.data[at];
	const size_t begin = at + (brackets ? 2 : 1);
	size_t end = begin;
	while (end < in.size && !(brackets ? starts(in, end, "]]") : in.data[end] == quote)) {
		end += !brackets && in.data[end] == '\\' ? 2 : 1;
	}
	if (end >= in.size) {
		return 0;
	}
	*out = (struct word){ .kind = WORD_STRING, .text = slice_of(in.data + begin, end - begin) };
	return end + (brackets ? 2 : 1);
}

static size_t read_sign(struct slice in, size_t at, struct word *out) {
	static const char *const signs[] = { "...", "..", "==", "~=", "<=", ">=" };
	size_t size = 1;
	for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
		if (starts(in, at, signs[i])) {
			size = strlen(signs[i]);
			break;
		}
	}
	*out = (struct word){ .kind = WORD_SIGN, .text = slice_of(in.data + at, size) };
	return at + size;
}

static size_t read_word(struct slice in, size_t at, struct word *out) {
	const uint8_t c = in.data[at];
	if (c == '"' || c == '\'' || starts(in, at, "[[")) {
		return read_string(in, at, out);
	}
	if (!is_letter(c) && !is_digit(c)) {
		return read_sign(in, at, out);
	}
	size_t end = at;
	while (end < in.size && (is_letter(in.data[end]) || is_digit(in.data[end])
			|| (is_digit(c) && in.data[end] == '.' && !starts(in, end, "..")))) {
		end++;
	}
	*out = (struct word){ .kind = is_digit(c) ? WORD_NUMBER : WORD_NAME,
		.text = slice_of(in.data + at, end - at) };
	return end;
}

static int form_read(struct form *f, struct slice in) {
	size_t at = starts(in, 0, "\xef\xbb\xbf") ? 3 : 0;
	while ((at = skip(in, at)) < in.size) {
		f->parentheses += in.data[at] == '(';
		if (f->count == WORDS_MAX || f->parentheses > PARENTHESES_MAX) {
			return PAWL_ETOOLARGE;
		}
		at = read_word(in, at, &f->words[f->count++]);
		if (at == 0) {
			return PAWL_EINVAL;
		}
	}
	return f->count ? 0 : PAWL_EINVAL;
}

/* Returns whether the word at that place is this name or sign. */
static bool is(const struct form *f, size_t at, const char *text) {
	return at < f->count && f->words[at].kind != WORD_STRING
		&& slice_equal(f->words[at].text, slice_str(text));
}

static bool is_name(const struct form *f, size_t at) {
	return at < f->count && f->words[at].kind == WORD_NAME;
}

static bool is_parenthesis(const struct form *f, size_t at, uint8_t which) {
	const struct word *word = &f->words[at];
	return word->kind == WORD_SIGN && word->text.size == 1 && word->text.data[0] == which;
}

/* Returns the place of the parenthesis that closes the one at `open`, or f->count. */
static size_t closing(const struct form *f, size_t open) {
	size_t depth = 0;
	for (size_t i = open; i < f->count; i++) {
		depth += is_parenthesis(f, i, '(');
		depth -= is_parenthesis(f, i, ')');
		if (depth == 0) {
			return i;
		}
	}
	return f->count;
}

/* ---- local names ---- */

static size_t local_find(const struct form *f, struct slice name) {
	for (size_t i = 0; i < f->local_count; i++) {
		if (slice_equal(f->locals[i], name)) {
			return i + 1;
		}
	}
	return 0;
}

static void local_add(struct form *f, struct slice name) {
	if (!local_find(f, name) && f->local_count < LOCALS_MAX) {
		f->locals[f->local_count++] = name;
	}
}

/* Adds the names that are declared at the word `at`, if one of them declares any. */
static void locals_at(struct form *f, size_t at) {
	size_t next = at + 1;
	if (is(f, at, "local") && is(f, next, "function")) {
		next++;
	} else if (is(f, at, "function")) {
		next += is_name(f, next);
		next += is(f, next, "(");
	} else if (!is(f, at, "local") && !is(f, at, "for")) {
		return;
	}
	for (; is_name(f, next); next += 2) {
		local_add(f, f->words[next].text);
		if (!is(f, next + 1, ",")) {
			break;
		}
	}
}

static void form_name_locals(struct form *f) {
	for (size_t i = 0; i < f->count; i++) {
		locals_at(f, i);
		if (is_name(f, i) && !is(f, i - 1, ".") && !is(f, i - 1, ":")) {
			f->words[i].local = (uint16_t)local_find(f, f->words[i].text);
		}
	}
}

/* ---- commands and options ---- */

static bool is_word(struct slice text) {
	for (size_t i = 0; i < text.size; i++) {
		if (!is_letter(text.data[i])) {
			return false;
		}
	}
	return text.size > 0;
}

static void form_lower(struct form *f) {
	for (size_t i = 0; i + 3 < f->count; i++) {
		if (!is(f, i, "redis") || !is(f, i + 1, ".")
			|| !(is(f, i + 2, "call") || is(f, i + 2, "pcall"))
			|| !is(f, i + 3, "(")) {
			continue;
		}
		const size_t end = closing(f, i + 3);
		for (size_t at = i + 3; at < end; at++) {
			f->words[at].lower |= f->words[at].kind == WORD_STRING
				&& is_word(f->words[at].text);
		}
	}
}

/* ---- parentheses ---- */

static void form_drop(struct form *f, size_t at) {
	f->count--;
	memmove(&f->words[at], &f->words[at + 1], (f->count - at) * sizeof f->words[0]);
}

static bool is_one_of(const struct form *f, size_t at, const char *const *texts) {
	for (; *texts; texts++) {
		if (is(f, at, *texts)) {
			return true;
		}
	}
	return false;
}

/* Returns whether an operator stands between the parentheses, outside of inner ones. */
static bool has_operator(const struct form *f, size_t open, size_t close) {
	static const char *const operators[] = { "and", "or", "not", "==", "~=", "<", ">", "<=",
		">=", "..", "+", "-", "*", "/", "%", "^", "#", NULL };
	for (size_t i = open + 1; i < close; i++) {
		if (is(f, i, "(")) {
			i = closing(f, i);
		} else if (is_one_of(f, i, operators)) {
			return true;
		}
	}
	return false;
}

/* Returns whether what is in these parentheses is handed to a function. */
static bool is_call(const struct form *f, size_t open) {
	static const char *const keywords[] = { "and", "do", "else", "elseif", "if", "in", "not",
		"or", "repeat", "return", "then", "until", "while", NULL };
	return open > 0 && (f->words[open - 1].kind == WORD_STRING || is(f, open - 1, ")")
		|| is(f, open - 1, "]")
		|| (is_name(f, open - 1) && !is_one_of(f, open - 1, keywords)));
}

/* Returns whether nothing changes without the parentheses: they are around a single operand, a
 * whole condition, value or result, or a whole argument. */
static bool is_redundant(const struct form *f, size_t open, size_t close) {
	static const char *const before[] = { "if", "elseif", "while", "until", "return", "=",
		NULL };
	static const char *const after[] = { "then", "do", "end", "else", "elseif", "until",
		"return", "local", "redis", "if", "for", NULL };
	static const char *const argument_before[] = { "(", ",", NULL };
	static const char *const argument_after[] = { ")", ",", NULL };
	if (open == 0 || close == open + 1 || is_call(f, open)) {
		return false;
	}
	return !has_operator(f, open, close)
		|| (is_one_of(f, open - 1, before)
			&& (close + 1 == f->count || is_one_of(f, close + 1, after)))
		|| (is_one_of(f, open - 1, argument_before)
			&& is_one_of(f, close + 1, argument_after));
}

static void form_drop_parentheses(struct form *f) {
	for (size_t i = 0; i < f->count; i++) {
		const size_t end = is(f, i, "(") ? closing(f, i) : f->count;
		if (end < f->count && is_redundant(f, i, end)) {
			form_drop(f, end);
			form_drop(f, i);
			i -= i > 0;
		}
	}
}

/* ---- the end ---- */

/* Returns the place of the `return` after the last `end`, if an `if` whose branch returns ends
 * there; else 0. */
static size_t last_return(const struct form *f) {
	size_t depth = 0, opened = 0, closed = 0;
	bool other = false;
	for (size_t i = 0; i < f->count; i++) {
		const bool opens = is(f, i, "if") || is(f, i, "for") || is(f, i, "while")
			|| is(f, i, "function");
		other = opens && depth == 0 ? !is(f, i, "if") : other;
		opened = opens && depth == 0 ? i : opened;
		other |= depth == 1 && (is(f, i, "else") || is(f, i, "elseif"));
		depth += opens;
		if (is(f, i, "end")) {
			depth -= depth > 0;
			closed = depth == 0 ? i : closed;
		}
	}
	size_t branch = opened;
	while (branch < closed && !is(f, branch, "then")) {
		branch++;
	}
	const bool fits = closed > 0 && !other && is(f, branch + 1, "return")
		&& is(f, closed + 1, "return");
	return fits ? closed + 1 : 0;
}

static void form_end(struct form *f) {
	const size_t at = last_return(f);
	if (at > 0 && f->count < WORDS_MAX) {
		const struct word end = f->words[at - 1];
		f->words[at - 1].text = slice_str("else");
		f->words[f->count++] = end;
	}
}

/* ---- writing ---- */

static int word_write(const struct word *word, struct buffer *out) {
	char name[8];
	if (word->local) {
		int size = snprintf(name, sizeof name, "v%u", (unsigned)word->local);
		return buffer_append(out, name, (size_t)size);
	}
	int error = word->kind == WORD_STRING ? buffer_append(out, "\"", 1) : 0;
	for (size_t i = 0; !error && i < word->text.size; i++) {
		uint8_t c = word->text.data[i];
		c = word->lower && c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
		error = buffer_append(out, &c, 1);
	}
	return error || word->kind != WORD_STRING ? error : buffer_append(out, "\"", 1);
}

int script_form(struct slice script, const struct allocator *alloc, struct buffer *out) {
	if (script.size > SCRIPT_BYTES_MAX) {
		return PAWL_ETOOLARGE;
	}
	struct form *f = alloc_new(alloc, sizeof *f);
	if (!f) {
		return PAWL_ENOMEM;
	}
	int error = form_read(f, script);
	if (!error) {
		form_name_locals(f);
		form_lower(f);
		form_drop_parentheses(f);
		form_end(f);
	}
	for (size_t i = 0; !error && i < f->count; i++) {
		error = i > 0 ? buffer_append(out, " ", 1) : 0;
		error = error ? error : word_write(&f->words[i], out);
	}
	alloc_free(alloc, f, sizeof *f);
	return error;
}

/* ---- digests ---- */

void script_sha1(struct slice bytes, uint8_t out[SCRIPT_SHA1_BYTES]) {
	unsigned size = 0;
	CHECK(EVP_Digest(bytes.data, bytes.size, out, &size, EVP_sha1(), NULL) == 1
		&& size == SCRIPT_SHA1_BYTES);
}

static int digit_of(uint8_t c) {
	return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool script_sha1_parse(struct slice text, uint8_t out[SCRIPT_SHA1_BYTES]) {
	if (text.size != (size_t)2 * SCRIPT_SHA1_BYTES) {
		return false;
	}
	for (size_t i = 0; i < SCRIPT_SHA1_BYTES; i++) {
		const int high = digit_of(text.data[2 * i]), low = digit_of(text.data[2 * i + 1]);
		if (high < 0 || low < 0) {
			return false;
		}
		out[i] = (uint8_t)(high * 16 + low);
	}
	return true;
}

void script_sha1_print(const uint8_t sha1[SCRIPT_SHA1_BYTES],
	char out[2 * SCRIPT_SHA1_BYTES + 1]) {
	for (size_t i = 0; i < SCRIPT_SHA1_BYTES; i++) {
		snprintf(out + 2 * i, 3, "%02x", sha1[i]);
	}
}
