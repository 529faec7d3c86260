/* rights_limit.c: limits of single identities: `locks = 1000` in a section. */
#include "ini_number.h"
#include "rights_reading.h"

#include "pawl/error.h"

#define LIMIT_COUNT_MAX ((uint64_t)1000 * 1000 * 1000)
#define LIMIT_BYTES_MAX ((uint64_t)1 << 44)
/* How near to the caller a section is that sets a limit. 0: no section does; then everybody's, a
 * group's, the caller's own. */
#define LIMIT_LEVELS 4

/* ---- reading ---- */

static bool limit_number(const char *text, bool bytes, uint64_t *out) {
	const char *wrong = bytes ? ini_size(text, out) : ini_count(text, out);
	return !wrong && *out <= (bytes ? LIMIT_BYTES_MAX : LIMIT_COUNT_MAX);
}

static int limit_take(struct rights_reading *r, unsigned line, enum share_kind kind,
	const char *value) {
	struct rights_section *s = &r->rights->sections[r->rights->section_count - 1];
	bool bytes = kind == SHARE_VALUES || kind == SHARE_MEMORY;
	uint64_t n;
	if (s->limited >> kind & 1) {
		return rights_wrong(r, line,
			"%s is given twice in this section: remove one of them",
			share_kind_name[kind]);
	}
	if (!limit_number(value, bytes, &n)) {
		return rights_wrong(r, line, "%s = %.64s: write %s, or 0 for no limit",
			share_kind_name[kind], value,
			bytes ? "a size from 1 byte to 16384g, such as 64m"
				: "a number from 1 to 1000000000");
	}
	s->limited |= (uint8_t)(1u << kind);
	s->limits.max[kind] = n;
	return 0;
}

bool rights_limit_line(struct rights_reading *r, unsigned line, const struct ini_item *item,
	int *out_error) {
	for (unsigned kind = 0; kind < SHARE_KINDS; kind++) {
		if (strcmp(item->name, share_kind_name[kind]) == 0) {
			*out_error = limit_take(r, line, (enum share_kind)kind, item->value);
			return true;
		}
	}
	return false;
}

/* ---- looking up ---- */

struct limit_search {
	const struct rights *rights;
	struct share_limits *limits;
	/* The level of the section from which each limit was taken. */
	unsigned level[SHARE_KINDS];
};

/* 0 is no limit, and so it is the greatest. */
static bool limit_greater(uint64_t a, uint64_t b) {
	return b != 0 && (a == 0 || a > b);
}

static void limit_of_section(struct limit_search *search, const struct rights_section *s,
	unsigned level) {
	for (unsigned kind = 0; kind < SHARE_KINDS; kind++) {
		uint64_t n = s->limits.max[kind];
		bool nearer = level > search->level[kind];
		bool greater = level == search->level[kind] &&
			limit_greater(n, search->limits->max[kind]);
		if ((s->limited >> kind & 1) && (nearer || greater)) {
			search->limits->max[kind] = n;
			search->level[kind] = level;
		}
	}
}

static void limit_of_subject(struct limit_search *search, const struct rights_subject *wanted,
	unsigned level) {
	const struct rights *r = search->rights;
	for (uint32_t i = rights_first(r, wanted);
		i < r->subject_count && rights_compare(&r->subjects[i], wanted) == 0; i++) {
		const struct rights_section *s = &r->sections[r->subjects[i].section];
		bool group = slice_has_prefix(s->name, slice_str("group:"));
		limit_of_section(search, s, group && level == LIMIT_LEVELS - 1 ? level - 1 : level);
	}
}

void rights_limits(const struct rights *r, const struct rights_caller *caller,
	struct share_limits *limits) {
	struct limit_search search = { .rights = r, .limits = limits };
	const struct rights_subject all = { .kind = RIGHTS_ALL };
	const struct rights_subject own = { .kind = RIGHTS_NAME,
		.name = caller->identity.size > 0
			? caller->identity : slice_str(RIGHTS_ANONYMOUS) };
	limit_of_subject(&search, &all, 1);
	for (uint32_t i = 0; i < caller->gid_count; i++) {
		const struct rights_subject group = { .kind = RIGHTS_GID, .gid = caller->gids[i] };
		limit_of_subject(&search, &group, 2);
	}
	limit_of_subject(&search, &own, LIMIT_LEVELS - 1);
}
