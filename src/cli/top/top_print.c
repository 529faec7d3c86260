/* top_print.c: what pawl top prints where there is no screen. */
#include <inttypes.h>

#include "field.h"
#include "top_impl.h"

void top_print_line(const struct top *t) {
	const struct top_view *v = &t->view;
	printf("nodes %zu/%zu voting %" PRId64 "/%" PRId64, v->answering, t->count, v->voting,
		v->masters);
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		printf(v->rates[i] < 0 ? " %s/s -" : " %s/s %.0f",
			top_total_name((enum top_total)i), v->rates[i]);
	}
	printf(" waiting %" PRId64, v->waiting);
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		if (v->lists[i].count > 0) {
			const struct top_row *row = &v->lists[i].rows[0];
			printf(" %s ", top_lists[i].list);
			output_bytes(stdout, (struct pawl_bytes){ row->key, row->key_size }, 0);
			if (top_lists[i].time) {
				printf(" %s", output_duration(row->number));
			} else {
				printf(" %" PRId64, row->number);
			}
		}
	}
	for (size_t i = 0; i < t->count; i++) {
		const char *word = top_node_word(&t->nodes[i]);
		if (*word != 'o') {
			printf(" %s: %s", output_name(t->nodes[i].endpoint), word);
		}
	}
	putchar('\n');
}

static json_t *rates_json(const double rates[TOP_TOTALS]) {
	json_t *object = json_object();
	for (unsigned i = 0; i < TOP_TOTALS; i++) {
		output_json_set(object, top_total_name((enum top_total)i),
			rates[i] < 0 ? json_null() : json_real(rates[i]));
	}
	return object;
}

static json_t *node_json(const struct top_node *n) {
	json_t *object = json_object();
	const bool answers = !n->trouble[0] && n->said;
	output_json_set(object, "endpoint", json_string(n->endpoint));
	output_json_set(object, "answers", json_boolean(answers));
	output_json_set(object, "word", json_string(top_node_word(n)));
	if (!answers) {
		output_json_set(object, "trouble", json_string(n->trouble));
		return object;
	}
	output_json_set(object, "node", json_string(n->said->node));
	output_json_set(object, "answer_us", json_integer(n->took));
	output_json_set(object, "rates", rates_json(n->rates));
	output_json_set(object, "waiting", json_integer(field_int(n->said->tree, "waiting", 0)));
	if (n->status) {
		output_json_set(object, "role", json_string(field_text(n->status->tree, "role")));
		output_json_set(object, "state", json_string(field_text(n->status->tree, "state")));
		output_json_set(object, "ready",
			json_boolean(field_bool(n->status->tree, "ready")));
	}
	return object;
}

static json_t *list_json(const struct top_view *v, unsigned list) {
	json_t *array = json_array();
	for (size_t i = 0; i < v->lists[list].count; i++) {
		const struct top_row *row = &v->lists[list].rows[i];
		json_t *one = json_object();
		output_json_bytes(one, "key", (struct pawl_bytes){ row->key, row->key_size });
		if (row->owner_size > 0) {
			output_json_bytes(one, "owner",
				(struct pawl_bytes){ row->owner, row->owner_size });
		}
		output_json_set(one, top_lists[list].number, json_integer(row->number));
		if (json_array_append_new(array, one) != 0) {
			break;
		}
	}
	return array;
}

void top_print_json(const struct top *t) {
	const struct top_view *v = &t->view;
	json_t *object = json_object(), *nodes = json_array();
	for (size_t i = 0; i < t->count; i++) {
		if (json_array_append_new(nodes, node_json(&t->nodes[i])) != 0) {
			break;
		}
	}
	output_json_set(object, "nodes", nodes);
	output_json_set(object, "voting", json_integer(v->voting));
	output_json_set(object, "quorum", json_integer(v->quorum));
	output_json_set(object, "masters", json_integer(v->masters));
	output_json_set(object, "rates", rates_json(v->rates));
	output_json_set(object, "waiting", json_integer(v->waiting));
	for (unsigned i = 0; i < TOP_SORTS; i++) {
		output_json_set(object, top_lists[i].list, list_json(v, i));
	}
	output_json(object);
}
