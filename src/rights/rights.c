/* rights.c: judging by the rules: the rule that counts for one caller, one right and one key. */
#include "rights_impl.h"

#include <stdio.h>

static const char *const right_names[] = {
#define RIGHT_NAME(name, text) [RIGHT_##name] = text,
	RIGHT_TABLE(RIGHT_NAME)
#undef RIGHT_NAME
	[RIGHT_NONE] = "none",
};

const char *right_name(enum right right) {
	return right_names[right];
}

const char *rights_file(const struct rights *r) {
	return r->file;
}

void rights_digest(const struct rights *r, uint8_t out[RIGHTS_DIGEST_BYTES]) {
	memcpy(out, r->digest, RIGHTS_DIGEST_BYTES);
}

bool rights_name_reserved(struct slice name) {
	return slice_equal(name, slice_str(RIGHTS_PLAIN)) ||
		slice_equal(name, slice_str(RIGHTS_ANONYMOUS)) ||
		slice_equal(name, slice_str("everybody")) ||
		slice_has_prefix(name, slice_str("group:")) ||
		slice_has_prefix(name, slice_str(RIGHTS_UNIX));
}

/* ---- the rules of one section ---- */

struct judgement {
	const struct rights_question *question;
	/* Bytes of the prefix of the rule that counts so far. */
	size_t length;
	bool denied;
	/* The line of that rule; 0: there is none yet. */
	unsigned line;
	int64_t priority;
	/* The line of a deny about some of the keys; 0: there is none. */
	unsigned part;
};

/* The longest prefix counts. Of several that are as long a deny counts, and of several that allow a
 * priority the greatest. */
static void judge_rule(struct judgement *j, const struct rights_rule *rule) {
	if (j->line && rule->prefix.size < j->length) {
		return;
	}
	bool longer = !j->line || rule->prefix.size > j->length;
	bool greater = !rule->deny && !j->denied && j->question->right == RIGHT_PRIORITY &&
		rule->priority > j->priority;
	if (longer || (rule->deny && !j->denied) || greater) {
		j->length = rule->prefix.size;
		j->denied = rule->deny;
		j->line = rule->line;
		j->priority = rule->deny ? 0 : rule->priority;
	}
}

/* Returns the index of the first rule of the section whose prefix comes after the key. All prefixes
 * that the key begins with come before that: the last rule before it has the longest of them, or
 * begins with it. */
static uint32_t rules_up_to(const struct rights *r, const struct rights_section *s,
	struct slice key) {
	uint32_t from = s->first, to = s->first + s->count;
	while (from < to) {
		const uint32_t middle = from + (to - from) / 2;
		if (slice_compare(r->rules[middle].prefix, key) <= 0) {
			from = middle + 1;
		} else {
			to = middle;
		}
	}
	return from;
}

static void judge_section(struct judgement *j, const struct rights *r, uint32_t section,
	bool denies_only) {
	const struct rights_section *s = &r->sections[section];
	const struct rights_question *q = j->question;
	const uint32_t behind = rules_up_to(r, s, q->key);
	for (uint32_t i = behind > s->first ? behind : 0; i > 0; i = r->rules[i - 1].within) {
		const struct rights_rule *rule = &r->rules[i - 1];
		if ((rule->rights >> q->right & 1) && (rule->deny || !denies_only) &&
			slice_has_prefix(q->key, rule->prefix)) {
			judge_rule(j, rule);
		}
	}
	/* Prefixes that begin with the key come right behind it. */
	for (uint32_t i = behind; q->prefix && !j->part && i < s->first + s->count &&
		slice_has_prefix(r->rules[i].prefix, q->key); i++) {
		const struct rights_rule *rule = &r->rules[i];
		j->part = rule->deny && (rule->rights >> q->right & 1) ? rule->line : 0;
	}
}

/* ---- whose sections ---- */

struct slice rights_subject_name(const struct rights_subject *s) {
	return s->own[0] ? slice_str(s->own) : s->name;
}

int rights_compare(const struct rights_subject *a, const struct rights_subject *b) {
	if (a->kind != b->kind) {
		return a->kind < b->kind ? -1 : 1;
	}
	if (a->kind == RIGHTS_GID) {
		return (a->gid > b->gid) - (a->gid < b->gid);
	}
	return a->kind != RIGHTS_NAME ? 0
		: slice_compare(rights_subject_name(a), rights_subject_name(b));
}

uint32_t rights_first(const struct rights *r, const struct rights_subject *wanted) {
	uint32_t from = 0, to = r->subject_count;
	while (from < to) {
		uint32_t middle = from + (to - from) / 2;
		if (rights_compare(&r->subjects[middle], wanted) < 0) {
			from = middle + 1;
		} else {
			to = middle;
		}
	}
	return from;
}

/* Judges by the sections of all subjects that compare equal. */
static void judge_subject(struct judgement *j, const struct rights *r,
	const struct rights_subject *wanted, bool denies_only) {
	for (uint32_t i = rights_first(r, wanted);
		i < r->subject_count && rights_compare(&r->subjects[i], wanted) == 0; i++) {
		judge_section(j, r, r->subjects[i].section, denies_only);
	}
}

static void judge_groups(struct judgement *j, const struct rights *r,
	const struct rights_caller *caller) {
	for (uint32_t i = 0; i < caller->gid_count; i++) {
		const struct rights_subject group = { .kind = RIGHTS_GID, .gid = caller->gids[i] };
		judge_subject(j, r, &group, false);
	}
	for (uint32_t i = 0; caller->more_gids && i < r->subject_count; i++) {
		if (r->subjects[i].kind == RIGHTS_GID) {
			judge_section(j, r, r->subjects[i].section, true);
		}
	}
}

struct rights_verdict rights_judge(const struct rights *r, const struct rights_caller *caller,
	const struct rights_question *question) {
	struct judgement j = { .question = question };
	const struct rights_subject all = { .kind = RIGHTS_ALL };
	const struct rights_subject own = { .kind = RIGHTS_NAME,
		.name = caller->identity.size > 0
			? caller->identity : slice_str(RIGHTS_ANONYMOUS) };
	if (question->right == RIGHT_NONE ||
		(question->right == RIGHT_PRIORITY && question->priority <= 0)) {
		return (struct rights_verdict){ .allowed = true };
	}
	judge_subject(&j, r, &own, false);
	judge_groups(&j, r, caller);
	judge_subject(&j, r, &all, false);
	struct rights_verdict v = { .allowed = j.line && !j.denied, .line = j.line,
		.priority = j.priority };
	if (v.allowed && j.part) {
		v = (struct rights_verdict){ .line = j.part, .part = true };
	} else if (v.allowed && question->right == RIGHT_PRIORITY) {
		v.allowed = question->priority <= j.priority;
	}
	return v;
}

/* ---- in words ---- */

/* Returns the line without the blanks around it. */
static struct slice rights_line(const struct rights *r, unsigned line) {
	struct slice rest = slice_of(r->text, r->size);
	for (unsigned n = 1;; n++) {
		const uint8_t *end = rest.size ? memchr(rest.data, '\n', rest.size) : NULL;
		size_t size = end ? (size_t)(end - rest.data) : rest.size;
		if (n == line || !end) {
			rest.size = size;
			break;
		}
		rest = slice_of(rest.data + size + 1, rest.size - size - 1);
	}
	while (rest.size > 0 && rest.data[0] <= ' ') {
		rest = slice_of(rest.data + 1, rest.size - 1);
	}
	while (rest.size > 0 && rest.data[rest.size - 1] <= ' ') {
		rest.size--;
	}
	return rest;
}

/* Returns the name of the section in which the line stands. */
static struct slice rights_section_at(const struct rights *r, unsigned line) {
	struct slice name = slice_str("");
	for (uint32_t i = 0; i < r->section_count && r->sections[i].line < line; i++) {
		name = r->sections[i].name;
	}
	return name;
}

void rights_explain(const struct rights *r, const struct rights_caller *caller,
	const struct rights_question *question, const struct rights_verdict *verdict,
	char out[RIGHTS_WHY_BYTES]) {
	struct slice who = caller->identity.size > 0 ? caller->identity
		: slice_str(RIGHTS_ANONYMOUS);
	const char *right = right_name(question->right);
	if (!verdict->line) {
		snprintf(out, RIGHTS_WHY_BYTES, verdict->allowed
			? "this requires no right: every client that is connected may do it"
			: "no rule of %.300s gives %.*s the right %s%s",
			r->file, (int)who.size, (const char *)who.data, right,
			RIGHT_HAS_KEY(question->right)
			? question->prefix ? " to all these keys" : " to this key" : "");
		return;
	}
	struct slice line = rights_line(r, verdict->line),
		section = rights_section_at(r, verdict->line);
	char priority[96] = "";
	if (question->right == RIGHT_PRIORITY && !verdict->allowed && verdict->priority > 0) {
		snprintf(priority, sizeof priority,
			": it allows priorities up to %lld, and %lld is greater",
			(long long)verdict->priority, (long long)question->priority);
	}
	snprintf(out, RIGHTS_WHY_BYTES, "%.300s:%u, in [%.*s]: %.*s%s%s", r->file, verdict->line,
		(int)section.size, (const char *)section.data,
		(int)(line.size < 300 ? line.size : 300), (const char *)line.data, priority,
		verdict->part ? ": this denies some of these keys; ask for a narrower prefix" : "");
}
