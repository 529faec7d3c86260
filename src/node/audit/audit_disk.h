/* audit_disk.h: the audit file on the disk. Its functions may block; so the thread of audit_file.c
 * calls them.
 */
#ifndef PAWL_NODE_AUDIT_DISK_H
#define PAWL_NODE_AUDIT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_disk {
	/* Owned. */
	char *path;
	int fd;
	/* It is a file, and not a device. */
	bool regular;
	/* The file ends in the middle of a line. */
	bool torn;
	/* The errno of the last thing that failed since `trouble` was set to 0, and what failed, a
	 * constant. */
	int trouble;
	const char *what;
	/* A sync has failed; whoever looks at it sets it to false before. */
	bool unsynced;
};

/* Returns 0, or PAWL_EIO with a sentence in `why`. It makes nothing. */
int audit_disk_check(const char *path, char *why, size_t why_size);
/* Opens the file to append to it, and sets *size. Returns 0; or PAWL_EIO or PAWL_ENOMEM with a
 * sentence in `why`. audit_disk_close is needed in any case. */
int audit_disk_open(struct audit_disk *d, const char *path, uint64_t *size, char *why,
	size_t why_size);
void audit_disk_close(struct audit_disk *d);

/* Writes whole lines. Returns false if they could not all be written; then none of them is in the
 * file. */
bool audit_disk_write(struct audit_disk *d, const char *bytes, size_t size);
/* Waits until everything is on the disk. */
void audit_disk_sync(struct audit_disk *d);
/* Moves the file to .1, that one to .2 and so on, and begins a new one. If that fails, the file
 * goes on. */
void audit_disk_rotate(struct audit_disk *d, uint32_t keep);
/* Opens the path anew. If that fails, the file that is open goes on. */
void audit_disk_reopen(struct audit_disk *d);

#endif
