/* audit_check.h: judges the lines of audit files: what was granted, when each holder could count on
 * it at most, and whether that is as docs/guarantees.md promises. */
#ifndef PAWL_CLI_AUDIT_CHECK_H
#define PAWL_CLI_AUDIT_CHECK_H

#include "audit_lines.h"

enum audit_finding_kind {
	/* Two locks that exclude each other were held at once. */
	AUDIT_OVERLAP,
	/* The later lock does not have the greater token, or both have the same. */
	AUDIT_TOKENS,
	/* Lines are missing between this line and the one before it. */
	AUDIT_MISSING,
	/* Two lines of one node have the same number and say different things, or the clock of the
	 * node goes back. */
	AUDIT_ALTERED
};

struct audit_finding {
	enum audit_finding_kind kind;
	/* Whoever was first, and whoever came then. MISSING, ALTERED: the line before, and the
	 * line. */
	const struct audit_line *first, *then;
	/* OVERLAP: for how long at least. */
	int64_t overlap_us;
	/* Something that explains it may be in a line that is missing. */
	bool possible;
};

struct audit_rules {
	/* By how much the wall clocks of two nodes may differ, in microseconds. */
	int64_t clocks_us;
	/* All nodes are on one machine: CLOCK_BOOTTIME is the same for all of them. */
	bool one_machine;
	/* The files were copied within so many microseconds. */
	int64_t copied_us;
};

struct audit_result {
	struct audit_finding *findings;
	size_t count, capacity;
	/* How many findings are certain. */
	size_t violations;
	size_t grants, keys, nodes, denied;
	/* Nodes whose files do not tell of grants ([audit] what is denied or admin). */
	size_t silent;
};

/* Judges the lines, whose order this changes. The findings point to them; the caller frees
 * result.findings. */
struct audit_result audit_check(struct audit_lines *lines, const struct audit_rules *rules);

#endif
