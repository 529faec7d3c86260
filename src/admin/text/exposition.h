/* exposition.h: writes metrics in the text format of Prometheus, version 0.0.4. A metric is a
 * family, which is written once, and then its samples. */
#ifndef PAWL_ADMIN_EXPOSITION_H
#define PAWL_ADMIN_EXPOSITION_H

#include "buckets.h"
#include "page.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM };

/* One label of a sample. */
struct label {
	/* NULL ends a list of labels. */
	const char *name;
	struct slice value;
};

/* The labels of one sample, as a list that ends with a name of NULL. */
#define LABEL(n, v) ((const struct label[]){ { (n), slice_str(v) }, { 0 } })
#define LABELS(n, v, m, w) \
	((const struct label[]){ { (n), slice_str(v) }, { (m), slice_str(w) }, { 0 } })

/* Begins a metric. `help` is one line. */
void exposition_family(struct page *p, const char *name, enum metric_type type, const char *help);

/* Write a sample of the metric: a number, or a duration in nanoseconds as seconds. `labels` may be
 * NULL. */
void exposition_number(struct page *p, const char *name, const struct label *labels, uint64_t n);
void exposition_seconds(struct page *p, const char *name, const struct label *labels, uint64_t ns);
/* Writes all samples of a histogram. */
void exposition_buckets(struct page *p, const char *name, const struct label *labels,
	const struct buckets *b);

/* Write a metric that has one sample without labels. */
void exposition_gauge(struct page *p, const char *name, const char *help, uint64_t n);
void exposition_counter(struct page *p, const char *name, const char *help, uint64_t n);
void exposition_gauge_seconds(struct page *p, const char *name, const char *help, uint64_t ns);
void exposition_histogram(struct page *p, const char *name, const char *help,
	const struct buckets *b);

#endif
