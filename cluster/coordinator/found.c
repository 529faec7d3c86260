/* found.c: copies of what masters reported: records (section 3, and for a break), or entries of a queue. */
#include "coordinator.h"

struct record *op_found(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (op->found_count == op->found_capacity) {
		uint32_t old = op->found_capacity, wanted = old ? 2 * old : 8;
		struct found *more = alloc_resize(&core->alloc, op->found, old * sizeof *more, wanted * sizeof *more);
		if (more == NULL) {
			return NULL;
		}
		op->found = more;
		op->found_capacity = wanted;
	}
	struct record *r = record_new(core, m);
	if (r == NULL) {
		return NULL;
	}
	r->end = instant_add(core->now, span_from_us(m->left_us));
	op->found[op->found_count++] = (struct found){ .record = r, .from = from, .counts = (m->flags & FLAG_COUNTS) != 0, .node = m->by, .flags = m->flags };
	return r;
}

static bool before(const struct found *a, const struct found *b) {
	int c = memcmp(a->record->lock_id.b, b->record->lock_id.b, sizeof a->record->lock_id.b);
	return c != 0 ? c < 0 : a->from < b->from;
}

static void swap(struct found *a, struct found *b) {
	struct found kept = *a;
	*a = *b;
	*b = kept;
}

static void sift(struct found *found, uint32_t root, uint32_t count) {
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		child += child + 1 < count && before(&found[child], &found[child + 1]);
		if (!before(&found[root], &found[child])) {
			return;
		}
		swap(&found[root], &found[child]);
	}
}

/* The reports of one lock_id together. Heapsort: a key may have many holders, and it needs no memory. */
void op_found_sort(struct op *op) {
	for (uint32_t i = op->found_count / 2; i-- > 0;) {
		sift(op->found, i, op->found_count);
	}
	for (uint32_t last = op->found_count; last-- > 1;) {
		swap(&op->found[0], &op->found[last]);
		sift(op->found, 0, last);
	}
}

void op_found_clear(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < op->found_count; i++) {
		record_free(core, op->found[i].record);
	}
	alloc_free(&core->alloc, op->found, op->found_capacity * sizeof *op->found);
	op->found = NULL;
	op->found_count = op->found_capacity = 0;
}
