/* progress.c: shows the steps of a long command, one below the other or on one line that is
 * rewritten. */
#include "progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "output.h"

void progress_init(struct progress *p, FILE *to) {
	*p = (struct progress){ .to = to };
	p->rewrites = to && isatty(fileno(to)) == 1;
}

static void wipe(struct progress *p) {
	if (p->open) {
		fputs("\r\033[K", p->to);
		p->open = false;
	}
}

static void put_amount(FILE *to, int64_t done, int64_t total) {
	if (total > 0) {
		int64_t shown = done < total ? done : total;
		fprintf(to, ": %" PRId64 " of %" PRId64 " (%d%%)", shown, total,
			(int)((double)shown * 100 / (double)total));
	} else if (done > 0) {
		fprintf(to, ": %" PRId64, done);
	}
}

void progress_step(struct progress *p, const char *step, int64_t done, int64_t total) {
	bool same = strcmp(step, p->last) == 0;
	if (!p->to || (same && !p->rewrites)) {
		return;
	}
	snprintf(p->last, sizeof p->last, "%s", step);
	wipe(p);
	fputs(step, p->to);
	if (p->rewrites) {
		put_amount(p->to, done, total);
	} else {
		fputc('\n', p->to);
	}
	p->open = p->rewrites;
	fflush(p->to);
}

void progress_say(struct progress *p, const char *format, ...) {
	if (!p->to) {
		return;
	}
	wipe(p);
	va_list args;
	va_start(args, format);
	output_line_of(p->to, format, args);
	va_end(args);
	fflush(p->to);
}

void progress_end(struct progress *p) {
	if (p->to) {
		wipe(p);
		fflush(p->to);
	}
}
