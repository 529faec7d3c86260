/* tally.c: counts parties in a fixed number of rows. */
#include "tally.h"

#include <stddef.h>

static struct tally_row *tally_row(struct tally *t, uint64_t name) {
	struct tally_row *empty = NULL;
	for (size_t i = 0; i < TALLY_ROWS; i++) {
		struct tally_row *row = &t->rows[i];
		if (row->count > 0 && row->name == name) {
			return row;
		}
		empty = row->count == 0 ? row : empty;
	}
	return empty;
}

/* No row is left. The new count and all rows lose the same amount, until one of them is empty. */
static uint64_t tally_cancel(struct tally *t, uint64_t count) {
	uint64_t least = count;
	for (size_t i = 0; i < TALLY_ROWS; i++) {
		least = t->rows[i].count < least ? t->rows[i].count : least;
	}
	for (size_t i = 0; i < TALLY_ROWS; i++) {
		t->rows[i].count -= least;
	}
	return count - least;
}

void tally_add(struct tally *t, uint64_t name, uint64_t count, uint64_t part, struct slice text) {
	t->total += count;
	struct tally_row *row = NULL;
	while (count > 0 && (row = tally_row(t, name)) == NULL) {
		count = tally_cancel(t, count);
	}
	if (count > 0) {
		*row = (struct tally_row){ name, row->count + count, part, text };
	}
}

const struct tally_row *tally_most(const struct tally *t) {
	const struct tally_row *most = NULL;
	for (size_t i = 0; i < TALLY_ROWS; i++) {
		if (t->rows[i].count > 0 && (!most || t->rows[i].count > most->count)) {
			most = &t->rows[i];
		}
	}
	return most;
}
