/* embed_options.c: reads what a program says about its node, with the checks of a configuration
 * file.
 */
#include <stdlib.h>

#include "config_setting.h"
#include "config_value.h"
#include "embed.h"
#include "pawl/error.h"
#include "text.h"

static int options_text(struct config_reading *r, const char *what, const char *from, char *out,
	size_t size) {
	if (from && !text_copy(out, size, from)) {
		return config_wrong(r, 0, "%s is too long", what);
	}
	return 0;
}

static int options_name(struct config_reading *r, const char *what, const char *from,
	char out[NODE_NAME_MAX + 1]) {
	const char *wrong = config_value_name(from ? from : "");
	if (wrong) {
		return config_wrong(r, 0, "%s = %.80s: %s", what, from ? from : "", wrong);
	}
	return options_text(r, what, from, out, NODE_NAME_MAX + 1);
}

static int options_path(struct config_reading *r, const char *what, const char *from,
	char out[CONFIG_PATH_MAX]) {
	if (from && from[0] != '/') {
		return config_wrong(r, 0, "%s = %.200s: write an absolute path", what, from);
	}
	return options_text(r, what, from, out, CONFIG_PATH_MAX);
}

static int options_masters(struct config_reading *r, const struct pawl_node_options *o) {
	int error = 0;
	for (size_t i = 0; !error && i < o->master_count; i++) {
		const char *name = o->masters[i].name, *address = o->masters[i].address;
		error = config_master_line(r, (unsigned)i + 1, name ? name : "",
			address ? address : "");
	}
	return error;
}

static int options_files(struct config_reading *r, const struct pawl_node_options *o) {
	struct node_config *c = r->config;
	if (!o->state_dir) {
		return config_wrong(r, 0,
			"state_dir is missing: give the path of a directory that "
			"only this node uses");
	}
	int error = options_path(r, "state_dir", o->state_dir, c->state_dir);
	error = error ? error : options_path(r, "ca_file", o->ca_file, c->tls.ca);
	error = error ? error : options_path(r, "cert_file", o->cert_file, c->tls.cert);
	error = error ? error : options_path(r, "key_file", o->key_file, c->tls.key);
	error = error ? error : options_path(r, "revoked_file", o->revoked_file, c->tls.revoked);
	error = error ? error : options_path(r, "crl_file", o->crl_file, c->tls.crl);
	error = error ? error : options_path(r, "acl_file", o->acl_file, c->acl_file);
	c->tls.any_key_mode = o->any_key_mode;
	c->tls.embedded = true;
	r->section_line[SECTION_TLS] = o->ca_file || o->cert_file || o->key_file || o->revoked_file
		|| o->crl_file;
	return error;
}

static int options_addresses(struct config_reading *r, const struct pawl_node_options *o) {
	r->no_clients = true;
	r->config->insecure = o->insecure;
	int error = options_text(r, "listen_peer", o->listen_peer, r->listen_peer,
		sizeof r->listen_peer);
	error = error ? error : options_text(r, "listen_client", o->listen_client, r->listen_client,
		sizeof r->listen_client);
	return error ? error : options_text(r, "advertise", o->advertise, r->config->advertise,
		sizeof r->config->advertise);
}

static span_ns span_or(uint32_t ms, span_ns standard) {
	return ms ? (span_ns)ms * SPAN_MS : standard;
}

static void options_numbers(struct node_config *c, const struct pawl_node_options *o) {
	c->birth.max_lease = span_or(o->max_lease_ms, c->birth.max_lease);
	c->birth.request_timeout = span_or(o->request_timeout_ms, c->birth.request_timeout);
	c->birth.promise_timeout = span_or(o->promise_timeout_ms, c->birth.promise_timeout);
	c->birth.drift_ppm = o->clock_drift_ppm ? o->clock_drift_ppm : c->birth.drift_ppm;
	c->replication_interval = span_or(o->replication_interval_ms, c->replication_interval);
	c->auto_replace = o->auto_replace;
	c->limits.core.keys = o->keys;
	c->limits.core.memory_bytes = o->memory_bytes;
	c->limits.core.log_bytes = o->log_bytes;
	c->limits.core.value_bytes = o->value_bytes;
	c->limits.core.lease_min = (span_ns)o->lease_min_ms * SPAN_MS;
}

static int options_read(struct config_reading *r, const struct pawl_node_options *o) {
	int error = options_name(r, "name", o->name, r->config->name);
	error = error ? error : options_name(r, "cluster", o->cluster, r->config->birth.cluster);
	error = error ? error : options_masters(r, o);
	error = error ? error : options_files(r, o);
	error = error ? error : options_addresses(r, o);
	options_numbers(r->config, o);
	if (!error && o->value_bytes > VALUE_MAX_HARD) {
		error = config_wrong(r, 0, "value_bytes is greater than 1 MiB");
	}
	error = error ? error : config_finish(r);
	return error ? error : node_config_read_rights(r->config, r->problem);
}

int embed_options_read(const struct pawl_node_options *options, struct node_config **out,
	struct problem *problem) {
	struct config_reading *r = calloc(1, sizeof *r);
	struct node_config *c = node_config_new();
	int error = PAWL_ENOMEM;
	problem_set(problem, "out of memory");
	if (r && c) {
		r->config = c;
		r->problem = problem;
		r->file = "options";
		error = options_read(r, options);
	}
	free(r);
	if (error) {
		node_config_free(c);
		return error;
	}
	*out = c;
	return 0;
}
