/* mctext.c: reads commands and writes replies of memcached's text protocol. */
#include "mctext.h"

#include <stdio.h>

/* The byte with which a client of TLS begins. */
#define MCTEXT_TLS_HELLO 0x16

/* ---- words ---- */

bool mctext_is(struct slice word, const char *text) {
	return slice_equal(word, slice_str(text));
}

bool mctext_number(struct slice word, int64_t *out) {
	const bool negative = word.size > 0 && word.data[0] == '-';
	uint64_t number;
	if (word.size - negative > 18
		|| !mctext_unsigned(slice_of(word.data + negative, word.size - negative),
			&number)) {
		return false;
	}
	*out = negative ? -(int64_t)number : (int64_t)number;
	return true;
}

bool mctext_unsigned(struct slice word, uint64_t *out) {
	uint64_t number = 0;
	if (word.size == 0 || word.size > 20) {
		return false;
	}
	for (size_t i = 0; i < word.size; i++) {
		const uint8_t digit = (uint8_t)(word.data[i] - '0');
		if (digit > 9 || number > (UINT64_MAX - digit) / 10) {
			return false;
		}
		number = number * 10 + digit;
	}
	*out = number;
	return true;
}

/* ---- reading ---- */

/* Takes a line apart. */
static void read_words(struct slice line, struct mctext_command *out) {
	size_t at = 0;
	out->count = 0;
	out->more = false;
	while (at < line.size) {
		const size_t begin = at;
		while (at < line.size && line.data[at] != ' ') {
			at++;
		}
		if (at > begin && out->count == MCTEXT_WORDS_MAX) {
			out->more = true;
			return;
		}
		if (at > begin) {
			out->words[out->count++] = slice_of(line.data + begin, at - begin);
		}
		at++;
	}
}

/* Returns the place of the word that gives the length of the data block, or 0 for none. */
static size_t read_length_place(const struct mctext_command *command) {
	static const char *const stores[] = { "set", "add", "replace", "append", "prepend", "cas" };
	if (command->count == 0) {
		return 0;
	}
	for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
		if (mctext_is(command->words[0], stores[i])) {
			return 4;
		}
	}
	return mctext_is(command->words[0], "ms") ? 2 : 0;
}

/* A page in somebody's browser can make it send lines to this machine, but not without a line of
 * this form before them. The names of commands are in small letters. */
static bool read_is_http(const struct mctext_command *command) {
	return command->count == 3 && slice_has_prefix(command->words[2], slice_str("HTTP/"))
		&& command->words[0].data[0] >= 'A' && command->words[0].data[0] <= 'Z';
}

/* Reads the data block of `length` bytes behind the line. */
static enum mctext_read read_data(struct slice in, size_t line, size_t length,
	struct mctext_command *out, size_t *out_size, const char **out_why) {
	if (in.size - line < length + 2) {
		return MCTEXT_MORE;
	}
	out->data = slice_of(in.data + line, length);
	if (memcmp(out->data.data + length, "\r\n", 2) != 0) {
		*out_why = "CLIENT_ERROR bad data chunk";
		return MCTEXT_WRONG;
	}
	*out_size = line + length + 2;
	return MCTEXT_COMPLETE;
}

enum mctext_read mctext_read(struct slice in, struct mctext_command *out, size_t *out_size,
	const char **out_why) {
	const size_t most = in.size < MCTEXT_LINE_BYTES_MAX ? in.size : MCTEXT_LINE_BYTES_MAX;
	const uint8_t *end = most ? memchr(in.data, '\n', most) : NULL;
	uint64_t length;
	if (most && (in.data[0] & 0x80)) {
		*out_why = "CLIENT_ERROR Pawl speaks the text protocol of memcached, and not the "
			"binary one";
		return MCTEXT_WRONG;
	}
	if (most && in.data[0] == MCTEXT_TLS_HELLO) {
		*out_why = "CLIENT_ERROR the client speaks TLS, and this address has none";
		return MCTEXT_WRONG;
	}
	if (!end && in.size < MCTEXT_LINE_BYTES_MAX) {
		return MCTEXT_MORE;
	}
	if (!end) {
		*out_why = "CLIENT_ERROR line too long";
		return MCTEXT_WRONG;
	}
	const size_t line = (size_t)(end - in.data);
	const bool cr = line > 0 && in.data[line - 1] == '\r';
	read_words(slice_of(in.data, line - cr), out);
	out->data = slice_of(NULL, 0);
	if (read_is_http(out)) {
		*out_why = "CLIENT_ERROR this is a request of HTTP, and Pawl speaks the protocol "
			"of memcached here";
		return MCTEXT_WRONG;
	}
	const size_t place = read_length_place(out);
	if (place == 0) {
		*out_size = line + 1;
		return MCTEXT_COMPLETE;
	}
	if (place >= out->count || !mctext_unsigned(out->words[place], &length)) {
		*out_why = "CLIENT_ERROR bad command line format";
		return MCTEXT_WRONG;
	}
	if (length > MCTEXT_DATA_BYTES_MAX) {
		*out_why = "SERVER_ERROR object too large for cache";
		return MCTEXT_WRONG;
	}
	return read_data(in, line + 1, (size_t)length, out, out_size, out_why);
}

/* ---- writing ---- */

void mctext_put(struct mctext_writer *w, struct slice bytes) {
	if (bytes.size) {
		w->error = w->error ? w->error : buffer_append(w->out, bytes.data, bytes.size);
	}
}

void mctext_put_number(struct mctext_writer *w, const char *before, uint64_t number) {
	char text[40];
	const int size = snprintf(text, sizeof text, "%s%llu", before, (unsigned long long)number);
	mctext_put(w, slice_of(text, (size_t)size));
}

void mctext_line(struct mctext_writer *w, const char *text) {
	mctext_put(w, slice_str(text));
	mctext_put(w, slice_str("\r\n"));
}

void mctext_error(struct mctext_writer *w, const char *kind, struct slice message) {
	mctext_put(w, slice_str(kind));
	mctext_put(w, slice_str(" "));
	for (size_t i = 0; i < message.size; i++) {
		const bool breaks = message.data[i] == '\r' || message.data[i] == '\n';
		mctext_put(w, breaks ? slice_str(" ") : slice_of(message.data + i, 1));
	}
	mctext_put(w, slice_str("\r\n"));
}
