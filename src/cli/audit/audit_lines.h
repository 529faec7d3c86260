/* audit_lines.h: the lines of audit files, as pawl audit check reads them
 * (docs/operations/audit.md, The lines). */
#ifndef PAWL_CLI_AUDIT_LINES_H
#define PAWL_CLI_AUDIT_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The texts that lines have in common. A line has their numbers; AUDIT_NONE stands for none. */
#define AUDIT_NONE UINT32_MAX
struct audit_names {
	/* By text, and by number. */
	json_t *numbers;
	char **texts;
	size_t count, capacity;
};

enum audit_action {
	AUDIT_OPEN,
	AUDIT_CLOSE,
	AUDIT_EPOCH,
	AUDIT_ACQUIRE,
	AUDIT_EXTEND,
	AUDIT_RELEASE,
	AUDIT_TRANSFER,
	AUDIT_DOWNGRADE,
	AUDIT_LOST,
	AUDIT_BREAK,
	AUDIT_FORCE,
	AUDIT_OTHER
};

struct audit_mode {
	bool exclusive, shared;
	/* Permits: of how many, and which numbers, as bits. */
	uint64_t of, slots[2];
};

struct audit_line {
	enum audit_action action;
	/* Numbers in audit_lines.names. The boot is that of the `open` line before it. */
	uint32_t node, key, lock, owner;
	uint64_t boot, seq, token, dropped;
	/* The wall clock, CLOCK_BOOTTIME, and for how long the request had been at the node, in
	 * microseconds. */
	int64_t ts, mono, took;
	int64_t valid_ms;
	struct audit_mode mode;
	/* The result is "ok"; "denied"; "not_found". */
	bool ok, denied, not_found;
	/* LOST: the lease was taken away. BREAK: at once. EXTEND: the lease became shorter. */
	bool taken, now, shorten;
	/* OPEN: what the file tells is at least "holders". */
	bool holders;
	int64_t drift_ppm;
	/* Where it stands. */
	const char *file;
	uint64_t number;
};

struct audit_lines {
	struct audit_line *lines;
	size_t count, capacity;
	struct audit_names names;
};

/* Returns an array with room for one more element of `size` bytes behind its first `count`. Ends
 * the program if there is no memory. */
void *audit_grown(void *at, size_t count, size_t *capacity, size_t size);

/* Adds the lines of a file. Returns false, and says on standard error what is wrong, if the file
 * cannot be read or has a line that no node has written. A last line without its end is left out:
 * a crash has cut it. */
bool audit_lines_read(struct audit_lines *lines, const char *file);
void audit_lines_free(struct audit_lines *lines);

/* Returns a text by its number; "" for AUDIT_NONE. */
const char *audit_lines_text(const struct audit_lines *lines, uint32_t number);

#endif
