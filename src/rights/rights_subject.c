/* rights_subject.c: whom a section is about: by its name, or as members of a group. */
#include "rights_reading.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

#include "core.h"
#include "pawl/error.h"

/* Limits the bytes that the system knows of an account. */
#define ACCOUNT_BYTES_MAX 65536

/* ---- accounts of this machine ---- */

static bool account_user(const char *name, uint32_t *out_uid) {
	struct passwd entry, *found = NULL;
	char *room = malloc(ACCOUNT_BYTES_MAX);
	if (room && getpwnam_r(name, &entry, room, ACCOUNT_BYTES_MAX, &found) == 0 && found) {
		*out_uid = entry.pw_uid;
	}
	free(room);
	return found;
}

static bool account_group(const char *name, uint32_t *out_gid) {
	struct group entry, *found = NULL;
	char *room = malloc(ACCOUNT_BYTES_MAX);
	if (room && getgrnam_r(name, &entry, room, ACCOUNT_BYTES_MAX, &found) == 0 && found) {
		*out_gid = entry.gr_gid;
	}
	free(room);
	return found;
}

const struct rights_accounts rights_system_accounts = { account_user, account_group };

/* ---- names ---- */

static bool subject_number(struct slice text, uint32_t *out) {
	uint64_t n = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return false;
		}
		n = n * 10 + (uint64_t)(text.data[i] - '0');
		if (n > UINT32_MAX) {
			return false;
		}
	}
	*out = (uint32_t)n;
	return text.size > 0;
}

static bool subject_take_prefix(struct slice name, const char *prefix, struct slice *rest) {
	if (!slice_has_prefix(name, slice_str(prefix))) {
		return false;
	}
	size_t size = strlen(prefix);
	*rest = slice_of(name.data + size, name.size - size);
	return true;
}

static void subject_set_uid(struct rights_subject *s, uint32_t uid) {
	s->kind = RIGHTS_NAME;
	snprintf(s->own, sizeof s->own, RIGHTS_UNIX "uid:%u", uid);
}

/* Takes unix:user:NAME and unix:group:NAME. An account that this machine does not have stands for
 * nobody, because the file is the same on all machines. */
static bool subject_set_account(const struct rights_reading *r, struct slice name, bool user,
	struct rights_subject *s) {
	char text[IDENTITY_MAX + 1];
	uint32_t number = 0;
	if (name.size == 0 || name.size > IDENTITY_MAX) {
		return false;
	}
	snprintf(text, sizeof text, "%.*s", (int)name.size, (const char *)name.data);
	if (!(user ? r->accounts->user(text, &number) : r->accounts->group(text, &number))) {
		s->kind = RIGHTS_NOBODY;
	} else if (user) {
		subject_set_uid(s, number);
	} else {
		s->kind = RIGHTS_GID;
		s->gid = number;
	}
	return true;
}

static bool subject_set_unix(const struct rights_reading *r, struct slice name,
	struct rights_subject *s) {
	struct slice rest;
	uint32_t uid;
	if (subject_take_prefix(name, RIGHTS_UNIX "user:", &rest)) {
		return subject_set_account(r, rest, true, s);
	}
	if (subject_take_prefix(name, RIGHTS_UNIX "group:", &rest)) {
		return subject_set_account(r, rest, false, s);
	}
	if (subject_take_prefix(name, RIGHTS_UNIX "uid:", &rest) && subject_number(rest, &uid)) {
		subject_set_uid(s, uid);
		return true;
	}
	s->kind = RIGHTS_GID;
	return subject_take_prefix(name, RIGHTS_UNIX "gid:", &rest) &&
		subject_number(rest, &s->gid);
}

/* Returns 0, or PAWL_EINVAL if nobody can have the name. */
static int subject_set(struct rights_reading *r, unsigned line, struct slice name,
	struct rights_subject *s) {
	struct slice rest;
	*s = (struct rights_subject){ .kind = RIGHTS_NAME, .name = name, .line = line,
		.section = r->rights->section_count - 1 };
	if (slice_equal(name, slice_str("everybody"))) {
		s->kind = RIGHTS_ALL;
		return 0;
	}
	if (subject_take_prefix(name, "group:", &rest)) {
		s->kind = RIGHTS_GROUP;
		return rest.size > 0 ? 0
			: rights_wrong(r, line, "a group without a name: write [group:NAME]");
	}
	if (slice_has_prefix(name, slice_str(RIGHTS_UNIX)) && !subject_set_unix(r, name, s)) {
		return rights_wrong(r, line,
			"%.*s: write unix:uid:NUMBER, unix:user:NAME, unix:gid:NUMBER or "
			"unix:group:NAME", (int)name.size, (const char *)name.data);
	}
	return name.size <= IDENTITY_MAX ? 0
		: rights_wrong(r, line, "a name has at most %d characters", IDENTITY_MAX);
}

static int subject_add(struct rights_reading *r, const struct rights_subject *s) {
	struct rights *all = r->rights;
	if (all->subject_count == RIGHTS_SUBJECTS_MAX) {
		return rights_wrong(r, s->line,
			"more than %d names: give several clients certificates of one name",
			RIGHTS_SUBJECTS_MAX);
	}
	struct rights_subject *subjects = rights_grow(all->subjects, all->subject_count, sizeof *s);
	if (!subjects) {
		return PAWL_ENOMEM;
	}
	subjects[all->subject_count++] = *s;
	all->subjects = subjects;
	return 0;
}

int rights_members_line(struct rights_reading *r, unsigned line, struct slice value) {
	struct slice part;
	if (!r->group) {
		return rights_wrong(r, line,
			"members belong to a group: write them in a section [group:NAME]");
	}
	while (rights_part(&value, &part)) {
		struct rights_subject s;
		if (part.size == 0 || memchr(part.data, ' ', part.size) ||
			memchr(part.data, '\t', part.size)) {
			return rights_wrong(r, line,
				"members: write names with commas between them: members = alice, "
				"unix:user:bob");
		}
		int error = subject_set(r, line, part, &s);
		if (error) {
			return error;
		}
		if (s.kind == RIGHTS_ALL || s.kind == RIGHTS_GROUP) {
			return rights_wrong(r, line,
				"members: %.*s cannot be a member: write the names themselves",
				(int)part.size, (const char *)part.data);
		}
		error = subject_add(r, &s);
		if (error) {
			return error;
		}
		r->rights->sections[s.section].members++;
	}
	return 0;
}

int rights_section_line(struct rights_reading *r, unsigned line, struct slice name) {
	struct rights *all = r->rights;
	struct rights_subject s;
	for (uint32_t i = 0; i < all->section_count; i++) {
		if (slice_equal(all->sections[i].name, name)) {
			return rights_wrong(r, line,
				"section [%.*s] is given twice: move these lines to the "
				"first one, on line %u", (int)name.size, (const char *)name.data,
				all->sections[i].line);
		}
	}
	if (all->section_count == RIGHTS_SECTIONS_MAX) {
		return rights_wrong(r, line,
			"more than %d sections: put those that have the same rights into a "
			"[group:NAME]", RIGHTS_SECTIONS_MAX);
	}
	struct rights_section *sections =
		rights_grow(all->sections, all->section_count, sizeof *sections);
	if (!sections) {
		return PAWL_ENOMEM;
	}
	sections[all->section_count++] =
		(struct rights_section){ .name = name, .line = line, .first = all->rule_count };
	all->sections = sections;
	int error = subject_set(r, line, name, &s);
	r->group = !error && s.kind == RIGHTS_GROUP;
	return error || r->group ? error : subject_add(r, &s);
}
