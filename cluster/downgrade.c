/* downgrade.c: an exclusive lock becomes a shared one without being let go (section 10). */
#include "state.h"

void downgrade_start(struct core *core, struct op *op) {
	op_reply_all(core, op, PAWL_EBADREQUEST);
	op_free(core, op);
}

void downgrade_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	(void)from;
	(void)m;
	downgrade_judge(core, op, false);
}

void downgrade_judge(struct core *core, struct op *op, bool over) {
	(void)core;
	(void)op;
	(void)over;
}

void master_downgrade(struct core *core, uint32_t from, const struct message *m) {
	(void)core;
	(void)from;
	(void)m;
}
