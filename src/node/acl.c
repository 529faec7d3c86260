/* Who may do what: [acl] of the configuration. */
#include "config_file.h"

bool acl_is_admin(const struct node_config *c, struct slice identity) {
	for (uint32_t i = 0; i < c->admin_count; i++) {
		if (slice_equal(slice_str(c->admins[i]), identity)) {
			return true;
		}
	}
	return false;
}

bool acl_allows(const struct node_config *c, struct slice identity, bool op_is_write, struct slice key) {
	if (c->rule_count == 0 || acl_is_admin(c, identity)) {
		return true;
	}
	for (uint32_t i = 0; i < c->rule_count; i++) {
		const struct acl_rule *r = &c->rules[i];
		if ((r->write || !op_is_write) && slice_equal(slice_str(r->identity), identity) &&
			slice_has_prefix(key, slice_str(r->prefix))) {
			return true;
		}
	}
	return false;
}
