/* peer_hello.c: the first packet of a link, which says who speaks, and in which versions of the
 * protocol. */
#include "check.h"
#include "pack.h"
#include "pawl/error.h"
#include "peer.h"
#include "unpack.h"

enum hello_key {
	HELLO_VERSIONS,
	HELLO_FEATURES,
	HELLO_CLUSTER,
	HELLO_NODE,
	HELLO_ID,
	HELLO_BOOT,
	/* It may be missing, because nodes before 0.2 do not send it. */
	HELLO_RELEASE,
	HELLO_KEYS
};
static const char *const hello_keys[HELLO_KEYS] = {
	[HELLO_VERSIONS] = "pawl", [HELLO_FEATURES] = "features", [HELLO_CLUSTER] = "cluster",
	[HELLO_NODE] = "node", [HELLO_ID] = "id", [HELLO_BOOT] = "boot",
	[HELLO_RELEASE] = "release",
};
/* The bits of the keys that every hello has. */
#define HELLO_REQUIRED ((1u << HELLO_RELEASE) - 1)
#define HELLO_KEY_BYTES_MAX 64
/* How many keys there are that a node of this version must skip. */
#define HELLO_KEYS_PRETENDED (PAWL_PRETEND_NEXT ? 1 : 0)

/* A name must not have control characters, because it gets into logs and C strings. */
static bool hello_name_valid(struct slice name) {
	if (name.size < 1 || name.size > NODE_NAME_MAX) {
		return false;
	}
	for (size_t i = 0; i < name.size; i++) {
		if (name.data[i] < 0x20 || name.data[i] == 0x7f) {
			return false;
		}
	}
	return true;
}

/* The release gets into JSON and onto terminals. */
static bool hello_release_valid(struct slice release) {
	for (size_t i = 0; i < release.size; i++) {
		if (release.data[i] < 0x20 || release.data[i] > 0x7e) {
			return false;
		}
	}
	return true;
}

static bool hello_valid(const struct peer_hello *h) {
	return h->version_min >= 1 && h->version_min <= h->version_max &&
		hello_name_valid(slice_str(h->cluster)) && hello_name_valid(slice_str(h->node)) &&
		!id128_zero(h->id) && h->boot >= 1 && hello_release_valid(slice_str(h->release));
}

int peer_hello_encode(const struct peer_hello *hello, struct buffer *out) {
	CHECK(hello_valid(hello));
	static const uint8_t prefix[PEER_PREFIX_BYTES];
	size_t start = out->size;
	int error = buffer_append(out, prefix, sizeof prefix);
	if (error) {
		return error;
	}
	struct pack k;
	pack_begin(&k, out);
	const bool release = hello->release[0] != '\0';
	pack_map(&k, HELLO_RELEASE + release + HELLO_KEYS_PRETENDED);
	pack_text(&k, hello_keys[HELLO_VERSIONS]);
	pack_array(&k, 2);
	pack_uint(&k, hello->version_min);
	pack_uint(&k, hello->version_max);
	pack_text(&k, hello_keys[HELLO_FEATURES]);
	pack_uint(&k, hello->features);
	pack_text(&k, hello_keys[HELLO_CLUSTER]);
	pack_text(&k, hello->cluster);
	pack_text(&k, hello_keys[HELLO_NODE]);
	pack_text(&k, hello->node);
	pack_text(&k, hello_keys[HELLO_ID]);
	pack_bin(&k, slice_of(hello->id.b, sizeof hello->id.b));
	pack_text(&k, hello_keys[HELLO_BOOT]);
	pack_uint(&k, hello->boot);
	if (release) {
		pack_text(&k, hello_keys[HELLO_RELEASE]);
		pack_text(&k, hello->release);
	}
	if (HELLO_KEYS_PRETENDED) {
		pack_text(&k, "next");
		pack_map(&k, 1);
		pack_text(&k, "of a later version");
		pack_array(&k, 0);
	}
	error = pack_end(&k);
	if (error) {
		out->size = start;
		return error;
	}
	pack_put_be(out->data + start, out->size - start - PEER_PREFIX_BYTES, PEER_PREFIX_BYTES);
	return 0;
}

/* Returns HELLO_KEYS for a key that only a later version knows. */
static enum hello_key hello_key_of(struct slice name) {
	for (unsigned i = 0; i < HELLO_KEYS; i++) {
		if (slice_equal(name, slice_str(hello_keys[i]))) {
			return (enum hello_key)i;
		}
	}
	return HELLO_KEYS;
}

static void hello_take_name(struct unpack *u, char out[NODE_NAME_MAX + 1]) {
	struct slice s = unpack_str(u, NODE_NAME_MAX);
	if (u->bad || !hello_name_valid(s)) {
		u->bad = true;
		return;
	}
	memcpy(out, s.data, s.size);
	out[s.size] = '\0';
}

/* A later version may have a longer release, of which the beginning is enough for people. */
static void hello_take_release(struct unpack *u, char out[PEER_RELEASE_MAX + 1]) {
	struct slice s = unpack_str(u, PEER_HELLO_BYTES_MAX);
	if (u->bad || !hello_release_valid(s)) {
		u->bad = true;
		return;
	}
	s.size = s.size < PEER_RELEASE_MAX ? s.size : PEER_RELEASE_MAX;
	*slice_put((uint8_t *)out, s) = '\0';
}

static void hello_take_id(struct unpack *u, struct id128 *out) {
	struct slice s = unpack_bin(u, sizeof out->b);
	if (s.size != sizeof out->b) {
		u->bad = true;
		return;
	}
	memcpy(out->b, s.data, s.size);
}

static void hello_take_versions(struct unpack *u, struct peer_hello *h) {
	if (unpack_array(u) != 2) {
		u->bad = true;
		return;
	}
	h->version_min = (uint32_t)unpack_uint(u, UINT32_MAX);
	h->version_max = (uint32_t)unpack_uint(u, UINT32_MAX);
}

static void hello_take(struct unpack *u, enum hello_key key, struct peer_hello *h) {
	switch (key) {
	case HELLO_VERSIONS:
		hello_take_versions(u, h);
		break;
	case HELLO_FEATURES:
		h->features = unpack_uint(u, UINT64_MAX);
		break;
	case HELLO_CLUSTER:
		hello_take_name(u, h->cluster);
		break;
	case HELLO_NODE:
		hello_take_name(u, h->node);
		break;
	case HELLO_ID:
		hello_take_id(u, &h->id);
		break;
	case HELLO_BOOT:
		h->boot = unpack_uint(u, UINT64_MAX);
		break;
	case HELLO_RELEASE:
		hello_take_release(u, h->release);
		break;
	case HELLO_KEYS:
		unpack_skip(u);
		break;
	}
}

int peer_hello_decode(struct slice body, struct peer_hello *out) {
	if (body.size == 0 || body.size > PEER_HELLO_BYTES_MAX) {
		return PAWL_EPROTOCOL;
	}
	struct unpack u = unpack_of(body);
	struct peer_hello h = { 0 };
	unsigned seen = 0;
	uint32_t pairs = unpack_map(&u);
	for (uint32_t i = 0; i < pairs && !u.bad; i++) {
		enum hello_key key = hello_key_of(unpack_str(&u, HELLO_KEY_BYTES_MAX));
		unsigned bit = key == HELLO_KEYS ? 0 : 1u << key;
		if (u.bad || (seen & bit)) {
			return PAWL_EPROTOCOL;
		}
		seen |= bit;
		hello_take(&u, key, &h);
	}
	if (u.bad || unpack_left(&u) != 0 || (seen & HELLO_REQUIRED) != HELLO_REQUIRED
		|| !hello_valid(&h)) {
		return PAWL_EPROTOCOL;
	}
	*out = h;
	return 0;
}

bool peer_versions_meet(const struct peer_hello *ours, const struct peer_hello *theirs) {
	return theirs->version_max >= ours->version_min && theirs->version_min <= ours->version_max;
}

const char *peer_hello_problem(const struct peer_hello *ours, const struct peer_hello *theirs,
	struct peer_agreement *out) {
	if (!peer_versions_meet(ours, theirs)) {
		return "the two nodes speak no common version of the peer protocol: upgrade the "
			"older one";
	}
	if (strcmp(ours->cluster, theirs->cluster) != 0) {
		return "the two nodes belong to different clusters: compare [cluster] name in "
			"their configurations";
	}
	if (strcmp(ours->node, theirs->node) == 0) {
		return "both nodes have the same name: compare [node] name in their configurations";
	}
	if (id128_equal(ours->id, theirs->id)) {
		return "both nodes have the same identity: one state directory is a copy of the "
			"other's";
	}
	out->version =
		ours->version_max < theirs->version_max ? ours->version_max : theirs->version_max;
	out->features = ours->features & theirs->features;
	return NULL;
}
