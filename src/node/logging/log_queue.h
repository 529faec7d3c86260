/* log_queue.h: the lines of a log that are still to be written, in order, in a bounded room. What does not fit is counted, and
 * the count stands at its place among the lines. Pure. */
#ifndef PAWL_NODE_LOG_QUEUE_H
#define PAWL_NODE_LOG_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOG_LINE_MAX 2048 /* bytes of one line, its end included */

/* A ring of bytes: each line stands in it behind its head. */
struct log_queue {
	/* Borrowed. */
	char *room;
	size_t room_bytes;
	/* Where the oldest line begins, and how many bytes are in use from there on, around the end of the room. */
	size_t first, used;
	/* How many lines were lost since the newest one that is in the queue. */
	uint64_t lost;
};

/* What is to be written next. */
struct log_queue_item {
	/* How many lines were lost before this one. */
	uint64_t lost;
	/* 0 bytes: there is no line yet behind those that were lost. */
	size_t bytes;
	char line[LOG_LINE_MAX];
};

void log_queue_init(struct log_queue *q, char *room, size_t room_bytes);
/* At most LOG_LINE_MAX bytes. */
void log_queue_put(struct log_queue *q, const char *line, size_t bytes);
/* False: there is nothing to say. */
bool log_queue_take(struct log_queue *q, struct log_queue_item *out);

#endif
