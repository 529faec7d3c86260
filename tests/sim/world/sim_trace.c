/* sim_trace.c: the ring of the last events, and the names of keys and lock_ids. */
#include "sim_trace.h"

#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "pawl/error.h"

void sim_trace_init(struct sim_trace *t, size_t size) {
	CHECK(size > 0 && (size & (size - 1)) == 0);
	*t = (struct sim_trace){ .size = size };
	t->ring = calloc(size, sizeof *t->ring);
	CHECK(t->ring != NULL);
}

void sim_trace_done(struct sim_trace *t) {
	free(t->ring);
	t->ring = NULL;
}

static void print_message(const struct sim_trace_record *r, FILE *to) {
	fprintf(to, " %s", message_name(r->message));
	uint32_t fields = message_fields(r->message);
	if (fields & F_STATUS) {
		fprintf(to, " %s", status_name(r->status));
	}
	if (fields & F_ROUND) {
		fprintf(to, " round=%" PRIx64, r->a);
	}
	if ((fields & F_TOKEN) && r->token) {
		fprintf(to, " token=%" PRIu64, r->token);
	}
	if (fields & F_NOTED) {
		fprintf(to, " noted=%" PRIu64, r->noted);
	}
	if (fields & (F_LEASE | F_LEFT)) {
		fprintf(to, " ms=%.3f", (double)r->b / 1e3);
	}
	if (fields & (F_BLOB | F_EPOCH)) {
		fprintf(to, " of epoch %" PRIu64, r->b);
	}
	if ((fields & F_BALLOT) && r->noted && !(fields & F_NOTED)) {
		fprintf(to, " ballot=%" PRIu64, r->noted);
	}
	if (r->epoch > 1) {
		fprintf(to, " e%" PRIu64, r->epoch);
	}
	if ((fields & F_FLAGS) && r->flags) {
		fprintf(to, " flags=%" PRIu32, r->flags);
	}
	if (terms_semaphore(&r->terms)) {
		fprintf(to, " permits=%u of %u {%" PRIx64 "}", r->terms.count, r->terms.of,
			r->terms.set.w[0]);
	} else if (r->terms.of == MODE_SHARED) {
		fprintf(to, " shared");
	}
}

static void print_record(const struct sim_trace_record *r, FILE *to) {
	static const char *const kinds[] = { "->", "<-", "request", "reply", "client", "fault",
		"note" };
	fprintf(to, "%14.6f ", (double)r->at / 1e9);
	if (r->kind == TRACE_CLIENT) {
		fprintf(to, "c%" PRIu32, r->node);
	} else if (r->node != TRACE_NONE) {
		fprintf(to, "n%" PRIu32, r->node + 1);
	} else {
		fprintf(to, "--");
	}
	fprintf(to, " %s", kinds[r->kind]);
	if (r->other != TRACE_NONE) {
		fprintf(to, r->kind == TRACE_SENT || r->kind == TRACE_HANDLED ||
			r->kind == TRACE_FAULT ? " n%" PRIu32 : " c%" PRIu32,
			r->kind == TRACE_REQUEST || r->kind == TRACE_REPLY ||
			r->kind == TRACE_CLIENT ? r->other : r->other + 1);
	}
	if (r->kind == TRACE_SENT || r->kind == TRACE_HANDLED) {
		print_message(r, to);
	} else {
		fprintf(to, " %s", r->text ? r->text : "");
		if (r->error) {
			fprintf(to, " error=%s", pawl_error_code(r->error));
		}
		if (r->token) {
			fprintf(to, " token=%" PRIu64, r->token);
		}
		if (r->a || r->b) {
			fprintf(to, " a=%" PRIu64 " b=%" PRIu64, r->a, r->b);
		}
	}
	if (r->key < UINT32_MAX - 1) {
		fprintf(to, " k%04" PRIu32, r->key);
	}
	if (r->lock != TRACE_NONE) {
		fprintf(to, " L%" PRIu32, r->lock);
	}
	fputc('\n', to);
}

void sim_trace_add(struct sim_trace *t, const struct sim_trace_record *record) {
	t->ring[t->count++ & (t->size - 1)] = *record;
	if (t->live) {
		print_record(record, t->live);
	}
}

static bool concerns(const struct sim_trace_record *r, uint32_t key) {
	return key == TRACE_NONE || r->key == key ||
		(r->key == TRACE_NONE && (r->kind == TRACE_FAULT || r->kind == TRACE_NOTE));
}

void sim_trace_print(const struct sim_trace *t, FILE *to, uint32_t key, size_t limit) {
	uint64_t first = t->count > t->size ? t->count - t->size : 0;
	uint64_t from = t->count;
	for (size_t found = 0; from > first && found < limit; from--) {
		found += concerns(&t->ring[(from - 1) & (t->size - 1)], key);
	}
	for (uint64_t i = from; i < t->count; i++) {
		const struct sim_trace_record *r = &t->ring[i & (t->size - 1)];
		if (concerns(r, key)) {
			print_record(r, to);
		}
	}
}

const char *sim_op_name(enum core_op op) {
	static const char *const names[] = { "none", "acquire", "extend", "update", "release",
		"get", "list", "wait", "waiters", "break", "binding", "change", "downgrade",
		"transfer", "ask", "explain", "acquire_all" };
	_Static_assert(sizeof names / sizeof *names == CORE_ACQUIRE_ALL + 1,
		"an operation has no name");
	return names[op];
}

struct slice sim_name_key(char buffer[16], uint32_t key) {
	/* A key has at least 4 digits. It is written millions of times in a run, and therefore by
	 * hand. */
	uint32_t width = 4;
	for (uint32_t rest = key / 10000; rest > 0; rest /= 10) {
		width++;
	}
	buffer[0] = 'k';
	for (uint32_t at = width, rest = key; at > 0; at--, rest /= 10) {
		buffer[at] = (char)('0' + rest % 10);
	}
	buffer[width + 1] = '\0';
	return slice_of(buffer, width + 1);
}

uint32_t sim_name_key_number(struct slice key) {
	if (key.size < 5 || key.data[0] != 'k') {
		return TRACE_NONE;
	}
	uint32_t n = 0;
	for (size_t i = 1; i < key.size; i++) {
		n = n * 10 + (uint32_t)(key.data[i] - '0');
	}
	return n;
}

struct id128 sim_name_lock(uint32_t lock, uint64_t random) {
	struct id128 id;
	memcpy(id.b, &random, 8);
	uint64_t number = lock;
	memcpy(id.b + 8, &number, 8);
	return id;
}

uint32_t sim_name_lock_number(struct id128 lock) {
	uint64_t number;
	memcpy(&number, lock.b + 8, 8);
	return number < 1000000 && !id128_zero(lock) ? (uint32_t)number : TRACE_NONE;
}
