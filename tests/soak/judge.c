/* judge.c: reads the histories of clients of real nodes and judges them by the simulator's checker.
 *
 *     judge FILE...
 *
 * It prints counts as "name number" lines. A violation ends it with status 1. All processes ran on
 * one machine, so that its clock is true time; the world that the checker asks is the file itself.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "checker_impl.h"
#include "check.h"
#include "history.h"
#include "pawl/error.h"

struct client {
	struct sim_actor actor;
	/* The checker's ids of its requests, by the client's own count. */
	uint64_t *ops;
	size_t op_count;
};

/* A lock_id and its number. */
struct named {
	char id[HISTORY_LOCK];
	uint32_t lock;
};

static struct {
	struct history_event *events;
	/* `now` is the event that is being judged. */
	size_t event_count, event_capacity, now;
	struct client *clients;
	size_t client_count;
	/* A hash table with open addressing. */
	struct named *names;
	size_t name_capacity;
	uint64_t ids, acquired, refused, extended, updated, mismatched, read, released, lost,
		unknown;
	struct prng prng;
	/* It is written and never read: the history tells more. */
	struct sim_trace trace;
	struct checker checker;
} judge;

/* ---- the world, as far as the checker asks about it ---- */

int64_t sim_now(const struct sim *sim) {
	(void)sim;
	return judge.events[judge.now].at;
}

struct instant sim_actor_clock(const struct sim *sim, const struct sim_actor *actor) {
	(void)actor;
	return (struct instant){ sim_now(sim), sim_now(sim) };
}

struct prng *sim_prng(struct sim *sim) {
	(void)sim;
	return &judge.prng;
}

struct sim_trace *sim_trace(struct sim *sim) {
	(void)sim;
	return &judge.trace;
}

void checker_history(struct checker *c, uint64_t id, const struct op_state *op,
	const struct sim_reply *reply, uint32_t value) {
	(void)c;
	(void)id;
	(void)op;
	(void)reply;
	(void)value;
}

void checker_history_believed(struct checker *c, uint32_t client) {
	(void)c;
	(void)client;
}

void checker_history_forgot(struct checker *c, uint32_t client, uint32_t lock) {
	(void)c;
	(void)client;
	(void)lock;
}

bool checker_bears(struct checker *c) {
	(void)c;
	return false;
}

void checker_violation(struct checker *c, const char *check, uint32_t key, const char *format,
	...) {
	va_list args;
	(void)c;
	fprintf(stderr, "VIOLATION of %s at %.6f s, key %" PRIu32 "\n  ", check,
		(double)sim_now(NULL) / 1e9, key);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n  what clients did with the key until then (kind, what, "
		"time, left, client, op, key, lock_id, error, token, expect, value, held):\n");
	size_t begin = judge.now + 1, left = 80;
	while (begin > 0 && left > 0) {
		left -= judge.events[--begin].key == key;
	}
	for (; begin <= judge.now; begin++) {
		if (judge.events[begin].key == key) {
			history_write(stderr, &judge.events[begin]);
		}
	}
	exit(1);
}

/* ---- names ---- */

static void *grown(void *p, size_t *capacity, size_t wanted, size_t size) {
	size_t old = *capacity;
	if (wanted <= old) {
		return p;
	}
	*capacity = 2 * wanted + 64;
	p = realloc(p, *capacity * size);
	CHECK(p != NULL);
	memset((char *)p + old * size, 0, (*capacity - old) * size);
	return p;
}

static struct named *name_find(const char *id) {
	size_t mask = judge.name_capacity - 1, i = 0;
	for (const char *c = id; *c; c++) {
		i = i * 31 + (size_t)*c;
	}
	for (i &= mask; judge.names[i].id[0] && strcmp(judge.names[i].id, id) != 0;
		i = (i + 1) & mask) {
	}
	return &judge.names[i];
}

/* TRACE_NONE: nobody here asked for this lock_id. */
static uint32_t lock_of(const struct history_event *e) {
	const struct named *n = name_find(e->lock);
	return n->id[0] ? n->lock : TRACE_NONE;
}

static uint32_t lock_new(const struct history_event *e) {
	struct named *n = name_find(e->lock);
	if (!n->id[0]) {
		memcpy(n->id, e->lock, sizeof n->id);
		n->lock = checker_lock_new(&judge.checker, e->key, e->value);
	}
	return n->lock;
}

/* ---- events ---- */

static enum core_op op_of(const struct history_event *e) {
	switch ((enum history_what)e->what) {
	case HISTORY_ACQUIRE:
		return CORE_ACQUIRE;
	case HISTORY_EXTEND:
		return CORE_EXTEND;
	case HISTORY_UPDATE:
		return CORE_UPDATE;
	case HISTORY_RELEASE:
		return CORE_RELEASE;
	case HISTORY_READ:
		return CORE_GET;
	}
	/* history_read knows the letters. */
	CHECK(false);
	return CORE_GET;
}

static void invoked(struct client *client, const struct history_event *e) {
	struct checker *c = &judge.checker;
	struct checker_op op = { .op = op_of(e), .client = e->client, .key = e->key,
		.lock = TRACE_NONE, .expect = CHECKER_NO_VALUE, .value = e->value, .quorum = true };
	if (op.op == CORE_ACQUIRE) {
		op.lock = lock_new(e);
	} else if (op.op != CORE_GET) {
		op.lock = lock_of(e);
		CHECK(op.lock != TRACE_NONE);
		op.expect = e->expect;
	}
	uint64_t id = judge.ids++;
	client->ops = grown(client->ops, &client->op_count, e->op + 1u, sizeof *client->ops);
	client->ops[e->op] = id;
	checker_invoked(c, id, &op);
	struct op_state *state = checker_op_of(c, id);
	if (state->believed_lock != TRACE_NONE && !checker_updates_left(c, state->believed_lock)) {
		/* There are more reads of this value than the search can take. */
		state->clean = false;
	}
}

/* What a node refused may still have happened at another one that was asked before. Only these
 * answers say what was done. */
static int error_known(int error) {
	return error == 0 || error == PAWL_EMISMATCH ? error : PAWL_EUNSURE;
}

static void tally(const struct history_event *e) {
	bool ok = e->error == 0;
	switch ((enum history_what)e->what) {
	case HISTORY_ACQUIRE:
		judge.acquired += ok;
		judge.refused += !ok;
		return;
	case HISTORY_EXTEND:
		judge.extended += ok;
		return;
	case HISTORY_UPDATE:
		judge.updated += ok;
		judge.mismatched += e->error == PAWL_EMISMATCH;
		judge.unknown += e->error == PAWL_EUNSURE;
		return;
	case HISTORY_RELEASE:
		judge.released += ok;
		return;
	case HISTORY_READ:
		judge.read += ok;
		return;
	}
}

static void returned(const struct client *client, const struct history_event *e) {
	struct checker *c = &judge.checker;
	CHECK(e->op < client->op_count);
	uint64_t id = client->ops[e->op];
	struct op_state *op = checker_op_of(c, id);
	struct sim_reply reply = { .r = { .id = id, .op = op->op.op, .error = error_known(e->error),
		.token = e->token, .held = e->held } };
	if (op->op.op == CORE_GET && e->held && lock_of(e) != TRACE_NONE) {
		reply.r.entry.lock_id = checker_lock_id(c, lock_of(e));
	}
	if (e->error == 0) {
		checker_answered(c, op, e->token, &(struct terms){ .of = MODE_EXCLUSIVE });
	}
	if (op->op.op == CORE_ACQUIRE && !e->held) {
		/* It was repeated: the first node may still go on with it, and give the key its
		 * first value again. */
		reply.r.error = PAWL_EUNSURE;
	}
	checker_returned(c, id, &reply, e->value);
	tally(e);
}

static void look_at(const struct history_event *e) {
	struct client *client = &judge.clients[e->client];
	switch ((enum history_kind)e->kind) {
	case HISTORY_INVOKED:
		invoked(client, e);
		return;
	case HISTORY_RETURNED:
		returned(client, e);
		return;
	case HISTORY_BELIEVES:
		checker_believe(&judge.checker, &client->actor, lock_of(e),
			(struct instant){ e->at + e->left, e->at + e->left }, e->token);
		return;
	case HISTORY_FORGETS:
		judge.lost += e->error != 0;
		checker_forget(&judge.checker, &client->actor, lock_of(e));
		return;
	}
	CHECK(false);
}

/* ---- files ---- */

static void load(const char *path) {
	struct history_event e;
	FILE *from = fopen(path, "re");
	if (!from) {
		perror(path);
		exit(2);
	}
	while (history_read(from, &e)) {
		judge.events = grown(judge.events, &judge.event_capacity, judge.event_count + 1,
			sizeof *judge.events);
		judge.events[judge.event_count++] = e;
		judge.clients = grown(judge.clients, &judge.client_count, e.client + 1u,
			sizeof *judge.clients);
	}
	fclose(from);
}

/* No client has two events at the same time. */
static int by_time(const void *left, const void *right) {
	const struct history_event *a = left, *b = right;
	if (a->at != b->at) {
		return a->at < b->at ? -1 : 1;
	}
	return 0;
}

static void print_counts(void) {
	const struct { const char *name; uint64_t count;
		} counts[] = { { "events", judge.event_count }, { "acquired", judge.acquired },
		{ "not_acquired", judge.refused }, { "extended", judge.extended },
		{ "lost", judge.lost }, { "updated", judge.updated },
		{ "mismatched", judge.mismatched }, { "unsure", judge.unknown },
		{ "released", judge.released }, { "read", judge.read } };
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		printf("%s %" PRIu64 "\n", counts[i].name, counts[i].count);
	}
}

int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++) {
		load(argv[i]);
	}
	for (judge.name_capacity = 1024; judge.name_capacity < 2 * judge.event_count;
		judge.name_capacity *= 2) {
	}
	judge.names = calloc(judge.name_capacity, sizeof *judge.names);
	CHECK(judge.names != NULL);
	prng_init(&judge.prng, 1);
	sim_trace_init(&judge.trace, 16);
	for (size_t i = 0; i < judge.client_count; i++) {
		judge.clients[i].actor.number = (uint32_t)i;
	}
	if (judge.event_count > 0) {
		qsort(judge.events, judge.event_count, sizeof *judge.events, by_time);
	}
	for (; judge.now < judge.event_count; judge.now++) {
		look_at(&judge.events[judge.now]);
	}
	print_counts();
	return 0;
}
