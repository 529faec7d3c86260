/* rights_impl.h: the rules as they are kept, for reading and judging. Internal. */
#ifndef PAWL_RIGHTS_RIGHTS_IMPL_H
#define PAWL_RIGHTS_RIGHTS_IMPL_H

#include "rights.h"

struct rights_rule {
	struct slice prefix; /* in the text; empty: every key */
	uint16_t rights;     /* a bit for each */
	bool deny;
	int32_t priority;    /* the greatest one, of RIGHT_PRIORITY */
	unsigned line;
};

/* A section: its rules stand one behind the other. */
struct rights_section {
	struct slice name; /* in the text */
	unsigned line;
	uint32_t first, count; /* rules */
	uint32_t members;
	uint8_t limited; /* a bit for each kind of share that it sets */
	struct share_limits limits;
};

enum rights_kind {
	RIGHTS_NAME, /* identity */
	RIGHTS_GID,
	RIGHTS_ALL,  /* everybody */
	RIGHTS_NOBODY, /* an account that this machine does not have */
	RIGHTS_GROUP
};

/* Who has the rules of a section: a member, or whom its name stands for. Sorted, to be found quickly. */
struct rights_holder {
	enum rights_kind kind;
	struct slice name;  /* NAME: in the text, or in `own` */
	uint32_t gid;
	uint32_t section;
	unsigned line;
	char own[24];       /* unix:uid:N of a name of an account */
};

struct rights {
	char *file;
	uint8_t *text; /* a copy */
	size_t size;
	struct rights_rule *rules;
	struct rights_section *sections;
	struct rights_holder *holders;
	uint32_t rule_count, section_count, holder_count;
	uint8_t digest[RIGHTS_DIGEST_BYTES];
};

/* The first holder that does not come before the wanted one. */
uint32_t rights_first(const struct rights *r, const struct rights_holder *wanted);
/* By kind, then by name or number. */
int rights_compare(const struct rights_holder *a, const struct rights_holder *b);
/* NAME's name. */
struct slice rights_holder_name(const struct rights_holder *h);

#endif
