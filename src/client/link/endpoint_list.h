/* endpoint_list.h: the endpoints of a client. The options and the files that they name are the
 * sources; each gives one endpoint or several. Look-ups and files change the list while the client
 * runs, so nobody keeps an index or a pointer into it over a change: endpoint_list_find says where
 * an endpoint is now. */
#ifndef PAWL_CLIENT_ENDPOINT_LIST_H
#define PAWL_CLIENT_ENDPOINT_LIST_H

#include <sys/stat.h>

#include "alloc.h"
#include "endpoint.h"
#include "kept_bytes.h"
#include "look_up.h"
#include "prng.h"

/* How many endpoints the options may have together with their files, and also how many there may
 * be once names were looked up. */
#define ENDPOINTS_MAX 64
#define ENDPOINT_FILE_BYTES_MAX 65536

struct endpoint_source {
	struct endpoint given;

	/* The look-up of the name, while it is under way. Its owner sets it. */
	struct look_up *look_up;
	/* When the last one began, in ns of CLOCK_BOOTTIME; 0: none has. */
	int64_t looked_at;

	/* What the last look-up that found anything has found. */
	struct look_up_place *places;
	size_t place_count;
};

struct endpoint_list {
	const struct allocator *alloc;
	/* Chooses the order of a name's addresses; NULL: they are taken as they come. */
	struct prng *shuffle;

	struct endpoint_source *sources;
	size_t source_count;
	/* The number of the latest source. */
	unsigned last_source;

	struct endpoint *items;
	size_t count;

	/* The text of the options, with its NUL, and the files in it as they were when they were
	 * last read. */
	struct pawl_bytes text;
	struct stat seen[ENDPOINTS_MAX];
	size_t file_count;
	/* Why the files as they are now cannot be used, so that what was read before is still in
	 * use; "" if they can. */
	char problem[480];
};

/* Parses a list of endpoints, separated by commas, and reads the files in it. Returns 0,
 * PAWL_ENOMEM, or PAWL_EINVAL with a sentence in *out_problem (thread-local storage). Free the list
 * with endpoint_list_done. */
int endpoint_list_parse(struct endpoint_list *list, const struct allocator *alloc,
	struct prng *shuffle, const char *text, const char **out_problem);
void endpoint_list_done(struct endpoint_list *list);

/* Reads the files again if any has changed. If that fails, the list stays as it is, and `problem`
 * says why. */
void endpoint_list_read_again(struct endpoint_list *list);

/* Returns the source of that number; NULL: it is not in its file any more. */
struct endpoint_source *endpoint_list_source(struct endpoint_list *list, unsigned number);
/* Returns the source whose look-up this is. */
struct endpoint_source *endpoint_list_looking(struct endpoint_list *list,
	const struct look_up *look_up);
/* Takes what a look-up has found. Addresses that were known before keep their order, and new ones
 * follow. If nothing was found, or there is no memory, those that are known stay. */
void endpoint_list_found(struct endpoint_list *list, struct endpoint_source *source,
	const struct look_up_found *found);

/* Returns the index of this endpoint; or else that of the first one of the same source; or else
 * `otherwise`, or the last index if that is less. */
size_t endpoint_list_find(const struct endpoint_list *list, const struct endpoint *e,
	size_t otherwise);

/* Makes the function the only endpoint, under the name "inside". */
void endpoint_list_dial_by(struct endpoint_list *list, struct endpoint_dial by);

/* ---- endpoint_file.c ---- */

struct endpoint_sources {
	struct endpoint_source items[ENDPOINTS_MAX];
	size_t count;
	struct stat seen[ENDPOINTS_MAX];
	size_t file_count;
	/* The file that is read. */
	char bytes[ENDPOINT_FILE_BYTES_MAX + 1];
};

/* Parses a list with its files. Returns 0 or PAWL_EINVAL, with a sentence in *out_problem
 * (thread-local storage). */
int endpoint_sources_parse(struct endpoint_sources *out, const char *text,
	const char **out_problem);
/* Returns whether one of the files is not as it was. */
bool endpoint_files_changed(const char *text, const struct stat *seen);

#endif
