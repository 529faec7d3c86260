/* config_setting.c: the settings with fixed names, one row each, which says where the value goes
 * and what it may be.
 */
#include "config_setting.h"

#include <stdio.h>

#include "config_value.h"
#include "ini_number.h"
#include "text.h"

const char *const config_section_name[SECTION_COUNT] = {
	[SECTION_NODE] = "node",
	[SECTION_CLUSTER] = "cluster",
	[SECTION_MASTERS] = "cluster.masters",
	[SECTION_TLS] = "tls",
	[SECTION_ADMIN] = "admin",
	[SECTION_REDIS] = "redis",
	[SECTION_REDIS_SCRIPTS] = "redis.scripts",
	[SECTION_MEMCACHED] = "memcached",
	[SECTION_LIMITS] = "limits",
	[SECTION_ACL] = "acl",
	[SECTION_AUDIT] = "audit",
};

enum setting_kind {
	KIND_NAME,
	KIND_PATH,
	KIND_ADDRESS,
	/* config_finish parses this value. */
	KIND_RAW,
	KIND_BOOL,
	KIND_LEVEL,
	KIND_FORMAT,
	KIND_AUTH,
	KIND_DEADLOCK,
	KIND_SPAN,
	KIND_SPAN_OR_0,
	KIND_PERCENT,
	KIND_COUNT32,
	KIND_COUNT32_OR_0,
	KIND_COUNT64,
	KIND_COUNT_OR_0,
	KIND_SIZE64,
	KIND_SIZE_OR_0,
	/* A size of at least 16 MiB, and one of at least 1 MiB. */
	KIND_SIZE_16M,
	KIND_SIZE_1M,
	KIND_WHAT,
	/* refuse or keep, and refuse or break. */
	KIND_KEEP,
	KIND_BREAK,
	KIND_VALUE_BYTES
};

/* The offset of a setting's member, and its size. RAW settings are members of struct
 * config_reading; all others are members of struct node_config. */
#define PLACE_OF(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)
#define PLACE_NAME(member) PLACE_OF(struct node_config, member)
#define PLACE_PATH PLACE_NAME
#define PLACE_ADDRESS PLACE_NAME
#define PLACE_BOOL PLACE_NAME
#define PLACE_LEVEL PLACE_NAME
#define PLACE_FORMAT PLACE_NAME
#define PLACE_AUTH PLACE_NAME
#define PLACE_DEADLOCK PLACE_NAME
#define PLACE_SPAN PLACE_NAME
#define PLACE_SPAN_OR_0 PLACE_NAME
#define PLACE_PERCENT PLACE_NAME
#define PLACE_COUNT32 PLACE_NAME
#define PLACE_COUNT32_OR_0 PLACE_NAME
#define PLACE_COUNT64 PLACE_NAME
#define PLACE_COUNT_OR_0 PLACE_NAME
#define PLACE_SIZE64 PLACE_NAME
#define PLACE_SIZE_OR_0 PLACE_NAME
#define PLACE_SIZE_16M PLACE_NAME
#define PLACE_SIZE_1M PLACE_NAME
#define PLACE_WHAT PLACE_NAME
#define PLACE_KEEP PLACE_NAME
#define PLACE_BREAK PLACE_NAME
#define PLACE_VALUE_BYTES PLACE_NAME
#define PLACE_RAW(member) PLACE_OF(struct config_reading, member)

static const struct {
	const char *section, *key;
	enum setting_kind kind;
	size_t place, size;
} setting_row[SETTING_COUNT] = {
#define SETTING_ROW(name, section, key, kind, member) \
	[SETTING_##name] = { section, key, KIND_##kind, PLACE_##kind(member) },
	SETTING_TABLE(SETTING_ROW)
#undef SETTING_ROW
};

int config_setting_find(enum config_section section, const char *key) {
	for (int i = 0; i < SETTING_COUNT; i++) {
		if (strcmp(setting_row[i].section, config_section_name[section]) == 0
			&& strcmp(setting_row[i].key, key) == 0) {
			return i;
		}
	}
	return -1;
}

void config_setting_names(enum config_section section, char *out, size_t size) {
	size_t used = 0;
	out[0] = '\0';
	for (int i = 0; i < SETTING_COUNT; i++) {
		/* The settings of the shares are too many to be named one by one. */
		bool share = i >= SETTING_CLIENTS_IDENTITY && i <= SETTING_RATE_ADDRESS;
		if (strcmp(setting_row[i].section, config_section_name[section]) == 0 && !share
			&& used < size) {
			int n = snprintf(out + used, size - used, "%s%s", used ? ", " : "",
				setting_row[i].key);
			used += n > 0 ? (size_t)n : 0;
		}
	}
	if (section == SECTION_LIMITS && used < size) {
		snprintf(out + used, size - used,
			"; and clients_per_identity, clients_per_address, and the same for "
			"requests, waits, watches, locks, value_bytes, client_memory and rate");
	}
}

bool node_config_limit(const struct node_limits *limits, unsigned n, struct node_limit *out) {
	const enum setting setting = (enum setting)(SETTING_LIMIT_KEYS + n);
	if (setting > SETTING_LIMIT_IDLE) {
		return false;
	}
	const size_t place = setting_row[setting].place - offsetof(struct node_config, limits);
	const char *from = (const char *)limits + place;
	const enum setting_kind kind = setting_row[setting].kind;
	const bool narrow = setting_row[setting].size == sizeof(uint32_t);
	uint32_t value = 0;
	*out = (struct node_limit){ .name = setting_row[setting].key,
		.seconds = kind == KIND_SPAN || kind == KIND_SPAN_OR_0 };
	memcpy(narrow ? (void *)&value : (void *)&out->value, from,
		narrow ? sizeof value : sizeof out->value);
	out->value = narrow ? value : out->value;
	return true;
}

static const char *set_text(char *out, size_t size, const char *value, const char *too_long) {
	return text_copy(out, size, value) ? NULL : too_long;
}

static const char *set_name(char out[NODE_NAME_MAX + 1], const char *value) {
	const char *wrong = config_value_name(value);
	return wrong
		? wrong : set_text(out, NODE_NAME_MAX + 1, value, "a name has 1 to 63 characters");
}

static const char *set_path(char out[CONFIG_PATH_MAX], const char *value) {
	return value[0] != '/'
		? "write an absolute path, such as /etc/pawl/node.crt"
		: set_text(out, CONFIG_PATH_MAX, value, "the path is too long: at most 1023 bytes");
}

static const char *set_span(span_ns *out, const char *value, span_ns least, const char *too_short) {
	span_ns span = 0;
	const char *wrong = config_value_span(value, &span);
	if (wrong || span < least) {
		return wrong ? wrong : too_short;
	}
	*out = span;
	return NULL;
}

static const char *set_u64(uint64_t *out, const char *value, bool is_size, uint64_t least,
	uint64_t max, const char *range) {
	uint64_t n = 0;
	const char *wrong = is_size ? ini_size(value, &n) : ini_count(value, &n);
	if (wrong || n < least || n > max) {
		return wrong ? wrong : range;
	}
	*out = n;
	return NULL;
}

static const char *set_u32(uint32_t *out, const char *value, bool is_size, uint32_t least,
	uint32_t max, const char *range) {
	uint64_t n = 0;
	const char *wrong = set_u64(&n, value, is_size, least, max, range);
	if (!wrong) {
		*out = (uint32_t)n;
	}
	return wrong;
}

static const char *set_log_level(enum log_level *out, const char *value) {
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = { { "error", LEVEL_ERROR }, { "warning", LEVEL_WARNING },
		{ "notice", LEVEL_NOTICE }, { "info", LEVEL_INFO }, { "debug", LEVEL_DEBUG } };
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		if (strcmp(value, levels[i].name) == 0) {
			*out = levels[i].level;
			return NULL;
		}
	}
	return "write error, warning, notice, info or debug";
}

static const char *set_log_format(enum log_format *out, const char *value) {
	if (strcmp(value, "text") == 0) {
		*out = LOG_FORMAT_TEXT;
	} else if (strcmp(value, "json") == 0) {
		*out = LOG_FORMAT_JSON;
	} else {
		return "write text or json";
	}
	return NULL;
}

static const char *set_client_auth(enum client_auth *out, const char *value) {
	if (strcmp(value, "required") == 0) {
		*out = CLIENT_AUTH_REQUIRED;
	} else if (strcmp(value, "optional") == 0) {
		*out = CLIENT_AUTH_OPTIONAL;
	} else if (strcmp(value, "off") == 0) {
		*out = CLIENT_AUTH_OFF;
	} else {
		return "write required, optional or off";
	}
	return NULL;
}

static const char *set_what(enum audit_what *out, const char *value) {
	static const char *const names[] = { [AUDIT_DENIED] = "denied", [AUDIT_ADMIN] = "admin",
		[AUDIT_HOLDERS] = "holders", [AUDIT_ALL] = "all" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (strcmp(value, names[i]) == 0) {
			*out = (enum audit_what)i;
			return NULL;
		}
	}
	return "write denied, admin, holders or all";
}

static const char *set_deadlock(enum deadlock_action *out, const char *value) {
	if (strcmp(value, "off") == 0) {
		*out = DEADLOCK_OFF;
	} else if (strcmp(value, "report") == 0) {
		*out = DEADLOCK_REPORT;
	} else if (strcmp(value, "refuse") == 0) {
		*out = DEADLOCK_REFUSE;
	} else {
		return "write report, refuse or off";
	}
	return NULL;
}

/* `yes` is the word that stands for true. */
static const char *set_unless_refused(bool *out, const char *value, const char *yes,
	const char *wrong) {
	if (strcmp(value, yes) != 0 && strcmp(value, "refuse") != 0) {
		return wrong;
	}
	*out = strcmp(value, yes) == 0;
	return NULL;
}

const char *config_setting_set(struct config_reading *r, enum setting setting, const char *value) {
	size_t place = setting_row[setting].place;
	void *to = (char *)r->config + place;
	switch (setting_row[setting].kind) {
	case KIND_NAME:
		return set_name(to, value);
	case KIND_PATH:
		return set_path(to, value);
	case KIND_ADDRESS:
		return set_text(to, ADDRESS_MAX + 1, value,
			"an address has at most 255 characters");
	case KIND_RAW:
		return set_text((char *)r + place, INI_VALUE_MAX + 1, value,
			"the value is too long: at most 4095 bytes");
	case KIND_BOOL:
		return config_value_bool(value, to);
	case KIND_LEVEL:
		return set_log_level(to, value);
	case KIND_FORMAT:
		return set_log_format(to, value);
	case KIND_AUTH:
		return set_client_auth(to, value);
	case KIND_DEADLOCK:
		return set_deadlock(to, value);
	case KIND_SPAN:
		return set_span(to, value, 1,
			"must not be 0: write a duration such as 300ms, 5s or 2m");
	case KIND_SPAN_OR_0:
		return set_span(to, value, 0, "");
	case KIND_PERCENT:
		return config_value_percent(value, to);
	case KIND_COUNT32:
		return set_u32(to, value, false, 1, 100u * 1000 * 1000,
			"write a number from 1 to 100000000");
	case KIND_COUNT32_OR_0:
		return set_u32(to, value, false, 0, 100u * 1000 * 1000,
			"write a number from 0 to 100000000");
	case KIND_COUNT64:
		return set_u64(to, value, false, 1, 1000ull * 1000 * 1000,
			"write a number from 1 to 1000000000");
	case KIND_COUNT_OR_0:
		return set_u64(to, value, false, 0, 1000ull * 1000 * 1000,
			"write a number from 1 to 1000000000, or 0 for no limit");
	case KIND_SIZE64:
		return set_u64(to, value, true, 1, (uint64_t)1 << 44,
			"write a size from 1 byte to 16384g");
	case KIND_SIZE_OR_0:
		return set_u64(to, value, true, 0, (uint64_t)1 << 44,
			"write a size from 1 byte to 16384g, or 0 for no limit");
	case KIND_SIZE_16M:
		return set_u64(to, value, true, 16u << 20, (uint64_t)1 << 44,
			"write a size from 16m to 16384g");
	case KIND_SIZE_1M:
		return set_u64(to, value, true, 1u << 20, (uint64_t)1 << 44,
			"write a size from 1m to 16384g");
	case KIND_WHAT:
		return set_what(to, value);
	case KIND_KEEP:
		return set_unless_refused(to, value, "keep", "write refuse or keep");
	case KIND_BREAK:
		return set_unless_refused(to, value, "break", "write refuse or break");
	case KIND_VALUE_BYTES:
		return set_u32(to, value, true, 1, VALUE_MAX_HARD,
			"write a size from 1 byte to 1m");
	}
	return "unknown";
}
