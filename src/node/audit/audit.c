/* audit.c: the lines that every audit file has, and what begins and ends each line. */
#include "audit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config_file.h"
#include "core_status.h"
#include "log.h"
#include "pawl/error.h"

/* The number that says how lines are to be read. */
#define AUDIT_FORMAT 1

/* Lines about denied requests are written at this rate, in bytes a second, because anybody who may
 * connect can cause them, and could fill the queue and the files with them. As much as may wait for
 * the thread may also come at once. */
#define DENIED_RATE 4096

struct audit {
	struct audit_file *file;
	const struct core *core;
	const struct node_config *config;
	struct log *log;
	void (*told)(void *ctx);
	void *ctx;

	/* The number of the last line, also of one that was dropped. */
	uint64_t seq;
	/* How many dropped lines the file has told of. */
	uint64_t told_dropped;
	/* Lines about denied requests that were left out, and how many of them were told of. */
	uint64_t left_out, told_left_out;
	/* How many bytes of such lines may be written at a time of CLOCK_BOOTTIME, in
	 * nanoseconds. */
	size_t denied_room;
	int64_t denied_at;
	/* What was told last: the epoch and its timing. */
	uint64_t epoch;
	span_ns max_lease, request_timeout;
	uint32_t drift_ppm;
	/* The file is to be opened anew. */
	bool reopen;
	/* The log has been told that the file cannot be written. */
	bool failing;
};

const struct audit_config *audit_settings(const struct audit *a) {
	return &a->config->audit;
}

/* ---- every line ---- */

static void line_time(struct audit_line *line) {
	struct timespec real = { .tv_sec = 0 }, boot = { .tv_sec = 0 };
	struct tm tm = { .tm_year = 0 };
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	line->at = (int64_t)boot.tv_sec * SPAN_S + boot.tv_nsec;
	gmtime_r(&real.tv_sec, &tm);
	size_t used = strftime(line->bytes, sizeof line->bytes, "{\"ts\":\"%Y-%m-%dT%H:%M:%S", &tm);
	used += (size_t)snprintf(line->bytes + used, sizeof line->bytes - used, ".%06dZ\"",
		(int)(real.tv_nsec / 1000));
	line->used = used;
	line->denied = false;
}

static void line_begin(struct audit *a, struct audit_line *line, const char *action) {
	line_time(line);
	audit_number(line, "seq", ++a->seq);
	audit_text(line, "node", a->config->name);
	audit_number(line, "epoch", core_config(a->core)->epoch);
	audit_text(line, "action", action);
}

/* Puts a line about a denied request, if their rate allows it. */
static bool denied_put(struct audit *a, const struct audit_line *line) {
	const int64_t full = (int64_t)(AUDIT_DENIED_BYTES / DENIED_RATE) * SPAN_S;
	const int64_t since = line->at - a->denied_at;
	const size_t more = since >= full ? AUDIT_DENIED_BYTES
		: (size_t)(since * DENIED_RATE / SPAN_S);
	/* A time in which not a whole byte has become free goes on to count. */
	a->denied_at = more > 0 ? line->at : a->denied_at;
	a->denied_room = more < AUDIT_DENIED_BYTES - a->denied_room ? a->denied_room + more
		: AUDIT_DENIED_BYTES;
	if (line->used > a->denied_room
		|| !audit_file_put_denied(a->file, slice_of(line->bytes, line->used))) {
		return false;
	}
	a->denied_room -= line->used;
	return true;
}

static bool line_put(struct audit *a, struct audit_line *line, enum audit_before before,
	struct audit_receipt *receipt) {
	const uint64_t dropped = audit_file_counts(a->file).dropped;
	const uint64_t lines = dropped - a->told_dropped;
	const uint64_t left_out = a->left_out - a->told_left_out;
	audit_number(line, "mono_us", (uint64_t)(line->at / SPAN_US));
	if (lines > 0) {
		audit_number(line, "dropped", lines);
	}
	if (left_out > 0) {
		audit_number(line, "denied_left_out", left_out);
	}
	line->bytes[line->used++] = '}';
	line->bytes[line->used++] = '\n';
	const bool put = line->denied ? denied_put(a, line)
		: audit_file_put(a->file, slice_of(line->bytes, line->used), before,
			a->config->audit.keep, receipt);
	if (!put && line->denied) {
		/* It has no number, so that a number that is missing is always that of another
		 * line. */
		a->seq--;
		a->left_out++;
	}
	if (!put) {
		return false;
	}
	a->told_dropped = dropped;
	a->told_left_out = a->left_out;
	if (left_out > 0) {
		log_to(a->log, LEVEL_WARNING, "audit_denied_left_out",
			LOG_NUMBER("lines", left_out), LOG_TEXT("file", a->config->audit_file),
			LOG_TEXT("why",
				"more requests were denied than may have lines in the file"));
	}
	if (lines > 0) {
		log_to(a->log, LEVEL_WARNING, "audit_lines_dropped", LOG_NUMBER("lines", lines),
			LOG_TEXT("file", a->config->audit_file),
			LOG_TEXT("why",
				"the disk was too slow, or the file could not be written"));
	}
	return true;
}

/* ---- the lines of the file itself ---- */

static void line_timing(struct audit *a, struct audit_line *line) {
	const struct config *c = core_config(a->core);
	audit_number(line, "max_lease_ms", span_ms_down(c->max_lease));
	audit_number(line, "request_timeout_ms", span_ms_down(c->request_timeout));
	audit_number(line, "drift_ppm", c->drift_ppm);
	a->epoch = c->epoch;
	a->max_lease = c->max_lease;
	a->request_timeout = c->request_timeout;
	a->drift_ppm = c->drift_ppm;
}

static bool put_open(struct audit *a, const char *cause, enum audit_before before) {
	static const char *const what[] = { [AUDIT_DENIED] = "denied", [AUDIT_ADMIN] = "admin",
		[AUDIT_HOLDERS] = "holders", [AUDIT_ALL] = "all" };
	const struct config *c = core_config(a->core);
	struct audit_line line;
	struct core_status status;
	core_status(a->core, (struct instant){ 0, 0 }, &status);
	line_begin(a, &line, "open");
	audit_text(&line, "cause", cause);
	audit_number(&line, "format", AUDIT_FORMAT);
	audit_text(&line, "version", PAWL_VERSION);
	audit_text(&line, "cluster", c->cluster);
	audit_number(&line, "boot", status.boot);
	audit_text(&line, "what", what[a->config->audit.what]);
	line_timing(a, &line);
	return line_put(a, &line, before, NULL);
}

static void put_epoch(struct audit *a) {
	struct audit_line line;
	line_begin(a, &line, "epoch");
	line_timing(a, &line);
	(void)line_put(a, &line, AUDIT_GO_ON, NULL);
}

static bool epoch_changed(const struct audit *a) {
	const struct config *c = core_config(a->core);
	return c->epoch != a->epoch || c->max_lease != a->max_lease
		|| c->request_timeout != a->request_timeout || c->drift_ppm != a->drift_ppm;
}

void audit_begin(struct audit *a, struct audit_line *line, const char *action) {
	if (a->reopen) {
		a->reopen = !put_open(a, "reload", AUDIT_REOPEN);
	} else if (audit_file_size(a->file) >= a->config->audit.max_bytes) {
		(void)put_open(a, "rotated", AUDIT_ROTATE);
	}
	if (epoch_changed(a)) {
		put_epoch(a);
	}
	line_begin(a, line, action);
}

bool audit_end(struct audit *a, struct audit_line *line, struct audit_receipt *receipt) {
	return line_put(a, line, AUDIT_GO_ON, receipt);
}

enum audit_fate audit_fate(struct audit *a, const struct audit_receipt *receipt) {
	return audit_file_fate(a->file, receipt);
}

void audit_forget(struct audit *a, struct audit_receipt *receipt) {
	audit_file_forget(a->file, receipt);
}

struct audit_counts audit_counts(struct audit *a) {
	return audit_file_counts(a->file);
}

uint64_t audit_denied_left_out(const struct audit *a) {
	return a->left_out;
}

/* ---- trouble ---- */

static const char *trouble_remedy(int trouble) {
	return trouble == ENOSPC
		? "make room on its disk, or lower [audit] max_bytes and keep"
		: trouble == ELOOP
		? "the path is a symbolic link now, which is not followed: remove it"
		: "the account of pawld must be able to write the file and its directory";
}

bool audit_fails(const struct audit *a, char why[AUDIT_WHY_BYTES]) {
	const char *what = NULL;
	const int trouble = audit_file_trouble(a->file, &what);
	why[0] = '\0';
	if (trouble) {
		snprintf(why, AUDIT_WHY_BYTES, "cannot %s %s: %s: %s", what, a->config->audit_file,
			strerror(trouble), trouble_remedy(trouble));
	}
	return trouble != 0;
}

/* ---- life ---- */

static void audit_on_told(void *ctx) {
	struct audit *a = ctx;
	const char *what = NULL;
	const int trouble = audit_file_trouble(a->file, &what);
	if (trouble && !a->failing) {
		log_to(a->log, LEVEL_ERROR, "audit_failed", LOG_TEXT("what", what),
			LOG_TEXT("why", strerror(trouble)),
			LOG_TEXT("file", a->config->audit_file),
			LOG_TEXT("remedy", trouble_remedy(trouble)));
	} else if (!trouble && a->failing) {
		log_to(a->log, LEVEL_NOTICE, "audit_goes_on",
			LOG_TEXT("file", a->config->audit_file));
	}
	a->failing = trouble != 0;
	a->told(a->ctx);
}

int audit_open(const struct audit_options *options, struct audit **out,
	char why[AUDIT_WHY_BYTES]) {
	struct audit *a = calloc(1, sizeof *a);
	if (!a) {
		snprintf(why, AUDIT_WHY_BYTES, "out of memory");
		return PAWL_ENOMEM;
	}
	*a = (struct audit){ .core = options->core, .config = options->config,
		.log = options->log, .told = options->told, .ctx = options->ctx,
		.denied_room = AUDIT_DENIED_BYTES };
	int error = audit_file_open(a->config->audit_file, options->base, audit_on_told, a,
		&a->file, why);
	if (error) {
		free(a);
		return error;
	}
	(void)put_open(a, "start", AUDIT_GO_ON);
	*out = a;
	return 0;
}

void audit_close(struct audit *a) {
	struct audit_line line;
	if (!a) {
		return;
	}
	audit_begin(a, &line, "close");
	(void)audit_end(a, &line, NULL);
	audit_file_close(a->file);
	free(a);
}

void audit_set_config(struct audit *a, const struct node_config *config) {
	a->config = config;
}

void audit_reopen(struct audit *a) {
	a->reopen = !put_open(a, "reload", AUDIT_REOPEN);
}
