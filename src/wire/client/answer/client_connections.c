/* client_connections.c: encodes the answer to `clients`, which is a list of connections or
 * shares. */
#include "client_connections.h"

#include "client_reply.h"

#define FIELD(member, type, bit) { #member, type, offsetof(struct client_connection, member), bit }
#define FIELD_NAMED(name, member, type, bit) \
	{ name, type, offsetof(struct client_connection, member), bit }
static const struct client_field connection_fields[] = {
	FIELD(client, FIELD_U64, 0),
	FIELD(identity, FIELD_BYTES, 0),
	FIELD(address, FIELD_TEXT, 0),
	FIELD(uid, FIELD_U32, CLIENT_CONNECTION_PROCESS),
	FIELD(pid, FIELD_U32, CLIENT_CONNECTION_PROCESS),
	FIELD_NAMED("age_ms", age, FIELD_MS, 0),
	FIELD_NAMED("silent_ms", silent, FIELD_MS, 0),
	FIELD(requests, FIELD_U64, 0),
	FIELD(open, FIELD_U32, 0),
	FIELD(waits, FIELD_U32, 0),
	FIELD(watches, FIELD_U32, 0),
	FIELD_NAMED("bytes_in", received, FIELD_U64, 0),
	FIELD_NAMED("bytes_out", sent, FIELD_U64, 0),
	FIELD_NAMED("bytes_unsent", unsent, FIELD_U64, 0),
	FIELD_NAMED("memory_bytes", memory, FIELD_U64, 0),
	FIELD(own, FIELD_BOOL, CLIENT_CONNECTION_OWN),
};

#define SHARE_FIELD(name, type, member, bit) \
	{ name, type, offsetof(struct client_share, member), bit }
static const struct client_field share_fields[] = {
	SHARE_FIELD("share", FIELD_U64, share, 0),
	SHARE_FIELD("identity", FIELD_BYTES, identity, CLIENT_SHARE_IDENTITY),
	SHARE_FIELD("address", FIELD_TEXT, address, CLIENT_SHARE_ADDRESS),
#define SHARE_FIELDS(kind, text, what) \
	SHARE_FIELD(text, FIELD_U64, used[SHARE_##kind], \
		SHARE_##kind == SHARE_RATE ? 1u << 31 : CLIENT_SHARE_USED), \
		SHARE_FIELD(text "_limit", FIELD_U64, max[SHARE_##kind], \
			CLIENT_SHARE_LIMITED(SHARE_##kind)),
	SHARE_TABLE(SHARE_FIELDS)
#undef SHARE_FIELDS
};

static void connections_begin(struct client_connections *c, uint32_t msgid, const char *list,
	struct buffer *out) {
	client_reply_begin(&c->pack, msgid, out);
	pack_nil(&c->pack);
	c->result = pack_map_open(&c->pack);
	pack_key(&c->pack, &c->result, list);
	c->list = pack_array_open(&c->pack);
}

void client_connections_begin(struct client_connections *c, uint32_t msgid, struct buffer *out) {
	connections_begin(c, msgid, "clients", out);
}

void client_shares_begin(struct client_connections *c, uint32_t msgid, struct buffer *out) {
	connections_begin(c, msgid, "shares", out);
}

void client_shares_put(struct client_connections *c, const struct client_share *item) {
	pack_item(&c->list);
	struct pack_open map = pack_map_open(&c->pack);
	client_field_put_all(&c->pack, &map, share_fields,
		sizeof share_fields / sizeof share_fields[0], item, item->present);
	pack_map_close(&c->pack, &map);
}

void client_connections_put(struct client_connections *c, const struct client_connection *item) {
	pack_item(&c->list);
	struct pack_open map = pack_map_open(&c->pack);
	client_field_put_all(&c->pack, &map, connection_fields,
		sizeof connection_fields / sizeof connection_fields[0], item, item->present);
	pack_map_close(&c->pack, &map);
}

int client_connections_end(struct client_connections *c, const char *node, bool more) {
	pack_array_close(&c->pack, &c->list);
	client_reply_put_bool(&c->pack, &c->result, "more", more);
	client_reply_put_text(&c->pack, &c->result, "node", node);
	pack_map_close(&c->pack, &c->result);
	return pack_end(&c->pack);
}
