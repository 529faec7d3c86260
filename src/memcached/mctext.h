/* mctext.h: the text protocol of memcached as bytes: commands are read, and replies are written
 * (doc/protocol.txt of memcached). It knows no sockets, and no commands but for which of them have
 * a data block. Words point into the input, and nothing is allocated. */
#ifndef PAWL_MEMCACHED_MCTEXT_H
#define PAWL_MEMCACHED_MCTEXT_H

#include "buffer.h"
#include "slice.h"

/* The largest number of words of a command, its name included; the longest line, and the longest
 * data block, in bytes. */
#define MCTEXT_WORDS_MAX 80
#define MCTEXT_LINE_BYTES_MAX ((size_t)24 << 10)
#define MCTEXT_DATA_BYTES_MAX ((size_t)1 << 20)

/* A command. The words and the data are borrowed from the input. */
struct mctext_command {
	struct slice words[MCTEXT_WORDS_MAX];
	/* 0 for an empty line. */
	size_t count;
	/* The line has more words than there is room for. */
	bool more;
	/* The data block; empty for a command that has none. */
	struct slice data;
};

enum mctext_read {
	/* The command is not all there. */
	MCTEXT_MORE,
	/* *out is the command, and *out_size is how many bytes it takes. */
	MCTEXT_COMPLETE,
	/* It is not known where the next command begins; *out_why says why, as a whole reply.
	 * Answer with that, and close. */
	MCTEXT_WRONG
};
/* Reads the command that `in` begins with. `in` may have any bytes; only as many are read as the
 * limits allow. */
enum mctext_read mctext_read(struct slice in, struct mctext_command *out, size_t *out_size,
	const char **out_why);

/* Returns whether the words are the same. */
bool mctext_is(struct slice word, const char *text);
/* Reads a whole number of at most 18 digits. Returns false if the word is none, or too long. */
bool mctext_number(struct slice word, int64_t *out);
/* Reads a whole number from 0 to 2^64 - 1. Returns false if the word is none, or too large. */
bool mctext_unsigned(struct slice word, uint64_t *out);

/* Writes replies into a buffer. The first error stays. */
struct mctext_writer {
	/* Borrowed. */
	struct buffer *out;
	/* 0, PAWL_ENOMEM or PAWL_ETOOLARGE. */
	int error;
};
void mctext_put(struct mctext_writer *w, struct slice bytes);
/* A number with text around it, such as " c" and a unique; `before` is at most 16 bytes long. */
void mctext_put_number(struct mctext_writer *w, const char *before, uint64_t number);
/* A whole line. It must not contain a line break. */
void mctext_line(struct mctext_writer *w, const char *text);
/* An error: its kind, a space, and a sentence. Line breaks in it become spaces. */
void mctext_error(struct mctext_writer *w, const char *kind, struct slice message);

#endif
