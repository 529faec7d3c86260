/* exposition.c: families, samples, labels and histograms. */
#include "exposition.h"

#include "json_text.h"

static const char *exposition_type(enum metric_type type) {
	switch (type) {
	case METRIC_GAUGE:
		return "gauge";
	case METRIC_COUNTER:
		return "counter";
	case METRIC_HISTOGRAM:
		return "histogram";
	}
	return "untyped";
}

void exposition_family(struct page *p, const char *name, enum metric_type type, const char *help) {
	page_text(p, "# HELP ");
	page_text(p, name);
	page_text(p, " ");
	page_text(p, help);
	page_text(p, "\n# TYPE ");
	page_text(p, name);
	page_text(p, " ");
	page_text(p, exposition_type(type));
	page_text(p, "\n");
}

/* Writes the value of a label. The format escapes backslash, quote and line end, and no others. A
 * reader refuses all metrics if one value is not UTF-8, so such a value becomes hex digits. */
static void exposition_value(struct page *p, struct slice value) {
	size_t from = 0;
	if (!json_text_valid(value)) {
		page_hex(p, value);
		return;
	}
	for (size_t i = 0; i < value.size; i++) {
		uint8_t c = value.data[i];
		if (c == '\\' || c == '"' || c == '\n') {
			page_slice(p, slice_of(value.data + from, i - from));
			page_text(p, c == '\n' ? "\\n" : c == '"' ? "\\\"" : "\\\\");
			from = i + 1;
		}
	}
	page_slice(p, slice_of(value.data + from, value.size - from));
}

/* Writes the labels. `le` is the bound of a bucket in nanoseconds, 0 for infinity, and negative if
 * the sample is not a bucket. */
static void exposition_labels(struct page *p, const struct label *labels, span_ns le) {
	const char *before = "{";
	for (; labels && labels->name; labels++) {
		page_text(p, before);
		page_text(p, labels->name);
		page_text(p, "=\"");
		exposition_value(p, labels->value);
		page_text(p, "\"");
		before = ",";
	}
	if (le >= 0) {
		page_text(p, before);
		page_text(p, "le=\"");
		if (le > 0) {
			page_seconds(p, (uint64_t)le);
		} else {
			page_text(p, "+Inf");
		}
		page_text(p, "\"");
		before = ",";
	}
	page_text(p, *before == ',' ? "} " : " ");
}

void exposition_number(struct page *p, const char *name, const struct label *labels, uint64_t n) {
	page_text(p, name);
	exposition_labels(p, labels, -1);
	page_number(p, n);
	page_text(p, "\n");
}

void exposition_seconds(struct page *p, const char *name, const struct label *labels, uint64_t ns) {
	page_text(p, name);
	exposition_labels(p, labels, -1);
	page_seconds(p, ns);
	page_text(p, "\n");
}

void exposition_buckets(struct page *p, const char *name, const struct label *labels,
	const struct buckets *b) {
	uint64_t total = 0;
	for (unsigned i = 0; i <= BUCKETS_BOUNDS; i++) {
		total += b->counts[i];
		page_text(p, name);
		page_text(p, "_bucket");
		exposition_labels(p, labels, i < BUCKETS_BOUNDS ? buckets_bound(i) : 0);
		page_number(p, total);
		page_text(p, "\n");
	}
	page_text(p, name);
	page_text(p, "_sum");
	exposition_labels(p, labels, -1);
	page_seconds(p, b->sum);
	page_text(p, "\n");
	page_text(p, name);
	page_text(p, "_count");
	exposition_labels(p, labels, -1);
	page_number(p, total);
	page_text(p, "\n");
}

void exposition_gauge(struct page *p, const char *name, const char *help, uint64_t n) {
	exposition_family(p, name, METRIC_GAUGE, help);
	exposition_number(p, name, NULL, n);
}

void exposition_counter(struct page *p, const char *name, const char *help, uint64_t n) {
	exposition_family(p, name, METRIC_COUNTER, help);
	exposition_number(p, name, NULL, n);
}

void exposition_gauge_seconds(struct page *p, const char *name, const char *help, uint64_t ns) {
	exposition_family(p, name, METRIC_GAUGE, help);
	exposition_seconds(p, name, NULL, ns);
}

void exposition_histogram(struct page *p, const char *name, const char *help,
	const struct buckets *b) {
	exposition_family(p, name, METRIC_HISTOGRAM, help);
	exposition_buckets(p, name, NULL, b);
}
