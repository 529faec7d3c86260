/* client_reply_put_lists.c: writes the answers to reads, which are holders, lists, queues, the
 * reports of masters, and the beginning of a watch. */
#include "client_pieces.h"
#include "client_reply.h"

/* The most bytes that come before a list. */
#define REPLY_HEAD_BYTES 64
/* The most bytes that come after a list: `more`, node, role and age. */
#define REPLY_TAIL_BYTES 1024

/* Writes where the view comes from, and how old it is. What the core says of itself is newer than
 * the context. An age that is not known becomes nil. */
static void reply_put_viewpoint(struct pack *k, struct pack_open *map,
	const struct core_reply *reply, const struct client_context *context) {
	span_ns age = reply->replica ? reply->age : context->age;
	client_reply_put_text(k, map, "node", context->node);
	client_reply_put_text(k, map, "role", reply->replica ? "replica" : context->role);
	pack_key(k, map, "age_ms");
	if ((reply->replica || context->replica) && age < SPAN_MAX) {
		pack_uint(k, span_ms_up(age));
	} else {
		pack_nil(k);
	}
}

/* Returns how far the buffer may grow with a list, so that what follows the list still fits. */
static size_t reply_list_end(const struct pack *k) {
	size_t end = k->start + client_response_limits.bytes;
	end = end < k->out->max ? end : k->out->max;
	return end > REPLY_TAIL_BYTES ? end - REPLY_TAIL_BYTES : 0;
}

/* Is called after each item of a list. Returns true and counts the item if it fits. Otherwise the
 * item is taken back, and the list is full; that the first item does not fit is an error. */
static bool reply_list_keep(struct pack *k, struct pack_open *list, size_t before, size_t end) {
	if (k->error == PAWL_ENOMEM || (!k->error && k->out->size <= end)) {
		list->count += !k->error;
		return !k->error;
	}
	k->error = list->count ? 0 : PAWL_ETOOLARGE;
	k->out->size = before;
	return false;
}

void client_reply_put_holders(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	uint32_t without, uint32_t max) {
	size_t end = reply_list_end(k), done = 0;
	max = reply->holder_count < max ? reply->holder_count : max;
	if (reply->holder_count < 2) {
		if (reply->more) {
			client_reply_put_bool(k, map, "more", true);
		}
		return;
	}
	pack_key(k, map, "holders");
	struct pack_open list = pack_array_open(k);
	for (bool room = true; room && done < max; done += room) {
		size_t before = k->out->size;
		struct client_entry entry = client_reply_entry(&reply->holders[done], without);
		struct pack_open item = pack_map_open(k);
		client_reply_put_entry(k, &item, &entry);
		pack_map_close(k, &item);
		room = reply_list_keep(k, &list, before, end);
	}
	pack_array_close(k, &list);
	if (done < reply->holder_count || reply->more) {
		client_reply_put_bool(k, map, "more", true);
	}
}

void client_reply_put_read(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context) {
	bool closing = reply->entry.closing;
	client_reply_put_bool(k, map, "held", reply->held && !closing);
	if (reply->held || closing) {
		struct client_entry entry = client_reply_entry(&reply->entry, 0);
		client_reply_put_entry(k, map, &entry);
	}
	client_reply_put_holders(k, map, reply, 0, UINT32_MAX);
	if (reply->contested) {
		client_reply_put_bool(k, map, "contested", true);
	}
	if (reply->recovering) {
		client_reply_put_bool(k, map, "recovering", true);
	}
	reply_put_viewpoint(k, map, reply, context);
}

/* Writes the entries of a reply. Returns false if there was no room for all of them. */
static bool reply_put_entries(struct pack *k, struct pack_open *list,
	const struct core_reply *reply, size_t end) {
	size_t done = 0;
	for (bool room = true; room && done < reply->count; done += room) {
		size_t before = k->out->size;
		struct client_entry entry = client_reply_entry(&reply->entries[done], 0);
		struct pack_open item = pack_map_open(k);
		pack_key(k, &item, "key");
		pack_bin(k, reply->entries[done].key);
		client_reply_put_bool(k, &item, "held", !entry.closing);
		client_reply_put_entry(k, &item, &entry);
		pack_map_close(k, &item);
		room = reply_list_keep(k, list, before, end);
	}
	return done == reply->count;
}

void client_reply_put_list(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context) {
	size_t end = reply_list_end(k);
	pack_key(k, map, "keys");
	struct pack_open list = pack_array_open(k);
	bool whole = reply_put_entries(k, &list, reply, end);
	pack_array_close(k, &list);
	client_reply_put_bool(k, map, "more", reply->more || !whole);
	reply_put_viewpoint(k, map, reply, context);
}

int client_list_add(struct client_list *list, const struct core_reply *reply) {
	struct pack k;
	pack_begin(&k, &list->items);
	struct pack_open items = { .count = list->count };
	if (!list->full) {
		list->full = !reply_put_entries(&k, &items, reply,
			client_response_limits.bytes - REPLY_TAIL_BYTES - REPLY_HEAD_BYTES);
	}
	list->count = items.count;
	return pack_end(&k);
}

int client_list_encode(uint32_t msgid, const struct client_list *list,
	const struct core_reply *last, const struct client_context *context, struct buffer *out) {
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	pack_key(&k, &map, "keys");
	struct pack_open keys = pack_array_open(&k);
	keys.count = list->count;
	pack_array_close(&k, &keys);
	pack_raw(&k, buffer_slice(&list->items));
	client_reply_put_bool(&k, &map, "more", last->more || list->full);
	reply_put_viewpoint(&k, &map, last, context);
	pack_map_close(&k, &map);
	return pack_end(&k);
}

static const char *reply_node_name(const struct client_context *context, struct id128 id) {
	for (uint32_t i = 0; i < context->peer_count; i++) {
		if (id128_equal(context->peers[i]->id, id)) {
			return context->peers[i]->name;
		}
	}
	return "";
}

static void reply_put_waiter(struct pack *k, const struct core_waiter *w,
	const struct client_context *context) {
	struct client_lock_mode mode = client_mode_of(&w->terms);
	struct client_label label = client_label_unpack(w->label);
	struct pack_open item = pack_map_open(k);
	if (w->key.size) {
		pack_key(k, &item, "key");
		pack_bin(k, w->key);
	}
	pack_key(k, &item, "owner");
	pack_bin(k, w->owner);
	client_reply_put_uint(k, &item, "since_ms", span_ms_down(w->since));
	client_reply_put_text(k, &item, "node", reply_node_name(context, w->node));
	pack_key(k, &item, "priority");
	pack_int(k, w->terms.priority);
	client_field_put_all(k, &item, client_mode_fields, CLIENT_MODE_FIELD_COUNT, &mode,
		client_mode_present(&mode));
	client_field_put_all(k, &item, client_label_fields, CLIENT_LABEL_FIELD_COUNT, &label,
		client_label_present(&label));
	if (w->identity.size) {
		pack_key(k, &item, "identity");
		pack_bin(k, w->identity);
	}
	if (w->show_lock_id) {
		client_reply_put_lock_id(k, &item, w->lock_id);
	}
	pack_map_close(k, &item);
}

void client_reply_put_waiters(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context) {
	size_t end = reply_list_end(k), done = 0;
	pack_key(k, map, "waiters");
	struct pack_open list = pack_array_open(k);
	for (bool room = true; room && done < reply->count; done += room) {
		const struct core_waiter *w = &reply->waiters[done];
		size_t before = k->out->size;
		reply_put_waiter(k, w, context);
		room = reply_list_keep(k, &list, before, end);
	}
	pack_array_close(k, &list);
	client_reply_put_bool(k, map, "more", reply->more || done < reply->count);
}

/* ---- what each master reports ---- */

static const char *reply_state(const struct core_report *report) {
	return report->status == STATUS_OK ? "voting"
		: report->status == STATUS_RECOVERING ? "recovering"
		: report->status == STATUS_EPOCH ? "other_epoch"
		: "silent";
}

static void reply_put_record(struct pack *k, const struct core_reported *record) {
	struct client_entry entry =
		client_reply_entry(&record->entry, CLIENT_ENTRY_VALUE | CLIENT_ENTRY_VALUE_SEQ);
	entry.barred = true;
	entry.present |= record->barred ? CLIENT_ENTRY_BARRED : 0;
	struct pack_open item = pack_map_open(k);
	client_reply_put_entry(k, &item, &entry);
	pack_map_close(k, &item);
}

static void reply_put_promise(struct pack *k, const struct core_entry *promise) {
	struct pack_open map = pack_map_open(k);
	client_reply_put_uint(k, &map, "left_ms", span_ms_up(promise->remaining));
	if (promise->show_lock_id) {
		client_reply_put_lock_id(k, &map, promise->lock_id);
	}
	pack_map_close(k, &map);
}

/* Writes the records, and the promise. Parked requests are only counted. */
static void reply_put_reported(struct pack *k, struct pack_open *map,
	const struct core_report *report) {
	const struct core_entry *promise = NULL;
	uint32_t parked = 0;
	pack_key(k, map, "records");
	struct pack_open records = pack_array_open(k);
	for (uint32_t i = 0; i < report->count; i++) {
		switch (report->items[i].kind) {
		case REPORTED_RECORD:
			pack_item(&records);
			reply_put_record(k, &report->items[i]);
			break;
		case REPORTED_PROMISE:
			promise = &report->items[i].entry;
			break;
		case REPORTED_PARKED:
			parked++;
			break;
		}
	}
	pack_array_close(k, &records);
	client_reply_put_uint(k, map, "kept", parked);
	if (report->more) {
		client_reply_put_bool(k, map, "more", true);
	}
	pack_key(k, map, "promise");
	if (promise) {
		reply_put_promise(k, promise);
	} else {
		pack_nil(k);
	}
}

void client_reply_put_masters(struct pack *k, struct pack_open *map, const struct core_reply *reply,
	const struct client_context *context) {
	pack_key(k, map, "masters");
	struct pack_open list = pack_array_open(k);
	for (size_t i = 0; i < reply->count; i++) {
		const struct core_report *report = &reply->reports[i];
		pack_item(&list);
		struct pack_open item = pack_map_open(k);
		const bool known = report->peer < context->peer_count;
		client_reply_put_text(k, &item, "node",
			known ? context->peers[report->peer]->name : "");
		client_reply_put_text(k, &item, "state", reply_state(report));
		client_reply_put_bool(k, &item, "home", report->home);
		if (report->home) {
			client_reply_put_uint(k, &item, "waiting", report->waiting);
		}
		if (report->status == STATUS_OK) {
			reply_put_reported(k, &item, report);
		}
		pack_map_close(k, &item);
	}
	pack_array_close(k, &list);
}

/* ---- a watch ---- */

int client_watch_encode(uint32_t msgid, uint64_t watch, struct client_position position,
	const struct core_reply *view, const struct client_context *context, struct buffer *out) {
	static const struct client_field field = { "position", FIELD_POSITION, 0, 0 };
	struct pack k;
	client_reply_begin(&k, msgid, out);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	client_reply_put_uint(&k, &map, "watch", watch);
	client_field_put(&k, &map, &field, &position);
	if (view) {
		client_reply_put_read(&k, &map, view, context);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}
