/* client_connections.c: encodes the answer to `clients`, which is a list of connections or
 * shares. */
#include "client_connections.h"

#include "client_reply.h"

#define FACT(member, type, bit) { #member, type, offsetof(struct client_connection, member), bit }
#define FACT_NAMED(name, member, type, bit) \
	{ name, type, offsetof(struct client_connection, member), bit }
static const struct client_fact connection_facts[] = {
	FACT(client, FACT_U64, 0),
	FACT(identity, FACT_BYTES, 0),
	FACT(address, FACT_TEXT, 0),
	FACT(uid, FACT_U32, CLIENT_CONNECTION_PROCESS),
	FACT(pid, FACT_U32, CLIENT_CONNECTION_PROCESS),
	FACT_NAMED("age_ms", age, FACT_MS, 0),
	FACT_NAMED("silent_ms", silent, FACT_MS, 0),
	FACT(requests, FACT_U64, 0),
	FACT(open, FACT_U32, 0),
	FACT(waits, FACT_U32, 0),
	FACT(watches, FACT_U32, 0),
	FACT_NAMED("bytes_in", received, FACT_U64, 0),
	FACT_NAMED("bytes_out", sent, FACT_U64, 0),
	FACT_NAMED("bytes_unsent", unsent, FACT_U64, 0),
	FACT_NAMED("memory_bytes", memory, FACT_U64, 0),
	FACT(own, FACT_BOOL, CLIENT_CONNECTION_OWN),
};

#define SHARE_FACT(name, type, member, bit) \
	{ name, type, offsetof(struct client_share, member), bit }
static const struct client_fact share_facts[] = {
	SHARE_FACT("share", FACT_U64, share, 0),
	SHARE_FACT("identity", FACT_BYTES, identity, CLIENT_SHARE_IDENTITY),
	SHARE_FACT("address", FACT_TEXT, address, CLIENT_SHARE_ADDRESS),
#define SHARE_FACTS(kind, text, what) \
	SHARE_FACT(text, FACT_U64, used[SHARE_##kind], \
		SHARE_##kind == SHARE_RATE ? 1u << 31 : CLIENT_SHARE_USED), \
		SHARE_FACT(text "_limit", FACT_U64, max[SHARE_##kind], \
			CLIENT_SHARE_LIMITED(SHARE_##kind)),
	SHARE_TABLE(SHARE_FACTS)
#undef SHARE_FACTS
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
	client_fact_put_all(&c->pack, &map, share_facts, sizeof share_facts / sizeof share_facts[0],
		item, item->present);
	pack_map_close(&c->pack, &map);
}

void client_connections_put(struct client_connections *c, const struct client_connection *item) {
	pack_item(&c->list);
	struct pack_open map = pack_map_open(&c->pack);
	client_fact_put_all(&c->pack, &map, connection_facts,
		sizeof connection_facts / sizeof connection_facts[0], item, item->present);
	pack_map_close(&c->pack, &map);
}

int client_connections_end(struct client_connections *c, const char *node, bool more) {
	pack_array_close(&c->pack, &c->list);
	client_reply_put_bool(&c->pack, &c->result, "more", more);
	client_reply_put_text(&c->pack, &c->result, "node", node);
	pack_map_close(&c->pack, &c->result);
	return pack_end(&c->pack);
}
