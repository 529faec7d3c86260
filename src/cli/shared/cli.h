/* cli.h: what the commands of pawl share. A command is one file, with a help text that teaches, a
 * table of options, and a function. */
#ifndef PAWL_CLI_CLI_H
#define PAWL_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pawl/pawl.h"

enum cli_exit {
	CLI_DONE = 0,
	CLI_REFUSED = 1,
	CLI_USAGE = 2,
	CLI_UNREACHABLE = 3,
	CLI_LOST = 4,
	/* Only commands that run a program tell these from CLI_REFUSED. */
	CLI_HELD = 5,
	CLI_TIMED_OUT = 6,
	CLI_DENIED = 7
};

/* A command that runs a program ends with the status of that program. Its own statuses are this
 * number and one of the above, which few programs use: 111 to 117. */
#define CLI_RUNNER 110

/* The endpoint where pawld --dev listens. */
#define CLI_ENDPOINT_DEFAULT "127.0.0.1:7117"
#define CLI_LEASE_DEFAULT_MS 30000
/* This is the library's own default for a request. */
#define CLI_TIMEOUT_DEFAULT_MS 5000
#define CLI_OPTIONS_MAX 32

struct cli_command_line;

struct cli_command {
	const char *name;

	/* One line for the overview. */
	const char *summary;

	/* The help text, from "usage:" to an example. The options that all commands have are added
	 * to it. */
	const char *help;
	int (*run)(struct cli_command_line *line);
};

/* A command line while it is read: what all commands know, and what was given to this one. */
struct cli_command_line {
	/* All commands. */
	const struct cli_topic *topics;
	size_t topic_count;
	const struct cli_command *command;

	/* The arguments, beginning with the command's name. */
	int argc;
	char **argv;

	bool json;

	/* The command ends with the status of a program that it runs. Commands set this. */
	bool runner;

	/* Begin with the first endpoint, and return to it. */
	bool prefer_first;
	/* The traceparent of all requests; NULL: none. */
	const char *trace;
	const char *endpoints, *ca_file, *cert_file, *key_file, *server_name;

	/* 0 means the library's default. */
	uint32_t timeout_ms;

	/* The targets of the options that were given so far, flags apart. */
	const void *given[2 * CLI_OPTIONS_MAX];
	size_t given_count;

	/* How long a node may be silent before the next one is tried; 0 means the library's
	 * default. Commands set this. */
	uint32_t silence_ms;
};

/* A row of the overview. */
struct cli_topic {
	/* The heading of a group that begins with this row; otherwise NULL. */
	const char *heading;
	const struct cli_command *command;

	/* The overview does not show this command. */
	bool unlisted;
};

/* ---- options (options.c) ---- */

enum cli_type {
	/* The target is a bool. */
	CLI_FLAG,
	/* The target is a const char *. */
	CLI_TEXT,
	/* The same for a list with commas. If the option is given again, its list is added to the
	 * first. */
	CLI_LIST,
	/* The target is a uint32_t, in ms. */
	CLI_DURATION,
	/* The same, or "forever", which is PAWL_FOREVER. */
	CLI_WAIT,
	/* The target is a uint64_t. */
	CLI_NUMBER,
	/* The target is an int32_t of either sign. */
	CLI_INTEGER
};

struct cli_option {
	/* The name without the dashes. A name of one letter has one dash. */
	const char *name;
	enum cli_type type;
	void *target;
};

/* Reads the options, wherever they stand. An option that is given twice is misuse, unless it is a
 * flag or a list. The result has the operands, argv[0 .. count-1]. Ends the
 * program for --help (status 0) and for misuse (CLI_USAGE), also if the number of operands is not
 * within least .. most. */
char **cli_options(struct cli_command_line *line, const struct cli_option *options, size_t count,
	int least, int most, int *out_count);
/* Reads the options before the command's name. Returns the index of the name in argv. */
int cli_options_global(struct cli_command_line *line, int argc, char **argv);
/* Sets from the environment what no option has set. */
void cli_options_environment(struct cli_command_line *line);

/* Reads "300ms", "5s", "2m", "1h", "3d", and what output_duration writes, such as "1m30s" and
 * "12.3s", as ms. Returns false if the text is no duration or does not fit. */
bool cli_duration_parse(const char *text, uint32_t *out_ms);
/* Does the same, and reads "forever" as PAWL_FOREVER. */
bool cli_wait_parse(const char *text, uint32_t *out_ms);
/* Reads a decimal number without a sign. Returns false if the text is none. */
bool cli_number_parse(const char *text, uint64_t *out_number);
/* Does the same with an optional sign, within int32_t. */
bool cli_integer_parse(const char *text, int32_t *out_number);

/* Reads hexadecimal digits as bytes. Returns false if they are none, or more than there is room
 * for. */
bool cli_hex_parse(const char *text, unsigned char *out, size_t room, size_t *out_size);

/* Returns the exit status of a command for one of the statuses above. */
int cli_own_status(const struct cli_command_line *line, int status);
/* Says what is wrong with the command line and where to read more, and ends the program with
 * CLI_USAGE. */
_Noreturn void cli_misuse(const struct cli_command_line *line, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- talking to a cluster (connect.c) ---- */

void cli_client_options(const struct cli_command_line *line, struct pawl_options *out_options);
/* Returns the endpoints of the line, separated by commas, with one endpoint for each address of a
 * name. Ends the program as cli_connect does. The caller frees the text. */
char *cli_nodes(const struct cli_command_line *line);
/* Makes a client of the blocking style. Ends the program with CLI_USAGE if the endpoints or
 * certificates cannot be used. */
struct pawl *cli_connect(const struct cli_command_line *line);
/* Does the same with a client on the caller's loop. */
struct pawl *cli_connect_on(const struct cli_command_line *line, struct event_base *base);
/* Makes a client of the endpoint at which the node of that name is. If there is none, this says so,
 * sets *out_client to NULL and returns the exit status. */
int cli_connect_node(const struct cli_command_line *line, const char *node,
	struct pawl **out_client);
/* Writes the name of a node with which the cluster was started over, while the node that answers
 * has the state from before; "" if there is none. */
void cli_started_over(struct pawl *client, char *out, size_t size);
/* Undoes what connecting did to the signals of this process, so that a program which it executes
 * next finds them as this program did. */
void cli_restore_signals(void);

/* If no node has answered within --timeout, says so once on standard error. `answered` is asked at
 * that moment. The command goes on. */
void cli_tell_silence(const struct cli_command_line *line, struct event_base *base,
	struct pawl *client, bool (*answered)(void *ctx), void *ctx);

/* Returns the exit status for an outcome: a node has refused, or none could be reached. */
int cli_exit_status(const struct pawl_result *result);
/* Returns what to do about an error, or NULL. */
const char *cli_remedy(enum pawl_method method, int error);
/* Prints that `what` has failed for `subject`, for people or as JSON; with "acquire" and "backup"
 * the line begins with "pawl: acquire backup: ". Returns the exit status. */
int cli_fail(const struct cli_command_line *line, const struct pawl_result *result,
	const char *what, const char *subject);
/* Makes one blocking request. Returns its result, successful or not. Ends the program only if the
 * request could not be made. */
struct pawl_result *cli_call(struct pawl *client, const struct pawl_request *request);
/* Does the same with what a request may say besides; `with` may be NULL. */
struct pawl_result *cli_call_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with);
/* The frame of a command that makes one request: it connects, asks, and shows the outcome. */
struct cli_answer {
	const struct cli_command_line *line;
	const struct pawl_request *request;
	const struct pawl_result *result;
	const char *subject;
};
/* Shows an answer. Returns the exit status. */
typedef int cli_show(const struct cli_answer *answer);
struct cli_asking {
	const struct pawl_request *request;
	/* What the request says besides; NULL: nothing. */
	const struct pawl_with *with;
	/* What the request is called if it fails, as for cli_fail; NULL means the command's
	 * name. */
	const char *what;
	/* What the request is about, as for cli_fail. Of several keys, the one that an error is
	 * about is named instead. */
	const char *subject;
	/* Shows an answer that is no error. */
	cli_show *people;
	/* Does the same with --json; NULL means that the answer is printed as the node has sent
	 * it. */
	cli_show *json;
	/* The client to use, which is then freed; NULL means that one of the line's endpoints is
	 * asked. */
	struct pawl *take_client;
};
int cli_ask(const struct cli_command_line *line, const struct cli_asking *asking);
/* Frees both, and returns the status. */
int cli_finish(struct pawl *take_client, struct pawl_result *take_result, int status);
/* Reads a lock_id from the command line; anything else is misuse. */
struct pawl_id cli_lock_id(const struct cli_command_line *line, const char *text);
/* Refuses a lease of 0. */
void cli_lease_check(const struct cli_command_line *line, uint32_t lease_ms);
/* Refuses an empty key. */
struct pawl_bytes cli_key(const struct cli_command_line *line, const char *text);

#endif
