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
		"  pawld --dev                  run a single master for a try-out: loopback\n"
		"                               only, no TLS, nothing is kept when it stops\n"
		"  pawld --check-config [FILE]  check FILE (default: " PAWLD_CONFIG_DEFAULT ")\n"
		"                               and the certificates it names, without starting\n"
		"  pawld --version, --help\n"
		"\n"
		"With --dev:\n"
		"  --listen ADDRESS             address for clients (default: 127.0.0.1:7117);\n"
		"                               port 0 means any free port, unix:/path a socket\n"
		"                               in the file system\n"
		"  --listen-redis ADDRESS       address for clients of Redis (docs/redis.md);\n"
		"                               they may take locks without an end, overwrite\n"
		"                               them, and use FLUSHDB, FLUSHALL and KEYS\n"
		"  --listen-memcached ADDRESS   address for clients of memcached, in the same\n"
		"                               way (docs/memcached.md); they may use flush_all\n"
		"  --print-endpoints            for tests that start a node: listen on free ports\n"
		"                               of 127.0.0.1 for clients, those of Redis and of\n"
		"                               memcached and for HTTP (as above to choose), and\n"
		"                               print one line of JSON when it is ready:\n"
		"                               {\"client\": \"127.0.0.1:40001\",\n"
		"                               \"redis\": ..., \"memcached\": ...,\n"
		"                               \"admin\": ..., \"pid\": 4711}.\n"
		"                               If standard input is a pipe, the node ends when\n"
		"                               that is closed, so also when its test is killed\n"
		"  --insecure                   the addresses may be outside loopback, where\n"
		"                               everybody who can reach them may do everything:\n"
		"                               in a container, --listen 0.0.0.0:7117 --insecure\n"
		"\n"
		"To try it:       pawld --dev &\n"
		"                 export PAWL_ENDPOINTS=127.0.0.1:7117\n"
		"                 pawl run my-job -- echo \"nobody else runs my-job now\"\n"
		"\n"
		"For a cluster of three, use three configuration files that differ only in\n"
		"[node] name; share/pawld.conf explains every setting.\n"
		"\n"
		"SIGTERM, SIGINT  save what this node knows, then stop; the next start continues\n"
		"                 from there. A second signal stops at once.\n"
		"SIGHUP           reload the certificates, access rules, limits for clients, and\n"
		"                 the log level.\n"
		"Exit status      0 stopped on request; 1 could not start or could not continue;\n"
		"                 2 error in the command line or the configuration.\n";
}

struct pawld_given {
	bool dev, check, version, help, insecure, print_endpoints;
	const char *config, *listen, *listen_redis, *listen_memcached;
};

static int pawld_options_wrong(struct problem *problem, const char *what) {
	problem_set(problem, "%s (see pawld --help)", what);
	return PAWL_EINVAL;
}

static int pawld_options_decide(const struct pawld_given *given, struct pawld_options *out,
	struct problem *problem) {
	*out = (struct pawld_options){ .config = given->config, .listen = given->listen,
		.listen_redis = given->listen_redis,
		.listen_memcached = given->listen_memcached, .insecure = given->insecure,
		.print_endpoints = given->print_endpoints };
	if (given->help || given->version) {
		out->mode = given->help ? PAWLD_HELP : PAWLD_VERSION;
		return 0;
	}
	if (given->listen && !given->dev) {
		return pawld_options_wrong(problem,
			"--listen needs --dev; with a configuration file, set [node] "
			"listen_client there");
	}
	if (given->listen_redis && !given->dev) {
		return pawld_options_wrong(problem,
			"--listen-redis needs --dev; with a configuration file, set [node] "
			"listen_redis there");
	}
	if (given->listen_memcached && !given->dev) {
		return pawld_options_wrong(problem,
			"--listen-memcached needs --dev; with a configuration file, set [node] "
			"listen_memcached there");
	}
	if (given->insecure && !given->dev) {
		return pawld_options_wrong(problem,
			"--insecure needs --dev; with a configuration file, set [node] insecure = "
			"yes there");
	}
	if (given->print_endpoints && !given->dev) {
		return pawld_options_wrong(problem,
			"--print-endpoints needs --dev: a node with a configuration file listens "
			"where that says");
	}
	if (given->dev) {
		out->mode = PAWLD_DEV;
		return given->config || given->check
			? pawld_options_wrong(problem,
				"--dev cannot be combined with --config or --check-config") : 0;
	}
	if (given->check) {
		out->mode = PAWLD_CHECK;
		out->config = given->config ? given->config : PAWLD_CONFIG_DEFAULT;
		return 0;
	}
	out->mode = PAWLD_RUN;
	return given->config
		? 0 : pawld_options_wrong(problem, "give --config FILE, or --dev to try Pawl out");
}

/* Returns the name of an option whose value is there already, or NULL. */
static const char *pawld_repeated(const struct pawld_given *given, int option) {
	return option == 'c' && given->config ? "--config"
		: option == 'l' && given->listen ? "--listen"
		: option == 'r' && given->listen_redis ? "--listen-redis"
		: option == 'm' && given->listen_memcached ? "--listen-memcached" : NULL;
}

int pawld_options_parse(int argc, char **argv, struct pawld_options *out, struct problem *problem) {
	static const struct option known[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "dev", no_argument, NULL, 'd' },
		{ "listen", required_argument, NULL, 'l' },
		{ "listen-redis", required_argument, NULL, 'r' },
		{ "listen-memcached", required_argument, NULL, 'm' },
		{ "insecure", no_argument, NULL, 'i' },
		{ "print-endpoints", no_argument, NULL, 'p' },
		{ "check-config", no_argument, NULL, 'k' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct pawld_given given = { .dev = false };
	int option;
	opterr = optind = 0;
	while ((option = getopt_long(argc, argv, ":c:hV", known, NULL)) != -1) {
		const char *repeated = pawld_repeated(&given, option);
		if (repeated) {
			problem_set(problem, "%s is given twice (see pawld --help)", repeated);
			return PAWL_EINVAL;
		}
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
		case 'r':
			given.listen_redis = optarg;
			break;
		case 'm':
			given.listen_memcached = optarg;
			break;
		case 'i':
			given.insecure = true;
			break;
		case 'p':
			given.print_endpoints = true;
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
			problem_set(problem, option == ':'
				? "%s needs a value (see pawld --help)"
				: "unknown option %s (see pawld --help)", argv[optind - 1]);
			return PAWL_EINVAL;
		}
	}
	if (optind < argc && given.check && !given.config) {
		given.config = argv[optind++];
	}
	if (optind < argc) {
		problem_set(problem, "unexpected argument %s (see pawld --help)", argv[optind]);
		return PAWL_EINVAL;
	}
	return pawld_options_decide(&given, out, problem);
}
