/* bench.c: pawl bench: measures the load, latency and hand-offs of a cluster. */
#include "bench.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* How long to wait for what is under way when the time is over, in s. */
#define PATIENCE_S 15
#define OUTSTANDING_MAX 65536
#define LEASES_MAX 100000000

static const char bench_help[] =
	"usage: pawl bench MODE [OPTION...]\n"
	"\n"
	"Measures a cluster from here, on one connection unless told otherwise. Modes:\n"
	"  cycle                acquire and release, each on its own keys\n"
	"  handoff              many clients wait for one key; measures the time from a\n"
	"                       release to the next grant\n"
	"  extend               extend leases in batches\n"
	"  gap                  like cycle, but reports the longest time without a grant;\n"
	"                       disturb the cluster meanwhile\n"
	"  fill                 take many leases and hold them, so that you can inspect\n"
	"                       the cluster\n"
	"\n"
	"  --outstanding N      number of operations in flight (default: cycle 64,\n"
	"                       handoff 32 waiters, extend 1 batch, gap 4, fill 256)\n"
	"  --duration DURATION  how long to measure (default 5s; fill: no limit)\n"
	"  --count N            stop after N operations\n"
	"  --connections N      spread the load over N connections; each begins with\n"
	"                       another endpoint (default 1)\n"
	"  --batch N            extend: locks per request (default 1000, at most 1000)\n"
	"  --leases N           fill: number of leases (default 100000)\n"
	"  --lease DURATION     the lease of the locks (default 10s; fill and extend 60s)\n"
	"  --hold DURATION      fill: how long to hold the leases once all are taken\n"
	"  --value V            the value of the locks (default: none)\n"
	"  --prefix TEXT        prefix of all keys (default: bench and a random number)\n"
	"\n"
	"The leases of extend and fill are not released; they expire. An interrupt ends\n"
	"the measurement and prints what there is. The exit status is 1 if nothing could\n"
	"be measured.\n"
	"\n"
	"Example:\n"
	"  pawl bench cycle --outstanding 256 --duration 10s\n"
	"  pawl bench gap --duration 20s &\n"
	"  sleep 5; kill -STOP $(pidof pawld | cut -d' ' -f1)\n";

static const struct bench_mode modes[] = {
	{ "cycle", "cycles", "acquire", 64, 10000, false, false, bench_cycle_start },
	{ "handoff", "grants", "hand-off", 32, 10000, true, false, bench_cycle_start },
	{ "extend", "extends", "batch", 1, 60000, false, false, bench_extend_start },
	{ "gap", "cycles", "acquire", 4, 10000, false, true, bench_cycle_start },
	{ "fill", "leases", "acquire", 256, 60000, false, false, bench_fill_start },
};

int64_t bench_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct pawl *bench_client(const struct bench *b, uint64_t slot) {
	return b->clients[slot % b->connections];
}

void bench_failed(struct bench *b, int error, const char *message) {
	if (b->errors++ == 0) {
		const char *remedy = cli_remedy(0, error);
		snprintf(b->first_error, sizeof b->first_error, "%s: %s%s%s",
			pawl_error_code(error), message, remedy ? ": " : "", remedy ? remedy : "");
	}
}

void bench_pause(struct bench *b, void (*again)(int, short, void *), void *arg) {
	static const struct timeval moment = { 0, 1000 };
	if (event_base_once(b->base, -1, EV_TIMEOUT, again, arg, &moment) != 0) {
		bench_slot_ended(b);
	}
}

bool bench_enough(const struct bench *b) {
	return b->stopping || (b->count && b->done >= b->count);
}

void bench_begin(struct bench *b) {
	b->begin_ns = bench_now();
	if (b->duration_ms) {
		struct timeval t = { b->duration_ms / 1000, b->duration_ms % 1000 * 1000 };
		evtimer_add(b->over, &t);
	}
}

static void on_held_enough(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	event_base_loopbreak(((struct bench *)arg)->base);
}

void bench_slot_ended(struct bench *b) {
	if (--b->running > 0) {
		return;
	}
	b->end_ns = b->end_ns ? b->end_ns : bench_now();
	struct timeval hold = { b->hold_ms / 1000, b->hold_ms % 1000 * 1000 };
	if (b->hold_ms && !b->stopping
		&& event_base_once(b->base, -1, EV_TIMEOUT, on_held_enough, b, &hold) == 0) {
		fprintf(stderr, "%" PRIu64 " leases held, waiting %s\n", b->filled,
			output_duration(b->hold_ms));
		return;
	}
	event_base_loopbreak(b->base);
}

/* The time is over, or the user has interrupted. What is under way ends by itself. If this comes a
 * second time, or if something does not end, the measurement stops at once. */
static void on_over(evutil_socket_t fd, short what, void *arg) {
	static const struct timeval patience = { PATIENCE_S, 0 };
	struct bench *b = arg;
	(void)fd, (void)what;
	if (b->stopping || b->running == 0) {
		event_base_loopbreak(b->base);
		return;
	}
	b->stopping = true;
	b->end_ns = bench_now();
	evtimer_add(b->over, &patience);
}

/* ---- the figures ---- */

static double us(uint64_t ns) {
	return (double)ns / 1000;
}

static double seconds(const struct bench *b) {
	double s = (double)(b->end_ns - b->begin_ns) / 1e9;
	return s > 0 ? s : 1e-9;
}

static void print_latency(const char *label, const struct histogram *h) {
	if (h->count) {
		output_field(label, "p50 %.0fus  p90 %.0fus  p99 %.0fus  p99.9 %.0fus  max %.0fus",
			us(histogram_quantile(h, 0.5)), us(histogram_quantile(h, 0.9)),
			us(histogram_quantile(h, 0.99)), us(histogram_quantile(h, 0.999)),
			us(h->max_ns));
	}
}

static void print_table(const struct bench *b) {
	output_field("mode", "%s, %" PRIu64 " outstanding, %" PRIu64 " connection%s", b->mode->name,
		b->outstanding, b->connections, b->connections == 1 ? "" : "s");
	output_field(b->mode->operation, "%" PRIu64 " in %.2fs", b->done, seconds(b));
	output_field("rate", "%.0f/s", (double)b->done / seconds(b));
	print_latency(b->mode->latency, &b->latency);
	print_latency("cycle", &b->cycle);
	if (b->mode->gaps) {
		output_field("longest gap", "%.1fms, %.2fs after the start",
			(double)b->longest_gap_ns / 1e6,
			(double)(b->gap_at_ns - b->begin_ns) / 1e9);
	}
	if (b->moves) {
		output_field("moves", "%" PRIu64 " to another node", b->moves);
	}
	if (b->errors) {
		output_field("errors", "%" PRIu64 ", the first: %s", b->errors, b->first_error);
	}
}

static json_t *latency_json(const struct histogram *h) {
	return json_pack("{s:I,s:f,s:f,s:f,s:f,s:f,s:f}", "count", (json_int_t)h->count, "mean",
		h->count ? us(h->sum_ns) / (double)h->count : 0.0, "p50",
		us(histogram_quantile(h, 0.5)), "p90", us(histogram_quantile(h, 0.9)), "p99",
		us(histogram_quantile(h, 0.99)), "p999", us(histogram_quantile(h, 0.999)), "max",
		us(h->max_ns));
}

static void print_json(const struct bench *b) {
	json_t *object = json_object();
	output_json_set(object, "mode", json_string(b->mode->name));
	output_json_set(object, "outstanding", json_integer((json_int_t)b->outstanding));
	output_json_set(object, "connections", json_integer((json_int_t)b->connections));
	output_json_set(object, "seconds", json_real(seconds(b)));
	output_json_set(object, b->mode->operation, json_integer((json_int_t)b->done));
	output_json_set(object, "per_second", json_real((double)b->done / seconds(b)));
	output_json_set(object, "latency_us", latency_json(&b->latency));
	if (b->cycle.count) {
		output_json_set(object, "cycle_us", latency_json(&b->cycle));
	}
	if (b->mode->gaps) {
		output_json_set(object, "longest_gap_ms",
			json_real((double)b->longest_gap_ns / 1e6));
		output_json_set(object, "gap_at_s",
			json_real((double)(b->gap_at_ns - b->begin_ns) / 1e9));
	}
	output_json_set(object, "moves", json_integer((json_int_t)b->moves));
	output_json_set(object, "errors", json_integer((json_int_t)b->errors));
	if (b->errors) {
		output_json_bytes(object, "first_error", pawl_str(b->first_error));
	}
	output_json(object);
}

/* ---- the command ---- */

static void read_line(struct bench *b, struct cli_command_line *line) {
	const struct cli_option options[] = {
		{ "outstanding", CLI_NUMBER, &b->outstanding },
		{ "duration", CLI_DURATION, &b->duration_ms },
		{ "count", CLI_NUMBER, &b->count },
		{ "connections", CLI_NUMBER, &b->connections },
		{ "batch", CLI_NUMBER, &b->batch },
		{ "leases", CLI_NUMBER, &b->leases },
		{ "lease", CLI_DURATION, &b->lease_ms },
		{ "hold", CLI_DURATION, &b->hold_ms },
		{ "value", CLI_TEXT, &b->value },
		{ "prefix", CLI_TEXT, &b->prefix },
	};
	/* No duration was given, so the mode's default counts. */
	b->duration_ms = UINT32_MAX;
	b->outstanding = UINT64_MAX;
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	for (size_t i = 0; i < COUNT(modes); i++) {
		if (strcmp(operands[0], modes[i].name) == 0) {
			b->mode = &modes[i];
		}
	}
	if (!b->mode) {
		cli_misuse(line, "unknown mode '%s': use cycle, handoff, extend, gap or fill",
			operands[0]);
	}
	bool fill = b->mode->start == bench_fill_start;
	b->duration_ms = b->duration_ms != UINT32_MAX ? b->duration_ms : fill ? 0 : 5000;
	b->outstanding = b->outstanding != UINT64_MAX ? b->outstanding : b->mode->outstanding;
	b->lease_ms = b->lease_ms ? b->lease_ms : b->mode->lease_ms;
	const struct {
		const char *name;
		uint64_t value, most;
	} limits[] = {
		{ "outstanding", b->outstanding, OUTSTANDING_MAX },
		{ "connections", b->connections, 1024 },
		{ "batch", b->batch, BENCH_BATCH_MAX },
		{ "leases", b->leases, LEASES_MAX },
	};
	for (size_t i = 0; i < COUNT(limits); i++) {
		if (limits[i].value < 1 || limits[i].value > limits[i].most) {
			cli_misuse(line, "--%s must be from 1 to %" PRIu64, limits[i].name,
				limits[i].most);
		}
	}
	if (!fill && !b->duration_ms && !b->count) {
		cli_misuse(line, "--duration 0 needs a --count");
	}
	if (b->prefix && strlen(b->prefix) > BENCH_KEY_BYTES - 24) {
		cli_misuse(line, "--prefix: at most %d bytes", BENCH_KEY_BYTES - 24);
	}
}

static void on_ping(struct pawl_result *take_result, void *arg) {
	struct bench *b = arg;
	if (take_result->error) {
		b->mode = NULL;
		cli_fail(b->line, take_result, "bench", NULL);
		event_base_loopbreak(b->base);
	} else if (b->begin_ns == 0) {
		b->mode->start(b);
		if (b->running == 0) {
			event_base_loopbreak(b->base);
		}
	}
	pawl_result_free(take_result);
}

/* Returns true once the loop has run to its end, and false if no node could be reached. */
static bool measure(struct bench *b) {
	static const int numbers[] = { SIGINT, SIGTERM };
	struct event *signals[COUNT(numbers)];
	const struct pawl_request ping = { .method = PAWL_PING };
	for (size_t i = 0; i < COUNT(numbers); i++) {
		signals[i] = evsignal_new(b->base, numbers[i], on_over, b);
		if (signals[i]) {
			evsignal_add(signals[i], NULL);
		}
	}
	bool good = pawl_start(b->clients[0], &ping, on_ping, b, NULL) == 0;
	if (good) {
		event_base_dispatch(b->base);
	}
	for (size_t i = 0; i < COUNT(numbers); i++) {
		if (signals[i]) {
			event_free(signals[i]);
		}
	}
	b->end_ns = b->end_ns ? b->end_ns : bench_now();
	return good && b->mode;
}

/* Makes connection number i begin with endpoint number i, so that many connections are spread over
 * the nodes. */
static struct pawl *connect_rotated(const struct bench *b, uint64_t number) {
	struct cli_command_line line = *b->line;
	const char *all = line.endpoints, *at = all;
	for (uint64_t i = 0; i < number; i++) {
		const char *comma = strchr(at, ',');
		at = comma ? comma + 1 : all;
	}
	char *rotated = NULL;
	if (at != all && asprintf(&rotated, "%s,%.*s", at, (int)(at - all - 1), all) > 0) {
		line.endpoints = rotated;
	}
	line.prefer_first = line.prefer_first || b->connections > 1;
	struct pawl *client = cli_connect_on(&line, b->base);
	free(rotated);
	return client;
}

static int bench_run(struct cli_command_line *line) {
	/* This is static because histograms are too large for the stack. */
	static struct bench bench;
	struct bench *b = &bench;
	char prefix[32];
	struct pawl_id id = { { 0 } };
	*b = (struct bench){ .line = line, .connections = 1, .batch = BENCH_BATCH_MAX,
		.leases = 100000 };
	read_line(b, line);
	if (!b->prefix && pawl_id_new(&id) == 0) {
		snprintf(prefix, sizeof prefix, "bench-%02x%02x%02x%02x", id.bytes[0], id.bytes[1],
			id.bytes[2], id.bytes[3]);
		b->prefix = prefix;
	}
	b->base = event_base_new();
	b->clients = calloc(b->connections, sizeof(struct pawl *));
	b->over = b->base ? evtimer_new(b->base, on_over, b) : NULL;
	if (!b->clients || !b->over || !b->prefix) {
		fprintf(stderr, "pawl bench: out of memory\n");
		return CLI_REFUSED;
	}
	const char *given = line->endpoints;
	char *nodes = cli_nodes(line);
	line->endpoints = nodes;
	for (uint64_t i = 0; i < b->connections; i++) {
		b->clients[i] = connect_rotated(b, i);
	}
	bool measured = measure(b);
	line->endpoints = given;
	free(nodes);
	if (!measured) {
		return CLI_UNREACHABLE;
	}
	if (line->json) {
		print_json(b);
	} else {
		print_table(b);
	}
	return b->done ? CLI_DONE : CLI_REFUSED;
}

const struct cli_command cli_bench = { "bench",
	"measure the load, latency and hand-offs of a cluster",
	bench_help, bench_run };
