/* rights_read.c: reading the file of rules, section by section and line by line. */
#include "rights_reading.h"

#include <errno.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ini.h"
#include "pawl/error.h"

#define RIGHTS_FILE_BYTES_MAX (1u << 20)

int rights_wrong(struct rights_reading *r, unsigned line, const char *format, ...) {
	char text[sizeof r->problem->text];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	problem_set(r->problem, "%s:%u: %s", r->rights->file, line, text);
	return PAWL_EINVAL;
}

/* The room is doubled when it is full, which it is at powers of two. */
void *rights_grow(void *items, uint32_t count, size_t item_bytes) {
	if (count & (count - 1)) {
		return items;
	}
	return realloc(items, (count ? (size_t)count * 2 : 1) * item_bytes);
}

void rights_free(struct rights *r) {
	if (r) {
		free(r->file);
		free(r->text);
		free(r->rules);
		free(r->sections);
		free(r->subjects);
		free(r);
	}
}

/* ---- the lines ---- */

static int read_value(struct rights_reading *r, unsigned line, const struct ini_item *item) {
	int error = 0;
	if (r->rights->section_count == 0) {
		return rights_wrong(r, line,
			"%s comes before the first section: write above it whom it is about, "
			"such as [billing]", item->name);
	}
	if (strcmp(item->name, "allow") == 0 || strcmp(item->name, "deny") == 0) {
		return rights_rule_line(r, line, item->name[0] == 'd', item->where);
	}
	if (strcmp(item->name, "members") == 0) {
		return rights_members_line(r, line, item->where);
	}
	if (rights_limit_line(r, line, item, &error)) {
		return error;
	}
	return rights_wrong(r, line,
		"unknown setting %s; the settings are allow, deny, in [group:NAME] members, and "
		"the limits clients, requests, waits, watches, locks, value_bytes, "
		"client_memory and rate",
		item->name);
}

static int read_lines(struct rights_reading *r, struct slice text) {
	struct ini ini;
	struct ini_item item = { .wrong = NULL };
	int error = 0;
	ini_init(&ini, text);
	while (!error) {
		switch (ini_next(&ini, &item)) {
		case INI_END:
			return 0;
		case INI_WRONG:
			return rights_wrong(r, ini.line, "%s", item.wrong);
		case INI_SECTION:
			error = rights_section_line(r, ini.line, item.where);
			break;
		case INI_VALUE:
			error = read_value(r, ini.line, &item);
			break;
		}
	}
	return error;
}

static int subject_order(const void *a, const void *b) {
	return rights_compare(a, b);
}

static int rule_order(const void *a, const void *b) {
	const struct rights_rule *x = a, *y = b;
	const int c = slice_compare(x->prefix, y->prefix);
	return c != 0 ? c : (y->line > x->line) - (y->line < x->line);
}

/* Sorts the rules of a section, so that those about a key are found quickly. */
static void read_order(struct rights *all, const struct rights_section *s) {
	if (s->count > 0) {
		qsort(all->rules + s->first, s->count, sizeof *all->rules, rule_order);
	}
	for (uint32_t i = s->first; i < s->first + s->count; i++) {
		struct rights_rule *rule = &all->rules[i];
		uint32_t within = i > s->first ? i : 0;
		while (within && !slice_has_prefix(rule->prefix, all->rules[within - 1].prefix)) {
			within = all->rules[within - 1].within;
		}
		rule->within = within;
	}
}

/* Checks what can be seen only at the end, and sorts the subjects. */
static int read_finish(struct rights_reading *r) {
	struct rights *all = r->rights;
	for (uint32_t i = 0; i < all->section_count; i++) {
		const struct rights_section *s = &all->sections[i];
		if (slice_has_prefix(s->name, slice_str("group:")) && s->members == 0) {
			return rights_wrong(r, s->line,
				"[%.*s] has no members: write members = NAME, NAME below it, or "
				"remove "
				"the section", (int)s->name.size, (const char *)s->name.data);
		}
	}
	for (uint32_t i = 0; i < all->section_count; i++) {
		read_order(all, &all->sections[i]);
	}
	if (all->subject_count > 0) {
		qsort(all->subjects, all->subject_count, sizeof *all->subjects, subject_order);
	}
	return 0;
}

int rights_parse(struct slice text, const char *name, const struct rights_accounts *accounts,
	struct rights **out, struct problem *problem) {
	struct rights *all = calloc(1, sizeof *all);
	struct rights_reading r = { .rights = all, .accounts = accounts, .problem = problem };
	problem_set(problem, "out of memory");
	if (!all || !(all->file = strdup(name)) || !(all->text = malloc(text.size + 1))) {
		rights_free(all);
		return PAWL_ENOMEM;
	}
	*slice_put(all->text, text) = '\0';
	all->size = text.size;
	SHA256(all->text, all->size, all->digest);
	int error = read_lines(&r, slice_of(all->text, all->size));
	error = error ? error : read_finish(&r);
	if (error) {
		rights_free(all);
		return error;
	}
	*out = all;
	return 0;
}

/* ---- the file ---- */

static int read_problem(const char *path, FILE *file, size_t size, struct problem *problem) {
	struct stat about;
	if (ferror(file) || fstat(fileno(file), &about) != 0) {
		problem_set(problem, "%s: cannot be read: %s", path, strerror(errno));
		return PAWL_EIO;
	}
	if (size > RIGHTS_FILE_BYTES_MAX) {
		problem_set(problem, "%s is larger than 1 MiB, the limit for a "
			"file of access rules", path);
		return PAWL_EINVAL;
	}
	if (S_ISREG(about.st_mode) && (about.st_mode & S_IWOTH)) {
		problem_set(problem, "%s can be changed by everybody on this machine: "
			"run chmod o-w %s",
			path, path);
		return PAWL_EINVAL;
	}
	return 0;
}

int rights_read(const char *path, struct rights **out, struct problem *problem) {
	FILE *file = fopen(path, "re");
	if (!file) {
		problem_set(problem, "%s: cannot be opened: %s", path, strerror(errno));
		return PAWL_EIO;
	}
	char *bytes = malloc(RIGHTS_FILE_BYTES_MAX + 1);
	int error = PAWL_ENOMEM;
	problem_set(problem, "out of memory");
	if (bytes) {
		size_t size = fread(bytes, 1, RIGHTS_FILE_BYTES_MAX + 1, file);
		error = read_problem(path, file, size, problem);
		error = error ? error
			: rights_parse(slice_of(bytes, size), path, &rights_system_accounts, out,
				problem);
	}
	free(bytes);
	fclose(file);
	return error;
}

/* ---- what is probably not meant ---- */

/* Tells whether nobody on this machine has the right to change the cluster. */
static bool warns_nobody(const struct rights *r) {
	for (uint32_t i = 0; i < r->subject_count; i++) {
		const struct rights_section *s = &r->sections[r->subjects[i].section];
		for (uint32_t k = s->first;
			r->subjects[i].kind != RIGHTS_NOBODY && k < s->first + s->count; k++) {
			if (!r->rules[k].deny && r->rules[k].prefix.size == 0 &&
				r->rules[k].rights >> RIGHT_CLUSTER & 1) {
				return false;
			}
		}
	}
	return true;
}

bool rights_warning(const struct rights *r, unsigned n, struct problem *out) {
	if (warns_nobody(r) && n-- == 0) {
		problem_set(out,
			"%s: nobody has the right 'cluster', so no change of the cluster and no "
			"drain is possible until a rule gives it, such as allow = all on "
			"* in [unix:uid:0]", r->file);
		return true;
	}
	for (uint32_t i = 0; i < r->subject_count; i++) {
		const struct rights_subject *s = &r->subjects[i];
		if (s->kind == RIGHTS_NOBODY && n-- == 0) {
			problem_set(out,
				"%s:%u: this machine has no %.*s, so these rules "
				"apply to nobody here", r->file, s->line, (int)s->name.size,
				(const char *)s->name.data);
			return true;
		}
	}
	return false;
}
