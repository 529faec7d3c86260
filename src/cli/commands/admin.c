/* admin.c: pawl break and pawl drain: what operators do to a lock, and to a node. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* The user has named no token. */
#define NO_TOKEN UINT64_MAX

/* ---- break ---- */

static const char break_help[] =
	"usage: pawl break KEY [--token T] [--now] [--yes]\n"
	"\n"
	"Bars the holder of KEY from extending its lease, so that KEY is free when the\n"
	"lease ends. This is safe: the holder is told, and stops in time. For\n"
	"administrators; the node logs who did it. On a terminal it shows the holder and\n"
	"asks first. A gentler way: pawl ask-release KEY.\n"
	"\n"
	"  --token T            only if the holder has this token (default: whoever holds\n"
	"                       it now)\n"
	"  --now                free KEY at once. THE HOLDER MAY STILL BELIEVE THAT IT\n"
	"                       HOLDS KEY until its lease ends: make sure that it is\n"
	"                       dead, or that everything it writes to checks fencing\n"
	"                       tokens\n"
	"  --yes                do not ask (scripts without a terminal are not asked)\n"
	"\n"
	"Example:\n"
	"  pawl explain nightly-backup && pawl break nightly-backup\n";

/* Shows the user whose lock would be broken. Returns whether the user says yes. */
static bool confirmed(const char *key, const struct pawl_entry *e, bool now) {
	char answer[16] = "";
	fprintf(stderr, e->closing ? "'%s' was held by " : "'%s' is held by ",
		output_name(key));
	output_bytes(stderr, e->owner, 0);
	fprintf(stderr, ", token %" PRIu64, e->token);
	if (e->closing) {
		fprintf(stderr,
			"; it stays closed for %s.\nWhat that holder began may still be "
			"running.\n",
			output_duration(e->closing_ms));
	} else {
		fprintf(stderr, ", for at most another %s.\n%s\n", output_duration(e->remaining_ms),
			now ? "Its holder may still believe that it holds the key until then."
				: "It will not be able to extend its lease.");
	}
	fprintf(stderr, "Break it? (yes/no) ");
	fflush(stderr);
	return fgets(answer, sizeof answer, stdin)
		&& (strcmp(answer, "yes\n") == 0 || strcmp(answer, "y\n") == 0);
}

/* Says which tokens the holders have, if the one that was named is none of them. */
static int no_such_token(const struct cli_command_line *line, const struct pawl_result *get,
	const char *key, uint64_t token) {
	char text[256];
	const struct pawl_entry *e = &get->entry;
	if (get->holder_count > 1) {
		snprintf(text, sizeof text,
			"no holder of this key has token %" PRIu64 "; it has %zu holders, and pawl "
			"get shows their tokens",
			token, get->holder_count);
	} else {
		snprintf(text, sizeof text,
			"no holder of this key has token %" PRIu64 "; its %s has token %" PRIu64,
			token, e->held ? "holder" : "last holder", e->token);
	}
	const struct pawl_result none = { .error = PAWL_ENOTFOUND, .message = text,
		.endpoint = "", .field = "" };
	return cli_fail(line, &none, "break", key);
}

static bool has_token(const struct pawl_result *get, uint64_t token) {
	bool found = token == 0 || get->entry.token == token;
	for (size_t i = 0; i < get->holder_count; i++) {
		found = found || get->holders[i].token == token;
	}
	return found;
}

/* Finds the token of the present holder of the key. If the request names a token already, only the
 * holder with that token counts. Returns true, or false with *out_status set. */
static bool find_holder(const struct cli_command_line *line, struct pawl *client,
	struct pawl_request *request, const char *key, bool yes, int *out_status) {
	const struct pawl_request get = { .method = PAWL_GET, .key = request->key, .quorum = true };
	struct pawl_result *result = cli_call(client, &get);
	*out_status = CLI_REFUSED;
	/* With --now a lock delay can be ended as well. */
	bool found = !result->error
		&& (result->entry.held || (result->entry.closing && request->now));
	if (result->error) {
		*out_status = cli_fail(line, result, "break", key);
	} else if (!found) {
		result->error = PAWL_ENOTFOUND;
		result->message = "nobody holds this key";
		*out_status = cli_fail(line, result, "break", key);
	} else if (!has_token(result, request->token)) {
		*out_status = no_such_token(line, result, key, request->token);
		found = false;
	} else if (result->holder_count > 1 && !request->token) {
		cli_misuse(line,
			"'%s' has %zu holders: choose one by its token with --token (pawl get "
			"shows the tokens)",
			key, result->holder_count);
	} else if (!yes && !confirmed(key, &result->entry, request->now)) {
		fprintf(stderr, "pawl break: nothing was done\n");
		found = false;
	} else if (!request->token) {
		request->token = result->entry.token;
	}
	pawl_result_free(result);
	return found;
}

static int break_show(const struct cli_answer *answer) {
	const struct pawl_value *warning = pawl_value_get(answer->result->tree, "warning");
	output_field_bytes("key", answer->request->key);
	output_field("token", "%" PRIu64, answer->request->token);
	output_field("broken", "%s", answer->request->now ? "now" : "when the lease ends");
	if (answer->request->now && warning) {
		output_field_bytes("warning", warning->bytes);
	}
	return CLI_DONE;
}

/* Nothing was broken: says who holds the key instead, if anybody does. */
static int tell_not_found(const struct cli_command_line *line, struct pawl *client,
	const struct pawl_result *result, const struct pawl_request *request, const char *key) {
	const struct pawl_request get = { .method = PAWL_GET, .key = request->key, .quorum = true };
	struct pawl_result *now = cli_call(client, &get);
	bool known = !now->error && (now->entry.held || now->entry.closing);
	int status = known && !has_token(now, request->token)
		? no_such_token(line, now, key, request->token)
		: cli_fail(line, result, "break", key);
	pawl_result_free(now);
	return status;
}

static int break_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_BREAK };
	bool yes = false;
	const struct cli_option options[] = { { "token", CLI_NUMBER, &request.token },
		{ "now", CLI_FLAG, &request.now }, { "yes", CLI_FLAG, &yes } };
	request.token = NO_TOKEN;
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	request.key = cli_key(line, operands[0]);
	if (request.token == 0) {
		cli_misuse(line,
			"--token 0: tokens are whole numbers above 0; omit --token to mean whoever "
			"holds the key");
	}
	request.token = request.token == NO_TOKEN ? 0 : request.token;
	struct pawl *client = cli_connect(line);
	int status;
	yes = yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO);
	if (!(request.token && yes)
		&& !find_holder(line, client, &request, operands[0], yes, &status)) {
		return cli_finish(client, NULL, status);
	}
	struct pawl_result *result = cli_call(client, &request);
	const struct cli_answer answer = { line, &request, result, operands[0] };
	if (result->error == PAWL_ENOTFOUND) {
		status = tell_not_found(line, client, result, &request, operands[0]);
	} else if (result->error) {
		status = cli_fail(line, result, "break", operands[0]);
	} else {
		status = line->json ? output_json(output_json_tree(result->tree))
			: break_show(&answer);
	}
	return cli_finish(client, result, status);
}

const struct cli_command cli_break = { "break",
	"take a lock from its holder, when its lease ends or now", break_help, break_run };

/* ---- drain ---- */

static const char drain_help[] =
	"usage: pawl drain NODE\n"
	"\n"
	"Prepares NODE for a planned stop: it stops voting and writes down what it knows,\n"
	"so that its next start causes only a short pause. Stop it right afterwards.\n"
	"(SIGTERM to pawld does both.) NODE must be among the --endpoints; no other node\n"
	"is affected. For administrators.\n"
	"\n"
	"Example:\n"
	"  pawl drain b --endpoints a:7117,b:7117,c:7117 && ssh b systemctl restart pawld\n";

static int drain_show(const struct cli_answer *answer) {
	output_field("drained", "%s: it no longer votes; stop it now", answer->subject);
	return CLI_DONE;
}

static int drain_json(const struct cli_answer *answer) {
	json_t *object = output_json_tree(answer->result->tree);
	output_json_bytes(object, "node", pawl_str(answer->subject));
	return output_json(object);
}

static int drain_run(struct cli_command_line *line) {
	char **operands = cli_options(line, NULL, 0, 1, 1, NULL);
	struct pawl *client;
	int status = cli_connect_node(line, operands[0], &client);
	if (!client) {
		return status;
	}
	const struct pawl_request request = { .method = PAWL_DRAIN };
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = drain_show, .json = drain_json, .take_client = client });
}

const struct cli_command cli_drain = { "drain", "prepare a node for a planned stop", drain_help,
	drain_run };
