/* client_can.c: encodes the answer to `can`, which says whether a rule allows something, and which
 * rule. */
#include "client_reply.h"

#define FACT(member, type) { #member, type, offsetof(struct client_can, member), 0 }
static const struct client_fact can_facts[] = {
	FACT(allowed, FACT_BOOL),
	FACT(right, FACT_TEXT),
	FACT(identity, FACT_BYTES),
	FACT(why, FACT_BYTES),
	FACT(file, FACT_TEXT),
	FACT(line, FACT_U32),
	FACT(rights, FACT_TEXT),
	FACT(node, FACT_TEXT),
};

int client_can_encode(uint32_t msgid, const struct client_can *can, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	client_fact_put_all(&k, &map, can_facts, sizeof can_facts / sizeof can_facts[0], can, 0);
	pack_map_close(&k, &map);
	return pack_end(&k);
}
