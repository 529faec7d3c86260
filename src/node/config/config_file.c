/* config_file.c: reads the file, section by section and line by line. */
#include "config_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "config_setting.h"
#include "config_value.h"
#include "pawl/error.h"
#include "text.h"

#define CONFIG_FILE_BYTES_MAX (1u << 20)

struct node_config *node_config_new(void) {
	struct node_config *c = calloc(1, sizeof *c);
	if (!c) {
		return NULL;
	}
	text_copy(c->state_dir, sizeof c->state_dir, "/var/lib/pawl");
	c->log_level = LEVEL_INFO;
	c->birth.max_lease = 60 * SPAN_S;
	c->birth.promise_timeout = 2 * SPAN_S;
	c->birth.request_timeout = SPAN_S;
	c->birth.drift_ppm = 10000;
	c->replication_interval = 5 * SPAN_MS;
	c->deadlock = DEADLOCK_REPORT;
	c->deadlock_after = SPAN_S;
	c->redis.slack = 100 * SPAN_MS;
	text_copy(c->redis.master_name, sizeof c->redis.master_name, "mymaster");
	c->memcached.slack = 100 * SPAN_MS;
	c->tls.client_auth = CLIENT_AUTH_REQUIRED;
	c->audit = (struct audit_config){ .what = AUDIT_ADMIN, .max_bytes = 64u << 20, .keep = 8 };
	c->limits.clients = 10000;
	c->limits.admin_clients = 16;
	c->limits.kept_locks = 32768;
	c->limits.client_memory = 512u << 20;
	c->limits.identity = (struct share_limits){ { [SHARE_CLIENTS] = 5000,
		[SHARE_REQUESTS] = 65536, [SHARE_WAITS] = 40000, [SHARE_WATCHES] = 200000,
		[SHARE_LOCKS] = 2000000, [SHARE_VALUES] = (uint64_t)1 << 30,
		[SHARE_MEMORY] = 256u << 20 } };
	c->limits.address = (struct share_limits){ { [SHARE_CLIENTS] = 7500,
		[SHARE_REQUESTS] = 98304, [SHARE_WAITS] = 50000, [SHARE_WATCHES] = 300000,
		[SHARE_LOCKS] = 3000000, [SHARE_VALUES] = (uint64_t)2 << 30,
		[SHARE_MEMORY] = 384u << 20 } };
	c->limits.requests_per_client = 4096;
	c->limits.watches_per_client = 1000;
	c->limits.idle_timeout = 600 * SPAN_S;
	c->limits.handshakes = 256;
	c->limits.handshakes_per_address = 128;
	c->limits.handshake_memory = 64u << 20;
	return c;
}

void node_config_free(struct node_config *c) {
	if (c) {
		rights_free(c->rights);
		free(c);
	}
}

int config_wrong(struct config_reading *r, unsigned line, const char *format, ...) {
	char text[sizeof r->problem->text];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (line > 0) {
		problem_set(r->problem, "%s:%u: %s", r->file, line, text);
	} else {
		problem_set(r->problem, "%s: %s", r->file, text);
	}
	return PAWL_EINVAL;
}

static int config_begin_section(struct config_reading *r, unsigned line, const char *name,
	enum config_section *section) {
	for (enum config_section s = 0; s < SECTION_COUNT; s++) {
		if (strcmp(name, config_section_name[s]) != 0) {
			continue;
		}
		if (r->section_line[s]) {
			return config_wrong(r, line,
				"section [%s] is given twice: move these lines to the "
				"first one, on line %u", name, r->section_line[s]);
		}
		r->section_line[s] = line;
		*section = s;
		return 0;
	}
	return config_wrong(r, line,
		"unknown section [%s]; the sections are [node], [cluster], [cluster.masters], "
		"[tls], [admin], [redis], [redis.scripts], [memcached], [limits], [acl] and "
		"[audit]", name);
}

int config_master_line(struct config_reading *r, unsigned line, const char *name,
	const char *value) {
	struct config *birth = &r->config->birth;
	struct listen_address address;
	const char *wrong = config_value_name(name);
	if (wrong) {
		return config_wrong(r, line, "[cluster.masters] %s: %s", name, wrong);
	}
	for (uint32_t i = 0; i < birth->node_count; i++) {
		if (strcmp(birth->nodes[i].name, name) == 0) {
			return config_wrong(r, line,
				"[cluster.masters] %s is listed twice, first on line %u: give "
				"each master one line", name, r->master_line[i]);
		}
		if (strcmp(birth->nodes[i].address, value) == 0) {
			return config_wrong(r, line,
				"[cluster.masters] %s has the same address as %s on line %u: every "
				"master needs its own", name, birth->nodes[i].name,
				r->master_line[i]);
		}
	}
	if (birth->node_count == MASTERS_MAX) {
		return config_wrong(r, line,
			"[cluster.masters] has more than %d masters: use 3 or 5", MASTERS_MAX);
	}
	wrong = listen_address_parse(value, true, &address);
	if (wrong || address.kind != LISTEN_TLS || address.port == 0
		|| strlen(value) > ADDRESS_MAX) {
		return config_wrong(r, line,
			"[cluster.masters] %s = %s: write %s = host:port, the address at which the "
			"other masters reach it", name, value, name);
	}
	struct config_node *node = &birth->nodes[birth->node_count];
	text_copy(node->name, sizeof node->name, name);
	text_copy(node->address, sizeof node->address, value);
	node->master = true;
	r->master_line[birth->node_count++] = line;
	return 0;
}

static int config_setting_line(struct config_reading *r, unsigned line, enum config_section section,
	const char *name, const char *value) {
	int setting = config_setting_find(section, name);
	if (setting < 0 && section == SECTION_ACL) {
		return config_wrong(r, line,
			"[acl] has no setting %s. The rules go into a separate file: write file = "
			"/etc/pawl/rights.conf here, and in that file [%s] "
			"followed by allow = ...", name, name);
	}
	if (setting < 0) {
		char known[512];
		config_setting_names(section, known, sizeof known);
		return config_wrong(r, line, "[%s] has no setting %s; its settings are %s",
			config_section_name[section], name, known);
	}
	if (r->setting_line[setting]) {
		return config_wrong(r, line,
			"[%s] %s is given twice, first on line %u: remove one of them",
			config_section_name[section], name, r->setting_line[setting]);
	}
	r->setting_line[setting] = line;
	const char *wrong = config_setting_set(r, (enum setting)setting, value);
	return wrong ? config_wrong(r, line, "[%s] %s = %.200s: %s", config_section_name[section],
		name, value, wrong) : 0;
}

static int config_value_line(struct config_reading *r, unsigned line, enum config_section section,
	const struct ini_item *item) {
	switch (section) {
	case SECTION_MASTERS:
		return config_master_line(r, line, item->name, item->value);
	case SECTION_REDIS_SCRIPTS:
		return config_script_line(r, line, item->name, item->value);
	case SECTION_NODE:
	case SECTION_CLUSTER:
	case SECTION_TLS:
	case SECTION_ADMIN:
	case SECTION_REDIS:
	case SECTION_MEMCACHED:
	case SECTION_LIMITS:
	case SECTION_ACL:
	case SECTION_AUDIT:
		return config_setting_line(r, line, section, item->name, item->value);
	case SECTION_COUNT:
		break;
	}
	return config_wrong(r, line,
		"%s comes before the first section: write [node] above it", item->name);
}

static int config_read_lines(struct config_reading *r, struct slice text) {
	struct ini ini;
	struct ini_item item = { .wrong = NULL };
	enum config_section section = SECTION_COUNT;
	int error = 0;
	ini_init(&ini, text);
	while (!error) {
		switch (ini_next(&ini, &item)) {
		case INI_END:
			return config_finish(r);
		case INI_WRONG:
			return config_wrong(r, ini.line, "%s", item.wrong);
		case INI_SECTION:
			error = config_begin_section(r, ini.line, item.name, &section);
			break;
		case INI_VALUE:
			error = config_value_line(r, ini.line, section, &item);
			break;
		}
	}
	return error;
}

int node_config_parse(struct slice text, const char *name, struct node_config **out,
	struct problem *problem) {
	struct config_reading *r = calloc(1, sizeof *r);
	struct node_config *c = node_config_new();
	int error = PAWL_ENOMEM;
	problem_set(problem, "out of memory");
	if (r && c) {
		r->config = c;
		r->problem = problem;
		r->file = name;
		error = config_read_lines(r, text);
	}
	free(r);
	if (error) {
		node_config_free(c);
		return error;
	}
	*out = c;
	return 0;
}

static int config_load(const char *path, char *bytes, size_t *size, struct problem *problem) {
	FILE *file = fopen(path, "re");
	if (!file) {
		problem_set(problem, "%s: cannot be opened: %s", path, strerror(errno));
		return PAWL_EIO;
	}
	*size = fread(bytes, 1, CONFIG_FILE_BYTES_MAX + 1, file);
	int error = ferror(file) ? PAWL_EIO : *size > CONFIG_FILE_BYTES_MAX ? PAWL_EINVAL : 0;
	if (error == PAWL_EIO) {
		problem_set(problem, "%s: cannot be read: %s", path, strerror(errno));
	} else if (error) {
		problem_set(problem,
			"%s is larger than 1 MiB, the limit for a configuration file", path);
	}
	fclose(file);
	return error;
}

int node_config_read(const char *path, struct node_config **out, struct problem *problem) {
	char *bytes = malloc(CONFIG_FILE_BYTES_MAX + 1);
	size_t size = 0;
	if (!bytes) {
		problem_set(problem, "out of memory");
		return PAWL_ENOMEM;
	}
	int error = config_load(path, bytes, &size, problem);
	if (!error) {
		error = node_config_parse(slice_of(bytes, size), path, out, problem);
	}
	free(bytes);
	if (!error && node_config_read_rights(*out, problem) != 0) {
		node_config_free(*out);
		*out = NULL;
		error = PAWL_EINVAL;
	}
	return error;
}

int node_config_read_rights(struct node_config *c, struct problem *problem) {
	struct rights *fresh = NULL;
	int error = c->acl_file[0] ? rights_read(c->acl_file, &fresh, problem) : 0;
	if (!error) {
		rights_free(c->rights);
		c->rights = fresh;
	}
	return error;
}

/* Adds an address for clients. Whoever tries a program out, or runs the tests of a library, may do
 * with locks what Redis and memcached allow. Everybody who can reach the address may do so too, and
 * therefore it is one of this machine, unless the operator says otherwise. */
static int config_dev_listen(struct node_config *c, const struct dev_options *dev,
	const char *option, const char *address, struct problem *problem) {
	struct listen_address *out = &c->listen_client[c->listen_client_count++];
	const char *wrong = listen_address_parse(address, false, out);
	bool outside = !wrong && !listen_address_loopback(out);
	if (outside && !dev->insecure) {
		wrong = "--dev has no TLS and stays on loopback: write 127.0.0.1:PORT "
			"or unix:/path, or add --insecure if everybody who can reach this "
			"address may do everything, as in a container of your own";
	}
	if (wrong) {
		problem_set(problem, "%s %s: %s", option, address, wrong);
		return PAWL_EINVAL;
	}
	c->insecure = c->insecure || outside;
	return 0;
}

#define DEV_FREE "127.0.0.1:0"

/* Returns the address that is given, or where to listen without one. */
static const char *config_dev_address(const struct dev_options *dev, const char *given,
	const char *otherwise) {
	return given ? given : dev->everything ? DEV_FREE : otherwise;
}

static int config_dev_dialects(struct node_config *c, const struct dev_options *dev,
	struct problem *problem) {
	int error = 0;
	const char *redis = config_dev_address(dev, dev->redis, NULL),
		*memcached = config_dev_address(dev, dev->memcached, NULL);
	if (redis) {
		c->redis.dev = c->redis.keeps = c->redis.overwrites = true;
		error = config_dev_listen(c, dev, "--listen-redis", redis, problem);
		c->listen_client[c->listen_client_count - 1].redis = true;
	}
	if (!error && memcached) {
		c->memcached.dev = c->memcached.keeps = c->memcached.overwrites = true;
		error = config_dev_listen(c, dev, "--listen-memcached", memcached, problem);
		c->listen_client[c->listen_client_count - 1].memcached = true;
	}
	return error;
}

int node_config_dev(const struct dev_options *options, struct node_config **out,
	struct problem *problem) {
	struct node_config *c = node_config_new();
	if (!c) {
		problem_set(problem, "out of memory");
		return PAWL_ENOMEM;
	}
	const char *listen = config_dev_address(options, options->listen, "127.0.0.1:7117");
	int error = config_dev_listen(c, options, "--listen", listen, problem);
	error = error ? error : config_dev_dialects(c, options, problem);
	if (options->everything) {
		CHECK(!listen_address_parse(DEV_FREE, false, &c->admin_listen));
	}
	if (error) {
		node_config_free(c);
		return error;
	}
	text_copy(c->name, sizeof c->name, "dev");
	text_copy(c->birth.cluster, sizeof c->birth.cluster, "dev");
	CHECK(text_copy(c->state_dir, sizeof c->state_dir, options->state_dir));
	c->birth.node_count = 1;
	c->birth.nodes[0] = (struct config_node){ .name = "dev", .address = "127.0.0.1:7118",
		.master = true };
	text_copy(c->advertise, sizeof c->advertise, c->birth.nodes[0].address);
	CHECK(!config_problem(&c->birth));
	*out = c;
	return 0;
}
