/* log_queue.h: the lines of a log that are still to be written, in order, in a bounded space. Lines
 * that do not fit are counted, and the count keeps its place among the lines. This is pure.
 */
#ifndef PAWL_NODE_LOG_QUEUE_H
#define PAWL_NODE_LOG_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest size of a line in bytes, including its end. */
#define LOG_LINE_MAX 2048

/* A ring of bytes, in which each line follows its head. */
struct log_queue {
	/* Borrowed. */
	char *room;
	size_t room_bytes;
	/* Where the oldest line begins, and how many bytes are in use from there on, around the end
	 * of the room. */
	size_t first, used;
	/* The number of lines that were lost after the newest line in the queue. */
	uint64_t lost;
};

/* What is to be written next. */
struct log_queue_item {
	/* How many lines were lost before this one. */
	uint64_t lost;
	/* 0 bytes means that no line follows yet after those that were lost. */
	size_t bytes;
	char line[LOG_LINE_MAX];
};

void log_queue_init(struct log_queue *q, char *room, size_t room_bytes);
/* Appends a line of at most LOG_LINE_MAX bytes. */
void log_queue_put(struct log_queue *q, const char *line, size_t bytes);
/* Returns false if there is nothing to write. */
bool log_queue_take(struct log_queue *q, struct log_queue_item *out);

#endif
