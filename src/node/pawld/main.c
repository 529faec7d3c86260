/* main.c: the main function of pawld. The command line decides what happens, and daemon.c runs. */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>

#include "audit_file.h"
#include "config_file.h"
#include "daemon.h"
#include "descriptors.h"
#include "dev_dir.h"
#include "listeners.h"
#include "log.h"
#include "pawl/error.h"
#include "pawld_options.h"
#include "peer.h"
#include "state_file.h"
#include "tls_context.h"

enum pawld_exit { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

static enum pawld_exit pawld_fail(const struct problem *problem, enum pawld_exit status) {
	fprintf(stderr, "pawld: %s\n", problem->text);
	return status;
}

/* Does what a start would do with the file, up to the first effect. */
static enum pawld_exit pawld_check(const char *path) {
	struct node_config *c = NULL;
	struct problem problem = { "" };
	if (node_config_read(path, &c, &problem)) {
		return pawld_fail(&problem, EXIT_USAGE);
	}
	int error = 0;
	if (c->tls.on) {
		struct tls_files files = listeners_tls_files(c);
		files.only_checked = true;
		struct tls_contexts contexts = { 0 };
		char why[TLS_WHY_BYTES] = "";
		error = tls_contexts_load(&files, c->name, &contexts, why);
		problem_set(&problem, "%s: %s", path, why);
		if (!error) {
			tls_contexts_free(&contexts);
		}
	}
	if (!error) {
		struct problem unsafe = { "" };
		error = state_file_check(c->state_dir, true, &unsafe);
		problem_set(&problem, "%s: %s", path, unsafe.text);
	}
	if (!error && c->audit_file[0]) {
		char why[AUDIT_WHY_BYTES] = "";
		error = audit_file_check(c->audit_file, why);
		problem_set(&problem, "%s: %s", path, why);
	}
	if (!error) {
		printf("%s: ok: node %s of cluster %s, %u master%s, %s\n", path, c->name,
			c->birth.cluster, c->birth.node_count, c->birth.node_count == 1 ? "" : "s",
			c->tls.on ? "TLS" : "no TLS");
		struct problem warning;
		for (unsigned n = 0; c->rights && rights_warning(c->rights, n, &warning); n++) {
			printf("warning: %s\n", warning.text);
		}
		if (!descriptors_fit(c, descriptors_most(), &warning)) {
			printf("warning: %s\n", warning.text);
		}
	}
	node_config_free(c);
	return error ? pawld_fail(&problem, EXIT_USAGE) : EXIT_DONE;
}

static enum pawld_exit pawld_run(const char *path) {
	struct daemon_options options = { .config_path = path };
	struct problem problem = { "" };
	if (node_config_read(path, &options.take_config, &problem)) {
		return pawld_fail(&problem, EXIT_USAGE);
	}
	return daemon_run(&options, &problem) ? pawld_fail(&problem, EXIT_FAILED) : EXIT_DONE;
}

static enum pawld_exit pawld_dev(const struct pawld_options *given) {
	char dir[CONFIG_PATH_MAX];
	struct daemon_options options = { .config_path = NULL,
		.print_endpoints = given->print_endpoints };
	struct problem problem = { "" };
	if (dev_dir_make(dir, &problem)) {
		return pawld_fail(&problem, EXIT_FAILED);
	}
	enum pawld_exit status = EXIT_DONE;
	const struct dev_options dev = { .listen = given->listen, .redis = given->listen_redis,
		.memcached = given->listen_memcached, .state_dir = dir,
		.insecure = given->insecure, .everything = given->print_endpoints };
	if (node_config_dev(&dev, &options.take_config, &problem)) {
		status = pawld_fail(&problem, EXIT_USAGE);
	} else if (daemon_run(&options, &problem)) {
		status = pawld_fail(&problem, EXIT_FAILED);
		fprintf(stderr, "pawld: if the port is taken, --listen 127.0.0.1:0 "
			"uses any free one\n");
	}
	dev_dir_remove(dir);
	return status;
}

/* Prepares the allocator for the memory of many small leases. Without fast bins, freed pieces are
 * joined one at a time. Otherwise glibc would join a million of them at once at some later moment,
 * which stops the node for a tenth of a second. Giving hundreds of MiB back at once costs as much,
 * so memory is not given back. */
static void set_memory(void) {
	(void)mallopt(M_MXFAST, 0);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, 16 << 20);
}

int main(int argc, char **argv) {
	struct pawld_options options;
	struct problem problem;
	set_memory();
	log_start();
	if (pawld_options_parse(argc, argv, &options, &problem)) {
		return (int)pawld_fail(&problem, EXIT_USAGE);
	}
	switch (options.mode) {
	case PAWLD_RUN:
		return (int)pawld_run(options.config);
	case PAWLD_DEV:
		return (int)pawld_dev(&options);
	case PAWLD_CHECK:
		return (int)pawld_check(options.config);
	case PAWLD_VERSION:
		printf("pawld %s\nspeaks versions %u to %u of the protocol between nodes\n",
			PAWL_VERSION, PEER_VERSION_MIN, PEER_VERSION_MAX);
		return EXIT_DONE;
	case PAWLD_HELP:
		printf("%s", pawld_help());
		return EXIT_DONE;
	}
	return EXIT_FAILED;
}
