/* inspect.c: what this node's memory says about keys, without a step. A program that has the node
 * inside itself reads so. It changes nothing. */
#include "node.h"

bool core_inspect_holders(const struct core *core, struct slice name, struct instant now,
	uint32_t most, bool (*visit)(void *ctx, const struct core_entry *entry), void *ctx) {
	const struct key *key = table_peek(core, name);
	uint32_t count = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		const struct core_entry entry = entry_of(core, r, now);
		if (count++ == most) {
			return false;
		}
		if (entry_holds(r, now) && !visit(ctx, &entry)) {
			return true;
		}
	}
	return true;
}

/* The number of records that core_value_bytes samples. */
#define VALUES_LOOKED_AT 16

uint64_t core_value_bytes(const struct core *core, struct core_request *request) {
	request->key_hash = table_hash(core, request->key);
	const struct key *key = table_peek_hashed(core->store.live, request->key,
		request->key_hash);
	uint64_t bytes = 0;
	uint32_t looked = 0;
	for (const struct record *r = key ? key->held : NULL; r && looked < VALUES_LOOKED_AT;
		r = r->next) {
		bytes += r->value_size;
		looked++;
	}
	return bytes;
}

/* What is past its end by now does not exist, whether or not a step has removed it. */
static bool inspect_record(const struct core *core, const struct key *key, struct instant now,
	struct core_inspect *out) {
	uint32_t holders;
	const struct record *best = entry_shown(key, now, &holders);
	if (best == NULL) {
		return false;
	}
	out->entry = entry_of(core, best, now);
	out->entry.key = key_name(key);
	out->entry.show_lock_id = true;
	out->entry.holders = holders;
	out->contested = holders > 1 && key_contested(key);
	return true;
}

bool core_inspect(const struct core *core, struct slice key, struct instant now,
	struct core_inspect *out) {
	const struct key *found = table_peek(core, key);
	return found && inspect_record(core, found, now, out);
}

void core_inspect_each(const struct core *core, struct slice prefix, struct instant now,
	bool (*visit)(void *ctx, const struct core_inspect *look), void *ctx) {
	const struct map *keys = &core->store.live->keys;
	for (size_t bucket = 0; bucket < keys->bucket_count; bucket++) {
		for (const struct map_node *n = map_bucket(keys, bucket); n;
			n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, struct key, node);
			struct core_inspect look;
			if (slice_has_prefix(key_name(key), prefix) &&
				inspect_record(core, key, now, &look) && !visit(ctx, &look)) {
				return;
			}
		}
	}
}
