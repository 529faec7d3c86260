/* rights_reading.h: inside the reading of the rules: what is known while a file is read. Internal. */
#ifndef PAWL_RIGHTS_RIGHTS_READING_H
#define PAWL_RIGHTS_RIGHTS_READING_H

#include "ini.h"
#include "rights_impl.h"

#define RIGHTS_SECTIONS_MAX 4096
#define RIGHTS_HOLDERS_MAX 16384

struct rights_reading {
	struct rights *rights;
	const struct rights_accounts *accounts;
	struct problem *problem;
	bool group; /* the last section is one */
};

/* PAWL_EINVAL, with "file:line: " in front of the text. */
__attribute__((format(printf, 3, 4))) int rights_wrong(struct rights_reading *r, unsigned line, const char *format, ...);
/* The items with room for at least one more behind `count` of them. NULL: no memory, and they stay where they are. */
void *rights_grow(void *items, uint32_t count, size_t item_bytes);

/* `allow = ...` or `deny = ...` of the last section. `value`: in the kept text. 0, PAWL_EINVAL or PAWL_ENOMEM. */
int rights_rule_line(struct rights_reading *r, unsigned line, bool deny, struct slice value);
/* One of the limits of the last section. False: it has no such name. */
bool rights_limit_line(struct rights_reading *r, unsigned line, const struct ini_item *item, int *out_error);
/* `members = ...`, resp. the name of the last section. Likewise. */
int rights_members_line(struct rights_reading *r, unsigned line, struct slice value);
int rights_section_line(struct rights_reading *r, unsigned line, struct slice name);

/* The next part between commas, without blanks around it; false at the end. */
bool rights_part(struct slice *rest, struct slice *out_part);

#endif
