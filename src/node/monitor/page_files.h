/* page_files.h: the files of the page for operators, which are part of the program. */
#ifndef PAWL_NODE_PAGE_FILES_H
#define PAWL_NODE_PAGE_FILES_H

#include <stddef.h>
#include <stdint.h>

struct page_file {
	const char *path, *type;
	const uint8_t *data;
	size_t size;
};

extern const struct page_file page_files[];
extern const size_t page_file_count;

#endif
