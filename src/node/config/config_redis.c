/* config_redis.c: the sections [redis] and [redis.scripts]. */
#include "config_setting.h"

#include <string.h>

#include "pawl/error.h"

int config_script_line(struct config_reading *r, unsigned line, const char *name,
	const char *value) {
	struct script_mappings *mappings = &r->config->redis_scripts;
	struct script_mapping mapping;
	const char *wrong = script_mapping_read(name, value, &mapping);
	if (wrong) {
		return config_wrong(r, line, "[redis.scripts] %s = %.200s: %s", name, value, wrong);
	}
	for (uint32_t i = 0; i < mappings->count; i++) {
		if (memcmp(mappings->list[i].sha1, mapping.sha1, SCRIPT_SHA1_BYTES) == 0) {
			return config_wrong(r, line,
				"[redis.scripts] %s is given twice, first on line %u: remove one "
				"of them", name, r->script_line[i]);
		}
	}
	if (script_find_form(mapping.sha1)) {
		return config_wrong(r, line,
			"[redis.scripts] %s: nodes know this script already: remove the line",
			name);
	}
	if (mappings->count == SCRIPTS_MAPPED_MAX) {
		return config_wrong(r, line, "[redis.scripts]: at most %d scripts",
			SCRIPTS_MAPPED_MAX);
	}
	r->script_line[mappings->count] = line;
	mappings->list[mappings->count++] = mapping;
	return 0;
}

int config_finish_redis(struct config_reading *r) {
	const char *text = r->config->redis.advertise;
	struct listen_address address;
	if (text[0] && (listen_address_parse(text, true, &address) != NULL
			|| address.kind != LISTEN_TLS || address.port == 0
			|| strcmp(address.host, "0.0.0.0") == 0
			|| strcmp(address.host, "::") == 0)) {
		return config_wrong(r, r->setting_line[SETTING_REDIS_ADVERTISE],
			"[redis] advertise = %s: write the host:port at which clients of Redis "
			"reach this node", text);
	}
	return 0;
}
