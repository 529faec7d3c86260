/* fence_file.h: the file of a store of tokens. It has a header, and then records; each record has
 * everything that is known about one name. The file only grows, until it is rewritten under another
 * name and moved into its place. Whoever reads or writes it holds its lock (flock).
 *
 *   record: the length of the name (2 bytes), the same with all bits inverted (2), the highest
 *           exclusive token (8), the highest token (8), the name, a checksum of all that (8);
 *           numbers have their low byte first
 *
 * A crash can leave a part of one record at the end. Nobody was told that it is stored, so it is
 * cut off. Anything else that is not a record is damage. */
#ifndef PAWL_CLIENT_FENCE_FILE_H
#define PAWL_CLIENT_FENCE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "alloc.h"
#include "slice.h"

struct fence_record {
	struct slice name;
	/* The highest token of an exclusive lock, and the highest token of any lock. */
	uint64_t exclusive, highest;
};

struct fence_file {
	const struct allocator *alloc;

	/* -1 if they are closed. */
	int dir, fd;

	/* The name of the file in `dir`. */
	char *name;
	size_t name_size;

	/* All records before this position have been handed out. */
	off_t read_to;

	/* How many records have been handed out. */
	size_t records;

	/* Some of these records may not be on disk: another process may have died before it synced
	 * them. */
	bool unsynced;

	/* After a crash of the machine the name could lead to no file, or to the file before it was
	 * rewritten, because the directory has not been synced. */
	bool unnamed;

	/* The disk has refused to confirm a write, so nothing is known any more. */
	bool failed;
};

/* Takes each record that is read. An error ends the reading. */
typedef int fence_take_fn(void *ctx, const struct fence_record *record);
/* Gives the next record to be written. Returns false if there are no more. */
typedef bool fence_next_fn(void *ctx, struct fence_record *out);

/* All functions below that return an int return 0, PAWL_EIO (errno tells why; 0 means that the file
 * is damaged, or not such a file), PAWL_ENOMEM, or the error of `take`. */
int fence_file_open(struct fence_file *file, const struct allocator *alloc, const char *path);
void fence_file_close(struct fence_file *file);
/* Takes the lock, and hands out the records that are new since the last time; if somebody has
 * rewritten the file, these are all records. After an error the lock is not held. */
int fence_file_lock(struct fence_file *file, fence_take_fn *take, void *ctx);
void fence_file_unlock(struct fence_file *file);
/* The functions below need the lock. */

/* Appends a record and waits until it is on disk. */
int fence_file_append(struct fence_file *file, const struct fence_record *record);
/* Waits until all records that were handed out are on disk. */
int fence_file_sync(struct fence_file *file);
/* Rewrites the file so that it has only the given records. If the new file cannot be made, the old
 * one stays in use, and that is no error. PAWL_EIO means that the disk has not confirmed which of
 * the two files bears the name. */
int fence_file_rewrite(struct fence_file *file, fence_next_fn *next, void *ctx, size_t count);

#endif
