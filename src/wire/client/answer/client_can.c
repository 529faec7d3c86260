/* client_can.c: encodes the answer to `can`, which says whether a rule allows something, and which
 * rule. */
#include "client_reply.h"

#define FIELD(member, type) { #member, type, offsetof(struct client_can, member), 0 }
static const struct client_field can_fields[] = {
	FIELD(allowed, FIELD_BOOL),
	FIELD(right, FIELD_TEXT),
	FIELD(identity, FIELD_BYTES),
	FIELD(why, FIELD_BYTES),
	FIELD(file, FIELD_TEXT),
	FIELD(line, FIELD_U32),
	FIELD(rights, FIELD_TEXT),
	FIELD(node, FIELD_TEXT),
};

int client_can_encode(uint32_t msgid, const struct client_can *can, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	client_field_put_all(&k, &map, can_fields, sizeof can_fields / sizeof can_fields[0],
		can, 0);
	pack_map_close(&k, &map);
	return pack_end(&k);
}
