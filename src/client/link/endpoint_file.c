/* endpoint_file.c: reads a list of endpoints, and the files that it names. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "endpoint_list.h"
#include "file_stamp.h"
#include "pawl/error.h"

static const char file_prefix[] = "file:";

/* Where a text comes from: line 0 is the options. */
struct place {
	const char *path;
	unsigned line;
};

static int refuse(const struct place *place, const char *why, const char **out_problem) {
	static _Thread_local char text[480];
	if (place->line) {
		(void)snprintf(text, sizeof(text), "file of endpoints %s, line %u: %s", place->path,
			place->line, why);
	} else if (place->path) {
		(void)snprintf(text, sizeof(text), "file of endpoints %s: %s", place->path, why);
	}
	*out_problem = place->path ? text : why;
	return PAWL_EINVAL;
}

static bool blank(uint8_t c) {
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts off what comes before the next `separator`, without the blanks around it. Returns false if
 * nothing is left. */
static bool cut(struct slice *rest, char separator, struct slice *out) {
	if (!rest->data) {
		return false;
	}
	const uint8_t *start = rest->data, *end = start + rest->size;
	const uint8_t *at = rest->size ? memchr(start, separator, rest->size) : NULL;
	*rest = at ? slice_of(at + 1, (size_t)(end - at - 1)) : slice_of(NULL, 0);
	end = at ? at : end;
	while (start < end && blank(*start)) {
		start++;
	}
	while (end > start && blank(end[-1])) {
		end--;
	}
	*out = slice_of(start, (size_t)(end - start));
	return true;
}

/* An endpoint that is there already is not added again. */
static int add(struct endpoint_sources *out, const struct endpoint *e, const struct place *place,
	const char **out_problem) {
	for (size_t i = 0; i < out->count; i++) {
		if (strcmp(out->items[i].given.text, e->text) == 0) {
			return 0;
		}
	}
	if (out->count == ENDPOINTS_MAX) {
		return refuse(place, "at most 64 endpoints are allowed", out_problem);
	}
	out->items[out->count++] = (struct endpoint_source){ .given = *e };
	return 0;
}

/* Reads the file, which must be small. Returns NULL, or what is wrong. */
static const char *read_all(const char *path, char *to, size_t *out_size) {
	static _Thread_local char text[128];
	/* A pipe must not make the loop wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat now;
	if (fd < 0 || fstat(fd, &now) != 0) {
		const char *why = strerror_r(errno, text, sizeof(text));
		if (fd >= 0) {
			close(fd);
		}
		return why;
	}
	size_t size = 0, room = ENDPOINT_FILE_BYTES_MAX + 1;
	ssize_t n = S_ISREG(now.st_mode) ? 1 : -1;
	bool regular = n > 0;
	while (n > 0 && size < room) {
		n = read(fd, to + size, room - size);
		size += n > 0 ? (size_t)n : 0;
	}
	const char *why = n < 0 ? strerror_r(errno, text, sizeof(text)) : NULL;
	close(fd);
	*out_size = size;
	if (!regular) {
		return "it is no regular file";
	}
	return size == room ? "it is longer than 64 KiB" : why;
}

/* A comma at the end of a line is allowed. */
static int parse_line(struct endpoint_sources *out, struct slice line, const struct place *place,
	bool *out_any, const char **out_problem) {
	struct slice rest = line, one;
	while (cut(&rest, ',', &one)) {
		struct endpoint e;
		if (one.size == 0) {
			continue;
		}
		*out_any = true;
		const char *why = endpoint_parse(one, &e);
		if (!why && e.kind == ENDPOINT_FILE) {
			why = "a file of endpoints names no other file";
		}
		int error = why ? refuse(place, why, out_problem)
			: add(out, &e, place, out_problem);
		if (error) {
			return error;
		}
	}
	return 0;
}

static int parse_lines(struct endpoint_sources *out, struct slice rest, const char *path,
	const char **out_problem) {
	struct place place = { path, 0 };
	bool any = false;
	struct slice line, text, comment;
	if (rest.size && memchr(rest.data, '\0', rest.size)) {
		return refuse(&place, "it is no text", out_problem);
	}
	while (cut(&rest, '\n', &line)) {
		place.line++;
		comment = line;
		(void)cut(&comment, '#', &text);
		int error = parse_line(out, text, &place, &any, out_problem);
		if (error) {
			return error;
		}
	}
	place.line = 0;
	return any ? 0 : refuse(&place, "it has no endpoint", out_problem);
}

/* The file is looked at first: if it changes while it is read, it is read again the next time. */
static int parse_file(struct endpoint_sources *out, const char *path, const char **out_problem) {
	size_t size = 0;
	file_stamp(path, &out->seen[out->file_count++]);
	const char *why = read_all(path, out->bytes, &size);
	return why ? refuse(&(struct place){ path, 0 }, why, out_problem)
		: parse_lines(out, slice_of(out->bytes, size), path, out_problem);
}

int endpoint_sources_parse(struct endpoint_sources *out, const char *text,
	const char **out_problem) {
	const struct place options = { NULL, 0 };
	out->count = out->file_count = 0;
	struct slice rest = slice_str(text), one;
	unsigned given = 0;
	while (cut(&rest, ',', &one)) {
		struct endpoint e;
		const char *why = endpoint_parse(one, &e);
		if (!why && ++given > ENDPOINTS_MAX) {
			why = "at most 64 endpoints are allowed";
		}
		if (why) {
			return refuse(&options, why, out_problem);
		}
		int error = e.kind == ENDPOINT_FILE ? parse_file(out, e.host, out_problem)
			: add(out, &e, &options, out_problem);
		if (error) {
			return error;
		}
	}
	return 0;
}

bool endpoint_files_changed(const char *text, const struct stat *seen) {
	struct slice rest = slice_str(text), one;
	bool changed = false;
	while (cut(&rest, ',', &one)) {
		struct endpoint e;
		if (slice_has_prefix(one, slice_str(file_prefix))
			&& !endpoint_parse(one, &e)) {
			struct stat now;
			file_stamp(e.host, &now);
			changed = changed || !file_stamp_same(&now, seen++);
		}
	}
	return changed;
}
