/* task_read.c: what a read has said of a key, as the commands of a dialect compare and show it. */
#include "task_impl.h"

#include "check.h"

uint64_t task_unique_of(uint64_t token, struct ballot value) {
	return value.boot & BALLOT_FIRST ? token : value.clock;
}

uint64_t task_unique(const struct client_entry *entry) {
	return task_unique_of(entry->token, entry->value_seq);
}

/* Returns for how much longer the holder may count on its lock, as it is shown: what a quorum has
 * of its lease for certain, less the slack. */
static span_ns task_left(const struct task *task, const struct client_entry *entry) {
	return entry->at_least - task->slack;
}

const struct client_entry *task_holder(const struct task *task,
	const struct client_response *response) {
	const struct client_entry *entry = &response->entry;
	bool held = response->held && (response->present & CLIENT_RESULT_ENTRY)
		&& !entry->closing && task_left(task, entry) >= SPAN_MS;
	return held ? entry : NULL;
}

bool task_is_same(const struct task *task, const struct client_entry *entry) {
	switch (task->plan.compares) {
	case TASK_ANY:
		return true;
	case TASK_VALUE:
		return task->value.size > 0 && slice_equal(entry->value, task->value);
	case TASK_UNIQUE:
		return task_unique(entry) == task->unique;
	}
	CHECK(false);
}

void task_note(const struct task_runner *runner, const struct client_entry *entry) {
	const struct dialect_node *node = runner->node;
	struct task *task = runner->task;
	task->left = entry ? task_left(task, entry) : 0;
	/* Its node extends it long before half of its lease is over. */
	task->endless = entry && entry->label.without_end
		&& entry->at_least > node->cluster->max_lease / 2;
	task->own = entry
		&& slice_equal(entry->identity, node->identity(node->ctx, runner->number));
	task->read_token = entry ? entry->token : 0;
	task->orders[task->at] = entry ? entry->order : 0;
	task->settled[task->at] = entry && entry->order_settled;
	task->certain[task->at] = entry ? entry->at_least : 0;
	task->writes[task->at] = entry ? entry->value_seq : (struct ballot){ 0 };
}
