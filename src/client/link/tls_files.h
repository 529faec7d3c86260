/* tls_files.h: the certificates of a client, read again when their files have changed, so that a
 * client that runs for long goes on after they were renewed. */
#ifndef PAWL_CLIENT_TLS_FILES_H
#define PAWL_CLIENT_TLS_FILES_H

#include <sys/stat.h>

#include "kept_bytes.h"
#include "tls_filter.h"

enum { TLS_FILES = 3 };

struct tls_files {
	/* The paths of the authorities, the certificate and its key, each with a NUL; or none. */
	struct pawl_bytes paths[TLS_FILES];
	/* The files as they were when they were last read. */
	struct stat seen[TLS_FILES];
	/* What is in use; NULL if TLS is not configured. */
	SSL_CTX *context;
	/* Why the files as they are now cannot be used, so that what was read before is still in
	 * use; "" if they can. */
	char problem[256];
};

/* Copies the paths, any of which may be NULL, and reads the files. Returns 0, or an error of
 * tls_filter_context_new. Free it with tls_files_done, also after an error. */
int tls_files_init(struct tls_files *f, const struct allocator *alloc,
	const char *const paths[TLS_FILES], const char **out_problem);
void tls_files_done(struct tls_files *f, const struct allocator *alloc);
/* Returns the context for a new connection, of files that were read again if they have changed. */
SSL_CTX *tls_files_context(struct tls_files *f);
/* Sets up `f` to use what `from` uses now. */
void tls_files_share(struct tls_files *f, struct tls_files *from);

#endif
