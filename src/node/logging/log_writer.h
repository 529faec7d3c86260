/* log_writer.h: writes log lines without ever holding up the thread that logs.
 *
 * Standard error may be a file on a slow disk, a pipe that nobody reads, a terminal that was
 * stopped, or the journal's socket. A write to each of them can block, even forever. So a thread of
 * its own writes, and those who log only fill a bounded queue. The other ways are worse:
 *
 *   - O_NONBLOCK belongs to the open file description, which the shell, the journal and other
 *     processes share. Setting it makes their writes fail, and they may take it back at any time. A
 *     file ignores it.
 *   - Opening /proc/self/fd/2 anew makes a description of our own from a pipe or a file, but not
 *     from a socket. It needs permission to open, and it starts a file at its beginning.
 *   - poll() says that there is room, which another process may take before the write.
 */
#ifndef PAWL_NODE_LOG_WRITER_H
#define PAWL_NODE_LOG_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "log_queue.h"

/* Formats the line that says how many lines were lost. Returns its number of bytes, including the
 * end of line. It is called in the thread. */
typedef size_t log_writer_lost(uint64_t lost, char out[LOG_LINE_MAX]);

/* From now on a thread writes to `fd`. Returns 0; or PAWL_ENOMEM, and then each line is written by
 * the thread that logs it, as before this call. */
int log_writer_start(int fd, log_writer_lost *lost);
/* To be called at the end of the process. Waits at most a second until everything is written. What
 * was not written by then is never written, and lines that are logged later only go into the
 * queue. */
void log_writer_stop(void);
/* Writes one line with its end. Several threads may call it at once. It blocks only before
 * log_writer_start. */
void log_writer_put(const char *line, size_t bytes);

#endif
