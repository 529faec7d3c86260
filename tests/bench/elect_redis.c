/* elect_redis.c: the same load for Redis: a list that many wait for (BLPOP), and channels (PUBLISH,
 * SUBSCRIBE). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elect_line.h"

#define POP "*3\r\n$5\r\nBLPOP\r\n$1\r\nq\r\n$1\r\n0\r\n"
#define PUSH "*3\r\n$5\r\nRPUSH\r\n$1\r\nq\r\n$1\r\nx\r\n"
#define POPPED "*2\r\n$1\r\nq\r\n$1\r\nx\r\n"
#define SUBSCRIBE "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"
#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define MESSAGE_HEAD "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$16\r\n"
#define MESSAGE_BYTES (sizeof MESSAGE_HEAD - 1 + STAMP_BYTES + 2)

static struct {
	struct load load;
	/* When the last holder let go. */
	int64_t pushed;
	struct line **publishers;
	size_t publisher_count, next, subscribed, wanted;
} redis;

/* ---- a list that many wait for ---- */

/* The connection has been given the token: it pushes it back at once, and waits for it again,
 * behind all others. The answer of the push is a number, which comes before the next token. */
static void popped(struct line *line) {
	char *answer;
	while (line->size > 0 && line->input[0] == ':' &&
		(answer = memchr(line->input, '\n', line->size)) != NULL) {
		line_take(line, (size_t)(answer + 1 - line->input));
	}
	if (line->size < sizeof POPPED - 1) {
		return;
	}
	int64_t now = load_now();
	if (redis.load.begin != 0) {
		redis.load.done++;
		histogram_add(&redis.load.latency, now - redis.pushed);
	}
	line_take(line, sizeof POPPED - 1);
	redis.pushed = load_now();
	line_send(line, PUSH POP, sizeof PUSH POP - 1);
}

int redis_handoff_main(char **argv) {
	size_t waiters = strtoul(argv[1], NULL, 10);
	redis.load.base = event_base_new();
	/* One of them holds it. */
	for (size_t i = 0; i <= waiters; i++) {
		line_send(line_new(&redis.load, argv[0], popped), POP, sizeof POP - 1);
	}
	redis.pushed = load_now();
	line_send(line_new(&redis.load, argv[0], popped), PUSH, sizeof PUSH - 1);
	if (load_run(&redis.load, strtod(argv[2], NULL), NULL, NULL) != 0) {
		load_fail("no timer", 0);
	}
	load_print(&redis.load, "grants");
	return 0;
}

/* ---- channels ---- */

static void told(struct line *line) {
	size_t at = 0;
	if (line->size >= sizeof SUBSCRIBED - 1 &&
		memcmp(line->input, SUBSCRIBED, sizeof SUBSCRIBED - 1) == 0) {
		at = sizeof SUBSCRIBED - 1;
		if (++redis.subscribed == redis.wanted) {
			event_base_loopbreak(redis.load.base);
		}
	}
	for (; line->size - at >= MESSAGE_BYTES; at += MESSAGE_BYTES) {
		load_heard(&redis.load, line->input + at + sizeof MESSAGE_HEAD - 1);
	}
	line_take(line, at);
}

static void publish(struct line *line) {
	char text[128], stamp[STAMP_BYTES + 1];
	load_stamp(stamp);
	line->busy = true;
	line_send(line, text, (size_t)snprintf(text, sizeof text,
		"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$16\r\n%s\r\n", stamp));
}

static void published(struct line *line) {
	if (memchr(line->input, '\n', line->size) != NULL) {
		line->size = 0;
		line->busy = false;
		redis.load.done++;
		if (!redis.load.rate && !redis.load.stopping) {
			publish(line);
		}
	}
}

static void pace(void *arg) {
	(void)arg;
	for (size_t i = 0; i < redis.publisher_count; i++) {
		struct line *line = redis.publishers[redis.next++ % redis.publisher_count];
		if (!line->busy) {
			publish(line);
			return;
		}
	}
	redis.load.errors++;
}

int redis_publish_main(char **argv) {
	redis.wanted = strtoul(argv[1], NULL, 10);
	redis.publisher_count = strtoul(argv[2], NULL, 10);
	redis.load.rate = (uint32_t)strtoul(argv[3], NULL, 10);
	redis.load.base = event_base_new();
	for (size_t i = 0; i < redis.wanted; i++) {
		line_send(line_new(&redis.load, argv[0], told), SUBSCRIBE, sizeof SUBSCRIBE - 1);
	}
	event_base_dispatch(redis.load.base);
	redis.publishers = calloc(redis.publisher_count, sizeof(struct line *));
	for (size_t i = 0; i < redis.publisher_count; i++) {
		redis.publishers[i] = line_new(&redis.load, argv[0], published);
		if (!redis.load.rate) {
			publish(redis.publishers[i]);
		}
	}
	if (load_run(&redis.load, strtod(argv[4], NULL), pace, NULL) != 0) {
		load_fail("no timer", 0);
	}
	load_print(&redis.load, "published");
	return 0;
}
