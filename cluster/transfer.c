/* transfer.c: a lock is handed over to a waiter that its holder names (section 5, Succession). */
#include "state.h"

void transfer_start(struct core *core, struct op *op) {
	op_reply_all(core, op, PAWL_EBADREQUEST);
	op_free(core, op);
}

void transfer_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	(void)from;
	(void)m;
	transfer_judge(core, op, false);
}

void transfer_judge(struct core *core, struct op *op, bool over) {
	(void)core;
	(void)op;
	(void)over;
}

void transfer_nominate(struct core *core, uint32_t from, const struct message *m) {
	(void)core;
	(void)from;
	(void)m;
}

void transfer_hand_over(struct core *core, uint32_t from, const struct message *m) {
	(void)core;
	(void)from;
	(void)m;
}
