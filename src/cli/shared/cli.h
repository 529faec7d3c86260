/* cli.h: what the commands of pawl share. A command is one file: a text that teaches, a table of options, a function. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pawl/pawl.h"

enum cli_exit { CLI_DONE = 0, CLI_REFUSED = 1, CLI_USAGE = 2, CLI_UNREACHABLE = 3, CLI_LOST = 4 };

#define CLI_ENDPOINT_DEFAULT "127.0.0.1:7117" /* where pawld --dev listens */
#define CLI_LEASE_DEFAULT_MS 30000

struct cli_command_line;

struct cli_command {
	const char *name;
	const char *summary; /* one line, for the overview */
	const char *help;    /* from "usage:" to an example; the options that all commands have are added */
	int (*run)(struct cli_command_line *line);
};

/* A command line while it is read: what all commands know, and what this one was given. */
struct cli_command_line {
	const struct cli_topic *topics; /* all commands */
	size_t topic_count;
	const struct cli_command *command;
	int argc; /* from the command's name on */
	char **argv;

	bool json;
	const char *endpoints, *ca_file, *cert_file, *key_file, *server_name;
	uint32_t timeout_ms; /* 0: the library's default */
	uint32_t silence_ms; /* of a node before the next is tried, likewise; set by commands */
};

/* A row of the overview. */
struct cli_topic {
	const char *heading; /* of a group that begins here, else NULL */
	const struct cli_command *command;
	bool unlisted; /* the overview does not show it */
};

/* ---- options (options.c) ---- */

enum cli_type {
	CLI_FLAG,     /* bool */
	CLI_TEXT,     /* const char * */
	CLI_DURATION, /* uint32_t, ms */
	CLI_NUMBER,   /* uint64_t */
	CLI_INTEGER   /* int32_t, of either sign */
};

struct cli_option {
	const char *name; /* without the dashes */
	enum cli_type type;
	void *target;
};

#define CLI_OPTIONS_MAX 32

/* Reads the options wherever they stand; what is left are the operands, argv[0 .. count-1] of the result. Ends the program
 * for --help (0) and for misuse (CLI_USAGE), also when the number of operands is not within least .. most. */
char **cli_options(struct cli_command_line *line, const struct cli_option *options, size_t count, int least, int most,
	int *out_count);
/* The options before the command's name; returns the index of the name in argv. */
int cli_options_global(struct cli_command_line *line, int argc, char **argv);
/* What the environment says where no option did. */
void cli_options_environment(struct cli_command_line *line);

/* "300ms", "5s", "2m", "1h" to ms; false if it is none or does not fit. */
bool cli_duration_parse(const char *text, uint32_t *out_ms);
/* A decimal number without sign; false if it is none. */
bool cli_number_parse(const char *text, uint64_t *out_number);
/* The same with an optional sign, within int32_t. */
bool cli_integer_parse(const char *text, int32_t *out_number);

/* Hexadecimal digits to bytes; false if they are none, or more than there is room for. */
bool cli_hex_parse(const char *text, unsigned char *out, size_t room, size_t *out_size);

/* Says what is wrong with the command line and where to read more; ends with CLI_USAGE. */
_Noreturn void cli_misuse(const struct cli_command_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- talking to a cluster (connect.c) ---- */

void cli_client_options(const struct cli_command_line *line, struct pawl_options *out_options);
/* A client of the blocking style; ends with CLI_USAGE when the endpoints or certificates cannot be used. */
struct pawl *cli_connect(const struct cli_command_line *line);
/* The same on the caller's loop. */
struct pawl *cli_connect_on(const struct cli_command_line *line, struct event_base *base);
/* A client of the endpoint where the node of that name is. NULL and the exit status: there is none, and that was said. */
int cli_connect_node(const struct cli_command_line *line, const char *node, struct pawl **out_client);
/* Undoes what connecting did to signals of this process: what it executes next finds them as this program did. */
void cli_restore_signals(void);

/* Says once, on standard error, that no node has answered within --timeout; `answered` is asked then. The command goes on. */
void cli_tell_silence(const struct cli_command_line *line, struct event_base *base, struct pawl *client, bool (*answered)(void *ctx),
	void *ctx);

/* Exit status for an outcome: the node refused, or none could be reached. */
int cli_exit_status(const struct pawl_result *result);
const char *cli_remedy(enum pawl_method method, int error); /* what to do about it, or NULL */
/* Prints the failure of `what` (as "acquire 'backup'"), for people or as JSON; returns the exit status. */
int cli_fail(const struct cli_command_line *line, const struct pawl_result *result, const char *what,
	const char *subject);
/* One blocking request. Returns its result, successful or not; ends the program only when there is no memory. */
struct pawl_result *cli_call(struct pawl *client, const struct pawl_request *request);
/* The frame of a command that makes one request: connects, asks, and shows what came of it. */
struct cli_answer {
	const struct cli_command_line *line;
	const struct pawl_request *request;
	const struct pawl_result *result;
	const char *subject;
};
typedef int cli_show(const struct cli_answer *answer); /* returns the exit status */
struct cli_asking {
	const struct pawl_request *request;
	const char *what;         /* as of cli_fail; NULL: the command's name */
	const char *subject;      /* likewise; of several keys the one that is in the way is named in its place */
	cli_show *people;         /* shows an answer that is no error */
	cli_show *json;           /* the same with --json; NULL: as the node has sent it */
	struct pawl *take_client; /* NULL: one of the line's endpoints is asked */
};
int cli_ask(const struct cli_command_line *line, const struct cli_asking *asking);
/* Frees both; returns the status. */
int cli_finish(struct pawl *take_client, struct pawl_result *take_result, int status);
/* A lock_id from the command line, or misuse. */
struct pawl_id cli_lock_id(const struct cli_command_line *line, const char *text);
void cli_lease_check(const struct cli_command_line *line, uint32_t lease_ms); /* refuses none at all */
struct pawl_bytes cli_key(const struct cli_command_line *line, const char *text); /* refuses an empty one */

#endif
