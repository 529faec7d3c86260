/* memcached_key.c: the classic commands. Those that act on a lock compare and act by its lock_id
 * (struct task_plan). */
#include "memcached_impl.h"

#include <stdio.h>

/* How memcached numbers its versions; clients decide by it what they may send. */
#define MEMCACHED_VERSION "1.6.18"

static const struct slice *words(const struct memcached_call *call) {
	return call->command->words;
}

/* ---- reading ---- */

static enum dialect_step key_get(const struct memcached_call *call, enum memcached_show show) {
	const struct memcached_plan plan = { .show = show };
	const struct memcached_work work = { .keys = words(call) + 1,
		.count = call->command->count - 1 };
	return memcached_begin(call, &plan, &work);
}

enum dialect_step memcached_get(const struct memcached_call *call) {
	return key_get(call, MEMCACHED_SHOW_VALUE);
}

enum dialect_step memcached_gets(const struct memcached_call *call) {
	return key_get(call, MEMCACHED_SHOW_UNIQUE);
}

/* Gets, and renews. */
static enum dialect_step key_gat(const struct memcached_call *call, enum memcached_show show) {
	const struct memcached_plan plan = { .act.mine = TASK_EXTEND, .show = show };
	struct memcached_work work = { .keys = words(call) + 2,
		.count = call->command->count - 2 };
	return memcached_time(call, words(call)[1], &work) ? memcached_begin(call, &plan, &work)
		: DIALECT_DONE;
}

enum dialect_step memcached_gat(const struct memcached_call *call) {
	return key_gat(call, MEMCACHED_SHOW_VALUE);
}

enum dialect_step memcached_gats(const struct memcached_call *call) {
	return key_gat(call, MEMCACHED_SHOW_UNIQUE);
}

/* ---- storing ---- */

const struct memcached_plan memcached_add_plan = {
	.act.takes = true,
	.words = { "STORED", "NOT_STORED", "NOT_STORED", "STORED" }
};

/* Whoever holds the key with this value renews, which is the heartbeat of some. */
const struct memcached_plan memcached_set_plan = {
	.act.mine = TASK_EXTEND, .act.other = TASK_REFUSE, .act.free = TASK_TAKE,
	.act.compares = TASK_VALUE,
	.show = MEMCACHED_SHOW_FLAGS,
	.words = { "STORED", "STORED", NULL, NULL }
};

const struct memcached_plan memcached_replace_plan = {
	.act.mine = TASK_EXTEND, .act.other = TASK_REFUSE, .act.compares = TASK_VALUE,
	.show = MEMCACHED_SHOW_FLAGS,
	.words = { "STORED", "NOT_STORED", "NOT_STORED", "NOT_STORED" }
};

const struct memcached_plan memcached_cas_plan = {
	.act.mine = TASK_REPLACE, .act.compares = TASK_UNIQUE,
	.show = MEMCACHED_SHOW_FLAGS,
	.words = { "STORED", "NOT_FOUND", "EXISTS", "NOT_FOUND" }
};

/* Where locks are overwritten, set takes one from its holder, and replace gives it another value.
 * Elsewhere both only renew the lock with this value: the client may be late, and another holder of
 * its identity have the key. */
struct memcached_plan memcached_plan_of(const struct memcached *m,
	const struct memcached_plan *plan) {
	struct memcached_plan own = *plan;
	if (!m->server->settings.overwrites) {
		return own;
	}
	if (plan == &memcached_set_plan) {
		own.act.other = TASK_OVERWRITE;
	} else if (plan == &memcached_replace_plan) {
		own.act.compares = TASK_ANY;
		own.act.mine = TASK_REPLACE;
	}
	return own;
}

/* NAME key flags exptime bytes */
static enum dialect_step key_store(const struct memcached_call *call,
	const struct memcached_plan *plan, uint64_t unique) {
	struct memcached_work work = { .keys = words(call) + 1, .count = 1,
		.value = call->command->data, .fresh = call->command->data, .unique = unique };
	uint64_t flags;
	if (!mctext_unsigned(words(call)[2], &flags) || flags > UINT32_MAX) {
		return memcached_wrong(call, "the client flags are a number of 32 bits");
	}
	call->memcached->flags = (uint32_t)flags;
	return memcached_time(call, words(call)[3], &work) ? memcached_begin(call, plan, &work)
		: DIALECT_DONE;
}

enum dialect_step memcached_add(const struct memcached_call *call) {
	return key_store(call, &memcached_add_plan, 0);
}

enum dialect_step memcached_set(const struct memcached_call *call) {
	const struct memcached_plan plan = memcached_plan_of(call->memcached,
		&memcached_set_plan);
	return key_store(call, &plan, 0);
}

enum dialect_step memcached_replace(const struct memcached_call *call) {
	const struct memcached_plan plan = memcached_plan_of(call->memcached,
		&memcached_replace_plan);
	return key_store(call, &plan, 0);
}

enum dialect_step memcached_cas(const struct memcached_call *call) {
	uint64_t unique;
	return mctext_unsigned(words(call)[5], &unique)
		? key_store(call, &memcached_cas_plan, unique)
		: memcached_wrong(call, "the unique is a number of 64 bits, which gets has told");
}

/* ---- renewing and ending ---- */

enum dialect_step memcached_touch(const struct memcached_call *call) {
	static const struct memcached_plan plan = { .act.mine = TASK_EXTEND,
		.words = { "TOUCHED", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND" } };
	struct memcached_work work = { .keys = words(call) + 1, .count = 1 };
	return memcached_time(call, words(call)[2], &work) ? memcached_begin(call, &plan, &work)
		: DIALECT_DONE;
}

/* delete key [0] [noreply]; some clients send the 0, which had a meaning once. Whoever deletes a
 * lock without naming its unique takes it from its holder, unless it is its own. */
enum dialect_step memcached_delete(const struct memcached_call *call) {
	static const struct memcached_plan plan = { .act.mine = TASK_DELETE,
		.words = { "DELETED", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND" } };
	const struct memcached_work work = { .keys = words(call) + 1, .count = 1 };
	const size_t extra = call->command->count - 2 - call->memcached->noreply;
	return extra == 0 || (extra == 1 && mctext_is(words(call)[2], "0"))
		? memcached_begin(call, &plan, &work)
		: memcached_wrong(call, "write delete KEY [noreply]");
}

enum dialect_step memcached_no_number(const struct memcached_call *call) {
	return memcached_refused(call, "a lock of Pawl is no counter: keep numbers elsewhere");
}

enum dialect_step memcached_no_piece(const struct memcached_call *call) {
	return memcached_refused(call, "Pawl does not add to the value of a lock: use replace or "
		"cas with the whole value");
}

/* ---- the server ---- */

enum dialect_step memcached_stats(const struct memcached_call *call) {
	const struct dialect_node *node = call->memcached->node;
	struct mctext_writer *w = call->w;
	/* Of the parts that can be asked for by name, Pawl has none. */
	if (call->command->count == 1) {
		mctext_line(w, "STAT version " MEMCACHED_VERSION);
		mctext_line(w, "STAT pawl_version " PAWL_VERSION);
		mctext_put_number(w, "STAT time ", (uint64_t)node->unix_ms(node->ctx) / 1000);
		mctext_line(w, "");
		mctext_line(w, "STAT pointer_size 64");
	}
	mctext_line(w, "END");
	return DIALECT_DONE;
}

enum dialect_step memcached_verbosity(const struct memcached_call *call) {
	mctext_line(call->w, "OK");
	return DIALECT_DONE;
}

enum dialect_step memcached_version(const struct memcached_call *call) {
	mctext_line(call->w, "VERSION " MEMCACHED_VERSION);
	return DIALECT_DONE;
}

enum dialect_step memcached_quit(const struct memcached_call *call) {
	(void)call;
	return DIALECT_CLOSE;
}
