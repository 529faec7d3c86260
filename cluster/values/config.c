/* config.c: configurations, their bounds (section 9), and the one canonical encoding that names
 * them. It keeps no state. */
#include "config.h"

#include "pawl/error.h"
#include "siphash.h"

uint32_t config_masters(const struct config *c) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->node_count; i++) {
		n += c->nodes[i].master;
	}
	return n;
}

uint32_t config_quorum(const struct config *c) {
	return config_masters(c) / 2 + 1;
}

uint32_t config_sources(uint32_t masters) {
	return masters - (masters / 2 + 1) + 1;
}

bool config_same_masters(const struct config *a, const struct config *b) {
	uint32_t n = config_masters(a);
	if (n != config_masters(b)) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		int at = config_find_id(b, a->nodes[i].id);
		if (at < 0 || !b->nodes[at].master) {
			return false;
		}
	}
	return true;
}

int config_find_name(const struct config *c, const char *name) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		if (strcmp(c->nodes[i].name, name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

int config_find_id(const struct config *c, struct id128 id) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		if (id128_equal(c->nodes[i].id, id)) {
			return (int)i;
		}
	}
	return -1;
}

static const char *problem_of_nodes(const struct config *c) {
	if (c->node_count == 0 || c->node_count > CONFIG_NODES_MAX) {
		return "a configuration needs 1 to 48 nodes";
	}
	uint32_t masters = config_masters(c);
	if (masters < 1 || masters > MASTERS_MAX) {
		return "a configuration needs 1 to 9 masters";
	}
	for (uint32_t i = 0; i < c->node_count; i++) {
		if (c->nodes[i].name[0] == 0) {
			return "a node has no name";
		}
		if (c->nodes[i].master != (i < masters)) {
			return "masters must stand before replicas";
		}
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(c->nodes[i].name, c->nodes[j].name) == 0) {
				return "two nodes have the same name";
			}
			if (!id128_zero(c->nodes[i].id) &&
				id128_equal(c->nodes[i].id, c->nodes[j].id)) {
				return "two nodes have the same identity: was a state directory "
					"copied?";
			}
		}
	}
	return NULL;
}

const char *config_problem(const struct config *c) {
	if (c->request_timeout <= 0 || c->max_lease <= 0 || c->promise_timeout <= 0) {
		return "max_lease, request_timeout and promise_timeout must be above 0";
	}
	if (c->max_lease > 366 * 86400 * SPAN_S) {
		return "max_lease must be at most 366 days";
	}
	if (c->request_timeout > c->max_lease) {
		return "request_timeout must not be above max_lease";
	}
	if (c->promise_timeout < 2 * c->request_timeout) {
		return "promise_timeout must be at least twice request_timeout";
	}
	if (c->promise_timeout > 366 * 86400 * SPAN_S) {
		return "promise_timeout must be at most 366 days";
	}
	if (c->epoch >> 32 > EPOCH_STARTS_MAX) {
		return "no cluster has been started over so often as its epoch says";
	}
	if (c->drift_ppm > 100000) {
		return "clock_drift must be at most 10 %";
	}
	return problem_of_nodes(c);
}

const char *config_timing_problem(const struct config *c, const struct config *present) {
	bool request = present == NULL || c->request_timeout != present->request_timeout;
	bool lease = present == NULL || c->max_lease != present->max_lease;
	if (request && c->request_timeout < REQUEST_TIMEOUT_LEAST) {
		return "request_timeout must be at least 10ms: a link whose other end is silent "
			"for so long is reset, and no machine answers always sooner";
	}
	if (request && c->request_timeout > REQUEST_TIMEOUT_MOST) {
		return "request_timeout must be at most 1m: so long nobody notices a dead node, "
			"and masters that restart wait for the longest one ever set";
	}
	if ((request || lease) && c->max_lease / 2 < c->request_timeout) {
		return "max_lease must be at least twice request_timeout: else no lease leaves the "
			"time to extend it";
	}
	return NULL;
}

/* ---- canonical encoding ----
 *
 * A version byte comes first, then every field. Numbers are 8 bytes little endian, texts have a
 * length byte in front. */
struct cursor {
	uint8_t *to;
	const uint8_t *from;
	size_t left;
	bool bad;
};

static void put_number(struct cursor *c, uint64_t v) {
	for (int i = 0; i < 8; i++) {
		*c->to++ = (uint8_t)(v >> (8 * i));
	}
}

static void put_text(struct cursor *c, const char *text) {
	size_t n = strlen(text);
	*c->to++ = (uint8_t)n;
	memcpy(c->to, text, n);
	c->to += n;
}

static void put_id(struct cursor *c, struct id128 id) {
	memcpy(c->to, id.b, sizeof id.b);
	c->to += sizeof id.b;
}

static void put_node(struct cursor *c, const struct config_node *n) {
	put_text(c, n->name);
	put_text(c, n->address);
	put_id(c, n->id);
	*c->to++ = n->master;
}

size_t config_encode(const struct config *config, uint8_t out[CONFIG_BYTES_MAX]) {
	struct cursor c = { .to = out };
	*c.to++ = 1;
	put_number(&c, config->epoch);
	put_text(&c, config->cluster);
	put_id(&c, config->cluster_id);
	put_number(&c, (uint64_t)config->max_lease);
	put_number(&c, (uint64_t)config->request_timeout);
	put_number(&c, (uint64_t)config->promise_timeout);
	put_number(&c, config->drift_ppm);
	put_number(&c, config->node_count);
	for (uint32_t i = 0; i < config->node_count; i++) {
		put_node(&c, &config->nodes[i]);
	}
	put_number(&c, config->previous_master_count);
	for (uint32_t i = 0; i < config->previous_master_count; i++) {
		put_node(&c, &config->previous_masters[i]);
	}
	return (size_t)(c.to - out);
}

static const uint8_t *get_bytes(struct cursor *c, size_t n) {
	if (c->bad || c->left < n) {
		c->bad = true;
		return NULL;
	}
	const uint8_t *p = c->from;
	c->from += n;
	c->left -= n;
	return p;
}

static uint64_t get_number(struct cursor *c, uint64_t max) {
	const uint8_t *p = get_bytes(c, 8);
	uint64_t v = 0;
	for (int i = 0; p && i < 8; i++) {
		v |= (uint64_t)p[i] << (8 * i);
	}
	c->bad = c->bad || v > max;
	return c->bad ? 0 : v;
}

static void get_text(struct cursor *c, char *to, size_t max) {
	const uint8_t *size = get_bytes(c, 1);
	const uint8_t *p = size && *size <= max ? get_bytes(c, *size) : NULL;
	if (p == NULL || memchr(p, 0, *size) != NULL) {
		c->bad = true;
		return;
	}
	memcpy(to, p, *size);
	to[*size] = 0;
}

static struct id128 get_id(struct cursor *c) {
	struct id128 id = { { 0 } };
	const uint8_t *p = get_bytes(c, sizeof id.b);
	if (p) {
		memcpy(id.b, p, sizeof id.b);
	}
	return id;
}

static void get_node(struct cursor *c, struct config_node *n) {
	get_text(c, n->name, NODE_NAME_MAX);
	get_text(c, n->address, ADDRESS_MAX);
	n->id = get_id(c);
	const uint8_t *master = get_bytes(c, 1);
	c->bad = c->bad || *master > 1;
	n->master = !c->bad && *master;
}

int config_decode(struct slice bytes, struct config *out) {
	struct cursor c = { .from = bytes.data, .left = bytes.size };
	const uint8_t *version = get_bytes(&c, 1);
	if (version == NULL || *version != 1) {
		return PAWL_EPROTOCOL;
	}
	struct config config;
	memset(&config, 0, sizeof config);
	config.epoch = get_number(&c, UINT64_MAX);
	get_text(&c, config.cluster, NODE_NAME_MAX);
	config.cluster_id = get_id(&c);
	config.max_lease = (span_ns)get_number(&c, INT64_MAX);
	config.request_timeout = (span_ns)get_number(&c, INT64_MAX);
	config.promise_timeout = (span_ns)get_number(&c, INT64_MAX);
	config.drift_ppm = (uint32_t)get_number(&c, UINT32_MAX);
	config.node_count = (uint32_t)get_number(&c, (uint64_t)(CONFIG_NODES_MAX));
	for (uint32_t i = 0; i < config.node_count && !c.bad; i++) {
		get_node(&c, &config.nodes[i]);
	}
	config.previous_master_count = (uint32_t)get_number(&c, MASTERS_MAX);
	for (uint32_t i = 0; i < config.previous_master_count && !c.bad; i++) {
		get_node(&c, &config.previous_masters[i]);
	}
	if (c.bad || c.left != 0) {
		return PAWL_EPROTOCOL;
	}
	*out = config;
	return 0;
}

uint64_t config_hash(const struct config *c) {
	/* The key is "pawl con" "fig hash". */
	static const struct siphash_key key = { 0x7061776c20636f6eu, 0x6669672068617368u };
	uint8_t bytes[CONFIG_BYTES_MAX];
	size_t size = config_encode(c, bytes);
	uint64_t h = siphash(key, bytes, size);
	return h ? h : 1;
}
