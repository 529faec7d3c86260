/* replies.c: copies of what masters reported: records (section 3, and for a break), or entries of a
 * queue. */
#include "coordinator.h"

struct record *op_reply_add(struct core *core, struct op *op, uint32_t from,
	const struct message *m) {
	struct reports *reports = op_reports(op);
	if (reports->replies_count == reports->replies_capacity) {
		uint32_t old = reports->replies_capacity, wanted = old ? 2 * old : 8;
		struct master_reply *more = alloc_resize(&core->alloc, reports->replies,
			old * sizeof *more, wanted * sizeof *more);
		if (more == NULL) {
			return NULL;
		}
		reports->replies = more;
		reports->replies_capacity = wanted;
	}
	struct record *r = record_new(core, m);
	if (r == NULL) {
		return NULL;
	}
	r->end = instant_add(core->now, span_from_us(m->left_us));
	reports->replies[reports->replies_count++] = (struct master_reply){ .record = r,
		.from = from, .counts = (m->flags & FLAG_COUNTS) != 0, .node = m->by,
		.flags = m->flags };
	return r;
}

static bool before(const struct master_reply *a, const struct master_reply *b) {
	int c = id128_compare(a->record->lock_id, b->record->lock_id);
	return c != 0 ? c < 0 : a->from < b->from;
}

static void swap(struct master_reply *a, struct master_reply *b) {
	struct master_reply kept = *a;
	*a = *b;
	*b = kept;
}

static void sift(struct master_reply *found, uint32_t root, uint32_t count) {
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		child += child + 1 < count && before(&found[child], &found[child + 1]);
		if (!before(&found[root], &found[child])) {
			return;
		}
		swap(&found[root], &found[child]);
	}
}

/* Brings the reports of each lock_id together. It is a heapsort because a key may have many
 * holders, and a heapsort needs no memory. */
void op_replies_sort(struct op *op) {
	struct reports *reports = op_reports(op);
	for (uint32_t i = reports->replies_count / 2; i-- > 0;) {
		sift(reports->replies, i, reports->replies_count);
	}
	for (uint32_t last = reports->replies_count; last-- > 1;) {
		swap(&reports->replies[0], &reports->replies[last]);
		sift(reports->replies, 0, last);
	}
}

void op_replies_clear(struct core *core, struct op *op) {
	struct reports *reports = op_reports(op);
	for (uint32_t i = 0; i < reports->replies_count; i++) {
		record_free(core, reports->replies[i].record);
	}
	alloc_free(&core->alloc, reports->replies,
		reports->replies_capacity * sizeof *reports->replies);
	reports->replies = NULL;
	reports->replies_count = reports->replies_capacity = 0;
}
