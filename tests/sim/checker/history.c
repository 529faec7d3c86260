/* history.c: writes one JSON object a line for every operation, in true time. The format is
 * described in docs/testing/histories.md. */
#include <inttypes.h>

#include "checker_impl.h"
#include "pawl/error.h"

/* The last line may still say that its answer is believed. */
static void finish_line(struct checker *c) {
	struct written *w = &c->written;
	if (w->open) {
		fprintf(c->options.history, "%s}\n", !w->answered ? "" : w->believed
			? ",\"believed\":true" : ",\"believed\":false");
		w->open = false;
	}
}

void checker_history_begin(struct checker *c) {
	if (c->options.history) {
		fprintf(c->options.history, "{\"op\":\"run\",\"seed\":%" PRIu64
			",\"client_drift_ppm\":%" PRIu32 ",\"jumps\":%s}\n", c->options.seed,
			c->options.drift_ppm, c->options.forced ? "true" : "false");
	}
}

void checker_history_end(struct checker *c) {
	if (c->options.history) {
		finish_line(c);
	}
}

static void print_lock(FILE *to, const struct lock_state *lock) {
	fprintf(to, "\"key\":\"k%04" PRIu32 "\",\"lock_id\":\"", lock->key);
	for (size_t i = 0; i < sizeof lock->id.b; i++) {
		fprintf(to, "%02x", lock->id.b[i]);
	}
	fputc('"', to);
}

static void print_mode(FILE *to, const struct terms *wanted) {
	if (terms_semaphore(wanted)) {
		fprintf(to, ",\"mode\":\"permits\",\"of\":%u,\"count\":%u", (unsigned)wanted->of,
			(unsigned)wanted->count);
	} else {
		fprintf(to, ",\"mode\":\"%s\"",
			wanted->of == MODE_SHARED ? "shared" : "exclusive");
	}
}

static void print_wanted(FILE *to, const struct terms *wanted) {
	if (wanted->delay) {
		fprintf(to, ",\"lock_delay_ms\":%.3f", (double)wanted->delay / 1e6);
	}
	if (wanted->priority) {
		fprintf(to, ",\"priority\":%" PRId32, wanted->priority);
	}
}

static void print_permits(FILE *to, const struct terms *wanted, struct permits set) {
	const char *before = ",\"permits\":[";
	for (uint32_t n = 0; terms_semaphore(wanted) && n < PERMITS_MAX; n++) {
		if (permits_has(set, n)) {
			fprintf(to, "%s%" PRIu32, before, n);
			before = ",";
		}
	}
	if (*before == ',' && before[1] == 0) {
		fputc(']', to);
	}
}

static bool acquires(enum core_op op) {
	return op == CORE_ACQUIRE || op == CORE_ACQUIRE_ALL;
}

static void print_asked(FILE *to, const struct checker_op *op) {
	if (acquires(op->op) || op->op == CORE_EXTEND) {
		fprintf(to, ",\"lease_ms\":%.3f", (double)op->lease / 1e6);
	}
	if (acquires(op->op) || op->op == CORE_WAIT) {
		fprintf(to, ",\"wait_ms\":%.3f", (double)op->wait / 1e6);
	}
	if (op->op == CORE_EXTEND) {
		fprintf(to, ",\"deadline_kept\":%s", op->deadline_kept ? "true" : "false");
	}
	if (op->binding) {
		fprintf(to, ",\"binding\":%" PRIu32, op->binding);
	}
	if (op->op == CORE_GET) {
		fprintf(to, ",\"consistency\":\"%s\"", op->quorum ? "quorum" : "local");
	}
	if (op->op == CORE_UPDATE || op->op == CORE_ACQUIRE) {
		fprintf(to, ",\"value\":\"v%" PRIu32 "\"", op->value);
	}
	if ((op->op == CORE_UPDATE && op->expect != CHECKER_NO_VALUE) || op->compares) {
		fprintf(to, ",\"expect\":\"v%" PRIu32 "\",\"by\":\"%s\"", op->expect,
			op->by_seq ? "value_seq" : "value");
	}
}

/* Prints the result of an acquire or an extension that was answered as held. */
static void print_held(FILE *to, const struct checker *c, const struct checker_op *op,
	const struct core_reply *reply) {
	if (op->op != CORE_ACQUIRE_ALL) {
		fprintf(to, ",\"token\":%" PRIu64, reply->token);
		if (op->lock != TRACE_NONE) {
			print_permits(to, &c->locks[op->lock].wanted, reply->terms.set);
		}
	}
	fprintf(to, ",\"valid_ms\":%.6f", (double)reply->valid / 1e6);
}

static void print_answer(FILE *to, const struct checker *c, const struct checker_op *op,
	const struct core_reply *reply, uint32_t value) {
	fprintf(to, ",\"result\":\"%s\"", reply->error ? pawl_error_code(reply->error) : "ok");
	if (!reply->error && (acquires(op->op) || op->op == CORE_EXTEND)) {
		print_held(to, c, op, reply);
	}
	if (!reply->error && op->op == CORE_RELEASE) {
		fprintf(to, ",\"released\":%s", reply->released ? "true" : "false");
	}
	if (!reply->error && (op->op == CORE_GET || op->op == CORE_WAIT)) {
		fprintf(to, ",\"held\":%s", reply->held ? "true" : "false");
		if (reply->held) {
			fprintf(to, ",\"holder_token\":%" PRIu64, reply->entry.token);
		}
	}
	if (value != CHECKER_NO_VALUE) {
		fprintf(to, ",\"shown\":\"v%" PRIu32 "\"", value);
	}
}

static void print_members(FILE *to, const struct checker *c, const struct checker_op *op,
	const struct sim_reply *reply) {
	for (uint32_t i = 0; i < op->member_count; i++) {
		const struct lock_state *lock = &c->locks[op->members[i]];
		fprintf(to, "%s{", i ? "," : ",\"members\":[");
		print_lock(to, lock);
		print_mode(to, &lock->wanted);
		if (reply && !reply->r.error) {
			fprintf(to, ",\"token\":%" PRIu64, reply->got[i].token);
			print_permits(to, &lock->wanted, reply->got[i].terms.set);
		}
		fputc('}', to);
	}
	fputs(op->member_count ? "]" : "", to);
}

static void print_subject(FILE *to, const struct checker *c, const struct checker_op *op) {
	if (op->op == CORE_ACQUIRE_ALL) {
		print_wanted(to, &c->locks[op->lock].wanted);
		return;
	}
	fputc(',', to);
	if (op->lock != TRACE_NONE) {
		print_lock(to, &c->locks[op->lock]);
	} else {
		fprintf(to, "\"key\":\"k%04" PRIu32 "\"", op->key);
	}
	if (op->op == CORE_ACQUIRE) {
		print_mode(to, &c->locks[op->lock].wanted);
		print_wanted(to, &c->locks[op->lock].wanted);
	}
}

void checker_history(struct checker *c, uint64_t id, const struct op_state *op,
	const struct sim_reply *reply, uint32_t value) {
	FILE *to = c->options.history;
	if (!to) {
		return;
	}
	finish_line(c);
	fprintf(to, "{\"id\":%" PRIu64 ",\"process\":%" PRIu32 ",\"op\":\"%s\"", id, op->op.client,
		sim_op_name(op->op.op));
	print_subject(to, c, &op->op);
	print_asked(to, &op->op);
	fprintf(to, ",\"invoke\":%" PRId64, op->invoked);
	if (reply) {
		fprintf(to, ",\"return\":%" PRId64, sim_now(c->sim));
		print_answer(to, c, &op->op, &reply->r, value);
	} else {
		fprintf(to, ",\"return\":null,\"result\":\"unknown\"");
	}
	print_members(to, c, &op->op, op->op.op == CORE_ACQUIRE_ALL ? reply : NULL);
	c->written = (struct written){ .open = true, .answered = reply && !reply->r.error &&
		(acquires(op->op.op) || op->op.op == CORE_EXTEND), .client = op->op.client,
		.at = sim_now(c->sim) };
}

/* What an answer makes a client believe it believes at once. */
void checker_history_believed(struct checker *c, uint32_t client) {
	struct written *w = &c->written;
	w->believed = w->believed || (w->open && w->client == client && w->at == sim_now(c->sim));
}

void checker_history_forgot(struct checker *c, uint32_t client, uint32_t lock) {
	FILE *to = c->options.history;
	if (to) {
		finish_line(c);
		fprintf(to, "{\"process\":%" PRIu32 ",\"op\":\"forget\",", client);
		print_lock(to, &c->locks[lock]);
		fprintf(to, ",\"invoke\":%" PRId64 ",\"return\":%" PRId64 ",\"result\":\"ok\"}\n",
			sim_now(c->sim), sim_now(c->sim));
	}
}

void checker_history_closed(struct checker *c, uint32_t client, uint32_t connection) {
	FILE *to = c->options.history;
	if (to) {
		finish_line(c);
		fprintf(to, "{\"process\":%" PRIu32 ",\"op\":\"close\",\"connection\":%" PRIu32
			",\"invoke\":%" PRId64 ",\"return\":%" PRId64 ",\"result\":\"ok\"}\n",
			client, connection, sim_now(c->sim), sim_now(c->sim));
	}
}
