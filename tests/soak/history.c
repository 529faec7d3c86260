/* history.c: writes the lines of a history. */
#include "history.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pawl/error.h"

/* Events of a client. */
#define OPS_MAX (1 << 24)

void history_ignore_signals(void) {
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int64_t history_now(void) {
	struct timespec ts;
	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void write_value(FILE *to, const char *name, uint32_t value) {
	if (value != HISTORY_NO_VALUE) {
		fprintf(to, ",\"%s\":\"v%" PRIu32 "\"", name, value);
	}
}

/* What the library says by itself leaves open what nodes did. */
static const char *result(int error) {
	return error <= PAWL_ENOMEM ? "unknown" : pawl_error_code(error);
}

static void write_returned(FILE *to, const struct history_event *e) {
	fprintf(to, ",\"return\":%" PRId64 ",\"result\":\"%s\"", e->at, result(e->error));
	if (e->token) {
		fprintf(to, ",\"token\":%" PRIu64, e->token);
	}
	if (e->what == HISTORY_READ) {
		fprintf(to, ",\"held\":%s,\"lock_id\":\"%s\"", e->held ? "true" : "false", e->lock);
	}
	if (e->what == HISTORY_READ || e->error == PAWL_EMISMATCH) {
		write_value(to, "shown", e->value);
	}
	if (e->again) {
		fprintf(to, ",\"again\":true");
	}
}

void history_write(FILE *to, const struct history_event *e) {
	static const char *const names[] = { [HISTORY_ACQUIRE] = "acquire",
		[HISTORY_EXTEND] = "extend", [HISTORY_UPDATE] = "update",
		[HISTORY_RELEASE] = "release", [HISTORY_READ] = "get" };
	bool believes = e->kind == HISTORY_BELIEVES, asks = e->kind == HISTORY_INVOKED;
	fprintf(to, "{\"id\":%" PRIu64, (uint64_t)e->client * OPS_MAX + e->op);
	if (e->kind == HISTORY_RETURNED) {
		write_returned(to, e);
	} else {
		fprintf(to, ",\"op\":\"%s\",\"process\":%" PRIu32 ",\"key\":\"key%" PRIu32
			"\",\"invoke\":%" PRId64,
			asks ? names[e->what] : believes ? "believe" : "forget", e->client, e->key,
			e->at);
		if (e->what != HISTORY_READ) {
			fprintf(to, ",\"lock_id\":\"%s\"", e->lock);
		}
	}
	if (asks) {
		fprintf(to, ",\"return\":null,\"result\":\"unknown\"");
		write_value(to, "value", e->value);
		write_value(to, "expect", e->expect);
		fprintf(to, "%s%s", e->expect != HISTORY_NO_VALUE ? ",\"by\":\"value\"" : "",
			e->what == HISTORY_READ ? ",\"consistency\":\"quorum\"" : "");
	} else if (believes) {
		fprintf(to, ",\"return\":%" PRId64 ",\"until\":%" PRId64 ",\"token\":%" PRIu64,
			e->at, e->at + e->left, e->token);
	} else if (e->kind == HISTORY_FORGETS) {
		fprintf(to, ",\"return\":%" PRId64 ",\"result\":\"%s\"", e->at,
			result(e->error));
	}
	fprintf(to, "}\n");
	fflush(to);
}
