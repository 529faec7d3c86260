/* connect.c: talks to a cluster, and reports the outcome. */
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "field.h"
#include "output.h"
#include "waiting.h"

/* How many bytes of a key a message shows. */
#define SUBJECT_MAX 64

static struct sigaction sigpipe_before;
static bool sigpipe_ignored;

/* A broken connection must be an error that is reported, and not the end of this process. */
static void ignore_sigpipe(void) {
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	if (!sigpipe_ignored) {
		sigpipe_ignored = sigaction(SIGPIPE, &ignore, &sigpipe_before) == 0;
	}
}

void cli_restore_signals(void) {
	if (sigpipe_ignored) {
		sigaction(SIGPIPE, &sigpipe_before, NULL);
		sigpipe_ignored = false;
	}
}

void cli_client_options(const struct cli_command_line *line, struct pawl_options *out_options) {
	*out_options = (struct pawl_options){
		.endpoints = line->endpoints,
		.ca_file = line->ca_file,
		.cert_file = line->cert_file,
		.key_file = line->key_file,
		.server_name = line->server_name,
		.timeout_ms = line->timeout_ms,
		.silence_ms = line->silence_ms,
		.prefer_first = line->prefer_first,
		.trace = line->trace,
	};
}

struct pawl *cli_connect_on(const struct cli_command_line *line, struct event_base *base) {
	ignore_sigpipe();
	if (!line->ca_file && strstr(line->endpoints, "tls://")) {
		cli_misuse(line,
			"tls:// endpoints need --cacert FILE (or PAWL_CACERT), with the "
			"authorities that may sign node certificates");
	}
	struct pawl_options options;
	cli_client_options(line, &options);
	options.base = base;
	struct pawl *client;
	const char *message = NULL;
	int error = pawl_new(&options, &client, &message);
	if (error) {
		cli_misuse(line, "%s (endpoints: %s)",
			message ? message : pawl_error_message(error), line->endpoints);
	}
	return client;
}

struct pawl *cli_connect(const struct cli_command_line *line) {
	return cli_connect_on(line, NULL);
}

char *cli_nodes(const struct cli_command_line *line) {
	struct pawl *client = cli_connect(line);
	const char *found = NULL;
	int error = pawl_look_up(client, &found);
	char *nodes = error ? NULL : strdup(found);
	if (!nodes) {
		fprintf(stderr, "pawl: %s\n",
			pawl_error_message(error ? error : PAWL_ENOMEM));
		exit(CLI_REFUSED);
	}
	pawl_free(client);
	return nodes;
}

_Noreturn static void cannot_ask(int error) {
	fprintf(stderr, "pawl: %s\n", pawl_error_message(error));
	exit(error == PAWL_EINVAL || error == PAWL_ETOOLARGE ? CLI_USAGE : CLI_REFUSED);
}

struct pawl_result *cli_call_with(struct pawl *client, const struct pawl_request *request,
	const struct pawl_with *with) {
	struct pawl_result *result = NULL;
	int error = pawl_call_with(client, request, with, &result);
	if (!result) {
		cannot_ask(error);
	}
	return result;
}

struct pawl_result *cli_call(struct pawl *client, const struct pawl_request *request) {
	return cli_call_with(client, request, NULL);
}

struct told_call {
	struct event_base *base;
	struct pawl_result *result;
};

static void on_told_call(struct pawl_result *take_result, void *arg) {
	struct told_call *call = arg;
	call->result = take_result;
	waiting_over();
	event_base_loopbreak(call->base);
}

/* Makes one request on the loop of the client. Somebody at a terminal is told what it waits for. */
static struct pawl_result *call_and_tell(const struct cli_command_line *line,
	struct event_base *base, struct pawl *client, const struct cli_asking *asking) {
	const struct pawl_request *request = asking->request;
	struct told_call call = { .base = base };
	int error = pawl_start_with(client, request, asking->with, on_told_call, &call, NULL);
	if (error) {
		cannot_ask(error);
	}
	const bool locks = request->method == PAWL_ACQUIRE;
	waiting_tell(&(struct waiting){ .line = line, .base = base, .client = client,
		.key = locks ? request->key : pawl_str(""), .keys = locks ? request->keys : NULL,
		.key_count = locks ? request->key_count : 0,
		.patience_ms = waiting_patience(line, locks ? request->wait_ms : 0) });
	event_base_dispatch(base);
	return call.result;
}

static int show_tree(const struct cli_answer *answer) {
	return output_json(output_json_tree(answer->result->tree));
}

int cli_ask(const struct cli_command_line *line, const struct cli_asking *asking) {
	struct event_base *base = asking->take_client ? NULL : event_base_new();
	if (!asking->take_client && !base) {
		cannot_ask(PAWL_ENOMEM);
	}
	struct pawl *client = base ? cli_connect_on(line, base) : asking->take_client;
	struct pawl_result *result = base ? call_and_tell(line, base, client, asking)
		: cli_call_with(client, asking->request, asking->with);
	const struct cli_answer answer = { line, asking->request, result, asking->subject };
	int status;
	if (result->error) {
		const char *what = asking->what ? asking->what : line->command->name;
		bool other = asking->request->key_count && result->key.size;
		status = cli_fail(line, result, what, other ? result->key.data : asking->subject);
	} else if (line->json) {
		status = (asking->json ? asking->json : show_tree)(&answer);
	} else {
		status = asking->people(&answer);
	}
	status = cli_finish(client, result, status);
	if (base) {
		event_base_free(base);
	}
	return status;
}

struct pawl_id cli_lock_id(const struct cli_command_line *line, const char *text) {
	struct pawl_id id;
	if (pawl_id_parse(text, &id) || pawl_id_none(&id)) {
		cli_misuse(line,
			"'%s' is not a lock id: write the 32 hexadecimal digits that pawl acquire "
			"printed",
			text);
	}
	return id;
}

/* The library would take a lease of 0 for its default. */
void cli_lease_check(const struct cli_command_line *line, uint32_t lease_ms) {
	if (lease_ms == 0) {
		cli_misuse(line, "--lease must be longer than 0");
	}
}

struct pawl_bytes cli_key(const struct cli_command_line *line, const char *text) {
	if (!*text) {
		cli_misuse(line, "the key is empty");
	}
	return pawl_str(text);
}

/* The statuses tell apart whether a node has refused, so that it can be asked again later, or
 * whether nobody was there to say anything. */
int cli_exit_status(const struct pawl_result *result) {
	switch (result->error) {
	case 0:
		return CLI_DONE;
	case PAWL_ENOQUORUM:
	case PAWL_ERECOVERING:
	case PAWL_EUNREACHABLE:
	case PAWL_ECLOSED:
	case PAWL_ETLS:
	case PAWL_EPROTOCOL:
	case PAWL_EMOVED:
		return CLI_UNREACHABLE;
	case PAWL_ETIMEOUT:
		/* This timeout may be the library's own: the nodes were silent. */
		return result->tree ? CLI_REFUSED : CLI_UNREACHABLE;
	default:
		return CLI_REFUSED;
	}
}

const char *cli_remedy(enum pawl_method method, int error) {
	static const struct {
		int error;
		const char *text;
		enum pawl_method method; /* 0: any */
	} rows[] = {
		{ PAWL_EMISMATCH,
			"check pawl cluster show, and repeat the command if you still want the "
			"change",
			PAWL_CHANGE },
		{ PAWL_EUNSETTLED,
			"pawl cluster show tells which node is missing: bring it back, or replace "
			"it",
			PAWL_CHANGE },
		{ PAWL_EBUSY, "wait until that change has finished (pawl cluster show), then try "
			"again if needed",
			PAWL_CHANGE },
		{ PAWL_ENOTFOUND, "pawl cluster show lists the names", PAWL_CHANGE },
		{ PAWL_ENOTFOUND, "pawl get shows who holds the key, and the token", PAWL_BREAK },
		{ PAWL_ETIMEOUT,
			"the change may still be going on: check pawl cluster show, or repeat the "
			"command",
			PAWL_CHANGE },
		{ PAWL_ECLOSED,
			"the node may have carried on: check pawl status, and repeat the command",
			0 },
		{ PAWL_EHELD, "wait for it with --wait 1m; pawl waiters shows who else is waiting",
			0 },
		{ PAWL_EDEADLOCK, "release what you hold, and try again", 0 },
		{ PAWL_ENOQUORUM, "pawl status shows which masters do not answer", 0 },
		{ PAWL_EUNREACHABLE,
			"is pawld running there? Set the nodes with --endpoints or PAWL_ENDPOINTS; "
			"write tls://host:port for nodes with TLS",
			0 },
		{ PAWL_ERECOVERING,
			"pawl status --all shows which nodes serve; --endpoints says which are "
			"asked",
			0 },
		{ PAWL_EMOVED, "ask that cluster: set its nodes with --endpoints", 0 },
		{ PAWL_ELOST, "acquire it again, with a new lock id", 0 },
		{ PAWL_EUNSURE, "acquire it again with the same lock id (--lock-id)", 0 },
		{ PAWL_ETOOLONG, "use a shorter --lease, --lock-delay or --close", 0 },
		{ PAWL_EMISMATCH, "read it with pawl get --quorum and try again", PAWL_UPDATE },
		{ PAWL_EMISMATCH,
			"the lock is still held in another mode: release it first, or omit "
			"--lock-id to acquire a new one",
			PAWL_ACQUIRE },
		{ PAWL_EDENIED,
			"pawl explain shows whether an administrator has broken the lock; if not, "
			"pawl can shows which rule forbids it",
			PAWL_EXTEND },
		{ PAWL_EDENIED,
			"pawl can shows which rule forbids it; also check which certificate --cert "
			"gives",
			0 },
		{ PAWL_ETLS, "check --cacert, --cert, --key and the host in the endpoint", 0 },
		{ PAWL_EFULL, "see [limits] in the node's configuration", 0 },
		{ PAWL_EINDETERMINATE,
			"try pawl get --quorum: the key was changing, or it has more records than "
			"fit in one answer",
			PAWL_EXPLAIN },
		{ PAWL_EINDETERMINATE, "try again: the key was changing", 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].error == error && (!rows[i].method || rows[i].method == method)) {
			return rows[i].text;
		}
	}
	return NULL;
}

static void fail_json(const struct pawl_result *result, const char *what) {
	json_t *error = output_json_tree(result->tree), *object = json_object();
	output_json_set(error, "code", json_string(pawl_error_code(result->error)));
	if (!json_object_get(error, "message")) {
		output_json_bytes(error, "message",
			pawl_str(*result->message ? result->message
				: pawl_error_message(result->error)));
	}
	output_json_set(error, "operation", json_string(what));
	output_json_set(object, "error", error);
	output_json(object);
}

static void print_what_failed(const struct pawl_result *result, const char *what,
	const char *subject) {
	fprintf(stderr, "pawl: %s", what);
	if (subject && *subject) {
		fputc(' ', stderr);
		struct pawl_bytes shown = pawl_str(subject);
		bool cut = shown.size > SUBJECT_MAX;
		shown.size = cut ? SUBJECT_MAX : shown.size;
		output_bytes(stderr, shown, 0);
		fputs(cut ? "..." : "", stderr);
	}
	const char *message = *result->message ? result->message
		: pawl_error_message(result->error);
	bool field_first = result->error == PAWL_EBADREQUEST || result->error == PAWL_ETOOLARGE;
	if (!*result->field) {
		fprintf(stderr, ": %s", output_name(message));
	} else if (field_first) {
		/* The sentence is about this parameter, so its name comes first. */
		fprintf(stderr, ": %s %s", output_name(result->field), output_name(message));
	} else {
		fprintf(stderr, ": %s (%s)", output_name(message), output_name(result->field));
	}
}

static void print_in_the_way(const struct pawl_result *result) {
	const struct pawl_entry *e = &result->entry;
	bool others = result->error == PAWL_EHELD || result->error == PAWL_ETIMEOUT;
	if (!others || !(e->held || e->closing)) {
		return;
	}
	fputs(e->held ? "; held by " : "; last held by ", stderr);
	output_bytes(stderr, e->owner, 0);
	fprintf(stderr, ", token %llu, ", (unsigned long long)e->token);
	if (e->mode == PAWL_PERMITS) {
		fprintf(stderr, "%" PRIu32 " of %" PRIu32 " permits, ", e->permits, e->of);
	}
	if (e->held) {
		fprintf(stderr, "%s left", output_duration(e->remaining_ms));
	} else {
		fprintf(stderr, "stays closed for %s", output_duration(e->closing_ms));
	}
}

static void print_limit(const struct pawl_result *result) {
	const struct pawl_value *limit = pawl_value_get(result->tree, "limit_ms");
	if (limit && limit->kind == PAWL_INT) {
		fprintf(stderr, "; at %s %s", result->error == PAWL_ETOOLONG ? "most" : "least",
			output_duration(limit->integer));
	}
}

static void print_names(const struct pawl_result *result, const char *field, const char *what) {
	const struct pawl_value *names = pawl_value_get(result->tree, field);
	for (size_t i = 0; names && names->kind == PAWL_ARRAY && i < names->count; i++) {
		fprintf(stderr, "%s", i ? ", " : what);
		output_bytes(stderr, names->items[i].bytes, 0);
	}
}

/* Writes what to do if the key is held as a semaphore of another size; false if it is not. */
static bool other_size(const struct pawl_result *result, char text[96]) {
	const int64_t of = field_int(result->tree, "other_of", 0);
	if ((result->error != PAWL_EHELD && result->error != PAWL_ETIMEOUT) || of == 0) {
		return false;
	}
	snprintf(text, 96, "give --of %" PRId64 ", as those who hold it do", of);
	return true;
}

int cli_fail(const struct cli_command_line *line, const struct pawl_result *result,
	const char *what, const char *subject) {
	int status = cli_exit_status(result);
	if (line->json) {
		fail_json(result, what);
		return status;
	}
	print_what_failed(result, what, subject);
	print_in_the_way(result);
	print_limit(result);
	print_names(result, "silent", "; silent: ");
	print_names(result, "not_voting", "; answering, but not voting: ");
	if (result->error == PAWL_EMISMATCH && result->method == PAWL_UPDATE) {
		fputs("; the present value is ", stderr);
		output_bytes(stderr, result->entry.value, 0);
	}
	if (!result->tree && result->error != PAWL_EIO) {
		fprintf(stderr, " (endpoints: %s)", output_name(line->endpoints));
	}
	const char *help = cli_remedy(result->method, result->error);
	char size[96];
	if (other_size(result, size)) {
		help = size;
	} else if (result->error == PAWL_ETIMEOUT && result->tree
		&& result->method == PAWL_ACQUIRE) {
		help = "pawl explain shows who holds the key, who waits, and what would free it";
	} else if (result->error == PAWL_ETIMEOUT && result->tree) {
		/* A node has said this, and why. */
		help = NULL;
	} else if (result->error == PAWL_ETIMEOUT && result->method != PAWL_CHANGE) {
		help = "pawl status --all shows which nodes answer; write tls://host:port for "
			"nodes with TLS";
	}
	fprintf(stderr, "%s%s\n", help ? "\n  " : "", help ? help : "");
	return status;
}

int cli_finish(struct pawl *take_client, struct pawl_result *take_result, int status) {
	pawl_result_free(take_result);
	pawl_free(take_client);
	return status;
}
