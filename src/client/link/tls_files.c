/* tls_files.c: reads certificates again when their files have changed, see tls_files.h. */
#include "tls_files.h"

#include <stdio.h>
#include <string.h>

#include "file_stamp.h"

static const char *path_of(const struct tls_files *f, size_t i) {
	return f->paths[i].data;
}

static void look(const struct tls_files *f, struct stat out[TLS_FILES]) {
	memset(out, 0, TLS_FILES * sizeof(out[0]));
	for (size_t i = 0; i < TLS_FILES; i++) {
		if (path_of(f, i)) {
			file_stamp(path_of(f, i), &out[i]);
		}
	}
}

/* The files are looked at first: if they change while they are read, they are read again the next
 * time. */
static int read_files(struct tls_files *f, SSL_CTX **out, const char **out_problem) {
	look(f, f->seen);
	return tls_filter_context_new(path_of(f, 0), path_of(f, 1), path_of(f, 2), out,
		out_problem);
}

int tls_files_init(struct tls_files *f, const struct allocator *alloc,
	const char *const paths[TLS_FILES], const char **out_problem) {
	int error = 0;
	*f = (struct tls_files){ 0 };
	for (size_t i = 0; !error && i < TLS_FILES; i++) {
		const size_t size = paths[i] ? strlen(paths[i]) + 1 : 0;
		error = kept_bytes_copy(alloc, (struct pawl_bytes){ paths[i], size },
			&f->paths[i]);
	}
	return error ? error : read_files(f, &f->context, out_problem);
}

void tls_files_done(struct tls_files *f, const struct allocator *alloc) {
	for (size_t i = 0; i < TLS_FILES; i++) {
		kept_bytes_free(alloc, f->paths[i]);
	}
	tls_filter_context_free(f->context);
	*f = (struct tls_files){ 0 };
}

SSL_CTX *tls_files_context(struct tls_files *f) {
	struct stat now[TLS_FILES];
	bool changed = false;
	look(f, now);
	for (size_t i = 0; i < TLS_FILES; i++) {
		changed = changed || !file_stamp_same(&now[i], &f->seen[i]);
	}
	if (!f->context || !changed) {
		return f->context;
	}
	SSL_CTX *fresh = NULL;
	const char *problem = "there is no memory";
	if (read_files(f, &fresh, &problem) == 0) {
		/* Connections that are up keep the old one for themselves. */
		tls_filter_context_free(f->context);
		f->context = fresh;
		f->problem[0] = '\0';
	} else {
		(void)snprintf(f->problem, sizeof(f->problem),
			"; the files have changed, and those from before are still in use: %s",
			problem);
	}
	return f->context;
}

void tls_files_share(struct tls_files *f, struct tls_files *from) {
	*f = (struct tls_files){ .context = tls_files_context(from) };
	if (f->context) {
		SSL_CTX_up_ref(f->context);
	}
}
