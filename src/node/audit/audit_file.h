/* audit_file.h: writes lines to the audit file by a thread of its own, so that a slow disk never
 * holds up the loop. What waits for the thread is bounded, and what does not fit is dropped and
 * counted. Lines are put by one thread, that of the loop.
 */
#ifndef PAWL_NODE_AUDIT_FILE_H
#define PAWL_NODE_AUDIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "list.h"
#include "slice.h"

/* The largest size of a line in bytes, with its end. */
#define AUDIT_LINE_MAX ((size_t)16 << 10)
/* Room for a sentence that says what is wrong with the file, in bytes. */
#define AUDIT_WHY_BYTES 1280

struct audit_file;
struct event_base;

/* What has become of a line that somebody waits for. */
enum audit_fate {
	/* It has not been written yet. */
	AUDIT_WAITS,
	/* It is in the file, and on the disk. */
	AUDIT_WRITTEN,
	/* It could not be written. */
	AUDIT_LOST
};

/* Belongs to whoever waits for a line, until audit_file_forget. */
struct audit_receipt {
	struct list in;
	/* The number of the line. */
	uint64_t number;
	/* Of the thread and the loop; audit_file_fate reads it. */
	enum audit_fate fate;
};

/* What is to be done before a line is written. */
enum audit_before {
	AUDIT_GO_ON,
	/* The file moves to FILE.1, as FILE.1 does to FILE.2 and so on; the line begins a new
	 * one. */
	AUDIT_ROTATE,
	/* The path is opened anew, because somebody may have moved the file. */
	AUDIT_REOPEN
};

/* How many bytes of lines about denied requests may wait for the thread, besides the others. */
#define AUDIT_DENIED_BYTES ((size_t)256 << 10)

/* Since the start: lines that were written and that were dropped, and the number of writes and
 * openings that failed. */
struct audit_counts {
	uint64_t lines, dropped, failures;
};

/* Returns 0 if the file can be opened for writing, or made; otherwise PAWL_EIO with a sentence in
 * `why`. It makes nothing. */
int audit_file_check(const char *path, char why[AUDIT_WHY_BYTES]);

/* Opens the file, or makes it with mode 0640, and starts the thread. `told` is called on the loop
 * after receipts have changed, and when writing fails or succeeds again. Returns 0; or PAWL_EIO or
 * PAWL_ENOMEM with a sentence in `why`. */
int audit_file_open(const char *path, struct event_base *base, void (*told)(void *ctx), void *ctx,
	struct audit_file **out, char why[AUDIT_WHY_BYTES]);
/* Waits at most a second until everything is written, and closes the file. Accepts NULL. */
void audit_file_close(struct audit_file *f);

/* Puts a line with its end, of at most AUDIT_LINE_MAX bytes, into the queue. Returns false if there
 * is no room: the line is dropped and counted. With AUDIT_ROTATE, `keep` older files are kept. If a
 * receipt is given, its fate changes after the line. */
bool audit_file_put(struct audit_file *f, struct slice line, enum audit_before before,
	uint32_t keep, struct audit_receipt *receipt);
/* The same for a line about a denied request. These have room of their own, so that a flood of them
 * never takes that of other lines. What does not fit is dropped, and only the caller counts it. */
bool audit_file_put_denied(struct audit_file *f, struct slice line);
enum audit_fate audit_file_fate(struct audit_file *f, const struct audit_receipt *receipt);
/* The thread does not touch the receipt any more. */
void audit_file_forget(struct audit_file *f, struct audit_receipt *receipt);

struct audit_counts audit_file_counts(struct audit_file *f);
/* Returns the size of the file, with what waits for the thread, as if nothing had failed. */
uint64_t audit_file_size(const struct audit_file *f);
/* Returns 0 if what was done last has succeeded; otherwise its errno, with the name of what failed,
 * a constant, in *what. */
int audit_file_trouble(struct audit_file *f, const char **what);

#endif
