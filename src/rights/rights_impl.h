/* rights_impl.h: the rules as they are kept, for reading and judging. Private to src/rights. */
#ifndef PAWL_RIGHTS_RIGHTS_IMPL_H
#define PAWL_RIGHTS_RIGHTS_IMPL_H

#include "rights.h"

struct rights_rule {
	/* The prefix, in the text; empty: the rule is about every key. */
	struct slice prefix;
	/* A bit for each right. */
	uint16_t rights;
	bool deny;
	/* RIGHT_PRIORITY: the greatest priority that is allowed. */
	int32_t priority;
	unsigned line;
	/* 1 + the index of the rule whose prefix is the longest of those that this prefix begins
	 * with; of several with the same prefix, they follow each other, and so in the order of the
	 * lines. 0: there is none. */
	uint32_t within;
};

/* A section. Its rules stand one behind the other, in the order of their prefixes; of several with
 * the same prefix, the one on the last line is first. */
struct rights_section {
	/* The name, in the text. */
	struct slice name;
	unsigned line;
	/* The first of its rules, and how many there are. */
	uint32_t first, count;
	uint32_t members;
	/* A bit for each kind of share that the section sets. */
	uint8_t limited;
	struct share_limits limits;
};

_Static_assert(SHARE_KINDS <= 8, "rights_section.limited is too small");

enum rights_kind {
	/* An identity. */
	RIGHTS_NAME,
	RIGHTS_GID,
	/* Everybody. */
	RIGHTS_ALL,
	/* An account that this machine does not have. */
	RIGHTS_NOBODY,
	RIGHTS_GROUP
};

/* Somebody who has the rules of a section: a member of a group, or whoever the section's name
 * stands for. They are sorted, to be found quickly. */
struct rights_subject {
	enum rights_kind kind;
	/* RIGHTS_NAME: the name in the text. If `own` is not empty, that is the name. */
	struct slice name;
	uint32_t gid;
	uint32_t section;
	unsigned line;
	/* The name unix:uid:N that the name of an account stands for. */
	char own[24];
};

struct rights {
	char *file;
	/* A copy of the file's text. */
	uint8_t *text;
	size_t size;
	struct rights_rule *rules;
	struct rights_section *sections;
	struct rights_subject *subjects;
	uint32_t rule_count, section_count, subject_count;
	uint8_t digest[RIGHTS_DIGEST_BYTES];
};

/* Returns the index of the first subject that does not come before the wanted one. */
uint32_t rights_first(const struct rights *r, const struct rights_subject *wanted);

/* Compares by kind, then by name or number. Returns <0, 0 or >0. */
int rights_compare(const struct rights_subject *a, const struct rights_subject *b);

/* RIGHTS_NAME: returns the subject's name. */
struct slice rights_subject_name(const struct rights_subject *s);

#endif
