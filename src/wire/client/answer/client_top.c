/* client_top.c: encodes the answer to `top`. */
#include "client_top.h"

#include "client_reply.h"

#define FIELD(member) { #member, FIELD_U64, offsetof(struct client_top, member), 0 }
static const struct client_field top_fields[] = {
	FIELD(requests),
	FIELD(refusals),
	FIELD(grants),
	FIELD(releases),
	FIELD(losses),
	FIELD(waiting),
};

/* The name of each list, and that of the number of its keys. */
static const struct {
	const char *list, *number;
	bool time;
} top_lists[TOP_LISTS] = {
	[TOP_QUEUES] = { "longest_queues", "waiting", false },
	[TOP_WAITERS] = { "oldest_waiters", "waited_ms", true },
	[TOP_HOLDERS] = { "oldest_holders", "held_ms", true },
	[TOP_GRANTED] = { "most_granted", "granted", false },
};

static void top_put_key(struct pack *k, const struct hot_key *one, unsigned list) {
	struct pack_open map = pack_map_open(k);
	pack_key(k, &map, "key");
	pack_bin(k, one->key);
	if (list == TOP_HOLDERS) {
		pack_key(k, &map, "owner");
		pack_bin(k, one->owner);
	}
	client_reply_put_uint(k, &map, top_lists[list].number,
		top_lists[list].time ? one->number / (uint64_t)SPAN_MS : one->number);
	pack_map_close(k, &map);
}

int client_top_encode(uint32_t msgid, const struct client_top *top, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	client_reply_put_text(&k, &map, "node", top->node);
	client_field_put_all(&k, &map, top_fields, sizeof top_fields / sizeof top_fields[0], top,
		0);
	for (unsigned i = 0; i < TOP_LISTS; i++) {
		pack_key(&k, &map, top_lists[i].list);
		struct pack_open list = pack_array_open(&k);
		for (uint32_t at = 0; at < top->lists[i].count; at++) {
			pack_item(&list);
			top_put_key(&k, &top->lists[i].keys[at], i);
		}
		pack_array_close(&k, &list);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}
