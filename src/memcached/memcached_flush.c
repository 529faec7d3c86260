/* memcached_flush.c: flush_all, which ends all locks, and which only pawld --dev serves. The keys
 * come in lists of the client protocol, and the locks of each list are ended before the next one is
 * asked for. */
#include "memcached_impl.h"

/* How many lists one command may read, each of which has TASK_KEYS_MAX keys at most. */
#define FLUSH_LISTS_MAX 1000

static enum dialect_step flush_list(struct memcached *m) {
	(void)task_list(&m->tasks, TASK_KEYS_MAX);
	m->flush_lists++;
	return DIALECT_ASK;
}

enum dialect_step memcached_flush_all(const struct memcached_call *call) {
	struct memcached *m = call->memcached;
	const size_t words = call->command->count - m->noreply;
	if (!m->server->settings.dev) {
		return memcached_refused(call, "only pawld --dev serves flush_all: delete locks by "
			"name");
	}
	if (words > 2 || (words == 2 && !mctext_is(call->command->words[1], "0"))) {
		return memcached_wrong(call, "Pawl knows no flush_all that waits");
	}
	m->flush_lists = 0;
	return flush_list(m);
}

static enum dialect_step flush_end(struct memcached *m, struct mctext_writer *w,
	const char *said) {
	m->flush_lists = 0;
	mctext_line(w, said);
	return DIALECT_DONE;
}

enum dialect_step memcached_flush_listed(struct memcached *m,
	const struct client_response *response, struct mctext_writer *w) {
	static const struct memcached_plan plan = { .act.mine = TASK_DELETE };
	struct slice keys[TASK_KEYS_MAX];
	size_t count = 0;
	if (response->error) {
		m->flush_lists = 0;
		memcached_refuse(w, response);
		return DIALECT_DONE;
	}
	for (; count < response->count && count < TASK_KEYS_MAX; count++) {
		keys[count] = response->entries[count].key;
	}
	if (count == 0) {
		return flush_end(m, w, "OK");
	}
	if (m->flush_lists >= FLUSH_LISTS_MAX) {
		return flush_end(m, w, "SERVER_ERROR there are too many locks for one flush_all");
	}
	m->plan = plan;
	m->refused = NULL;
	struct task *task = task_new(&m->tasks, &m->plan.act, slice_of(NULL, 0), keys, count,
		slice_of(NULL, 0), slice_of(NULL, 0));
	if (!task) {
		return DIALECT_BROKEN;
	}
	task_begin(&m->tasks, task);
	return DIALECT_ASK;
}

enum dialect_step memcached_flush_ended(struct memcached *m) {
	return flush_list(m);
}
