/* rights_rule.c: reading one rule: `allow = read, acquire, priority 10 on billing/`. */
#include "rights_reading.h"

#include "core.h"
#include "pawl/error.h"

#define ALL_RIGHTS ((uint16_t)((1u << RIGHTS) - 1))
#define KEYLESS_RIGHTS ((uint16_t)(1u << RIGHT_STATUS | 1u << RIGHT_CLUSTER))

static bool rule_blank(uint8_t c) {
	return c == ' ' || c == '\t';
}

static struct slice rule_trim(struct slice s) {
	while (s.size > 0 && rule_blank(s.data[0])) {
		s = slice_of(s.data + 1, s.size - 1);
	}
	while (s.size > 0 && rule_blank(s.data[s.size - 1])) {
		s.size--;
	}
	return s;
}

bool rights_part(struct slice *rest, struct slice *out_part) {
	if (!rest->data) {
		return false;
	}
	const uint8_t *comma = rest->size ? memchr(rest->data, ',', rest->size) : NULL;
	size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
	*out_part = rule_trim(slice_of(rest->data, size));
	*rest = comma ? slice_of(comma + 1, rest->size - size - 1) : slice_of(NULL, 0);
	return true;
}

/* Parts the line at its word `on`. False: there is none, and the rights are all of the line. */
static bool rule_split(struct slice value, struct slice *rights, struct slice *prefix) {
	for (size_t i = 0; i + 2 <= value.size; i++) {
		bool begins = i == 0 || rule_blank(value.data[i - 1]);
		bool ends = i + 2 == value.size || rule_blank(value.data[i + 2]);
		if (begins && ends && memcmp(value.data + i, "on", 2) == 0) {
			*rights = rule_trim(slice_of(value.data, i));
			*prefix = rule_trim(slice_of(value.data + i + 2, value.size - i - 2));
			return true;
		}
	}
	*rights = value;
	*prefix = slice_of(NULL, 0);
	return false;
}

/* Returns a whole number up to RIGHTS_PRIORITY_MAX, or -1. */
static int64_t rule_number(struct slice text) {
	int64_t n = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9') {
			return -1;
		}
		n = n * 10 + (text.data[i] - '0');
		if (n > RIGHTS_PRIORITY_MAX) {
			return -1;
		}
	}
	return text.size ? n : -1;
}

static int rule_priority(struct rights_reading *r, unsigned line, struct slice number,
	struct rights_rule *rule) {
	int64_t n = rule_number(number);
	if (rule->deny) {
		return rights_wrong(r, line,
			"deny priority takes no number: it denies every priority above 0; to set a "
			"limit write allow = priority %.*s", (int)number.size,
			(const char *)number.data);
	}
	if (n < 0) {
		return rights_wrong(r, line,
			"priority %.*s: write the greatest priority that is allowed, 0 to "
			"2147483647, such as priority 10",
			(int)(number.size < 64 ? number.size : 64), (const char *)number.data);
	}
	rule->priority = (int32_t)n;
	rule->rights |= 1u << RIGHT_PRIORITY;
	return 0;
}

/* Takes one of the words in front of `on`. */
static int rule_right(struct rights_reading *r, unsigned line, struct slice word,
	struct rights_rule *rule) {
	const struct slice priority = slice_str("priority");
	if (slice_equal(word, slice_str("all"))) {
		rule->rights |= ALL_RIGHTS;
		return 0;
	}
	for (unsigned right = 0; right < RIGHTS; right++) {
		if (slice_equal(word, slice_str(right_name((enum right)right)))) {
			rule->rights |= (uint16_t)(1u << right);
			return 0;
		}
	}
	if (slice_has_prefix(word, priority) && rule_blank(word.data[priority.size])) {
		return rule_priority(r, line,
			rule_trim(slice_of(word.data + priority.size, word.size - priority.size)),
			rule);
	}
	return rights_wrong(r, line,
		"'%.*s' is not a right; the rights are read, acquire, wait, watch, break, priority "
		"N, status, cluster and all. Write them with commas between them, and on which "
		"keys: %s = read, acquire on PREFIX", (int)(word.size < 64 ? word.size : 64),
		(const char *)word.data, rule->deny ? "deny" : "allow");
}

/* Checks that rights about keys have a prefix, and that the others have none. */
static int rule_keys(struct rights_reading *r, unsigned line, bool on,
	const struct rights_rule *rule) {
	const char *what = rule->deny ? "deny" : "allow";
	if (!on && (rule->rights & ~KEYLESS_RIGHTS)) {
		return rights_wrong(r, line,
			"%s: on which keys? Write `on PREFIX` after the rights, or `on "
			"*` for every key", what);
	}
	if (on && rule->prefix.size > 0 && rule->rights != ALL_RIGHTS &&
		(rule->rights & KEYLESS_RIGHTS)) {
		return rights_wrong(r, line,
			"%s: status and cluster do not concern keys: give them a line of their "
			"own without `on`", what);
	}
	return 0;
}

int rights_rule_line(struct rights_reading *r, unsigned line, bool deny, struct slice value) {
	struct rights *all = r->rights;
	struct rights_rule rule = { .deny = deny, .line = line, .priority = RIGHTS_PRIORITY_MAX };
	struct slice rights, part;
	bool on = rule_split(value, &rights, &rule.prefix);
	int error = 0;
	while (!error && rights_part(&rights, &part)) {
		error = rule_right(r, line, part, &rule);
	}
	if (error) {
		return error;
	}
	if (on && rule.prefix.size == 0) {
		return rights_wrong(r, line,
			"a prefix is missing after `on`: write the beginning of the keys, "
			"or * for every key");
	}
	if (slice_equal(rule.prefix, slice_str("*"))) {
		rule.prefix.size = 0;
	}
	if (rule.prefix.size > 0 && memchr(rule.prefix.data, '*', rule.prefix.size)) {
		return rights_wrong(r, line,
			"a prefix has no *: it stands for every key that begins with it");
	}
	if (rule.prefix.size > KEY_MAX) {
		return rights_wrong(r, line, "a prefix has at most %d bytes, as a key", KEY_MAX);
	}
	error = rule_keys(r, line, on, &rule);
	if (error) {
		return error;
	}
	if (all->rule_count == RIGHTS_RULES_MAX) {
		return rights_wrong(r, line,
			"more than %d rules: put those that have the same rights into a "
			"[group:NAME]", RIGHTS_RULES_MAX);
	}
	struct rights_rule *rules = rights_grow(all->rules, all->rule_count, sizeof rule);
	if (!rules) {
		return PAWL_ENOMEM;
	}
	rules[all->rule_count++] = rule;
	all->rules = rules;
	all->sections[all->section_count - 1].count++;
	return 0;
}
