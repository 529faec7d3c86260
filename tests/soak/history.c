/* history.c: writes and reads the lines of a history. */
#include "history.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

void history_write(FILE *to, const struct history_event *e) {
	fprintf(to, "%c %c %" PRId64 " %" PRId64 " %" PRIu32 " %" PRIu32 " %" PRIu32
		" %s %d %" PRIu64 " %" PRIu32 " %" PRIu32 " %d\n", e->kind, e->what ? e->what : '-',
		e->at, e->left, e->client, e->op, e->key, e->lock[0] ? e->lock : "-", -e->error,
		e->token, e->expect, e->value, e->held);
	fflush(to);
}

/* Takes the words of a line, one by one. The first word that is missing or is not a number spoils
 * the whole line. */
struct words {
	char *rest;
	bool bad;
};

static char *next_word(struct words *w) {
	char *word = strtok_r(NULL, " \n", &w->rest);
	w->bad = w->bad || !word;
	return word;
}

static uint64_t next_number(struct words *w, uint64_t max) {
	char *word = next_word(w), *end = NULL;
	uint64_t number = word ? strtoull(word, &end, 10) : 0;
	w->bad = w->bad || !end || *end != 0 || number > max;
	return number;
}

static uint32_t next_u32(struct words *w) {
	return (uint32_t)next_number(w, UINT32_MAX);
}

static void next_letters(struct words *w, char *out, size_t size) {
	const char *word = next_word(w);
	if (word) {
		snprintf(out, size, "%s", word);
	}
}

bool history_read(FILE *from, struct history_event *out_event) {
	char line[256], copy[256], letter[2] = "";
	struct history_event e = { 0 };
	if (!fgets(line, sizeof line, from) || !strchr(line, '\n')) {
		return false;
	}
	memcpy(copy, line, sizeof copy);
	struct words w = { .rest = copy };
	next_letters(&w, letter, sizeof letter);
	e.kind = letter[0];
	next_letters(&w, letter, sizeof letter);
	e.what = letter[0];
	e.at = (int64_t)next_number(&w, INT64_MAX);
	e.left = (int64_t)next_number(&w, INT64_MAX);
	e.client = next_u32(&w);
	e.op = next_u32(&w);
	e.key = next_u32(&w);
	next_letters(&w, e.lock, sizeof e.lock);
	e.error = -(int)next_number(&w, INT32_MAX);
	e.token = next_number(&w, UINT64_MAX);
	e.expect = next_u32(&w);
	e.value = next_u32(&w);
	e.held = next_number(&w, 1) != 0;
	if (w.bad || !strchr("IRBF", e.kind) || !strchr("aeurq-", e.what)) {
		fprintf(stderr, "not a line of a history: %s", line);
		exit(2);
	}
	*out_event = e;
	return true;
}
