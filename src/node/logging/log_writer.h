/* log_writer.h: lines leave this process without ever holding up the thread that says them.
 *
 * Standard error may be a file on a slow disk, a pipe that nobody reads, a terminal that was stopped, or the journal's socket:
 * a write to each of them can block, for ever if need be. So a thread of its own writes, and those who log only fill a bounded
 * queue. The other ways are worse:
 *   - O_NONBLOCK belongs to the open file description, which the shell, the journal and other processes share: setting it
 *     makes their writes fail, and they may take it back at any time. A file ignores it.
 *   - Opening /proc/self/fd/2 anew makes a description of our own from a pipe or a file, but not from a socket, needs the right
 *     to open it, and starts a file at its beginning.
 *   - poll() says that there is room, which another process may take before the write.
 */
#ifndef PAWL_NODE_LOG_WRITER_H
#define PAWL_NODE_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "log_queue.h"

/* Formats the line that says how many were lost; returns its bytes, the end of line included. Called in the thread. */
typedef size_t log_writer_lost(uint64_t lost, char out[LOG_LINE_MAX]);

/* From now on a thread writes to `fd`. 0 or PAWL_ENOMEM: then each line is written by whoever says it, as before this call. */
int log_writer_start(int fd, log_writer_lost *lost);
/* At the end of the process: waits a second at most until everything is written. Nothing is written any more after it that was not by
 * then, and a line that is said later goes into the queue. */
void log_writer_stop(void);
/* One line with its end. Safe from several threads. Blocks only before log_writer_start. */
void log_writer_put(const char *line, size_t bytes);

#endif
