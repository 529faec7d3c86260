/* The lines of [acl]: `admin = NAME, NAME` and `NAME = read PREFIX, write PREFIX`. */
#include "config_setting.h"

#include <ctype.h>

/* The next part between commas, without blanks around it; false at the end. An empty part has *size 0. */
static bool acl_part(const char **rest, const char **part, size_t *size) {
	if (!*rest) {
		return false;
	}
	const char *start = *rest + strspn(*rest, " \t");
	const char *end = start + strcspn(start, ",");
	*rest = *end == ',' ? end + 1 : NULL;
	while (end > start && (end[-1] == ' ' || end[-1] == '\t')) {
		end--;
	}
	*part = start;
	*size = (size_t)(end - start);
	return true;
}

static bool acl_copy(const char *from, size_t size, char *to, size_t max) {
	if (size > max) {
		return false;
	}
	memcpy(to, from, size);
	to[size] = '\0';
	return true;
}

static int acl_admins(struct config_reading *r, unsigned line, const char *value) {
	struct node_config *c = r->config;
	const char *part;
	size_t size;
	if (c->admin_count > 0) {
		return config_wrong(r, line, "[acl] admin stands here a second time: write all names in one line, with commas");
	}
	while (acl_part(&value, &part, &size)) {
		if (size == 0 || memchr(part, ' ', size) || memchr(part, '\t', size)) {
			return config_wrong(r, line, "[acl] admin: write the names of certificates with commas between them: admin = alice, bob");
		}
		if (c->admin_count == ACL_ADMINS_MAX) {
			return config_wrong(r, line, "[acl] admin: more than %d names: give the administrators certificates of one name", ACL_ADMINS_MAX);
		}
		if (!acl_copy(part, size, c->admins[c->admin_count], IDENTITY_MAX)) {
			return config_wrong(r, line, "[acl] admin: a name has at most %d characters", IDENTITY_MAX);
		}
		c->admin_count++;
	}
	return 0;
}

static int acl_rule_add(struct config_reading *r, unsigned line, const char *name, const char *part, size_t size) {
	struct node_config *c = r->config;
	size_t word = 0;
	while (word < size && !isspace((unsigned char)part[word])) {
		word++;
	}
	bool write = word == 5 && memcmp(part, "write", 5) == 0;
	if (!write && !(word == 4 && memcmp(part, "read", 4) == 0)) {
		return config_wrong(r, line, "[acl] %s: write `read PREFIX` or `write PREFIX` (write includes read; * is every key), "
			"several with commas between them", name);
	}
	while (word < size && isspace((unsigned char)part[word])) {
		word++;
	}
	const char *prefix = part + word;
	size_t prefix_size = size - word;
	if (prefix_size == 0) {
		return config_wrong(r, line, "[acl] %s: a prefix is missing: write `%s PREFIX`, or `%s *` for every key", name,
			write ? "write" : "read", write ? "write" : "read");
	}
	if (prefix_size == 1 && *prefix == '*') {
		prefix_size = 0;
	}
	if (memchr(prefix, '*', prefix_size)) {
		return config_wrong(r, line, "[acl] %s: a prefix has no *: it stands for every key that begins with it", name);
	}
	if (c->rule_count == ACL_RULES_MAX) {
		return config_wrong(r, line, "[acl] has more than %d rules: give several clients certificates of one name", ACL_RULES_MAX);
	}
	struct acl_rule *rule = &c->rules[c->rule_count];
	if (!acl_copy(prefix, prefix_size, rule->prefix, KEY_MAX)) {
		return config_wrong(r, line, "[acl] %s: a prefix has at most %d bytes", name, KEY_MAX);
	}
	acl_copy(name, strlen(name), rule->identity, IDENTITY_MAX);
	rule->write = write;
	c->rule_count++;
	return 0;
}

int config_acl_line(struct config_reading *r, unsigned line, const char *name, const char *value) {
	if (strcmp(name, "admin") == 0) {
		return acl_admins(r, line, value);
	}
	for (uint32_t i = 0; i < r->config->rule_count; i++) {
		if (strcmp(r->config->rules[i].identity, name) == 0) {
			return config_wrong(r, line, "[acl] %s stands here a second time: write all its rules in one line, with commas", name);
		}
	}
	const char *part;
	size_t size;
	while (acl_part(&value, &part, &size)) {
		int error = acl_rule_add(r, line, name, part, size);
		if (error) {
			return error;
		}
	}
	return 0;
}
