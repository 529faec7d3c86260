/* pawld_options.c: parses the command line of pawld, and has the text of --help. */
#include "pawld_options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "pawl/error.h"

const char *pawld_help(void) {
	return "pawld, a node of Pawl: leases and locks that a majority of masters agrees on.\n"
		"\n"
		"  pawld --config FILE          run the node that FILE describes\n"
		"  pawld --dev                  one master to look around with: "
		"loopback, no TLS, nothing kept after it stops\n"
		"  pawld --check-config [FILE]  read FILE (" PAWLD_CONFIG_DEFAULT ") "
		"as a start would, certificates included\n"
		"  pawld --version, --help\n"
		"\n"
		"With --dev:\n"
		"  --listen ADDRESS             where clients connect: "
		"127.0.0.1:7117 unless told otherwise; port 0 takes a free one,\n"
		"                               unix:/path a socket in the file system\n"
		"\n"
		"A first minute:  pawld --dev &\n"
		"                 export PAWL_ENDPOINTS=127.0.0.1:7117\n"
		"                 pawl run my-job -- echo \"nobody else runs my-job now\"\n"
		"\n"
		"A cluster is three files that differ in [node] name; "
		"share/pawld.conf explains every setting.\n"
		"SIGTERM, SIGINT  hand over what is known and stop; "
		"the next start goes on from there. A second one stops at once.\n"
		"SIGHUP           read the certificates, access rules, "
		"client limits and log level again.\n"
		"Exit status      0 stopped as asked; 1 could not start or go on; "
		"2 the command line or the configuration is wrong.\n";
}

struct pawld_given {
	bool dev, check, version, help;
	const char *config, *listen;
};

static int pawld_options_wrong(struct problem *problem, const char *what) {
	problem_set(problem, "%s; pawld --help explains", what);
	return PAWL_EINVAL;
}

static int pawld_options_decide(const struct pawld_given *given, struct pawld_options *out,
	struct problem *problem) {
	*out = (struct pawld_options){ .config = given->config, .listen = given->listen };
	if (given->help || given->version) {
		out->mode = given->help ? PAWLD_HELP : PAWLD_VERSION;
		return 0;
	}
	if (given->listen && !given->dev) {
		return pawld_options_wrong(problem,
			"--listen goes with --dev; otherwise it is [node] listen_client of the "
			"configuration");
	}
	if (given->dev) {
		out->mode = PAWLD_DEV;
		return given->config || given->check
			? pawld_options_wrong(problem,
				"--dev has no configuration file: take one of the two away") : 0;
	}
	if (given->check) {
		out->mode = PAWLD_CHECK;
		out->config = given->config ? given->config : PAWLD_CONFIG_DEFAULT;
		return 0;
	}
	out->mode = PAWLD_RUN;
	return given->config
		? 0 : pawld_options_wrong(problem, "say --config FILE, or --dev to look around");
}

int pawld_options_parse(int argc, char **argv, struct pawld_options *out, struct problem *problem) {
	static const struct option known[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "dev", no_argument, NULL, 'd' },
		{ "listen", required_argument, NULL, 'l' },
		{ "check-config", no_argument, NULL, 'k' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct pawld_given given = { .dev = false };
	int option;
	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, ":c:hV", known, NULL)) != -1) {
		switch (option) {
		case 'c':
			given.config = optarg;
			break;
		case 'd':
			given.dev = true;
			break;
		case 'l':
			given.listen = optarg;
			break;
		case 'k':
			given.check = true;
			break;
		case 'V':
			given.version = true;
			break;
		case 'h':
			given.help = true;
			break;
		default:
			problem_set(problem, "%s %s; pawld --help explains", argv[optind - 1],
				option == ':' ? "needs a value" : "is no option");
			return PAWL_EINVAL;
		}
	}
	if (optind < argc && given.check && !given.config) {
		given.config = argv[optind++];
	}
	if (optind < argc) {
		problem_set(problem, "%s is too much; pawld --help explains", argv[optind]);
		return PAWL_EINVAL;
	}
	return pawld_options_decide(&given, out, problem);
}
