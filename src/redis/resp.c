/* resp.c: see resp.h. */
#include "resp.h"

#include <stdio.h>

/* The longest line with a length in it: a sign, and the digits of 64 bits. */
#define LENGTH_LINE_MAX 20
/* The byte with which a client of TLS begins. */
#define RESP_TLS_HELLO 0x16

/* ---- reading ---- */

/* Finds the end of the line that begins at `at`. Returns false if it is not there yet. *out is the
 * line without its end, and *out_next is where the next one begins. */
static bool resp_line(struct slice in, size_t at, struct slice *out, size_t *out_next) {
	const uint8_t *end = at < in.size ? memchr(in.data + at, '\n', in.size - at) : NULL;
	if (!end) {
		return false;
	}
	size_t stop = (size_t)(end - in.data);
	*out_next = stop + 1;
	*out = slice_of(in.data + at, stop - at);
	out->size -= out->size > 0 && out->data[out->size - 1] == '\r';
	return true;
}

/* Reads a line that consists of `kind` and a length of at most so much. */
static enum resp_read resp_head(struct slice in, size_t *at, uint8_t kind, uint64_t most,
	uint64_t *out, const char **out_why) {
	struct slice line;
	size_t next;
	uint64_t number = 0;
	if (*at < in.size && in.data[*at] != kind) {
		*out_why = kind == '*' ? "expected '*'" : "expected '$'";
		return RESP_WRONG;
	}
	if (!resp_line(in, *at, &line, &next)) {
		*out_why = "too big count string";
		return in.size - *at > LENGTH_LINE_MAX ? RESP_WRONG : RESP_MORE;
	}
	bool right = line.size > 1;
	for (size_t i = 1; right && i < line.size; i++) {
		right = line.data[i] >= '0' && line.data[i] <= '9' && number <= most;
		number = number * 10 + (uint64_t)(line.data[i] - '0');
	}
	if (!right || number > most) {
		*out_why = kind == '*'
			? "invalid multibulk length: Pawl takes at most 256 arguments"
			: "invalid bulk length: an argument has at most 1 MiB";
		return RESP_WRONG;
	}
	*out = number;
	*at = next;
	return RESP_COMPLETE;
}

static bool resp_is_blank(uint8_t byte) {
	return byte == ' ' || byte == '\t';
}

/* A page in somebody's browser can make it send lines to this machine, but not without a line of
 * this form before them. */
static bool resp_is_http(const struct resp_command *command) {
	return command->count == 3 && slice_has_prefix(command->arguments[2], slice_str("HTTP/"));
}

/* Reads what is not an array. An inline command is words on a line, as somebody types them into
 * telnet. Words in quotes are not understood; nobody but people sends such commands. Whoever speaks
 * another protocol is told so. */
static enum resp_read resp_read_inline(struct slice in, struct resp_command *out, size_t *out_size,
	const char **out_why) {
	struct slice line;
	if (in.data[0] & 0x80) {
		*out_why = "this address is for clients of Redis, and not for those of Pawl";
		return RESP_WRONG;
	}
	if (in.data[0] == RESP_TLS_HELLO) {
		*out_why = "the client speaks TLS, and this address has none";
		return RESP_WRONG;
	}
	if (!resp_line(in, 0, &line, out_size)) {
		*out_why = "too big inline request";
		return in.size > RESP_INLINE_BYTES_MAX ? RESP_WRONG : RESP_MORE;
	}
	out->count = 0;
	for (size_t at = 0; at < line.size;) {
		size_t begin = at;
		while (at < line.size && !resp_is_blank(line.data[at])) {
			at++;
		}
		if (at > begin && out->count == RESP_ARGUMENTS_MAX) {
			*out_why = "too many arguments";
			return RESP_WRONG;
		}
		if (at > begin) {
			out->arguments[out->count++] = slice_of(line.data + begin, at - begin);
		}
		at++;
	}
	if (resp_is_http(out)) {
		*out_why = "this is a request of HTTP, and Pawl speaks the protocol of Redis here";
		return RESP_WRONG;
	}
	return RESP_COMPLETE;
}

enum resp_read resp_read(struct slice in, struct resp_command *out, size_t *out_size,
	const char **out_why) {
	size_t at = 0;
	uint64_t count, size;
	if (in.size == 0) {
		return RESP_MORE;
	}
	if (in.data[0] != '*') {
		return resp_read_inline(in, out, out_size, out_why);
	}
	enum resp_read read = resp_head(in, &at, '*', RESP_ARGUMENTS_MAX, &count, out_why);
	for (uint64_t i = 0; read == RESP_COMPLETE && i < count; i++) {
		read = resp_head(in, &at, '$', RESP_ARGUMENT_BYTES_MAX, &size, out_why);
		if (read != RESP_COMPLETE) {
			break;
		}
		if (in.size - at < size + 2) {
			return RESP_MORE;
		}
		if (in.data[at + size] != '\r' || in.data[at + size + 1] != '\n') {
			*out_why = "a bulk string without its end";
			return RESP_WRONG;
		}
		out->arguments[i] = slice_of(in.data + at, (size_t)size);
		at += (size_t)size + 2;
	}
	out->count = read == RESP_COMPLETE ? (size_t)count : 0;
	*out_size = at;
	return read;
}

/* ---- writing ---- */

static void resp_put(struct resp_writer *w, const void *bytes, size_t size) {
	w->error = w->error ? w->error : buffer_append(w->out, bytes, size);
}

void resp_raw(struct resp_writer *w, struct slice replies) {
	resp_put(w, replies.data, replies.size);
}

static void resp_head_of(struct resp_writer *w, char kind, int64_t number) {
	char line[32];
	int size = snprintf(line, sizeof line, "%c%lld\r\n", kind, (long long)number);
	resp_put(w, line, (size_t)size);
}

void resp_status(struct resp_writer *w, const char *text) {
	resp_put(w, "+", 1);
	resp_put(w, text, strlen(text));
	resp_put(w, "\r\n", 2);
}

void resp_error(struct resp_writer *w, const char *code, struct slice message) {
	resp_put(w, "-", 1);
	resp_put(w, code, strlen(code));
	resp_put(w, " ", 1);
	for (size_t i = 0; i < message.size; i++) {
		const uint8_t byte = message.data[i];
		resp_put(w, byte == '\r' || byte == '\n' ? (const uint8_t *)" " : &byte, 1);
	}
	resp_put(w, "\r\n", 2);
}

void resp_number(struct resp_writer *w, int64_t number) {
	resp_head_of(w, ':', number);
}

void resp_bulk(struct resp_writer *w, struct slice bytes) {
	resp_head_of(w, '$', (int64_t)bytes.size);
	if (bytes.size) {
		resp_put(w, bytes.data, bytes.size);
	}
	resp_put(w, "\r\n", 2);
}

void resp_text(struct resp_writer *w, const char *text) {
	resp_bulk(w, slice_str(text));
}

void resp_nil(struct resp_writer *w) {
	if (w->version >= 3) {
		resp_put(w, "_\r\n", 3);
	} else {
		resp_put(w, "$-1\r\n", 5);
	}
}

void resp_nil_array(struct resp_writer *w) {
	if (w->version >= 3) {
		resp_nil(w);
	} else {
		resp_put(w, "*-1\r\n", 5);
	}
}

void resp_array(struct resp_writer *w, size_t count) {
	resp_head_of(w, '*', (int64_t)count);
}

void resp_map(struct resp_writer *w, size_t pairs) {
	const bool maps = w->version >= 3;
	resp_head_of(w, maps ? '%' : '*', (int64_t)(maps ? pairs : 2 * pairs));
}

void resp_push(struct resp_writer *w, size_t count) {
	resp_head_of(w, w->version >= 3 ? '>' : '*', (int64_t)count);
}

/* ---- the words of a command ---- */

bool resp_word_is(struct slice word, const char *text) {
	if (word.size != strlen(text)) {
		return false;
	}
	for (size_t i = 0; i < word.size; i++) {
		const uint8_t byte = word.data[i];
		if ((byte >= 'a' && byte <= 'z' ? byte - 'a' + 'A' : byte) != (uint8_t)text[i]) {
			return false;
		}
	}
	return true;
}

bool resp_word_number(struct slice word, int64_t *out) {
	const bool negative = word.size > 0 && word.data[0] == '-';
	const size_t begin = negative;
	int64_t number = 0;
	if (word.size == begin || word.size - begin > 18) {
		return false;
	}
	for (size_t i = begin; i < word.size; i++) {
		if (word.data[i] < '0' || word.data[i] > '9') {
			return false;
		}
		number = number * 10 + (word.data[i] - '0');
	}
	*out = negative ? -number : number;
	return true;
}
