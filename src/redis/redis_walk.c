/* redis_walk.c: the commands that look at all keys: KEYS, DBSIZE, and those that delete them, which
 * only pawld --dev serves. The keys come in lists of the client protocol, one after the other. */
#include "redis_impl.h"

#include <stdio.h>

#include "check.h"
#include "pawl/error.h"

/* How many keys are asked for at once, and how many lists one command may read. */
#define WALK_AT_ONCE 1000
#define WALK_LISTS_MAX 100
/* How many keys are deleted at once. */
#define WALK_DELETES TASK_KEYS_MAX

/* ---- patterns ---- */

/* Reads a set of characters in brackets, of which `*at` is the first. Returns whether it has the
 * byte, and moves *at behind the closing bracket, or to the end. */
static bool glob_set(struct slice pattern, size_t *at, uint8_t byte) {
	bool has = false, negated = *at < pattern.size && pattern.data[*at] == '^';
	size_t i = *at + negated;
	while (i < pattern.size && pattern.data[i] != ']') {
		i += pattern.data[i] == '\\' && i + 1 < pattern.size;
		const uint8_t first = pattern.data[i];
		uint8_t last = first;
		if (i + 2 < pattern.size && pattern.data[i + 1] == '-'
			&& pattern.data[i + 2] != ']') {
			last = pattern.data[i + 2];
			i += 2;
		}
		has = has || (byte >= (first < last ? first : last)
			&& byte <= (first < last ? last : first));
		i++;
	}
	*at = i < pattern.size ? i + 1 : i;
	return has != negated;
}

/* Returns whether the part of the pattern at *at, which is no star, is this byte, and moves *at
 * behind the part. */
static bool glob_one(struct slice pattern, size_t *at, uint8_t byte) {
	uint8_t sign = pattern.data[(*at)++];
	if (sign == '[') {
		return glob_set(pattern, at, byte);
	}
	if (sign == '\\' && *at < pattern.size) {
		sign = pattern.data[(*at)++];
		return sign == byte;
	}
	return sign == '?' || sign == byte;
}

bool redis_glob(struct slice pattern, struct slice text) {
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;
	while (t < text.size) {
		size_t next = p;
		if (p < pattern.size && pattern.data[p] == '*') {
			star = ++p;
			from = t;
		} else if (p < pattern.size && glob_one(pattern, &next, text.data[t])) {
			p = next;
			t++;
		} else if (star != SIZE_MAX) {
			/* The last star takes one byte more. */
			p = star;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.size && pattern.data[p] == '*') {
		p++;
	}
	return p == pattern.size;
}

/* ---- the walk ---- */

static enum dialect_step walk_end(struct redis *r) {
	buffer_done(&r->walk.pattern);
	buffer_done(&r->walk.after);
	buffer_done(&r->walk.shown);
	r->walk.kind = REDIS_WALKS_NOT;
	return DIALECT_DONE;
}

void redis_walk_done(struct redis *r) {
	if (r->walk.kind != REDIS_WALKS_NOT) {
		(void)walk_end(r);
	}
}

static enum dialect_step walk_list(struct redis *r) {
	struct core_request *core = task_list(&r->tasks, WALK_AT_ONCE);
	core->key = r->walk.all ? slice_of(NULL, 0) : redis_prefix(r, r->walk.prefix);
	core->after = buffer_slice(&r->walk.after);
	r->walk.lists++;
	return DIALECT_ASK;
}

static enum dialect_step walk_begin(const struct redis_call *call, enum redis_walk_kind kind,
	bool all, struct slice pattern) {
	struct redis *r = call->redis;
	r->walk = (struct redis_walk){ .kind = kind, .all = all };
	buffer_init(&r->walk.pattern, &r->alloc, RESP_ARGUMENT_BYTES_MAX);
	buffer_init(&r->walk.after, &r->alloc, KEY_MAX);
	buffer_init(&r->walk.shown, &r->alloc, TASK_SHOWN_MAX);
	if (buffer_append(&r->walk.pattern, pattern.data, pattern.size) != 0) {
		(void)walk_end(r);
		return DIALECT_BROKEN;
	}
	return walk_list(r);
}

/* Returns whether a key belongs to a database other than the first. */
static bool walk_is_elsewhere(struct slice key) {
	size_t i = 2;
	if (key.size < 4 || key.data[0] != 'd' || key.data[1] != 'b') {
		return false;
	}
	while (i < key.size && i < 4 && key.data[i] >= '0' && key.data[i] <= '9') {
		i++;
	}
	return i > 2 && i < key.size && key.data[i] == ':';
}

/* Returns the key as the database has it. `own` says whether it belongs to the database. */
static struct slice walk_key(struct redis *r, struct slice key, bool *own) {
	const struct slice prefix = redis_prefix(r, r->walk.prefix);
	const bool begins = slice_has_prefix(key, prefix);
	*own = r->walk.all || (begins && (prefix.size > 0 || !walk_is_elsewhere(key)));
	return r->walk.all || !*own ? key
		: slice_of(key.data + prefix.size, key.size - prefix.size);
}

/* ---- deleting ---- */

static enum dialect_step walk_again(struct redis *r, struct resp_writer *w) {
	(void)w;
	return walk_list(r);
}

static enum dialect_step walk_delete(struct redis *r, const struct slice *keys, size_t count) {
	static const struct redis_plan plan = { .act.mine = TASK_DELETE, .then = walk_again };
	r->plan = plan;
	struct task *task = task_new(&r->tasks, &r->plan.act, slice_of(NULL, 0), keys, count,
		slice_of(NULL, 0), slice_of(NULL, 0));
	if (!task) {
		(void)walk_end(r);
		return DIALECT_BROKEN;
	}
	task_begin(&r->tasks, task);
	return DIALECT_ASK;
}

/* ---- what a list brings ---- */

static enum dialect_step walk_too_many(struct redis *r, struct resp_writer *w) {
	resp_error(w, "OOM", slice_str("there are too many keys for one reply"));
	return walk_end(r);
}

static enum dialect_step walk_finish(struct redis *r, struct resp_writer *w) {
	switch (r->walk.kind) {
	case REDIS_WALKS_NOT:
		CHECK(false);
	case REDIS_WALKS_KEYS:
		resp_array(w, (size_t)r->walk.count);
		resp_raw(w, buffer_slice(&r->walk.shown));
		break;
	case REDIS_WALKS_SIZE:
		resp_number(w, r->walk.count);
		break;
	case REDIS_WALKS_DELETES:
		resp_status(w, "OK");
		break;
	}
	return walk_end(r);
}

enum dialect_step redis_walk_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w) {
	struct resp_writer shown = { .out = &r->walk.shown, .version = r->version };
	struct slice deletes[WALK_DELETES];
	size_t deleted = 0;
	if (response->error) {
		redis_refuse(w, response);
		return walk_end(r);
	}
	for (size_t i = 0; i < response->count && deleted < WALK_DELETES; i++) {
		bool own;
		const struct slice whole = response->entries[i].key;
		const struct slice key = walk_key(r, whole, &own);
		if (!own || (r->walk.kind == REDIS_WALKS_KEYS
				&& !redis_glob(buffer_slice(&r->walk.pattern), key))) {
			continue;
		}
		r->walk.count++;
		if (r->walk.kind == REDIS_WALKS_KEYS) {
			resp_bulk(&shown, key);
		} else if (r->walk.kind == REDIS_WALKS_DELETES) {
			deletes[deleted++] = whole;
		}
	}
	if (shown.error || r->walk.lists >= WALK_LISTS_MAX) {
		return walk_too_many(r, w);
	}
	if (deleted > 0) {
		return walk_delete(r, deletes, deleted);
	}
	if (!response->more || response->count == 0) {
		return walk_finish(r, w);
	}
	buffer_clear(&r->walk.after);
	const struct slice last = response->entries[response->count - 1].key;
	return buffer_append(&r->walk.after, last.data, last.size) == 0 ? walk_list(r)
		: DIALECT_BROKEN;
}

/* ---- the commands ---- */

/* Returns false if the command was refused. */
static bool walk_allowed(const struct redis_call *call) {
	if (!call->redis->server->settings.dev) {
		(void)redis_unable(call, "only pawld --dev serves KEYS, FLUSHDB and FLUSHALL: "
			"delete locks by name");
	}
	return call->redis->server->settings.dev;
}

enum dialect_step redis_keys(const struct redis_call *call) {
	if (call->command->arguments[1].size > KEY_MAX) {
		/* Each of its bytes may be compared with each byte of a thousand keys in one
		 * turn. */
		return redis_unable(call, "a pattern has at most 512 bytes, as a key");
	}
	return walk_allowed(call) ? walk_begin(call, REDIS_WALKS_KEYS, false,
		call->command->arguments[1]) : DIALECT_DONE;
}

enum dialect_step redis_dbsize(const struct redis_call *call) {
	return walk_begin(call, REDIS_WALKS_SIZE, false, slice_of(NULL, 0));
}

enum dialect_step redis_flush(const struct redis_call *call) {
	const bool all = resp_word_is(call->command->arguments[0], "FLUSHALL");
	return walk_allowed(call) ? walk_begin(call, REDIS_WALKS_DELETES, all, slice_of(NULL, 0))
		: DIALECT_DONE;
}
