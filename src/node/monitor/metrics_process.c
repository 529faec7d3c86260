/* metrics_process.c: the metrics of the state file, the certificates, the log and the process. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_file.h"
#include "disk.h"
#include "exposition.h"
#include "log.h"
#include "monitor.h"

/* How long a count of the open files is used, because counting takes milliseconds on a node with
 * many clients. */
#define FILES_EVERY (10 * SPAN_S)

static void metrics_disk(const struct metrics *m) {
	struct page *p = m->page;
	const struct disk_counts *counts = disk_counts(m->monitor->driver->disk);
	exposition_counter(p, "pawl_state_file_writes_total", "Writes of the state file.",
		counts->writes);
	exposition_counter(p, "pawl_state_file_failures_total",
		"Writes of the state file that failed.", counts->failures);
	exposition_histogram(p, "pawl_state_file_sync_seconds",
		"How long writing and syncing the state file took.", &counts->took);
}

static void metrics_certificates(const struct metrics *m) {
	struct page *p = m->page;
	const struct tls_config *files = &m->monitor->driver->config->tls;
	const struct tls_contexts *tls = m->monitor->tls;
	if (!files->on) {
		return;
	}
	exposition_family(p, "pawl_certificate_not_after_seconds", METRIC_GAUGE,
		"When a certificate, or a CRL, ends, in seconds since 1970.");
	exposition_number(p, "pawl_certificate_not_after_seconds", LABEL("file", files->cert),
		(uint64_t)tls->own.ends);
	if (tls->crl_ends) {
		exposition_number(p, "pawl_certificate_not_after_seconds",
			LABEL("file", files->crl), (uint64_t)tls->crl_ends);
	}
}

static void metrics_log(const struct metrics *m) {
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = { { "error", LEVEL_ERROR }, { "warning", LEVEL_WARNING },
		{ "notice", LEVEL_NOTICE }, { "info", LEVEL_INFO }, { "debug", LEVEL_DEBUG } };
	exposition_family(m->page, "pawl_log_events_total", METRIC_COUNTER,
		"Events for the log, also those that were not written.");
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
		exposition_number(m->page, "pawl_log_events_total",
			LABEL("level", levels[i].name), log_counted(levels[i].level));
	}
}

static void metrics_audit(const struct metrics *m) {
	struct audit *audit = m->monitor->service->audit;
	if (!audit) {
		return;
	}
	const struct audit_counts counts = audit_counts(audit);
	exposition_counter(m->page, "pawl_audit_lines_total", "Lines of the audit file.",
		counts.lines);
	exposition_counter(m->page, "pawl_audit_dropped_total",
		"Lines that the audit file lacks, because its disk was too slow or a write failed.",
		counts.dropped);
	exposition_counter(m->page, "pawl_audit_denied_left_out_total",
		"Lines about denied requests that were left out, because there were too many.",
		audit_denied_left_out(audit));
	exposition_counter(m->page, "pawl_audit_failures_total",
		"Writes and openings of the audit file that failed.", counts.failures);
}

/* ---- the process ---- */

/* Reads a small file of /proc. Returns false if that is not possible. */
static bool process_read(const char *path, char *out, size_t size) {
	FILE *file = fopen(path, "re");
	size_t n = file ? fread(out, 1, size - 1, file) : 0;
	if (file) {
		fclose(file);
	}
	out[n] = '\0';
	return n > 0;
}

/* The kernel says how many files are open since Linux 6.2; before that, they must be counted. */
static uint64_t process_count_files(void) {
	struct stat st;
	uint64_t count = 0;
	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0) {
		return (uint64_t)st.st_size;
	}
	DIR *folder = opendir("/proc/self/fd");
	while (folder && readdir(folder)) {
		count++;
	}
	if (folder) {
		closedir(folder);
	}
	/* Without ".", ".." and the folder itself. */
	return count > 3 ? count - 3 : 0;
}

static uint64_t process_files(struct monitor *m, struct instant now) {
	if (m->open_files == 0 || instant_elapsed_long(now, m->files_at) >= FILES_EVERY) {
		m->open_files = process_count_files();
		m->files_at = now;
	}
	return m->open_files;
}

static uint64_t process_ns(const struct timeval *t) {
	return (uint64_t)t->tv_sec * (uint64_t)SPAN_S + (uint64_t)t->tv_usec * (uint64_t)SPAN_US;
}

void metrics_process(const struct metrics *m) {
	struct page *p = m->page;
	struct rusage used = { .ru_maxrss = 0 };
	struct rlimit files = { .rlim_cur = 0 };
	char text[128];
	metrics_disk(m);
	metrics_certificates(m);
	metrics_log(m);
	metrics_audit(m);
	getrusage(RUSAGE_SELF, &used);
	getrlimit(RLIMIT_NOFILE, &files);
	exposition_family(p, "process_cpu_seconds_total", METRIC_COUNTER,
		"Processor time of this process.");
	exposition_seconds(p, "process_cpu_seconds_total", NULL,
		process_ns(&used.ru_utime) + process_ns(&used.ru_stime));
	if (process_read("/proc/self/statm", text, sizeof text)) {
		/* The second number of the line, in pages. */
		char *rest = text;
		(void)strtoul(text, &rest, 10);
		exposition_gauge(p, "process_resident_memory_bytes", "Memory of this process.",
			strtoul(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE));
	}
	exposition_gauge(p, "process_open_fds", "Open files of this process.",
		process_files(m->monitor, m->now));
	exposition_gauge(p, "process_max_fds", "How many files this process may open.",
		(uint64_t)files.rlim_cur);
	exposition_gauge(p, "process_start_time_seconds",
		"When this node was started, in seconds since 1970.",
		(uint64_t)m->monitor->started);
}
