/* page.h: writes the text of an answer into a bounded buffer. What does not fit, or for which there
 * is no memory, makes the page bad, and then it is not sent. */
#ifndef PAWL_ADMIN_PAGE_H
#define PAWL_ADMIN_PAGE_H

#include <stdbool.h>

#include "buffer.h"
#include "clock.h"

struct page {
	/* Borrowed. */
	struct buffer *to;
	bool bad;
};

/* Each of these appends to the page. */
void page_slice(struct page *p, struct slice text);
void page_text(struct page *p, const char *text);
void page_number(struct page *p, uint64_t n);
void page_signed(struct page *p, int64_t n);
/* Writes a duration in seconds, such as 0.0001 or 1.5, without trailing zeros. */
void page_seconds(struct page *p, uint64_t ns);
/* Writes two hex digits for each byte. */
void page_hex(struct page *p, struct slice bytes);
/* Writes a JSON string with its quotes. Bytes that are not UTF-8 become hex digits. */
void page_json(struct page *p, struct slice text);

#endif
