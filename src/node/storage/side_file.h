/* side_file.h: the file STATE_DIR/drained, which a planned stop leaves for the next start
 * (docs/protocol.md, section 4).
 *
 * It contains frames as bytes (the codec's), and then an end mark with their number and a checksum.
 * It is written under another name, synced and renamed, so there is either a whole file or none. A
 * start reads it and opens everything else that can fail. Then it renames the file away and syncs
 * the directory before any other node hears of this start. So a file is never used twice, and a
 * start that fails leaves it for the next one. The file names the node and the boot that wrote it.
 * If it was not written by the last run (a state directory put back from a copy), it is ignored.
 */
#ifndef PAWL_NODE_SIDE_FILE_H
#define PAWL_NODE_SIDE_FILE_H

#include "core.h"
#include "problem.h"

/* The largest size of a frame, in bytes. A larger one is a bug, because the codec cuts snapshots
 * into frames of about FRAME_BYTES_MAX. */
#define SIDE_FRAME_BYTES_MAX (2u * FRAME_BYTES_MAX)

/* ---- at drain ---- */
struct side_writer;

/* Begins a file. node_id and boot are those of the running node (core_status.boot). Returns 0,
 * PAWL_EIO or PAWL_ENOMEM. */
int side_writer_open(const char *dir, struct id128 node_id, uint64_t boot,
	struct side_writer **out);
/* Returns 0 or PAWL_EIO. */
int side_writer_add(struct side_writer *w, struct slice frame);
/* Writes the end mark, syncs the file, renames it, and syncs the directory. Blocks. It frees the
 * writer in any case. After an error there is no side file, and the next start recovers as after a
 * crash. Returns 0 or PAWL_EIO. */
int side_writer_finish(struct side_writer *take_w);
/* Frees the writer and removes what it has written. Accepts NULL. */
void side_writer_abort(struct side_writer *take_w);

/* ---- at start ---- */
enum side_status {
	/* There is no file: the node did not drain. */
	SIDE_NONE,
	/* The file is incomplete or damaged, or belongs to another node or another boot. It has
	 * been removed, *problem says why, and the node recovers normally. */
	SIDE_BAD,
	/* The file cannot be read just now (permissions, memory, an I/O error). It stays, *problem
	 * says why, and the start has failed. */
	SIDE_FAILED,
	/* The file is whole, and *out gives its frames. It still has its name. */
	SIDE_OPEN
};

struct side_file;
/* Opens and checks the file. node_id and boot are those of the state file as it was loaded. */
enum side_status side_file_open(const char *dir, struct id128 node_id, uint64_t boot,
	struct side_file **out, struct problem *problem);
/* Renames the file away and syncs the directory; from now on no other start can use it. Blocks.
 * Returns 0; or PAWL_EIO, and then the file still has its name. */
int side_file_use(struct side_file *f);
/* Gives the file its name back, if the start fails after side_file_use and before any other node
 * has heard of this start. Accepts NULL. */
void side_file_put_back(struct side_file *f);
/* Returns 1 if *frame is the next frame, which is valid until the next call; 0 after the last
 * frame; or PAWL_EIO, and then nothing is restored by this start. */
int side_file_next(struct side_file *f, struct slice *frame);
/* Removes the file if it is used. Accepts NULL. */
void side_file_free(struct side_file *f);

#endif
