/* options.c: reads a command line, with one table for each set of options, by getopt_long. */
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "output.h"
#include "suggest.h"

static const char common_help[] =
	"\n"
	"Options of all commands:\n"
	"  --endpoints LIST     nodes to ask, tried in turn: host:port, tls://host:port\n"
	"                       or unix:/path, separated by commas (PAWL_ENDPOINTS;\n"
	"                       default " CLI_ENDPOINT_DEFAULT "); begins with one by chance.\n"
	"                       Each address of a host is one endpoint. srv:NAME or\n"
	"                       tls://srv:NAME stands for the SRV records of NAME, and\n"
	"                       file:PATH for a file with an endpoint on each line\n"
	"  --prefer-first       begin with the first node, and return to it\n"
	"                       (PAWL_PREFER_FIRST)\n"
	"  --cacert FILE        for tls://: the authorities that may sign node\n"
	"                       certificates (PAWL_CACERT)\n"
	"  --cert FILE          for tls://: this client's certificate (PAWL_CERT)\n"
	"  --key FILE           for tls://: its private key (PAWL_CERT_KEY)\n"
	"  --server-name NAME   the name that a node's certificate must contain\n"
	"                       (PAWL_SERVER_NAME; default: the host in its endpoint)\n"
	"  --timeout DURATION   how long to keep trying if no node answers, in addition\n"
	"                       to --wait (default 5s)\n"
	"  --json               print one JSON object\n"
	"  -h, --help           show this help\n"
	"  -V, --version        show the version\n"
	"Durations: 300ms, 1.5s, 5s, 1m30s, 2m, 1h, 3d. A traceparent in TRACEPARENT goes\n"
	"with all requests, so that nodes name it in their logs.\n";

int cli_own_status(const struct cli_command_line *line, int status) {
	return status != CLI_DONE && line->runner ? CLI_RUNNER + status : status;
}

void cli_misuse(const struct cli_command_line *line, const char *format, ...) {
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	const char *name = line->command ? line->command->name : NULL;
	bool json = line->json;
	for (int i = 1; i < line->argc && line->argv && !json && strcmp(line->argv[i], "--") != 0;
		i++) {
		/* --json may stand behind what is wrong. */
		json = strcmp(line->argv[i], "--json") == 0;
	}
	output_misuse(json, name, text);
	exit(cli_own_status(line, CLI_USAGE));
}

/* Adds the options that every command has; their targets are in `line`. */
static size_t common_options(struct cli_command_line *line, struct cli_option *out) {
	const struct cli_option common[] = {
		{ "endpoints", CLI_LIST, &line->endpoints },
		{ "prefer-first", CLI_FLAG, &line->prefer_first },
		{ "cacert", CLI_TEXT, &line->ca_file },
		{ "cert", CLI_TEXT, &line->cert_file },
		{ "key", CLI_TEXT, &line->key_file },
		{ "server-name", CLI_TEXT, &line->server_name },
		{ "timeout", CLI_DURATION, &line->timeout_ms },
		{ "json", CLI_FLAG, &line->json },
	};
	memcpy(out, common, sizeof common);
	return sizeof common / sizeof *common;
}

/* Notes that the option was given. Returns whether it was given before. */
static bool note_given(struct cli_command_line *line, const struct cli_option *o) {
	for (size_t i = 0; i < line->given_count; i++) {
		if (line->given[i] == o->target) {
			return true;
		}
	}
	line->given[line->given_count++] = o->target;
	return false;
}

/* The lists that were put together, whose memory lasts until the process ends. */
static struct longer_list {
	struct longer_list *next;
	char text[];
} *longer_lists;

/* Puts what is given into the list. */
static void add_to_list(const struct cli_command_line *line, const char **list, const char *text,
	bool again) {
	if (!again) {
		*list = text;
		return;
	}
	const size_t size = strlen(*list) + strlen(text) + 2;
	struct longer_list *longer = malloc(sizeof *longer + size);
	if (!longer) {
		cli_misuse(line, "out of memory");
	}
	snprintf(longer->text, size, "%s,%s", *list, text);
	longer->next = longer_lists;
	longer_lists = longer;
	*list = longer->text;
}

static void set_option(struct cli_command_line *line, const struct cli_option *o,
	const char *text) {
	const bool again = o->type != CLI_FLAG && note_given(line, o);
	if (again && o->type != CLI_LIST) {
		cli_misuse(line, "%s%s is given twice", o->name[1] ? "--" : "-", o->name);
	}
	switch (o->type) {
	case CLI_FLAG:
		*(bool *)o->target = true;
		break;
	case CLI_TEXT:
		*(const char **)o->target = text;
		break;
	case CLI_LIST:
		add_to_list(line, o->target, text, again);
		break;
	case CLI_DURATION:
		if (!cli_duration_parse(text, o->target)) {
			cli_misuse(line,
				"--%s: '%s' is not a duration: write 300ms, 5s, 2m, 1h30m or 3d, "
				"at most 49d",
				o->name, text);
		}
		break;
	case CLI_WAIT:
		if (!cli_wait_parse(text, o->target)) {
			cli_misuse(line,
				"--%s: '%s' is not a duration: write 300ms, 5s, 2m, 1h30m or 3d, "
				"at most 49d, or forever",
				o->name, text);
		}
		break;
	case CLI_NUMBER:
		if (!cli_number_parse(text, o->target)) {
			cli_misuse(line, "--%s: '%s' is not a number", o->name, text);
		}
		break;
	case CLI_INTEGER:
		if (!cli_integer_parse(text, o->target)) {
			cli_misuse(line,
				"--%s: '%s' is not a whole number between -2147483648 and "
				"2147483647",
				o->name, text);
		}
		break;
	}
}

/* getopt_long returns this number and the index of the option. It is above all letters. */
#define LONG_OPTION 256

struct option_set {
	struct cli_option all[CLI_OPTIONS_MAX];
	size_t count;

	/* The long options for getopt_long, and the short ones. */
	struct option table[CLI_OPTIONS_MAX + 3];
	char letters[2 * CLI_OPTIONS_MAX + 8];
};

static const struct cli_option *find_option(const struct option_set *set, const char *name) {
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->all[i].name, name) == 0) {
			return &set->all[i];
		}
	}
	return NULL;
}

/* The command's own options come before the common ones, so that they win. */
static void collect_options(struct option_set *set, struct cli_command_line *line,
	const struct cli_option *options, size_t count) {
	struct cli_option common[CLI_OPTIONS_MAX];
	size_t common_count = common_options(line, common);
	for (set->count = 0; set->count < count; set->count++) {
		set->all[set->count] = options[set->count];
	}
	for (size_t i = 0; i < common_count && set->count < CLI_OPTIONS_MAX; i++) {
		if (!find_option(set, common[i].name)) {
			set->all[set->count++] = common[i];
		}
	}
}

/* Writes the tables for getopt_long, whose options begin with `mode`. */
static void describe_options(struct option_set *set, const char *mode) {
	size_t rows = 0;
	size_t letters = (size_t)snprintf(set->letters, sizeof set->letters, "%s", mode);
	for (size_t i = 0; i < set->count; i++) {
		const struct cli_option *o = &set->all[i];
		bool flag = o->type == CLI_FLAG;
		if (o->name[1]) {
			set->table[rows++] = (struct option){ o->name,
				flag ? no_argument : required_argument, NULL,
				LONG_OPTION + (int)i };
		} else {
			set->letters[letters++] = o->name[0];
			set->letters[letters] = ':';
			letters += !flag;
		}
	}
	set->table[rows++] = (struct option){ "help", no_argument, NULL, 'h' };
	set->table[rows++] = (struct option){ "version", no_argument, NULL, 'V' };
	set->table[rows] = (struct option){ 0 };
	set->letters[letters] = '\0';
}

_Noreturn static void unknown_option(const struct cli_command_line *line,
	const struct option_set *set, const char *given) {
	char name[64];
	struct suggestion s = { .word = name };
	const char *text = given + strspn(given, "-");
	(void)snprintf(name, sizeof name, "%.*s", (int)strcspn(text, "="), text);
	for (const struct option *o = set->table; o->name; o++) {
		suggest_try(&s, o->name);
	}
	cli_misuse(line, "unknown option '%s'%s%s%s", given, s.best ? "; did you mean --" : "",
		s.best ? s.best : "", s.best ? "?" : "");
}

/* Takes options off argv for as long as `mode` lets getopt_long go on. */
static void read_options(struct cli_command_line *line, const struct cli_option *options,
	size_t count, const char *mode, int argc, char **argv) {
	struct option_set set;
	collect_options(&set, line, options, count);
	describe_options(&set, mode);

	/* This makes glibc's getopt start over. */
	optind = 0;
	opterr = 0;
	int c;
	while ((c = getopt_long(argc, argv, set.letters, set.table, NULL)) != -1) {
		const char letter[] = { (char)c, '\0' };
		const struct cli_option *o = c >= LONG_OPTION ? &set.all[c - LONG_OPTION]
			: find_option(&set, letter);
		if (o) {
			set_option(line, o, optarg);
			continue;
		}
		switch (c) {
		case 'h':
			output_help(line, common_help);
			exit(CLI_DONE);
		case 'V':
			printf("pawl %s\n", pawl_version());
			exit(CLI_DONE);
		case ':':
			cli_misuse(line, "%s needs a value", argv[optind - 1]);
		default:
			if (optopt) {
				cli_misuse(line, "unknown option '-%c'", optopt);
			}
			unknown_option(line, &set, argv[optind - 1]);
		}
	}
}

int cli_options_global(struct cli_command_line *line, int argc, char **argv) {
	read_options(line, NULL, 0, "+:hV", argc, argv);
	return optind;
}

char **cli_options(struct cli_command_line *line, const struct cli_option *options, size_t count,
	int least, int most, int *out_count) {
	read_options(line, options, count, ":hV", line->argc, line->argv);
	cli_options_environment(line);
	int operands = line->argc - optind;
	if (operands < least) {
		cli_misuse(line, "an argument is missing; %.*s",
			(int)strcspn(line->command->help, "\n"), line->command->help);
	}
	if (operands > most) {
		cli_misuse(line, "unexpected argument '%s'", line->argv[optind + most]);
	}
	if (out_count) {
		*out_count = operands;
	}
	return line->argv + optind;
}

void cli_options_environment(struct cli_command_line *line) {
	struct pawl_options options;
	cli_client_options(line, &options);
	pawl_options_from_env(&options);
	line->endpoints = options.endpoints;
	line->ca_file = options.ca_file;
	line->cert_file = options.cert_file;
	line->key_file = options.key_file;
	line->server_name = options.server_name;
	line->prefer_first = options.prefer_first;
	line->trace = options.trace;
}
