/* log_queue.c: the ring of lines that are still to be written. */
#include "log_queue.h"

#include <string.h>

#include "check.h"

struct log_queue_head {
	uint64_t lost;
	size_t bytes;
};

void log_queue_init(struct log_queue *q, char *room, size_t room_bytes) {
	*q = (struct log_queue){ .room = room, .room_bytes = room_bytes };
}

static void queue_append(struct log_queue *q, const void *from, size_t bytes) {
	size_t at = (q->first + q->used) % q->room_bytes;
	size_t whole = q->room_bytes - at, before = bytes < whole ? bytes : whole;
	memcpy(q->room + at, from, before);
	memcpy(q->room, (const char *)from + before, bytes - before);
	q->used += bytes;
}

static void queue_consume(struct log_queue *q, void *to, size_t bytes) {
	size_t whole = q->room_bytes - q->first, before = bytes < whole ? bytes : whole;
	memcpy(to, q->room + q->first, before);
	memcpy((char *)to + before, q->room, bytes - before);
	q->first = (q->first + bytes) % q->room_bytes;
	q->used -= bytes;
}

void log_queue_put(struct log_queue *q, const char *line, size_t bytes) {
	const struct log_queue_head head = { .lost = q->lost, .bytes = bytes };
	CHECK(bytes > 0 && bytes <= LOG_LINE_MAX);
	if (q->room_bytes - q->used < sizeof head + bytes) {
		q->lost++;
		return;
	}
	q->lost = 0;
	queue_append(q, &head, sizeof head);
	queue_append(q, line, bytes);
}

bool log_queue_take(struct log_queue *q, struct log_queue_item *out) {
	struct log_queue_head head = { .lost = q->lost };
	if (q->used > 0) {
		queue_consume(q, &head, sizeof head);
		queue_consume(q, out->line, head.bytes);
	} else {
		q->lost = 0;
	}
	out->lost = head.lost;
	out->bytes = head.bytes;
	return head.lost > 0 || head.bytes > 0;
}
