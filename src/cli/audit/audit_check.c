/* audit_check.c: see audit_check.h.
 *
 * A grant or an extension is a span: nobody counts on it before its line was made, nor after
 * valid_ms from the arrival of the request. (A node counts valid_ms from when the masters were
 * asked, which is not before the arrival, and the masters keep a lease at least so long. So two
 * spans that exclude each other do not overlap, whether or not the client has heard the answer.)
 * What ends a lock cuts its spans at the earliest moment at which it may have taken effect. What
 * shortens a lease cuts those that have begun: the holder trusts none of them for longer than the
 * new lease, which counts from the arrival of the request as well.
 *
 * Within one start of a node its CLOCK_BOOTTIME is compared. Two nodes are compared by their wall
 * clocks, which may differ by rules.clocks_us. */
#include "audit_check.h"

#include <stdlib.h>
#include <string.h>

#define MICROSECONDS 1000

struct span {
	const struct audit_line *line;
	/* By the node's own clock, in microseconds. */
	int64_t from, until;
	/* The place of its beginning among the spans of all nodes. */
	int64_t at;
	struct audit_mode mode;
};

struct check {
	const struct audit_lines *lines;
	const struct audit_rules *rules;
	struct audit_result result;
	struct span *spans;
	size_t span_count, span_capacity;
	/* Lines that end locks, by lock; and those that end all locks of a key, or of all keys. */
	const struct audit_line **ends;
	size_t end_count, end_capacity;
	const struct audit_line **breaks;
	size_t break_count, break_capacity;
	/* Lines before which others are missing. */
	const struct audit_line **gaps;
	size_t gap_count, gap_capacity;
	/* How many lines of the present start of a node are missing, less those that it says it has
	 * dropped; and the lines before and behind the first of these. */
	uint64_t missing;
	const struct audit_line *missing_after, *missing_before;
	int64_t newest, drift_ppm;
	/* The last node of which it is known that it does not tell of grants. */
	uint32_t silent;
};

static void keep_line(const struct audit_line ***lines, size_t *count, size_t *capacity,
	const struct audit_line *line) {
	*lines = audit_grown(*lines, *count, capacity, sizeof **lines);
	(*lines)[(*count)++] = line;
}

static void found(struct check *c, struct audit_finding finding) {
	struct audit_result *r = &c->result;
	r->findings = audit_grown(r->findings, r->count, &r->capacity, sizeof *r->findings);
	r->findings[r->count++] = finding;
	r->violations += !finding.possible;
}

/* ---- time ---- */

/* Tells whether two lines can be compared by CLOCK_BOOTTIME. */
static bool same_clock(const struct check *c, const struct audit_line *a,
	const struct audit_line *b) {
	return c->rules->one_machine || (a->node == b->node && a->boot == b->boot);
}

/* A moment of the other line, by the clock of the line `by`. */
static int64_t moment(const struct check *c, const struct audit_line *by,
	const struct audit_line *other, int64_t mono) {
	return same_clock(c, by, other) ? mono : mono + (other->ts - other->mono) -
		(by->ts - by->mono);
}

/* By how much the clocks of the two lines may differ. */
static int64_t doubt(const struct check *c, const struct audit_line *a,
	const struct audit_line *b) {
	return same_clock(c, a, b) ? 0 : c->rules->clocks_us;
}

/* ---- the order of lines ---- */

static int by_place(const void *left, const void *right) {
	const struct audit_line *a = left, *b = right;
	if (a->node != b->node) {
		return a->node < b->node ? -1 : 1;
	}
	if (a->boot != b->boot) {
		return a->boot < b->boot ? -1 : 1;
	}
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static bool same_line(const struct audit_line *a, const struct audit_line *b) {
	return a->action == b->action && a->key == b->key && a->lock == b->lock &&
		a->token == b->token && a->ts == b->ts && a->mono == b->mono &&
		a->owner == b->owner && a->valid_ms == b->valid_ms;
}

/* A node notices a failed write a little late. So what it has dropped may be told some lines behind
 * the gap, but not after its end. */
static void settle(struct check *c) {
	if (c->missing) {
		found(c, (struct audit_finding){ AUDIT_MISSING, c->missing_after,
			c->missing_before, 0, false });
	}
	c->missing = 0;
}

static void count_missing(struct check *c, const struct audit_line *before,
	const struct audit_line *line, uint64_t between) {
	if (between && !c->missing) {
		c->missing_after = before;
		c->missing_before = line;
	}
	if (line->dropped > c->missing + between) {
		/* More than there can have been. */
		found(c, (struct audit_finding){ AUDIT_MISSING, before, line, 0, false });
		c->missing = 0;
		return;
	}
	c->missing += between - line->dropped;
}

/* Compares a line with the one before it of the same node. */
static void follow(struct check *c, const struct audit_line *before,
	const struct audit_line *line) {
	if (line->boot != before->boot) {
		settle(c);
		if (before->action != AUDIT_CLOSE || line->boot != before->boot + 1) {
			/* A crash: the last lines may be lost. Or a whole start is missing. */
			keep_line(&c->gaps, &c->gap_count, &c->gap_capacity, line);
		}
		return;
	}
	const uint64_t between = line->seq - before->seq - 1;
	if (line->seq == before->seq || line->mono < before->mono) {
		if (line->seq != before->seq || !same_line(before, line)) {
			found(c, (struct audit_finding){ AUDIT_ALTERED, before, line, 0, false });
		}
		return;
	}
	if (between || line->dropped) {
		keep_line(&c->gaps, &c->gap_count, &c->gap_capacity, line);
	}
	count_missing(c, before, line, between);
}

static const struct audit_line *line_before(const struct check *c, const struct audit_line *line) {
	return line > c->lines->lines && line[-1].node == line->node ? line - 1 : NULL;
}

/* ---- spans ---- */

/* What this method does to a lock, it may have done even if its result is an error. */
static bool ends_lock(const struct audit_line *line) {
	return !line->denied && (line->action == AUDIT_RELEASE ||
		(line->action == AUDIT_TRANSFER && !line->not_found) ||
		line->action == AUDIT_DOWNGRADE || line->shorten ||
		(line->action == AUDIT_LOST && line->taken));
}

static void take_line(struct check *c, const struct audit_line *line) {
	c->newest = line->ts > c->newest ? line->ts : c->newest;
	c->drift_ppm = line->drift_ppm > c->drift_ppm ? line->drift_ppm : c->drift_ppm;
	c->result.denied += line->denied;
	if (line->action == AUDIT_OPEN && !line->holders && line->node != c->silent) {
		c->silent = line->node;
		c->result.silent++;
	}
	if ((line->action == AUDIT_ACQUIRE || line->action == AUDIT_EXTEND) && line->ok &&
		line->lock != AUDIT_NONE) {
		c->spans = audit_grown(c->spans, c->span_count, &c->span_capacity,
			sizeof *c->spans);
		c->spans[c->span_count++] = (struct span){ line, line->mono,
			line->mono - line->took + line->valid_ms * MICROSECONDS,
			c->rules->one_machine ? line->mono : line->ts, line->mode };
		c->result.grants += line->action == AUDIT_ACQUIRE;
	}
	if (ends_lock(line)) {
		keep_line(&c->ends, &c->end_count, &c->end_capacity, line);
	} else if (line->action == AUDIT_FORCE || (line->action == AUDIT_BREAK && line->now)) {
		keep_line(&c->breaks, &c->break_count, &c->break_capacity, line);
	}
}

static int by_lock(const void *left, const void *right) {
	const struct audit_line *a = *(const struct audit_line *const *)left,
		*b = *(const struct audit_line *const *)right;
	return a->lock < b->lock ? -1 : a->lock > b->lock;
}

static void cut(const struct check *c, struct span *span, const struct audit_line *end) {
	int64_t at = moment(c, span->line, end, end->mono - end->took) - doubt(c, span->line, end);
	if (end->shorten) {
		if (moment(c, span->line, end, end->mono) + doubt(c, span->line, end) <
			span->from) {
			/* It is not known which extensions have named this shortening. */
			return;
		}
		/* An answer that is not ok does not say how long the lease is. */
		at += end->valid_ms * MICROSECONDS;
	}
	span->until = at < span->until ? at : span->until;
}

/* Ends what was released, given away or taken away. */
static void cut_all(struct check *c) {
	if (c->end_count) {
		qsort(c->ends, c->end_count, sizeof *c->ends, by_lock);
	}
	for (size_t i = 0; i < c->span_count; i++) {
		struct span *span = &c->spans[i];
		size_t low = 0, high = c->end_count;
		while (low < high) {
			const size_t middle = low + (high - low) / 2;
			if (c->ends[middle]->lock < span->line->lock) {
				low = middle + 1;
			} else {
				high = middle;
			}
		}
		for (; low < c->end_count && c->ends[low]->lock == span->line->lock; low++) {
			cut(c, span, c->ends[low]);
		}
		for (size_t k = 0; k < c->break_count; k++) {
			const struct audit_line *b = c->breaks[k];
			const bool after = moment(c, span->line, b, b->mono) +
				doubt(c, span->line, b) >= span->from;
			if (after && (b->action == AUDIT_FORCE || b->key == span->line->key)) {
				cut(c, span, b);
			}
		}
	}
}

static int by_key_and_time(const void *left, const void *right) {
	const struct span *a = left, *b = right;
	if (a->line->key != b->line->key) {
		return a->line->key < b->line->key ? -1 : 1;
	}
	return a->at < b->at ? -1 : a->at > b->at;
}

/* ---- the judgement ---- */

static bool known(const struct audit_mode *m) {
	return m->exclusive || m->shared || m->of;
}

static bool exclude(const struct span *a, const struct span *b) {
	const struct audit_mode *m = &a->mode, *n = &b->mode;
	if (a->line->lock == b->line->lock || !known(m) || !known(n) || (m->shared && n->shared)) {
		return false;
	}
	if (m->exclusive || m->shared || n->exclusive || n->shared) {
		return true;
	}
	return m->of != n->of || (m->slots[0] & n->slots[0]) || (m->slots[1] & n->slots[1]);
}

/* Tells whether a line that explains it may be missing: one of any node, between the beginning of
 * the one and that of the other. */
static bool may_be_explained(const struct check *c, const struct audit_line *first,
	const struct audit_line *then) {
	if (then->ts > c->newest - c->rules->copied_us) {
		return true;
	}
	for (size_t i = 0; i < c->gap_count; i++) {
		const struct audit_line *before = line_before(c, c->gaps[i]);
		const int64_t clocks = c->rules->clocks_us;
		if (c->gaps[i]->ts >= first->ts - clocks &&
			(!before || before->ts <= then->ts + clocks)) {
			return true;
		}
	}
	return false;
}

/* Tells whether the last findings have the same two locks. */
static bool told(const struct check *c, const struct audit_line *a, const struct audit_line *b) {
	const struct audit_result *r = &c->result;
	for (size_t i = r->count; i > 0 && r->findings[i - 1].then->key == b->key; i--) {
		const struct audit_finding *f = &r->findings[i - 1];
		if ((f->first->lock == a->lock && f->then->lock == b->lock) ||
			(f->first->lock == b->lock && f->then->lock == a->lock)) {
			return true;
		}
	}
	return false;
}

static void compare_spans(struct check *c, const struct span *a, const struct span *b) {
	if (!exclude(a, b)) {
		return;
	}
	/* A span is below 2^40 microseconds, and the drift below 2^20 millionths. */
	const int64_t drift = same_clock(c, a->line, b->line) ? 0
		: (a->until - a->from) * c->drift_ppm / 1000000;
	const int64_t from = moment(c, a->line, b->line, b->from),
		until = moment(c, a->line, b->line, b->until),
		begins = from > a->from ? from : a->from,
		ends = until < a->until ? until : a->until,
		overlap = ends - begins - doubt(c, a->line, b->line) - drift;
	if (overlap > 0 && !told(c, a->line, b->line)) {
		found(c, (struct audit_finding){ AUDIT_OVERLAP, a->line, b->line, overlap,
			may_be_explained(c, a->line, b->line) });
	}
}

/* `a` was answered before `b` was asked for: its token is the smaller one. */
static void compare_tokens(struct check *c, const struct span *a, const struct span *b) {
	if (!exclude(a, b) || b->line->action != AUDIT_ACQUIRE ||
		told(c, a->line, b->line)) {
		return;
	}
	const int64_t asked = moment(c, a->line, b->line, b->from - b->line->took);
	const bool before = a->from + doubt(c, a->line, b->line) < asked;
	if (a->line->token == b->line->token || (before && a->line->token > b->line->token)) {
		found(c, (struct audit_finding){ AUDIT_TOKENS, a->line, b->line, 0, false });
	}
}

/* An extension of a lock that is no permit does not say its mode. */
static void inherit_mode(struct span *spans, size_t i) {
	for (size_t k = i; k > 0 && !known(&spans[i].mode); k--) {
		if (spans[k - 1].line->lock == spans[i].line->lock) {
			spans[i].mode = spans[k - 1].mode;
			return;
		}
	}
}

/* The span with the highest token of those that were answered before this one was asked for. The
 * first `count` are in order, and highest[i] is that of the first i + 1. */
static const struct span *highest_before(const struct check *c, const struct span *spans,
	const size_t *highest, size_t count, const struct span *span) {
	const int64_t asked = span->at - span->line->took -
		(c->rules->one_machine ? 0 : c->rules->clocks_us);
	size_t low = 0, high = count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (spans[middle].at < asked) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low && highest[low - 1] != SIZE_MAX ? &spans[highest[low - 1]] : NULL;
}

/* Keeps the index of the highest token: of all locks, or of the exclusive ones. */
static void keep_highest(const struct span *spans, size_t *highest, size_t i, bool counts) {
	const size_t before = i ? highest[i - 1] : SIZE_MAX;
	highest[i] = counts && (before == SIZE_MAX ||
		spans[i].line->token > spans[before].line->token) ? i : before;
}

/* Compares a span with those that may still be held, and drops those that are over. Returns how
 * many are left. */
static size_t compare_open(struct check *c, const struct span *spans, size_t i, size_t *open,
	size_t count) {
	size_t kept = 0;
	for (size_t k = 0; k < count; k++) {
		const struct span *other = &spans[open[k]];
		if (spans[i].until > spans[i].from) {
			compare_spans(c, other, &spans[i]);
		}
		compare_tokens(c, other, &spans[i]);
		if (moment(c, other->line, spans[i].line, spans[i].from) <=
			other->until + c->rules->clocks_us) {
			open[kept++] = open[k];
		}
	}
	return kept;
}

/* Spans of one key, in the order of their beginnings. `room` is for three numbers of each. */
static void check_key(struct check *c, struct span *spans, size_t count, size_t *room) {
	size_t *open = room, *all = room + count, *exclusive = room + 2 * count, open_count = 0;
	for (size_t i = 0; i < count; i++) {
		inherit_mode(spans, i);
		open_count = compare_open(c, spans, i, open, open_count);
		const struct span *than = highest_before(c, spans,
			spans[i].mode.exclusive ? all : exclusive, i, &spans[i]);
		if (than) {
			compare_tokens(c, than, &spans[i]);
		}
		keep_highest(spans, all, i, true);
		keep_highest(spans, exclusive, i, spans[i].mode.exclusive);
		open[open_count++] = i;
	}
}

static void check_spans(struct check *c) {
	size_t *room = calloc(3 * c->span_count + 1, sizeof *room);
	if (!room) {
		fputs("pawl: audit: out of memory\n", stderr);
		exit(2);
	}
	for (size_t i = 0, next; i < c->span_count; i = next) {
		for (next = i; next < c->span_count &&
			c->spans[next].line->key == c->spans[i].line->key;) {
			next++;
		}
		c->result.keys++;
		check_key(c, &c->spans[i], next - i, room);
	}
	free(room);
}

struct audit_result audit_check(struct audit_lines *lines, const struct audit_rules *rules) {
	struct check c = { .lines = lines, .rules = rules, .newest = INT64_MIN,
		.silent = AUDIT_NONE };
	if (lines->count) {
		qsort(lines->lines, lines->count, sizeof *lines->lines, by_place);
	}
	for (size_t i = 0; i < lines->count; i++) {
		const struct audit_line *line = &lines->lines[i], *before = line_before(&c, line);
		c.result.nodes += before == NULL;
		if (before) {
			follow(&c, before, line);
		} else {
			settle(&c);
			/* What the node wrote before is not known. */
			keep_line(&c.gaps, &c.gap_count, &c.gap_capacity, line);
		}
		/* The same file may have been named twice. */
		if (!before || before->boot != line->boot || before->seq != line->seq) {
			take_line(&c, line);
		}
	}
	settle(&c);
	cut_all(&c);
	if (c.span_count) {
		qsort(c.spans, c.span_count, sizeof *c.spans, by_key_and_time);
	}
	check_spans(&c);
	free(c.spans);
	free(c.ends);
	free(c.breaks);
	free(c.gaps);
	return c.result;
}
