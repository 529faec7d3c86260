/* side_file.h: what a planned stop leaves behind for the next start (docs/protocol.md, section 4): STATE_DIR/drained.
 *
 * Frames as bytes (the codec's), then an end mark with their number and a checksum. It is written under another name,
 * synced and renamed, so there is either a whole file or none. A start reads it, opens everything else that can fail, and
 * renames it away and syncs the directory before anybody hears of this start: so it is never used twice, and a start that fails
 * leaves it for the next one. It names the node and the boot that wrote it: one that is not of the
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

/* ---- at start ---- */
enum side_found {
	SIDE_NONE,   /* There is none: the node did not drain. */
	SIDE_BAD,    /* It is incomplete, damaged, of another node or of another boot. It is removed, *problem says why; recover normally. */
	SIDE_FAILED, /* It cannot be read just now (rights, memory, an I/O error). It stays, *problem says why; the start has failed. */
	SIDE_OPEN    /* It is whole: *out gives its frames. It still lies under its name. */
};
struct side_file;
/* Opens and checks the file. node_id and boot: of the state file as it was loaded. */
enum side_found side_file_open(const char *dir, struct id128 node_id, uint64_t boot, struct side_file **out, struct problem *problem);
/* Renames the file away and syncs the directory: from now on no other start can use it. 0; or PAWL_EIO, and it lies under its name. Blocks. */
int side_file_use(struct side_file *f);
/* Gives the file its name back, when the start fails after side_file_use and before anybody heard of this start. Accepts NULL. */
void side_file_put_back(struct side_file *f);
/* 1: *frame is the next one, valid until the next call; 0: that was all; PAWL_EIO: the start is not a restored one. */
int side_file_next(struct side_file *f, struct slice *frame);
void side_file_free(struct side_file *f); /* removes the file if it is used; accepts NULL */

#endif
