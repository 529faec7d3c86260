/* fuzz_config_file.c: a configuration file of any bytes is either refused with the place, or good
 * in every respect that a start relies on. */
#include "fuzz.h"

#include <string.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"

static void config_listener_is_safe(const struct node_config *c, const struct listen_address *a) {
	CHECK(a->kind != LISTEN_PLAIN || c->insecure || listen_address_loopback(a));
	CHECK(a->kind != LISTEN_TLS || c->tls.on);
}

static void config_is_usable(const struct node_config *c) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct config again;
	CHECK(config_problem(&c->birth) == NULL);
	/* An initial master has its address there. Any other node says where it listens, so that it
	 * can be added. */
	CHECK(config_find_name(&c->birth, c->name) >= 0 || c->advertise[0] ||
		c->listen_peer.kind != LISTEN_NONE);
	CHECK(config_decode(slice_of(bytes, config_encode(&c->birth, bytes)), &again) == 0 &&
		config_hash(&again) == config_hash(&c->birth));
	CHECK(c->listen_client_count >= 1 && c->listen_client_count <= LISTEN_CLIENT_MAX);
	config_listener_is_safe(c, &c->listen_peer);
	for (uint32_t i = 0; i < c->listen_client_count; i++) {
		config_listener_is_safe(c, &c->listen_client[i]);
	}
	CHECK(node_config_reload_problem(c, c) == NULL);
	CHECK(c->rights == NULL && (c->acl_file[0] == '\0' || c->acl_file[0] == '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct node_config *c = NULL;
	struct problem problem = { "" };
	int error = node_config_parse(slice_of(data, size), "f", &c, &problem);
	CHECK(error == 0 || error == PAWL_EINVAL);
	if (error) {
		CHECK(c == NULL && strncmp(problem.text, "f:", 2) == 0);
		return 0;
	}
	config_is_usable(c);
	node_config_free(c);
	return 0;
}
