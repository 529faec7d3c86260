/* suggest.c: the distance between two words is the number of letters to insert, remove or replace,
 * or of neighbours to exchange, that makes one of the other. */
#include "suggest.h"

#include <stdbool.h>
#include <string.h>

/* Longer words are no typing errors of a name. */
#define WORD_MAX 32

static size_t least(size_t a, size_t b) {
	return a < b ? a : b;
}

static size_t distance(const char *a, const char *b) {
	size_t m = strlen(a), n = strlen(b), rows[WORD_MAX + 1][WORD_MAX + 1];
	for (size_t i = 0; i <= m; i++) {
		for (size_t k = 0; k <= n; k++) {
			if (i == 0 || k == 0) {
				rows[i][k] = i + k;
				continue;
			}
			bool same = a[i - 1] == b[k - 1];
			size_t d = least(rows[i - 1][k - 1] + !same,
				least(rows[i - 1][k], rows[i][k - 1]) + 1);
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
				d = least(d, rows[i - 2][k - 2] + 1);
			}
			rows[i][k] = d;
		}
	}
	return rows[m][n];
}

void suggest_try(struct suggestion *s, const char *name) {
	size_t size = strlen(s->word), name_size = strlen(name);
	if (size == 0 || size > WORD_MAX || name_size > WORD_MAX) {
		return;
	}
	/* A word of three letters may have one that is wrong, and a longer one two. Whoever has
	 * typed half of a long name has meant it, too. */
	size_t d = distance(s->word, name), most = size < 4 ? 1 : 2;
	if (d > most && size > 3 && size < name_size && strncmp(s->word, name, size) == 0) {
		d = most;
	}
	if (d <= most && d < name_size && (!s->best || d < s->distance)) {
		s->best = name;
		s->distance = d;
	}
}
