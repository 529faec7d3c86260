/* fence_file.h: the file of a fence: a header, then records, each the whole of what is known of one name. It only grows, until it
 * is written anew under another name and moved into its place. Who reads or writes holds its lock (flock).
 *
 *   record: length of the name (2 bytes), the same with its bits turned, highest exclusive token (8), highest token (8),
 *           the name, checksum of all that (8); numbers with the low byte first
 *
 * A crash can leave a part of one record at the end, which was not confirmed to anybody: it is cut off. Anything else that is
 * not a record is damage.
 */
#ifndef PAWL_CLIENT_FENCE_FILE_H
#define PAWL_CLIENT_FENCE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "alloc.h"
#include "slice.h"

struct fence_record {
	struct slice name;
	uint64_t exclusive, highest;
};

struct fence_file {
	const struct allocator *alloc;
	int dir, fd; /* -1: closed */
	char *name;  /* in dir */
	size_t name_size;
	off_t read_to;  /* records up to here have been handed out */
	size_t records; /* of them */
	bool unsynced;  /* some of them are perhaps not on disk: another process may have died before that */
	bool unnamed;   /* after a crash of the machine the name may lead to no file yet, or to the one before it was written anew */
	bool failed;    /* the disk refused to confirm: nothing is known any more */
};

/* What the reader does with each record; an error ends the reading. */
typedef int fence_take_fn(void *ctx, const struct fence_record *record);
/* The next name to be written; false: there are no more. */
typedef bool fence_next_fn(void *ctx, struct fence_record *out);

/* All of these: 0, PAWL_EIO (errno tells; 0: damaged, or no such file), PAWL_ENOMEM, or what `take` returned. */
int fence_file_open(struct fence_file *file, const struct allocator *alloc, const char *path);
void fence_file_close(struct fence_file *file);
/* Takes the lock, and hands out what is new since the last time: everything where somebody has written the file anew. On an error
 * the lock is not held. */
int fence_file_lock(struct fence_file *file, fence_take_fn *take, void *ctx);
void fence_file_unlock(struct fence_file *file);
/* With the lock held: */
int fence_file_append(struct fence_file *file, const struct fence_record *record); /* and it is on disk */
int fence_file_sync(struct fence_file *file);                                      /* all that was handed out is */
/* Only these from now on. Where the new file cannot be had the old one goes on, and that is no error: PAWL_EIO says that the disk has not
 * confirmed which of the two bears the name. */
int fence_file_rewrite(struct fence_file *file, fence_next_fn *next, void *ctx, size_t count);

#endif
