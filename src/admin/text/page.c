/* page.c: numbers, durations and strings as text. */
#include "page.h"

#include "json_text.h"

void page_slice(struct page *p, struct slice text) {
	p->bad = p->bad || buffer_append(p->to, text.data, text.size) != 0;
}

void page_text(struct page *p, const char *text) {
	page_slice(p, slice_str(text));
}

/* Writes the number in at least `width` digits. */
static void page_digits(struct page *p, uint64_t n, size_t width) {
	char digits[24];
	size_t at = sizeof digits;
	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0 || sizeof digits - at < width);
	page_slice(p, slice_of(digits + at, sizeof digits - at));
}

void page_number(struct page *p, uint64_t n) {
	page_digits(p, n, 1);
}

void page_signed(struct page *p, int64_t n) {
	if (n < 0) {
		page_text(p, "-");
	}
	page_number(p, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

void page_seconds(struct page *p, uint64_t ns) {
	uint64_t rest = ns % (uint64_t)SPAN_S;
	size_t width = 9;
	page_number(p, ns / (uint64_t)SPAN_S);
	if (rest == 0) {
		return;
	}
	while (rest % 10 == 0) {
		rest /= 10;
		width--;
	}
	page_text(p, ".");
	page_digits(p, rest, width);
}

void page_hex(struct page *p, struct slice bytes) {
	uint8_t *room = p->bad ? NULL : buffer_reserve(p->to, 2 * bytes.size);
	if (!room) {
		p->bad = true;
		return;
	}
	buffer_commit(p->to, json_text_hex((char *)room, bytes));
}

void page_json(struct page *p, struct slice text) {
	uint8_t *room = p->bad ? NULL
		: buffer_reserve(p->to, text.size * JSON_TEXT_GROWTH + 2);
	if (!room) {
		p->bad = true;
		return;
	}
	char *to = (char *)room;
	*to++ = '"';
	to += json_text_valid(text) ? json_text_escape(to, text) : json_text_hex(to, text);
	*to++ = '"';
	buffer_commit(p->to, (size_t)(to - (char *)room));
}
