/* ask.c: asking a holder to let go: news for those who watch the key. */
#include "state.h"

void ask_start(struct core *core, struct op *op) {
	op_reply_all(core, op, PAWL_EBADREQUEST);
	op_free(core, op);
}

void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	(void)from;
	(void)m;
	ask_judge(core, op, false);
}

void ask_judge(struct core *core, struct op *op, bool over) {
	(void)core;
	(void)op;
	(void)over;
}

void ask_heard(struct core *core, uint32_t from, const struct message *m) {
	(void)core;
	(void)from;
	(void)m;
}
