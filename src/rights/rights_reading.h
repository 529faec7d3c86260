/* rights_reading.h: what is known while a file of rules is read. Private to src/rights. */
#ifndef PAWL_RIGHTS_RIGHTS_READING_H
#define PAWL_RIGHTS_RIGHTS_READING_H

#include "ini.h"
#include "rights_impl.h"

#define RIGHTS_SECTIONS_MAX 4096
#define RIGHTS_SUBJECTS_MAX 16384

struct rights_reading {
	struct rights *rights;
	const struct rights_accounts *accounts;
	struct problem *problem;
	/* The last section is a group. */
	bool group;
};

/* Sets the problem, with "file:line: " in front of the text, and returns PAWL_EINVAL. */
__attribute__((format(printf, 3, 4))) int rights_wrong(struct rights_reading *r, unsigned line,
	const char *format, ...);

/* Returns the items with room for at least one more behind `count` of them. NULL: there is no
 * memory, and they stay where they are. */
void *rights_grow(void *items, uint32_t count, size_t item_bytes);

/* Takes a line `allow = ...` or `deny = ...` of the last section. `value` is in the kept text.
 * Returns 0, PAWL_EINVAL or PAWL_ENOMEM. */
int rights_rule_line(struct rights_reading *r, unsigned line, bool deny, struct slice value);

/* Takes one of the limits of the last section. False: no limit has that name. */
bool rights_limit_line(struct rights_reading *r, unsigned line, const struct ini_item *item,
	int *out_error);

/* Take a line `members = ...`, and the name of a section, which is the last one from then on. They
 * return what rights_rule_line does. */
int rights_members_line(struct rights_reading *r, unsigned line, struct slice value);
int rights_section_line(struct rights_reading *r, unsigned line, struct slice name);

/* Takes the next part between commas, without the blanks around it. False: there are no more. */
bool rights_part(struct slice *rest, struct slice *out_part);

#endif
