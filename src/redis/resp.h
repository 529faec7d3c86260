/* resp.h: the protocol of Redis as bytes: commands are read, and replies are written, in RESP2 or
 * RESP3 (https://redis.io/docs/reference/protocol-spec/). It knows no sockets and no commands.
 *
 * It was written for Pawl because hiredis reads replies and not commands, does not read inline
 * commands, and makes an object on the heap for each element. Here the arguments point into the
 * input, and nothing is allocated. */
#ifndef PAWL_REDIS_RESP_H
#define PAWL_REDIS_RESP_H

#include "buffer.h"
#include "slice.h"

/* The largest number of arguments of a command, its name included; the longest argument; and the
 * longest inline command, in bytes. */
#define RESP_ARGUMENTS_MAX 256
#define RESP_ARGUMENT_BYTES_MAX ((size_t)1 << 20)
#define RESP_INLINE_BYTES_MAX ((size_t)4096)

/* A command. The arguments are borrowed from the input. */
struct resp_command {
	struct slice arguments[RESP_ARGUMENTS_MAX];
	/* 0 for an empty line, which is no command and has no reply. */
	size_t count;
};

enum resp_read {
	/* The command is not all there. */
	RESP_MORE,
	/* *out is the command, and *out_size is how many bytes it takes. */
	RESP_COMPLETE,
	/* The bytes are no command; *out_why says why. Answer with an error, and close. */
	RESP_WRONG
};
/* Reads the command that `in` begins with. `in` may have any bytes; only as many are read as the
 * limits allow. */
enum resp_read resp_read(struct slice in, struct resp_command *out, size_t *out_size,
	const char **out_why);

/* Returns whether the words are the same, whatever their case. `text` is in upper case. */
bool resp_word_is(struct slice word, const char *text);
/* Reads a whole number. Returns false if the word is none, or too large. */
bool resp_word_number(struct slice word, int64_t *out);

/* Writes replies into a buffer. The first error stays. */
struct resp_writer {
	/* Borrowed. */
	struct buffer *out;
	/* 2 or 3, as the client chose by HELLO. */
	int version;
	/* 0, PAWL_ENOMEM or PAWL_ETOOLARGE. */
	int error;
};

/* Replies that were written before. */
void resp_raw(struct resp_writer *w, struct slice replies);
/* A status, such as OK. It must not contain a line break. */
void resp_status(struct resp_writer *w, const char *text);
/* An error: its code (the first word, in capitals), a space, and a sentence. Line breaks in it
 * become spaces. */
void resp_error(struct resp_writer *w, const char *code, struct slice message);
void resp_number(struct resp_writer *w, int64_t number);
void resp_bulk(struct resp_writer *w, struct slice bytes);
void resp_text(struct resp_writer *w, const char *text);
/* Nothing: a null of RESP3, a bulk string of length -1 in RESP2. */
void resp_nil(struct resp_writer *w);
/* The same where an array could be: a null array in RESP2. */
void resp_nil_array(struct resp_writer *w);
/* The head of an array; `count` replies follow. */
void resp_array(struct resp_writer *w, size_t count);
/* The head of a map with `pairs` pairs, which in RESP2 is an array of twice as many. */
void resp_map(struct resp_writer *w, size_t pairs);
/* The head of a message that nobody asked for, which in RESP2 is an array. */
void resp_push(struct resp_writer *w, size_t count);

#endif
