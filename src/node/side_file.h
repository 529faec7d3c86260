/* side_file.h: what a planned stop leaves behind for the next start (docs/protocol.md, section 4): STATE_DIR/drained.
 *
 * Frames as bytes (the codec's), then an end mark with their number and a checksum. It is written under another name,
 * synced and renamed, so there is either a whole file or none; at a start it is renamed away and the directory synced before
 * a byte of it is handed out, so it is never used twice. It names the node and the boot that wrote it: one that is not of the
 * last start (a state directory put back from a copy) is ignored.
 */
#ifndef PAWL_NODE_SIDE_FILE_H
#define PAWL_NODE_SIDE_FILE_H

#include "core.h"
#include "problem.h"

/* Larger frames are a bug: the codec cuts snapshots in frames of about FRAME_BYTES_MAX. */
#define SIDE_FRAME_BYTES_MAX (2u * FRAME_BYTES_MAX)

/* ---- at drain ---- */
struct side_writer;
/* node_id and boot: of the running node (core_status.boot). 0, PAWL_EIO or PAWL_ENOMEM. */
int side_writer_open(const char *dir, struct id128 node_id, uint64_t boot, struct side_writer **out);
int side_writer_add(struct side_writer *w, struct slice frame); /* 0 or PAWL_EIO */
/* End mark, sync, rename, sync of the directory. Blocks. Frees the writer in any case; on an error there is no side file and
 * the next start recovers as after a crash. */
int side_writer_finish(struct side_writer *take_w);
void side_writer_abort(struct side_writer *take_w); /* accepts NULL */

/* ---- at start, before CORE_START ---- */
enum side_found {
	SIDE_NONE,   /* there is none: the node did not drain */
	SIDE_BAD,    /* incomplete, damaged, of another node or another boot: put aside, *problem says why; recover normally */
	SIDE_TAKEN   /* whole, renamed away, synced: *out gives its frames */
};
struct side_file;
/* node_id and boot: of the state file as it was loaded. */
enum side_found side_file_take(const char *dir, struct id128 node_id, uint64_t boot, struct side_file **out, struct problem *problem);
/* 1: *frame is the next one, valid until the next call; 0: that was all; PAWL_EIO: the start is not a restored one. */
int side_file_next(struct side_file *f, struct slice *frame);
void side_file_free(struct side_file *f); /* removes the used file; accepts NULL */

#endif
