/* Responses, as the server writes them. */
#include <string.h>

#include "check.h"
#include "client_reply.h"

#define REPLY_TAIL_BYTES 1024 /* what may follow a list: more, node, role, age */

void client_reply_begin(struct pack *k, uint32_t msgid, struct buffer *out) {
	pack_begin(k, out);
	pack_array(k, 4);
	pack_uint(k, 1);
	pack_uint(k, msgid);
}

static void reply_put_uint(struct pack *k, struct pack_open *map, const char *key, uint64_t value) {
	pack_key(k, map, key);
	pack_uint(k, value);
}

static void reply_put_bool(struct pack *k, struct pack_open *map, const char *key, bool value) {
	pack_key(k, map, key);
	pack_bool(k, value);
}

static void reply_put_text(struct pack *k, struct pack_open *map, const char *key, const char *value) {
	pack_key(k, map, key);
	pack_text(k, value);
}

static uint64_t reply_ms_down(span_ns span) {
	return span > 0 ? (uint64_t)(span / SPAN_MS) : 0;
}

static uint64_t reply_ms_up(span_ns span) {
	return span > 0 ? (uint64_t)(span / SPAN_MS) + (span % SPAN_MS != 0) : 0;
}

static void reply_put_lock_id(struct pack *k, struct pack_open *map, struct id128 id) {
	char digits[CLIENT_LOCK_ID_DIGITS];
	client_lock_id_format(id, digits);
	pack_key(k, map, "lock_id");
	pack_str(k, slice_of(digits, sizeof digits));
}

/* ---- errors ---- */

static void reply_put_error_head(struct pack *k, struct pack_open *map, int error, struct slice field, struct slice message) {
	reply_put_text(k, map, "code", pawl_error_code(error));
	pack_key(k, map, "message");
	pack_str(k, message.size ? message : slice_str(pawl_error_message(error)));
	if (field.size) {
		pack_key(k, map, "field");
		pack_str(k, field);
	}
}

/* The names of peers in a bit set. */
static void reply_put_names(struct pack *k, struct pack_open *map, const char *key, uint64_t set, const struct client_facts *facts) {
	pack_key(k, map, key);
	struct pack_open names = pack_array_open(k);
	for (uint32_t i = 0; i < facts->peer_count && i < NODES_MAX; i++) {
		if (set & (1ull << i)) {
			pack_item(&names);
			pack_text(k, facts->peers[i]->name);
		}
	}
	pack_array_close(k, &names);
}

static void reply_put_counts(struct pack *k, struct pack_open *map, uint32_t quorum, uint32_t votes, uint32_t acks) {
	reply_put_uint(k, map, "quorum", quorum);
	reply_put_uint(k, map, "votes", votes);
	reply_put_uint(k, map, "acks", acks);
}

/* The parts of an entry that reads show: only what is known, and the lock_id only to whom it belongs. */
static struct client_entry reply_entry(const struct core_entry *e, uint32_t without) {
	uint32_t present = CLIENT_ENTRY_OWNER | CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ;
	present |= CLIENT_ENTRY_TOKEN | CLIENT_ENTRY_REMAINING;
	present |= e->show_lock_id ? (uint32_t)CLIENT_ENTRY_LOCK_ID : 0;
	return (struct client_entry){ .present = present & ~without, .owner = e->owner, .value = e->value,
		.value_seq = e->value_seq, .token = e->token, .remaining = e->remaining, .lock_id = e->lock_id };
}

static void reply_put_entry(struct pack *k, struct pack_open *map, const struct client_entry *entry) {
	client_fact_put_all(k, map, client_entry_facts, client_entry_fact_count, entry, entry->present);
}

/* Who holds, without the value: whoever wants that reads. */
static void reply_put_holder(struct pack *k, struct pack_open *map, const struct core_reply *reply) {
	if (reply->contested) {
		reply_put_bool(k, map, "contested", true);
	}
	if (reply->held) {
		struct client_entry entry = reply_entry(&reply->entry, CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ);
		pack_key(k, map, "holder");
		struct pack_open holder = pack_map_open(k);
		reply_put_entry(k, &holder, &entry);
		pack_map_close(k, &holder);
	}
}

static bool reply_is_about(const struct core_reply *reply, int error, const char *field) {
	return reply->error == error && reply->field && strcmp(reply->field, field) == 0;
}

/* What there is to say beyond the error's own sentence, which nothing stands for. */
static const char *reply_sentence(const struct core_reply *reply) {
	if (reply->error == PAWL_EDENIED && reply->op == CORE_EXTEND) {
		return "barred from extending by a break: what is left of the lease may be used, then take a new lock_id";
	}
	if (reply_is_about(reply, PAWL_EBADREQUEST, "lease_ms")) {
		return "is shorter than this cluster allows ([limits] lease_min of its nodes)";
	}
	if (reply_is_about(reply, PAWL_ETOOLARGE, "value")) {
		return "is larger than [limits] value_bytes of this node: keep larger data elsewhere and its name here";
	}
	return "";
}

static void reply_put_change(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts) {
	reply_put_uint(k, map, "epoch", reply->epoch);
	reply_put_bool(k, map, "settled", reply->settled);
	reply_put_bool(k, map, "complete", reply->complete);
	reply_put_names(k, map, "missing", reply->missing, facts);
}

void client_reply_put_error(struct pack *k, const struct core_reply *reply, const struct client_facts *facts) {
	struct pack_open map = pack_map_open(k);
	struct slice message = reply->why.size ? reply->why : slice_str(reply_sentence(reply));
	reply_put_error_head(k, &map, reply->error, slice_str(reply->field ? reply->field : ""), message);
	if (reply->quorum) {
		reply_put_counts(k, &map, reply->quorum, reply->votes, reply->acks);
	}
	if (reply->op == CORE_CHANGE && reply->epoch) {
		reply_put_change(k, &map, reply, facts);
	}
	if (reply->error == PAWL_ENOQUORUM) {
		reply_put_names(k, &map, "silent", reply->silent, facts);
	} else if (reply->error == PAWL_EHELD) {
		reply_put_holder(k, &map, reply);
	} else if (reply->error == PAWL_EMISMATCH) {
		struct client_entry entry = reply_entry(&reply->entry, ~(uint32_t)(CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ));
		reply_put_entry(k, &map, &entry);
	} else if (reply->error == PAWL_ETOOLONG) {
		reply_put_uint(k, &map, "limit_ms", reply_ms_down(reply->limit));
	} else if (reply_is_about(reply, PAWL_EBADREQUEST, "lease_ms")) {
		reply_put_uint(k, &map, "limit_ms", reply_ms_up(reply->limit));
	}
	pack_map_close(k, &map);
}

int client_refusal_encode(uint32_t msgid, const struct client_refusal *refusal, struct buffer *out) {
	CHECK(refusal->error != 0);
	struct pack k;
	client_reply_begin(&k, msgid, out);
	struct pack_open map = pack_map_open(&k);
	reply_put_error_head(&k, &map, refusal->error, refusal->field,
		slice_str(refusal->message ? refusal->message : ""));
	pack_map_close(&k, &map);
	pack_nil(&k);
	return pack_end(&k);
}

/* ---- results ---- */

/* Where it was read. What the core says of itself is newer than the facts. An age that is not known is none. */
static void reply_put_viewpoint(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts) {
	span_ns age = reply->replica ? reply->age : facts->age;
	reply_put_text(k, map, "node", facts->node);
	reply_put_text(k, map, "role", reply->replica ? "replica" : facts->role);
	pack_key(k, map, "age_ms");
	if ((reply->replica || facts->replica) && age < SPAN_MAX) {
		pack_uint(k, reply_ms_up(age));
	} else {
		pack_nil(k);
	}
}

static void reply_put_acquired(struct pack *k, struct pack_open *map, const struct core_reply *reply) {
	reply_put_lock_id(k, map, reply->lock_id);
	reply_put_uint(k, map, "token", reply->token);
	reply_put_uint(k, map, "valid_ms", reply_ms_down(reply->valid));
	reply_put_counts(k, map, reply->quorum, reply->votes, reply->acks);
	reply_put_uint(k, map, "waited_ms", reply_ms_down(reply->waited));
}

static void reply_put_read(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts) {
	reply_put_bool(k, map, "held", reply->held);
	if (reply->held) {
		struct client_entry entry = reply_entry(&reply->entry, 0);
		reply_put_entry(k, map, &entry);
	}
	if (reply->contested) {
		reply_put_bool(k, map, "contested", true);
	}
	if (reply->recovering) {
		reply_put_bool(k, map, "recovering", true);
	}
	reply_put_viewpoint(k, map, reply, facts);
}

/* How far a list may grow, so that what follows it still fits. */
static size_t reply_list_end(const struct pack *k) {
	size_t end = k->start + client_response_limits.bytes;
	end = end < k->out->max ? end : k->out->max;
	return end > REPLY_TAIL_BYTES ? end - REPLY_TAIL_BYTES : 0;
}

/* After an item of a list: keep it, or take it back because the list is full. The first one must fit. */
static bool reply_list_keep(struct pack *k, struct pack_open *list, size_t before, size_t end) {
	if (k->error == PAWL_ENOMEM || (!k->error && k->out->size <= end)) {
		list->count += !k->error;
		return !k->error;
	}
	k->error = list->count ? 0 : PAWL_ETOOLARGE;
	k->out->size = before;
	return false;
}

static void reply_put_list(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts) {
	size_t end = reply_list_end(k), done = 0;
	pack_key(k, map, "keys");
	struct pack_open list = pack_array_open(k);
	for (bool room = true; room && done < reply->count; done += room) {
		size_t before = k->out->size;
		struct client_entry entry = reply_entry(&reply->entries[done], 0);
		struct pack_open item = pack_map_open(k);
		pack_key(k, &item, "key");
		pack_bin(k, reply->entries[done].key);
		reply_put_bool(k, &item, "held", true);
		reply_put_entry(k, &item, &entry);
		pack_map_close(k, &item);
		room = reply_list_keep(k, &list, before, end);
	}
	pack_array_close(k, &list);
	reply_put_bool(k, map, "more", reply->more || done < reply->count);
	reply_put_viewpoint(k, map, reply, facts);
}

static const char *reply_node_name(const struct client_facts *facts, struct id128 id) {
	for (uint32_t i = 0; i < facts->peer_count; i++) {
		if (id128_equal(facts->peers[i]->id, id)) {
			return facts->peers[i]->name;
		}
	}
	return "";
}

static void reply_put_waiters(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_facts *facts) {
	size_t end = reply_list_end(k), done = 0;
	pack_key(k, map, "waiters");
	struct pack_open list = pack_array_open(k);
	for (bool room = true; room && done < reply->count; done += room) {
		const struct core_waiter *w = &reply->waiters[done];
		size_t before = k->out->size;
		struct pack_open item = pack_map_open(k);
		pack_key(k, &item, "owner");
		pack_bin(k, w->owner);
		reply_put_uint(k, &item, "since_ms", reply_ms_down(w->since));
		reply_put_text(k, &item, "node", reply_node_name(facts, w->node));
		if (w->show_lock_id) {
			reply_put_lock_id(k, &item, w->lock_id);
		}
		pack_map_close(k, &item);
		room = reply_list_keep(k, &list, before, end);
	}
	pack_array_close(k, &list);
	reply_put_bool(k, map, "more", done < reply->count);
}

static void reply_put_value_seq(struct pack *k, struct pack_open *map, const struct core_reply *reply) {
	static const struct client_fact fact = { "value_seq", FACT_BALLOT, offsetof(struct core_reply, value_seq), 0 };
	client_fact_put(k, map, &fact, reply);
}

static void reply_put_broken(struct pack *k, struct pack_open *map, const struct core_reply *reply) {
	reply_put_bool(k, map, "broken", reply->released);
	if (reply->released && reply->forced) {
		reply_put_text(k, map, "warning", "the holder may go on believing that it holds the key until its lease ends");
	}
}

static void reply_put_result(struct pack *k, const struct core_reply *reply, const struct client_facts *facts) {
	struct pack_open map = pack_map_open(k);
	switch (reply->op) {
	case CORE_ACQUIRE:
		reply_put_acquired(k, &map, reply);
		break;
	case CORE_EXTEND:
		reply_put_uint(k, &map, "valid_ms", reply_ms_down(reply->valid));
		reply_put_uint(k, &map, "quorum", reply->quorum);
		reply_put_uint(k, &map, "acks", reply->acks);
		reply_put_uint(k, &map, "token", reply->token);
		break;
	case CORE_UPDATE:
		reply_put_value_seq(k, &map, reply);
		break;
	case CORE_RELEASE:
		reply_put_bool(k, &map, "released", reply->released);
		break;
	case CORE_GET:
	case CORE_WAIT:
		reply_put_read(k, &map, reply, facts);
		break;
	case CORE_LIST:
		reply_put_list(k, &map, reply, facts);
		break;
	case CORE_WAITERS:
		reply_put_waiters(k, &map, reply, facts);
		break;
	case CORE_BREAK:
		reply_put_broken(k, &map, reply);
		break;
	case CORE_DOWNGRADE: case CORE_TRANSFER: case CORE_ASK: case CORE_EXPLAIN: case CORE_ACQUIRE_ALL:
	case CORE_BOND: /* no method of clients */
		break;
	case CORE_CHANGE:
		reply_put_change(k, &map, reply, facts);
		if (reply->why.size) {
			pack_key(k, &map, "warning");
			pack_str(k, reply->why);
		}
		break;
	}
	pack_map_close(k, &map);
}

int client_reply_encode(uint32_t msgid, const struct core_reply *reply, const struct client_facts *facts, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	if (reply->error) {
		client_reply_put_error(&k, reply, facts);
		pack_nil(&k);
	} else {
		pack_nil(&k);
		reply_put_result(&k, reply, facts);
	}
	return pack_end(&k);
}
