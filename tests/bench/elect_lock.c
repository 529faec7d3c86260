/* elect_lock.c: locks as they are made with Redis. A cycle is SET with NX and PX, and then the
 * script that deletes the key if it has the holder's value.
 *
 * With one server this is the usual lock, and with three it is Redlock: each request goes to all
 * servers at once, and counts when a majority has answered. Every cycle has connections and a key
 * of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elect_line.h"

#define SERVERS_MOST 7
#define SHA_BYTES 40
#define SCRIPT \
	"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) end return 0"
#define SET "*6\r\n$3\r\nSET\r\n$8\r\n%08zx\r\n$16\r\n%016" PRIx64 "\r\n$2\r\nNX\r\n$2\r\nPX\r\n" \
	"$5\r\n10000\r\n"
#define RELEASE "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$8\r\n%08zx\r\n$16\r\n%016" PRIx64 \
	"\r\n"

struct cycle {
	struct load *load;

	/* Different for each cycle of each run, because a key that is left over from an earlier run
	 * cannot be set. */
	size_t key;
	size_t servers;
	struct line *lines[SERVERS_MOST];

	/* How many requests each server has been sent; how many of them have answered the last
	 * one. The first request loads the script. */
	uint64_t asked;
	size_t answered;
	char sha[SHA_BYTES + 1];

	/* When the SET was sent, in ns. */
	int64_t began;
};

static void ask(struct cycle *c) {
	char text[256];
	int size;
	c->answered = 0;
	c->asked++;
	if (c->asked == 1) {
		size = snprintf(text, sizeof text,
			"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%zu\r\n%s\r\n", sizeof SCRIPT - 1,
			SCRIPT);
	} else if (c->asked % 2 == 0) {
		size = snprintf(text, sizeof text, SET, c->key, c->asked);
		c->began = load_now();
	} else {
		size = snprintf(text, sizeof text, RELEASE, c->sha, c->key, c->asked - 1);
	}
	for (size_t i = 0; i < c->servers; i++) {
		line_send(c->lines[i], text, (size_t)size);
	}
}

/* Returns the size of the first answer, or 0 while it is not complete. */
static size_t answer_size(const struct line *line) {
	const char *end = memchr(line->input, '\n', line->size);
	if (!end) {
		return 0;
	}
	size_t size = (size_t)(end + 1 - line->input);
	if (line->input[0] == '$' && line->input[1] != '-') {
		size += strtoul(line->input + 1, NULL, 10) + 2;
	}
	return size <= line->size ? size : 0;
}

/* A request has been granted by a majority. */
static void granted(struct cycle *c) {
	struct load *l = c->load;
	if (c->asked > 1 && c->asked % 2 == 1 && l->begin != 0 && !l->stopping) {
		l->done++;
		histogram_add(&l->latency, load_now() - c->began);
	}
	if (!l->stopping) {
		ask(c);
	}
}

static void answered(struct line *line) {
	struct cycle *c = line->owner;
	for (size_t size; (size = answer_size(line)) > 0; line_take(line, size)) {
		const uint64_t number = ++line->answers;
		const char *yes = number == 1 ? "$40" : number % 2 == 0 ? "+OK" : ":1";
		if (memcmp(line->input, yes, strlen(yes)) != 0) {
			load_fail("redis refuses a request; its number", (int)number);
		}
		if (number == 1) {
			memcpy(c->sha, line->input + strlen("$40\r\n"), SHA_BYTES);
		}
		if (number == c->asked && ++c->answered == c->servers / 2 + 1) {
			granted(c);
		}
	}
}

/* Splits the addresses at their commas, in place. Returns how many there are. */
static size_t addresses_split(char *text, const char *out[SERVERS_MOST]) {
	size_t count = 0;
	char *rest = NULL;
	for (char *at = strtok_r(text, ",", &rest); at && count < SERVERS_MOST;
		at = strtok_r(NULL, ",", &rest)) {
		out[count++] = at;
	}
	return count;
}

int redis_cycle_main(char **argv) {
	static struct load l;
	const char *addresses[SERVERS_MOST] = { NULL };
	const size_t servers = addresses_split(argv[0], addresses);
	const size_t count = strtoul(argv[1], NULL, 10);
	struct cycle *cycles = calloc(count, sizeof *cycles);
	l.base = event_base_new();
	if (!cycles || !l.base) {
		load_fail("out of memory", 0);
		return 1;
	}
	for (size_t i = 0; i < count; i++) {
		cycles[i] = (struct cycle){ .load = &l, .servers = servers,
			.key = ((size_t)getpid() & 0xffff) << 16 | i };
		for (size_t n = 0; n < servers; n++) {
			cycles[i].lines[n] = line_new(&l, addresses[n], answered);
			cycles[i].lines[n]->owner = &cycles[i];
		}
		ask(&cycles[i]);
	}
	if (load_run(&l, strtod(argv[2], NULL), NULL, NULL) != 0) {
		load_fail("no timer", 0);
	}
	load_print(&l, "cycles");
	return 0;
}
