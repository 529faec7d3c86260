/* client_change.c: the parameters of the changes of the set of nodes. What can be wrong with them
 * by themselves is refused here. Whether a change is possible is for the core to decide. */
#include "client_change.h"

#include "check.h"

/* ---- readers ---- */

static bool change_name_letter(uint8_t c) {
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '-' || c == '.' || c == '_';
}

static bool change_name_valid(struct slice s) {
	for (size_t i = 0; i < s.size; i++) {
		if (!change_name_letter(s.data[i])) {
			return false;
		}
	}
	return s.size >= 1 && s.size <= NODE_NAME_MAX;
}

/* Tells whether the text is host:port with a port from 1 to 65535. Whether there is such a host
 * turns out when it is dialled. */
static bool change_address_valid(struct slice s) {
	size_t colon = s.size, port = 0;
	while (colon > 0 && s.data[colon - 1] != ':') {
		colon--;
	}
	if (s.size > ADDRESS_MAX || colon < 2 || colon == s.size || s.size - colon > 5) {
		return false;
	}
	for (size_t i = colon; i < s.size; i++) {
		if (s.data[i] < '0' || s.data[i] > '9') {
			return false;
		}
		port = port * 10 + (size_t)(s.data[i] - '0');
	}
	for (size_t i = 0; i < colon; i++) {
		if (s.data[i] <= ' ' || s.data[i] >= 0x7f) {
			return false;
		}
	}
	return port >= 1 && port <= 65535;
}

static bool change_take_text(struct unpack *u, struct slice *out) {
	enum unpack_type type = unpack_peek(u);
	if (type != UNPACK_STR && type != UNPACK_BIN) {
		return false;
	}
	*out = unpack_bytes(u, SIZE_MAX);
	return true;
}

static const char *change_take_name(struct unpack *u, struct slice *out) {
	_Static_assert(NODE_NAME_MAX == 63, "the text below says it");
	struct slice s;
	if (!change_take_text(u, &s) || !change_name_valid(s)) {
		return "must be the name of a node: 1 to 63 letters, digits and - . _";
	}
	*out = s;
	return NULL;
}

const char *client_take_name(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return change_take_name(u, &r->change.name);
}

const char *client_take_old(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return change_take_name(u, &r->change.name);
}

const char *client_take_new(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return change_take_name(u, &r->change.other);
}

const char *client_take_address(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	struct slice s;
	if (!change_take_text(u, &s) || !change_address_valid(s)) {
		return "must be host:port, where the other nodes reach it";
	}
	r->change.address = s;
	return NULL;
}

const char *client_take_anyway(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->change.anyway);
}

const char *client_take_yes(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_bool(u, &r->change.anyway);
}

const char *client_take_max_lease(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 1, &r->change.max_lease);
}

const char *client_take_request_timeout(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 1, &r->change.request_timeout);
}

const char *client_take_promise_timeout(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	return client_take_ms(u, 1, &r->change.promise_timeout);
}

const char *client_take_drift(struct unpack *u, struct client_request *r, int *error) {
	(void)error;
	uint64_t ppm = unpack_peek(u) == UNPACK_UINT ? unpack_uint(u, UINT64_MAX) : UINT64_MAX;
	if (ppm > CLIENT_DRIFT_PPM_MAX) {
		return "must be a whole number of millionths, 0 to 100000 (10 %)";
	}
	r->change.drift_ppm = (uint32_t)ppm;
	r->change.has_drift = true;
	return NULL;
}

const char *client_take_node(struct unpack *u, struct core_change_node *out, int *error) {
	static const char *const wrong = "must be a list of names, each alone or as name=host:port";
	struct slice s;
	(void)error;
	if (!change_take_text(u, &s)) {
		return wrong;
	}
	const uint8_t *at = s.size ? memchr(s.data, '=', s.size) : NULL;
	*out = (struct core_change_node){ .name = s };
	if (at) {
		out->name.size = (size_t)(at - s.data);
		out->address = slice_of(at + 1, s.size - out->name.size - 1);
	}
	return change_name_valid(out->name) && (!at || change_address_valid(out->address))
		? NULL
		: wrong;
}

void client_change_order(struct core_change_node *nodes, uint32_t count) {
	struct core_change_node replicas[CONFIG_NODES_MAX];
	uint32_t masters = 0, others = 0;
	CHECK(count <= CONFIG_NODES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (nodes[i].master) {
			nodes[masters++] = nodes[i];
		} else {
			replicas[others++] = nodes[i];
		}
	}
	for (uint32_t i = 0; i < others; i++) {
		nodes[masters + i] = replicas[i];
	}
}

static bool change_names_twice(const struct core_change *c) {
	for (uint32_t i = 0; i < c->node_count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (slice_equal(c->nodes[i].name, c->nodes[j].name)) {
				return true;
			}
		}
	}
	return false;
}

const char *client_change_problem(const struct client_request *r, const char **out_field) {
	const uint64_t timing = CLIENT_HAS_MAX_LEASE | CLIENT_HAS_REQUEST_TIMEOUT |
		CLIENT_HAS_PROMISE_TIMEOUT | CLIENT_HAS_DRIFT;
	if (r->method == CLIENT_CLUSTER_SET_TIMING && !(r->present & timing)) {
		*out_field = "params";
		return "must name at least one of max_lease_ms, request_timeout_ms, "
			"promise_timeout_ms, clock_drift_ppm";
	}
	if (r->method == CLIENT_CLUSTER_FORCE && !r->change.anyway) {
		*out_field = "yes";
		return "must be true: what is only known to the lost masters is given up";
	}
	if (r->method == CLIENT_CLUSTER_SET_NODES && change_names_twice(&r->change)) {
		*out_field = "masters";
		return "and replicas name a node twice: name each once";
	}
	return NULL;
}

/* ---- the client's side ---- */

static void change_put_nodes(struct pack *k, const struct core_change *c, bool masters) {
	struct pack_open list = pack_array_open(k);
	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct core_change_node *n = &c->nodes[i];
		uint8_t text[NODE_NAME_MAX + 1 + ADDRESS_MAX];
		size_t size = n->name.size;
		if (n->master != masters || size > NODE_NAME_MAX || n->address.size > ADDRESS_MAX) {
			k->error = n->master != masters ? k->error : PAWL_ETOOLARGE;
			continue;
		}
		memcpy(text, n->name.data, size);
		if (n->address.size) {
			text[size++] = '=';
			memcpy(text + size, n->address.data, n->address.size);
			size += n->address.size;
		}
		pack_item(&list);
		pack_str(k, slice_of(text, size));
	}
	pack_array_close(k, &list);
}

static void change_put_ms(struct pack *k, span_ns span) {
	pack_uint(k, span_ms_down(span));
}

void client_change_put(struct pack *k, const struct core_change *c, uint64_t param) {
	CHECK(c);
	if (param == CLIENT_HAS_NAME || param == CLIENT_HAS_OLD) {
		pack_str(k, c->name);
	} else if (param == CLIENT_HAS_NEW) {
		pack_str(k, c->other);
	} else if (param == CLIENT_HAS_ADDRESS) {
		pack_str(k, c->address);
	} else if (param == CLIENT_HAS_MASTERS || param == CLIENT_HAS_REPLICAS) {
		change_put_nodes(k, c, param == CLIENT_HAS_MASTERS);
	} else if (param == CLIENT_HAS_ANYWAY || param == CLIENT_HAS_YES) {
		pack_bool(k, c->anyway);
	} else if (param == CLIENT_HAS_MAX_LEASE) {
		change_put_ms(k, c->max_lease);
	} else if (param == CLIENT_HAS_REQUEST_TIMEOUT) {
		change_put_ms(k, c->request_timeout);
	} else if (param == CLIENT_HAS_PROMISE_TIMEOUT) {
		change_put_ms(k, c->promise_timeout);
	} else {
		CHECK(param == CLIENT_HAS_DRIFT);
		pack_uint(k, c->drift_ppm);
	}
}
