/* extend_numbers.c: which permit numbers of a semaphore an extension has lengthened. */
#include "operations.h"

struct permits extend_numbers(const struct core *core, const struct op *op, bool had,
	uint32_t perhaps) {
	struct permits enough = { { 0, 0 } };
	for (uint32_t n = 0; n < op->terms.of; n++) {
		uint32_t masters = 0;
		for (uint32_t i = 0; i < core->masters; i++) {
			const struct vote *v = &op->votes[i];
			bool has = permits_has(had ? v->had : v->set, n) &&
				v->token >= op_extend(op)->best_token &&
				v->binding >= op->terms.binding;
			masters += has || ((perhaps >> v->state) & 1);
		}
		if (masters >= core->quorum) {
			enough.w[n / 64] |= (uint64_t)1 << (n % 64);
		}
	}
	return enough;
}
