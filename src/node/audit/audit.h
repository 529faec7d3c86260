/* audit.h: the audit file of a node: who asked for what, who got it, and who was denied. One object
 * of JSON a line; docs/operations/audit.md describes the fields.
 *
 *   struct audit_line line;
 *   audit_begin(audit, &line, "release");
 *   audit_bytes(&line, "key", key);
 *   audit_end(audit, &line, NULL);
 *
 * Whoever knows a lock_id may release the lock, so only a digest of it is written.
 */
#ifndef PAWL_NODE_AUDIT_H
#define PAWL_NODE_AUDIT_H

#include "audit_config.h"
#include "audit_file.h"
#include "core.h"

struct audit;
struct event_base;
struct log;
struct node_config;
struct origin;

/* A line while it is put together. */
struct audit_line {
	size_t used;
	/* It is about a request that was denied; audit_begin clears it. */
	bool denied;
	/* When the line was begun: CLOCK_BOOTTIME in nanoseconds. */
	int64_t at;
	char bytes[AUDIT_LINE_MAX];
};

/* The longest text that audit_text writes, in bytes; more is cut off. */
#define AUDIT_TEXT_MAX 1024

/* Opens the file that the configuration names, and writes its first line. `told` is called on the
 * loop when receipts have changed. Everything is borrowed; the configuration until
 * audit_set_config. Returns the errors of audit_file_open, with a sentence in `why`. */
struct audit_options {
	struct event_base *base;
	const struct core *core;
	const struct node_config *config;
	struct log *log;
	void (*told)(void *ctx);
	void *ctx;
};
int audit_open(const struct audit_options *options, struct audit **out, char why[AUDIT_WHY_BYTES]);
/* Writes the last line, and closes the file. Accepts NULL. */
void audit_close(struct audit *a);
/* All settings but the file come from this configuration from now on. */
void audit_set_config(struct audit *a, const struct node_config *config);
/* Opens the file anew, because somebody may have moved it. */
void audit_reopen(struct audit *a);

/* Returns the section [audit] of the configuration. */
const struct audit_config *audit_settings(const struct audit *a);
/* Returns whether lines of this kind are wanted. */
static inline bool audit_wants(const struct audit *a, enum audit_what what) {
	return a && what <= audit_settings(a)->what;
}

/* Begins a line with the fields that all lines have, before a new file if the present one is large
 * enough. */
void audit_begin(struct audit *a, struct audit_line *line, const char *action);
/* Ends the line and hands it to the thread. Returns false if there was no room for it, or if it is
 * about a denied request and exceeds their rate. A receipt tells later what has become of it. */
bool audit_end(struct audit *a, struct audit_line *line, struct audit_receipt *receipt);
enum audit_fate audit_fate(struct audit *a, const struct audit_receipt *receipt);
void audit_forget(struct audit *a, struct audit_receipt *receipt);
struct audit_counts audit_counts(struct audit *a);
/* Returns how many lines about denied requests were left out since the start. */
uint64_t audit_denied_left_out(const struct audit *a);
/* Returns whether the file could not be written when that was tried last; then *why says why, and
 * what to do, as a phrase. */
bool audit_fails(const struct audit *a, char why[AUDIT_WHY_BYTES]);

/* Each of these appends a field; what is empty is left out. A text is cut off after AUDIT_TEXT_MAX
 * bytes. */
void audit_text(struct audit_line *line, const char *name, const char *text);
void audit_bytes(struct audit_line *line, const char *name, struct slice bytes);
void audit_number(struct audit_line *line, const char *name, uint64_t n);
/* The field is true. */
void audit_true(struct audit_line *line, const char *name);
/* The digest of a lock_id; nothing if that is zero. */
void audit_lock(struct audit_line *line, const struct id128 *lock_id);
/* The mode, and the permits of a semaphore. */
void audit_mode(struct audit_line *line, const struct terms *terms);
/* Where a connection comes from, as `peer`. `room` is large enough for every origin. */
#define AUDIT_PEER_BYTES 320
void audit_peer(const struct origin *from, char room[AUDIT_PEER_BYTES]);

#endif
