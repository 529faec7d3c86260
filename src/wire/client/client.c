/* client.c: what both sides of the client protocol share, which is names, limits, the memory for
 * lists, and lock ids as text. */
#include "client.h"

#include "check.h"
#include "client_list.h"
#include "pack.h"
#include "unpack.h"

#define CLIENT_LIST_MIN 16

static const struct {
	const char *text;
	size_t size;
} client_method_names[CLIENT_METHODS] = {
#define CLIENT_METHOD_NAME(name, text, right) [CLIENT_##name] = { text, sizeof text - 1 },
	CLIENT_METHOD_TABLE(CLIENT_METHOD_NAME)
#undef CLIENT_METHOD_NAME
};
static const uint8_t client_method_rights[CLIENT_METHODS] = {
#define CLIENT_METHOD_RIGHT(name, text, right) [CLIENT_##name] = RIGHT_##right,
	CLIENT_METHOD_TABLE(CLIENT_METHOD_RIGHT)
#undef CLIENT_METHOD_RIGHT
};

const struct client_limits client_request_limits = { .bytes = 4u << 20, .items = 1u << 16 };
const struct client_limits client_response_limits = { .bytes = 16u << 20, .items = 1u << 20 };

const char *client_method_name(enum client_method method) {
	CHECK((unsigned)method < CLIENT_METHODS);
	return client_method_names[method].text;
}

bool client_method_find(struct slice name, enum client_method *out) {
	for (unsigned i = 0; i < CLIENT_METHODS; i++) {
		if (slice_equal(name, slice_of(client_method_names[i].text,
			client_method_names[i].size))) {
			*out = (enum client_method)i;
			return true;
		}
	}
	return false;
}

enum right client_method_right(enum client_method method) {
	CHECK((unsigned)method < CLIENT_METHODS);
	return (enum right)client_method_rights[method];
}

bool client_method_changes(enum client_method method) {
	return method >= CLIENT_CLUSTER_ADD_REPLICA;
}

bool client_method_op(enum client_method method, enum core_op *out) {
	static const uint8_t ops[CLIENT_METHODS] = {
		[CLIENT_ACQUIRE] = CORE_ACQUIRE,
		[CLIENT_EXTEND] = CORE_EXTEND,
		[CLIENT_UPDATE] = CORE_UPDATE,
		[CLIENT_RELEASE] = CORE_RELEASE,
		[CLIENT_GET] = CORE_GET,
		[CLIENT_LIST] = CORE_LIST,
		[CLIENT_WAIT] = CORE_WAIT,
		[CLIENT_WAITERS] = CORE_WAITERS,
		[CLIENT_BREAK] = CORE_BREAK,
		[CLIENT_DOWNGRADE] = CORE_DOWNGRADE,
		[CLIENT_TRANSFER] = CORE_TRANSFER,
		[CLIENT_ASK_RELEASE] = CORE_ASK,
		[CLIENT_EXPLAIN] = CORE_EXPLAIN,
		[CLIENT_CLUSTER_ADD_REPLICA] = CORE_CHANGE,
		[CLIENT_CLUSTER_PROMOTE] = CORE_CHANGE,
		[CLIENT_CLUSTER_DEMOTE] = CORE_CHANGE,
		[CLIENT_CLUSTER_REMOVE] = CORE_CHANGE,
		[CLIENT_CLUSTER_REPLACE] = CORE_CHANGE,
		[CLIENT_CLUSTER_SET_NODES] = CORE_CHANGE,
		[CLIENT_CLUSTER_SET_TIMING] = CORE_CHANGE,
		[CLIENT_CLUSTER_FORCE] = CORE_CHANGE,
	};
	if (ops[method] == CORE_NONE) {
		return false;
	}
	*out = (enum core_op)ops[method];
	return true;
}

void client_decoder_init(struct client_decoder *d, const struct allocator *alloc) {
	*d = (struct client_decoder){ .alloc = alloc };
}

void client_decoder_done(struct client_decoder *d) {
	for (size_t i = 0; i < sizeof d->rooms / sizeof d->rooms[0]; i++) {
		if (d->rooms[i].items) {
			alloc_free(d->alloc, d->rooms[i].items, d->rooms[i].bytes);
		}
	}
	*d = (struct client_decoder){ 0 };
}

void *client_list_room(const struct allocator *alloc, struct client_room *room, size_t count,
	size_t item_bytes) {
	if ((count + 1) * item_bytes > room->bytes) {
		size_t bytes = room->bytes ? room->bytes * 2 : CLIENT_LIST_MIN * item_bytes;
		bytes = bytes >= (count + 1) * item_bytes ? bytes : (count + 1) * item_bytes;
		void *grown = alloc_resize(alloc, room->items, room->bytes, bytes);
		if (!grown) {
			return NULL;
		}
		room->items = grown;
		room->bytes = bytes;
	}
	return (uint8_t *)room->items + count * item_bytes;
}

/* Works out eight digits at once, each in a byte, the first one in the highest: each of the steps
 * moves the upper halves apart from the lower ones, until every byte has four bits. */
void client_lock_id_format(struct id128 id, char out[CLIENT_LOCK_ID_DIGITS]) {
	const uint64_t ones = UINT64_C(0x0101010101010101);
	for (size_t i = 0; i < sizeof id.b; i += 4) {
		uint64_t x = unpack_be(id.b + i, 4);
		x = (x & 0xffff0000) << 16 | (x & 0xffff);
		x = (x & UINT64_C(0x0000ff000000ff00)) << 8 | (x & UINT64_C(0x000000ff000000ff));
		x = (x & UINT64_C(0x00f000f000f000f0)) << 4 | (x & UINT64_C(0x000f000f000f000f));
		/* A byte that is 10 or more carries into its fifth bit. */
		const uint64_t letters = (x + ones * 6) >> 4 & ones;
		x += ones * '0' + letters * ('a' - '0' - 10);
		pack_put_be((uint8_t *)out + 2 * i, x, 8);
	}
}

static int client_digit(uint8_t c) {
	if (c >= '0' && c <= '9') {
		return c - '0';
	}
	if (c >= 'a' && c <= 'f') {
		return c - 'a' + 10;
	}
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool client_lock_id_parse(struct slice text, struct id128 *out) {
	struct id128 id;
	if (text.size != CLIENT_LOCK_ID_DIGITS) {
		return false;
	}
	for (size_t i = 0; i < sizeof id.b; i++) {
		int high = client_digit(text.data[2 * i]), low = client_digit(text.data[2 * i + 1]);
		if (high < 0 || low < 0) {
			return false;
		}
		id.b[i] = (uint8_t)(high << 4 | low);
	}
	if (id128_zero(id)) {
		return false;
	}
	*out = id;
	return true;
}
