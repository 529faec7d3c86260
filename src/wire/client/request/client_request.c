/* client_request.c: the server's side of requests, which decodes them. A refusal names what is
 * wrong. */
#include <stddef.h>
#include <string.h>

#include "client.h"
#include "client_change.h"
#include "client_list.h"
#include "client_param.h"
#include "client_terms.h"

_Static_assert((int)CLIENT_CLUSTER_FORCE - (int)CLIENT_CLUSTER_ADD_REPLICA == (int)CHANGE_FORCE &&
		CHANGE_ADD_REPLICA == 0,
	"changes of the set come last, in the order of enum change_kind");

/* How many bytes of the name of an unknown method or parameter a refusal repeats. */
#define REQUEST_NAME_MAX 64

/* A request that is being read. */
struct request_reader {
	struct unpack u;
	struct client_decoder *d;
	struct client_refusal *refusal;
	/* 0, or the error that client_request_decode returns. */
	int error;
	/* The parameter that was read last; NULL for none. */
	const struct client_param_rule *last;
};

/* Refuses the request. The first refusal counts; none does once the bytes have ended too early
 * (request_end). */
static void request_refuse(struct request_reader *r, int error, struct slice field,
	const char *message) {
	if (!r->error && !r->u.bad) {
		r->error = error;
		*r->refusal = (struct client_refusal){
			.error = error, .field = field, .message = message };
	}
}

static void request_refuse_text(struct request_reader *r, const char *field, const char *message) {
	request_refuse(r, PAWL_EBADREQUEST, slice_str(field), message);
}

static void request_take_list(struct request_reader *r, const struct client_param_rule *rule,
	struct client_request *out);

static void request_take_param(struct request_reader *r, unsigned method,
	struct client_request *out) {
	struct slice name = slice_of(NULL, 0);
	if (unpack_peek(&r->u) == UNPACK_STR) {
		name = unpack_str(&r->u, SIZE_MAX);
	} else {
		request_refuse_text(r, "params", "names of parameters must be strings");
	}
	if (r->u.bad || r->error) {
		return;
	}
	const struct client_param_rule *rule = r->last = client_param_find(method, name, r->last);
	if (!rule) {
		name.size = name.size > REQUEST_NAME_MAX ? REQUEST_NAME_MAX : name.size;
		request_refuse(r, PAWL_EBADREQUEST, name, client_param_unknown(method));
		return;
	}
	if (out->present & rule->bit) {
		request_refuse(r, PAWL_EBADREQUEST, name, "is given twice: give it once");
		return;
	}
	out->present |= rule->bit;
	if (!rule->take) {
		request_take_list(r, rule, out);
		return;
	}
	int error = PAWL_EBADREQUEST;
	const char *problem = rule->take(&r->u, out, &error);
	if (problem) {
		request_refuse(r, error, name, problem);
	}
}

/* Refuses the request because parameters are missing. It names the one with the lowest bit. */
static void request_refuse_missing(struct request_reader *r, unsigned method, uint64_t missing) {
	request_refuse_text(r, client_param_name(method, missing & (~missing + 1)),
		"is missing: this method needs it");
}

/* Reads the parameters, but stops behind the first piece of a long list. */
static void request_take_pairs(struct request_reader *r, unsigned method, uint32_t pairs,
	struct client_request *out) {
	for (; pairs > 0 && !r->error && !r->u.bad && r->d->rest.left == 0; pairs--) {
		request_take_param(r, method, out);
	}
	r->d->rest.pairs = pairs;
}

static void request_take_map(struct request_reader *r, unsigned method,
	struct client_request *out) {
	if (unpack_peek(&r->u) != UNPACK_MAP) {
		request_refuse_text(r, "params",
			"must be one map with the parameters by name, in an array: [{...}]");
		return;
	}
	request_take_pairs(r, method, unpack_map(&r->u), out);
}

/* Reads an item of `locks`, which is a map with parameters like those of a method. */
static void request_take_item(struct request_reader *r, unsigned method,
	struct client_request *item) {
	memset(item, 0, offsetof(struct client_request, label_bytes));
	request_take_map(r, method, item);
	const uint64_t missing = client_param_required(method) & ~item->present;
	if (missing) {
		request_refuse_missing(r, method, missing);
	}
}

/* Checks what numbers the requests of a lock (section 2 of the protocol, Shorten). */
static void request_check_order(struct request_reader *r, const struct client_request *out) {
	const char *field, *problem = client_order_problem(out, &field);
	if (problem) {
		request_refuse_text(r, field, problem);
	}
}

static void request_take_lock(struct request_reader *r, void *out) {
	struct client_request item;
	request_take_item(r, CLIENT_PARAM_LOCK, &item);
	request_check_order(r, &item);
	*(struct client_lock *)out = (struct client_lock){ item.core.key, item.core.lock_id,
		item.core.lease, item.core.token, item.core.binding, item.core.terms.set,
		item.core.ordered, item.core.shorten };
}

static void request_take_group_lock(struct request_reader *r, void *out) {
	struct client_request item;
	const char *field;
	request_take_item(r, CLIENT_PARAM_GROUP, &item);
	const char *problem = client_terms_problem(&item, &field);
	if (problem) {
		request_refuse_text(r, field, problem);
	}
	*(struct core_lock *)out = (struct core_lock){ item.core.key, item.core.lock_id,
		item.core.terms.of, item.core.terms.count };
}

/* What a list of locks has to be. */
struct request_list {
	/* The answer to a value of another type, and the answer to a list that is too short or too
	 * long. */
	const char *must_be, *must_have;
	/* The most items that the list may have. */
	uint32_t max;
	size_t item_bytes;
	void (*take)(struct request_reader *r, void *item);
	/* The list is decoded in pieces if the decoder has `piece` set. */
	bool in_pieces;
};

/* Reads the items from index `done` on, and notes in the decoder what is left for another time.
 * Returns `count`, or 0 if the request is refused or there is no memory. */
static uint32_t request_take_piece(struct request_reader *r, const struct request_list *list,
	uint32_t done, uint32_t count) {
	struct client_room *room = &r->d->rooms[CLIENT_LIST_FIRST];
	const uint32_t piece = list->in_pieces ? r->d->piece : 0,
		end = piece && count - done > piece ? done + piece : count;
	for (; done < end && !r->error && !r->u.bad; done++) {
		void *item = client_list_room(r->d->alloc, room, done, list->item_bytes);
		if (!item) {
			r->error = PAWL_ENOMEM;
			return 0;
		}
		list->take(r, item);
	}
	r->d->rest = (struct client_rest){ r->u.p, done, count - end, 0 };
	return r->error || r->u.bad ? 0 : count;
}

/* Reads a list, or its first piece, into the decoder's first room. Returns how many items the list
 * has, or 0 if the request is refused or there is no memory. */
static uint32_t request_take_items(struct request_reader *r, const struct request_list *list) {
	if (unpack_peek(&r->u) != UNPACK_ARRAY) {
		request_refuse_text(r, "locks", list->must_be);
		return 0;
	}
	uint32_t count = unpack_array(&r->u);
	if (count < 1 || count > list->max) {
		request_refuse_text(r, "locks", list->must_have);
		return 0;
	}
	return request_take_piece(r, list, 0, count);
}

static bool group_names_id_twice(const struct client_request *r) {
	for (uint32_t i = 0; i < r->core.lock_count; i++) {
		for (uint32_t j = 0; j < i && !id128_zero(r->group[i].lock_id); j++) {
			if (id128_equal(r->group[i].lock_id, r->group[j].lock_id)) {
				return true;
			}
		}
	}
	return false;
}

/* Reads the `locks` of an acquire, which are acquired together or not at all. */
static void request_take_group(struct request_reader *r, struct client_request *out) {
	_Static_assert(CORE_LOCKS_MAX == 64, "the text below says it");
	static const struct request_list list = {
		"must be a list of maps with key, and perhaps lock_id, mode, permits, of",
		"must have 1 to 64 items", CORE_LOCKS_MAX, sizeof(struct core_lock),
		request_take_group_lock, false
	};
	out->core.lock_count = request_take_items(r, &list);
	out->core.locks = out->group = r->d->rooms[CLIENT_LIST_FIRST].items;
	out->core.op = CORE_ACQUIRE_ALL;
	if (!r->error && group_names_id_twice(out)) {
		request_refuse_text(r, "lock_id",
			"is given to two keys: each lock has one of its own");
	}
}

_Static_assert(CLIENT_LOCKS_MAX == 4096, "the text below says it");
static const struct request_list request_locks = {
	"must be a list of maps with key, lock_id, lease_ms",
	"must have 1 to 4096 items: send several requests", CLIENT_LOCKS_MAX,
	sizeof(struct client_lock), request_take_lock, true
};

static void request_take_locks(struct request_reader *r, struct client_request *out) {
	out->lock_count = request_take_items(r, &request_locks);
	out->locks = r->d->rooms[CLIENT_LIST_FIRST].items;
}

/* Reads `masters` or `replicas`. Both lists stand in the decoder's first room, one behind the
 * other. */
static void request_take_nodes(struct request_reader *r, bool masters, struct client_request *out) {
	const char *field = masters ? "masters" : "replicas";
	struct core_change *change = &out->change;
	if (unpack_peek(&r->u) != UNPACK_ARRAY) {
		request_refuse_text(r, field,
			"must be a list of names, each alone or as name=host:port");
		return;
	}
	uint32_t count = unpack_array(&r->u);
	if ((masters && count == 0) ||
		count > (masters ? MASTERS_MAX : CONFIG_NODES_MAX - MASTERS_MAX)) {
		request_refuse_text(r, field,
			masters ? "must name 1 to 9 nodes" : "must name at most 39 nodes");
	}
	for (uint32_t i = 0; i < count && !r->error && !r->u.bad; i++) {
		struct core_change_node *node = client_list_room(r->d->alloc,
			&r->d->rooms[CLIENT_LIST_FIRST], change->node_count, sizeof *node);
		if (!node) {
			r->error = PAWL_ENOMEM;
			return;
		}
		int error = PAWL_EBADREQUEST;
		const char *problem = client_take_node(&r->u, node, &error);
		if (problem) {
			request_refuse(r, error, slice_str(field), problem);
		}
		node->master = masters;
		change->node_count++;
		change->nodes = r->d->rooms[CLIENT_LIST_FIRST].items;
	}
}

static void request_take_list(struct request_reader *r, const struct client_param_rule *rule,
	struct client_request *out) {
	if (rule->bit != CLIENT_HAS_LOCKS) {
		request_take_nodes(r, rule->bit == CLIENT_HAS_MASTERS, out);
	} else if (out->method == CLIENT_ACQUIRE) {
		request_take_group(r, out);
	} else {
		request_take_locks(r, out);
	}
}

/* Checks a change of the set as a whole, and puts its masters before its replicas. */
static void request_check_change(struct request_reader *r, struct client_request *out) {
	const char *field = "params";
	const char *problem = client_change_problem(out, &field);
	if (problem) {
		request_refuse_text(r, field, problem);
	}
	if (out->change.node_count) {
		client_change_order(r->d->rooms[CLIENT_LIST_FIRST].items, out->change.node_count);
	}
}

/* Returns which of the missing parameters are missing also beside `locks`. Refuses those that must
 * not go together with it. */
static uint64_t request_check_locks(struct request_reader *r, const struct client_request *out,
	uint64_t missing) {
	if (out->method == CLIENT_EXTEND) {
		if (out->present
			& ~(CLIENT_HAS_LOCKS | CLIENT_HAS_DEADLINE_KEPT | CLIENT_HAS_PARTY
				| CLIENT_HAS_TRACE)) {
			request_refuse_text(r, "locks",
				"names each lock with its lease_ms: only deadline_kept, party "
				"and trace may be given in addition");
		}
		return 0;
	}
	if (out->present &
		(CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_MODE | CLIENT_HAS_PERMITS |
			CLIENT_HAS_OF)) {
		request_refuse_text(r, "locks",
			"names each key with its lock_id, mode, permits, of: "
			"they do not go together with it");
	}
	return missing & ~CLIENT_HAS_KEY;
}

/* Checks a method that takes either a key or a prefix. */
static void request_check_prefix(struct request_reader *r, struct client_request *out) {
	uint64_t which = out->present & (CLIENT_HAS_KEY | CLIENT_HAS_PREFIX);
	if (which == 0 && out->method == CLIENT_CAN) {
		/* The question may be about a method that has no key. */
		return;
	}
	if (which == 0) {
		request_refuse_text(r, "key",
			"is missing: this method needs it, or prefix instead");
	} else if (which == (CLIENT_HAS_KEY | CLIENT_HAS_PREFIX)) {
		request_refuse_text(r, "prefix", "must not be given together with key: choose one");
	} else if ((out->present & CLIENT_HAS_LIMIT) && which == CLIENT_HAS_KEY) {
		request_refuse_text(r, "limit",
			"goes with prefix: for one key all waiters are listed");
	} else if (out->method == CLIENT_WAITERS && which == CLIENT_HAS_PREFIX &&
		!out->core.limit) {
		out->core.limit = CLIENT_LIST_DEFAULT;
	}
}

/* Checks what the table of parameters cannot say. */
static void request_check_together(struct request_reader *r, struct client_request *out) {
	uint64_t missing = client_param_required(out->method) & ~out->present;
	if (out->present & CLIENT_HAS_LOCKS) {
		missing = request_check_locks(r, out, missing);
	}
	if (missing) {
		request_refuse_missing(r, out->method, missing);
	}
	if ((out->present & CLIENT_HAS_EXPECT) && (out->present & CLIENT_HAS_VALUE_SEQ)) {
		request_refuse_text(r, "value_seq",
			"must not be given together with expect: choose one");
	}
	if (out->present & (CLIENT_HAS_PERMITS | CLIENT_HAS_OF)) {
		const char *field, *problem = client_terms_problem(out, &field);
		if (problem) {
			request_refuse_text(r, field, problem);
		}
	}
	request_check_order(r, out);
	if (out->method == CLIENT_WAITERS || out->method == CLIENT_WATCH ||
		out->method == CLIENT_CAN) {
		request_check_prefix(r, out);
	}
	if (out->core.op == CORE_CHANGE) {
		request_check_change(r, out);
	}
	if (out->present &
		(CLIENT_HAS_LABEL | CLIENT_HAS_HOST | CLIENT_HAS_PID | CLIENT_HAS_ELECTION)) {
		out->core.label = slice_of(out->label_bytes,
			client_label_pack(&out->label, out->label_bytes));
	}
}

/* The message ends where the request does. If it ends before, client_scan was not called, or the
 * request is nested deeper than any that we know. PAWL_EPROTOCOL has no code on the wire, so the
 * client is told bad_request. Returns what client_request_decode does. */
static int request_end(struct request_reader *r) {
	if (!r->error && (r->u.bad || (r->d->rest.left == 0 && unpack_left(&r->u) != 0))) {
		r->error = PAWL_EPROTOCOL;
		*r->refusal = (struct client_refusal){
			.error = PAWL_EBADREQUEST,
			.message = r->u.bad
				? "this is not a MessagePack-RPC request: "
					"[0, msgid, method, [params]]"
				: "bytes follow the request"
		};
	}
	return r->error;
}

static void request_take_params(struct request_reader *r, struct client_request *out) {
	if (unpack_peek(&r->u) != UNPACK_ARRAY) {
		request_refuse_text(r, "params", "must be an array with one map: [{...}]");
		return;
	}
	uint32_t count = unpack_array(&r->u);
	if (count > 1) {
		request_refuse_text(r, "params", "must be an array with one map: [{...}]");
	}
	if (r->error || r->u.bad) {
		return;
	}
	if (count == 1) {
		request_take_map(r, out->method, out);
	}
	if (r->d->rest.left == 0) {
		request_check_together(r, out);
	}
}

static void request_take_method(struct request_reader *r, struct client_request *out) {
	if (unpack_peek(&r->u) != UNPACK_STR) {
		request_refuse_text(r, "method", "must be a string");
		return;
	}
	struct slice name = unpack_str(&r->u, SIZE_MAX);
	if (client_method_find(name, &out->method)) {
		return;
	}
	name.size = name.size > REQUEST_NAME_MAX ? REQUEST_NAME_MAX : name.size;
	request_refuse(r, PAWL_EBADREQUEST, name,
		"unknown method: there are acquire, extend, update, release, get, list, wait, "
		"waiters, break, status, ping, drain, downgrade, transfer, ask_release, explain, "
		"watch, unwatch, clients, kick, can, top, cluster_add_replica, cluster_promote, "
		"cluster_demote, cluster_remove, cluster_replace, cluster_set_nodes, "
		"cluster_set_timing, cluster_force");
}

/* Reads a request, but for the end of its message. What the method does not say otherwise is set
 * before the parameters are read. */
static void request_take(struct request_reader *r, struct client_request *out) {
	memset(out, 0, offsetof(struct client_request, label_bytes));
	r->d->rest = (struct client_rest){ 0 };
	r->u.bad = unpack_array(&r->u) != 4 || r->u.bad;
	/* The type of a request is 0. */
	unpack_uint(&r->u, 0);
	out->msgid = (uint32_t)unpack_uint(&r->u, UINT32_MAX);
	request_take_method(r, out);
	if (r->error || r->u.bad) {
		return;
	}
	if (client_method_op(out->method, &out->core.op) && out->core.op == CORE_CHANGE) {
		out->core.change = &out->change;
		out->change.kind = (enum change_kind)(out->method - CLIENT_CLUSTER_ADD_REPLICA);
	}
	if (out->method == CLIENT_WAIT) {
		out->core.wait = (span_ns)CLIENT_MS_MAX * SPAN_MS;
	}
	if (out->method == CLIENT_LIST || out->method == CLIENT_CLIENTS) {
		out->core.limit = CLIENT_LIST_DEFAULT;
	}
	request_take_params(r, out);
}

int client_request_decode(struct client_decoder *d, struct slice message,
	struct client_request *out, struct client_refusal *refusal) {
	struct request_reader r = { .u = unpack_of(message), .d = d, .refusal = refusal };
	request_take(&r, out);
	return request_end(&r);
}

/* A message of so few bytes can have no more objects than client_request_limits allow, and a
 * request that is understood has no more containers in one another than CLIENT_DEPTH_MAX. So
 * client_scan would find the same end. */
#define REQUEST_SHORT_MAX ((size_t)1024)

size_t client_request_decode_short(struct client_decoder *d, struct slice in,
	struct client_request *out) {
	struct client_refusal refusal;
	const size_t size = in.size < REQUEST_SHORT_MAX ? in.size : REQUEST_SHORT_MAX;
	struct request_reader r = { .u = unpack_of(slice_of(in.data, size)), .d = d,
		.refusal = &refusal };
	request_take(&r, out);
	return r.error || r.u.bad || d->rest.left ? 0 : size - unpack_left(&r.u);
}

int client_request_go_on(struct client_decoder *d, struct slice message, struct client_request *out,
	struct client_refusal *refusal) {
	struct request_reader r = { .u = unpack_of(message), .d = d, .refusal = refusal };
	const struct client_rest before = d->rest;
	r.u.p = before.at;
	d->rest.left = 0;
	request_take_piece(&r, &request_locks, before.done, before.done + before.left);
	out->locks = d->rooms[CLIENT_LIST_FIRST].items;
	d->rest.pairs = before.pairs;
	if (d->rest.left == 0) {
		request_take_pairs(&r, out->method, before.pairs, out);
		request_check_together(&r, out);
	}
	return request_end(&r);
}
