/* found.c: copies of what masters reported: records (section 3, and for a break), or entries of a queue. */
#include "state.h"

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

void op_found_clear(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < op->found_count; i++) {
		record_free(core, op->found[i].record);
	}
	alloc_free(&core->alloc, op->found, op->found_capacity * sizeof *op->found);
	op->found = NULL;
	op->found_count = op->found_capacity = 0;
}
