/* deploy.c: pawl deploy: makes everything that the hosts of a cluster need. A program in Python
 * does it, which is installed with this one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "output.h"

static const char deploy_help[] =
	"usage: pawl deploy [--pawld PROGRAM] DESCRIPTION DIR\n"
	"\n"
	"Writes everything that the hosts of a cluster need into DIR, from one small file:\n"
	"an authority, for each node its configuration, certificates, settings of its\n"
	"systemd unit and a script that installs them, for each client a certificate and\n"
	"a file to source, a script `install` that installs all nodes by ssh, and a\n"
	"README with the steps from there to a running cluster.\n"
	"\n"
	"It may be repeated: it keeps the authority and the certificates that are still\n"
	"good, writes again what has changed, and says what is new. What pawld would\n"
	"refuse is not written, and not installed: the configuration that a host has\n"
	"stays in use. DIR/install --back gives a host what it had before.\n"
	"\n"
	"/usr/share/pawl/deploy/example.ini explains every line of a DESCRIPTION. It needs\n"
	"python3 and openssl.\n"
	"\n"
	"  --pawld PROGRAM      the pawld that checks the configurations (default: the one\n"
	"                       that is installed; without any, each host checks its own)\n"
	"\n"
	"Example:\n"
	"  pawl deploy production.ini production && cat production/README\n";

/* Where the program is, from the folder of this one: if it is installed, and in a build. */
static const char *const places[] = { "../share/pawl/deploy/deploy", "../../../../scripts/deploy" };

/* Finds the program. Returns false if there is none. */
static bool find_program(char *self, char path[PATH_MAX]) {
	char *slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - self), self, places[i]);
		if (n > 0 && n < PATH_MAX && access(path, R_OK) == 0) {
			return true;
		}
	}
	return false;
}

static int deploy_run(struct cli_command_line *line) {
	static char self[PATH_MAX], path[PATH_MAX];
	const char *pawld = NULL;
	const struct cli_option options[] = { { "pawld", CLI_TEXT, &pawld } };
	char **operands = cli_options(line, options, sizeof options / sizeof *options, 2, 2, NULL);
	ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
	if (size <= 0 || !find_program(self, path)) {
		fprintf(stderr, "pawl deploy: its program is not installed: %s is missing\n",
			size > 0 ? path : places[0]);
		return CLI_REFUSED;
	}
	const char *const words[] = { "python3", path, "--pawl", self, "--pawld",
		pawld ? pawld : "", operands[0], operands[1], NULL };
	char *copies[sizeof words / sizeof *words] = { NULL };
	for (size_t i = 0; words[i]; i++) {
		copies[i] = strdup(words[i]);
	}
	execvp("python3", copies);
	fprintf(stderr, "pawl deploy: cannot run python3: %s\n", strerror(errno));
	return CLI_REFUSED;
}

const struct cli_command cli_deploy = { "deploy",
	"write the configurations and certificates of a whole cluster", deploy_help, deploy_run };
