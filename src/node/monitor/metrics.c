/* metrics.c: puts the metrics of an answer together. Their names and labels are an interface; they
 * are described in docs/operations/metrics.md. No key, owner or value is ever a label. */
#include "exposition.h"
#include "monitor.h"

void metrics_write(struct monitor *monitor, struct instant now, struct page *p) {
	struct metrics m = { .monitor = monitor, .page = p, .now = now,
		.strangers = sessions_strangers(monitor->service->sessions) };
	core_status(monitor->driver->core, now, &m.core);
	core_figures(monitor->driver->core, now, &m.figures);
	metrics_core(&m);
	metrics_peers(&m);
	metrics_clients(&m);
	metrics_limits(&m);
	metrics_process(&m);
}
