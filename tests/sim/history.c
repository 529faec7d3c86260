/* One JSON object a line for every operation, in true time; the format is described in docs/testing.md. */
#include <inttypes.h>

#include "checker_impl.h"
#include "pawl/error.h"

static void print_lock(FILE *to, struct id128 id) {
	fprintf(to, ",\"lock_id\":\"");
	for (size_t i = 0; i < sizeof id.b; i++) {
		fprintf(to, "%02x", id.b[i]);
	}
	fputc('"', to);
}

static void print_asked(FILE *to, const struct checker_op *op) {
	if (op->op == CORE_ACQUIRE || op->op == CORE_EXTEND) {
		fprintf(to, ",\"lease_ms\":%.3f", (double)op->lease / 1e6);
	}
	if (op->op == CORE_ACQUIRE || op->op == CORE_WAIT) {
		fprintf(to, ",\"wait_ms\":%.3f", (double)op->wait / 1e6);
	}
	if (op->op == CORE_GET) {
		fprintf(to, ",\"consistency\":\"%s\"", op->quorum ? "quorum" : "local");
	}
	if (op->op == CORE_UPDATE || op->op == CORE_ACQUIRE) {
		fprintf(to, ",\"value\":\"v%" PRIu32 "\"", op->value);
	}
	if (op->op == CORE_UPDATE && op->expect != CHECKER_NO_VALUE) {
		fprintf(to, ",\"expect\":\"v%" PRIu32 "\",\"by\":\"%s\"", op->expect, op->by_seq ? "value_seq" : "value");
	}
}

static void print_answer(FILE *to, const struct checker_op *op, const struct core_reply *reply, uint32_t value) {
	fprintf(to, ",\"result\":\"%s\"", pawl_error_code(reply->error));
	if (!reply->error && (op->op == CORE_ACQUIRE || op->op == CORE_EXTEND)) {
		fprintf(to, ",\"token\":%" PRIu64 ",\"valid_ms\":%.3f", reply->token, (double)reply->valid / 1e6);
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

void checker_history(struct checker *c, uint64_t id, const struct op_state *op, const struct core_reply *reply, uint32_t value) {
	FILE *to = c->options.history;
	if (!to) {
		return;
	}
	fprintf(to, "{\"seed\":%" PRIu64 ",\"id\":%" PRIu64 ",\"process\":%" PRIu32 ",\"op\":\"%s\",\"key\":\"k%04" PRIu32 "\"", c->options.seed, id,
		op->op.client, sim_op_name(op->op.op), op->op.key);
	if (op->op.lock != TRACE_NONE) {
		print_lock(to, c->locks[op->op.lock].id);
	}
	print_asked(to, &op->op);
	fprintf(to, ",\"invoke\":%" PRId64, op->invoked);
	if (reply) {
		fprintf(to, ",\"return\":%" PRId64, sim_now(c->sim));
		print_answer(to, &op->op, reply, value);
	} else {
		fprintf(to, ",\"return\":null,\"result\":\"unknown\"");
	}
	fprintf(to, "}\n");
}
