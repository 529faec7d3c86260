/* client_batch.c: the responses to an `extend` with `locks` and to `ping`, and the empty
 * response. */
#include "client_pieces.h"
#include "client_reply.h"

/* The fields of a lock that was extended. */
static const struct client_field batch_fields[] = {
	{ "valid_ms", FIELD_MS, offsetof(struct client_extended, valid), 0 },
	{ "token", FIELD_U64, offsetof(struct client_extended, token), 0 },
	{ "quorum", FIELD_U32, offsetof(struct client_extended, quorum), 0 },
	{ "acks", FIELD_U32, offsetof(struct client_extended, acks), 0 },
};
#define BATCH_FIELDS (sizeof batch_fields / sizeof batch_fields[0])
static const struct client_field batch_lock_id = { "lock_id", FIELD_ID,
	offsetof(struct client_extended, lock_id), 0 };

struct client_extended client_extended_of(const struct core_reply *reply) {
	return (struct client_extended){
		.error = reply->error,
		.lock_id = reply->lock_id,
		.valid = reply->valid,
		.token = reply->token,
		.quorum = reply->quorum,
		.acks = reply->acks,
		.votes = reply->votes,
		.limit = reply->limit,
		.silent = reply->silent,
		.not_voting = reply->not_voting,
		.field = reply->field,
		.mode = client_mode_of(&reply->terms)
	};
}

static void batch_put_item(struct pack *k, const struct client_extended *item,
	const struct client_context *context) {
	struct pack_open map = pack_map_open(k);
	if (!id128_zero(item->lock_id)) {
		client_field_put(k, &map, &batch_lock_id, item);
	}
	if (item->error) {
		struct core_reply reply = {
			.op = CORE_EXTEND,
			.error = item->error,
			.quorum = item->quorum,
			.votes = item->votes,
			.acks = item->acks,
			.silent = item->silent,
			.not_voting = item->not_voting,
			.limit = item->limit,
			.field = item->field
		};
		pack_key(k, &map, "error");
		client_reply_put_error(k, &reply, context);
	} else {
		client_field_put_all(k, &map, batch_fields, BATCH_FIELDS, item, 0);
		if (item->mode.mode == CLIENT_PERMITS) {
			client_field_put_all(k, &map, client_mode_fields, CLIENT_MODE_FIELD_COUNT,
				&item->mode, client_mode_present(&item->mode));
		}
	}
	pack_map_close(k, &map);
}

int client_batch_add(struct buffer *items, const struct client_extended *item,
	const struct client_context *context) {
	struct pack k;
	pack_begin(&k, items);
	batch_put_item(&k, item, context);
	return pack_end(&k);
}

int client_batch_encode(uint32_t msgid, const struct buffer *items, uint32_t count,
	struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	pack_map(&k, 1);
	pack_text(&k, "locks");
	pack_array(&k, count);
	pack_raw(&k, buffer_slice(items));
	return pack_end(&k);
}

int client_done_encode(uint32_t msgid, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	pack_map(&k, 0);
	return pack_end(&k);
}

int client_ping_encode(uint32_t msgid, const char *version, const char *node, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	pack_map(&k, 2);
	pack_text(&k, "version");
	pack_text(&k, version);
	pack_text(&k, "node");
	pack_text(&k, node);
	return pack_end(&k);
}
