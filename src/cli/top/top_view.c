/* top_view.c: puts together what the nodes have said. */
#include <string.h>

#include "field.h"
#include "top_impl.h"

const struct top_list_name top_lists[TOP_SORTS] = {
	[TOP_BY_GRANTED] = { "most_granted", "granted", false, "most granted", "GRANTED" },
	[TOP_BY_QUEUE] = { "longest_queues", "waiting", false, "longest queues", "WAITING" },
	[TOP_BY_WAIT] = { "oldest_waiters", "waited_ms", true, "oldest waiters", "WAITED" },
	[TOP_BY_HOLD] = { "oldest_holders", "held_ms", true, "oldest holders", "HELD FOR" },
};

const char *top_total_name(enum top_total total) {
	static const char *const names[TOP_TOTALS] = { "requests", "refusals", "grants", "releases",
		"losses" };
	return names[total];
}

const char *top_node_word(const struct top_node *n) {
	if (n->trouble[0]) {
		return n->denied ? "denied" : "silent";
	}
	if (n->status && !field_bool(n->status->tree, "ready")) {
		return "not ready";
	}
	return n->took > TOP_SLOW_US ? "slow" : "ok";
}

/* Requests and grants are counted by the node that was asked, the ends of leases by every node. */
static bool is_sum(enum top_total total) {
	return total != TOP_RELEASES && total != TOP_LOSSES;
}

static void view_rates(struct top_view *v, const struct top_node *n) {
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		const double rate = n->rates[i];
		if (v->rates[i] < 0 || rate < 0) {
			v->rates[i] = rate > v->rates[i] ? rate : v->rates[i];
		} else if (is_sum((enum top_total)i)) {
			v->rates[i] += rate;
		} else {
			v->rates[i] = rate > v->rates[i] ? rate : v->rates[i];
		}
	}
}

static size_t copy(unsigned char *to, size_t room, const struct pawl_value *from) {
	const size_t size = from ? from->bytes.size < room ? from->bytes.size : room : 0;
	if (size > 0) {
		memcpy(to, from->bytes.data, size);
	}
	return size;
}

/* Adds a key to a list, or raises its number there. Several nodes may know the same key; the
 * greatest number counts. */
static void view_key(struct top_view *v, unsigned list, const struct pawl_value *key,
	const struct pawl_value *owner, int64_t number) {
	struct top_row *rows = v->lists[list].rows;
	size_t at = 0, count = v->lists[list].count;
	while (at < count && (rows[at].key_size != key->bytes.size
		|| memcmp(rows[at].key, key->bytes.data, key->bytes.size) != 0)) {
		at++;
	}
	if (at < count && rows[at].number >= number) {
		return;
	}
	if (at == count && count == TOP_ROWS_MAX) {
		at = rows[count - 1].number < number ? count - 1 : count;
	} else if (at == count) {
		v->lists[list].count++;
	}
	if (at == TOP_ROWS_MAX) {
		return;
	}
	for (; at > 0 && rows[at - 1].number < number; at--) {
		rows[at] = rows[at - 1];
	}
	rows[at].key_size = copy(rows[at].key, TOP_KEY_BYTES, key);
	rows[at].owner_size = copy(rows[at].owner, TOP_OWNER_BYTES, owner);
	rows[at].number = number;
}

static void view_lists(struct top_view *v, const struct pawl_value *said) {
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		const struct pawl_value *list = pawl_value_get(said, top_lists[i].list);
		for (size_t at = 0; list && list->kind == PAWL_ARRAY && at < list->count; at++) {
			const struct pawl_value *one = &list->items[at],
				*key = pawl_value_get(one, "key");
			if (key && (key->kind == PAWL_BYTES || key->kind == PAWL_TEXT)) {
				view_key(v, i, key, pawl_value_get(one, "owner"),
					field_int(one, top_lists[i].number, 0));
			}
		}
	}
}

static void view_status(struct top_view *v, const struct pawl_value *status) {
	const int64_t voting = field_int(status, "voting", 0);
	const struct pawl_value *masters = pawl_value_get(status, "masters");
	if (voting >= v->voting) {
		v->voting = voting;
		v->quorum = field_int(status, "quorum", 0);
		v->masters = masters && masters->kind == PAWL_ARRAY ? (int64_t)masters->count : 0;
	}
}

void top_look(struct top *t) {
	struct top_view *v = &t->view;
	memset(v, 0, sizeof *v);
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		v->rates[i] = -1;
	}
	for (size_t i = 0; i < t->count; i++) {
		const struct top_node *n = &t->nodes[i];
		if (n->trouble[0] || !n->said) {
			continue;
		}
		v->answering++;
		v->waiting += field_int(n->said->tree, "waiting", 0);
		view_rates(v, n);
		view_lists(v, n->said->tree);
		if (n->status) {
			view_status(v, n->status->tree);
		}
	}
}
