/* explain.c: what each master says about a key. */
#include "state.h"

void explain_start(struct core *core, struct op *op) {
	op_reply_all(core, op, PAWL_EBADREQUEST);
	op_free(core, op);
}

void explain_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	(void)from;
	(void)m;
	explain_judge(core, op, false);
}

void explain_judge(struct core *core, struct op *op, bool over) {
	(void)core;
	(void)op;
	(void)over;
}
