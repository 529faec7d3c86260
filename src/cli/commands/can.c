/* can.c: pawl can: says whether a rule allows something, and which rule. */
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "output.h"
#include "rights.h"

#define GIDS_MAX 1024
#define METHOD_MAX 64

static const char can_help[] =
	"usage: pawl can IDENTITY METHOD [KEY] [--prefix] [--priority N] [--file FILE]\n"
	"\n"
	"Tells whether IDENTITY may call METHOD for KEY, and which rule decides it: its\n"
	"file, line and text. It asks the first node that answers; with --file it reads a\n"
	"file instead, perhaps one that no node has yet.\n"
	"\n"
	"IDENTITY is the name in a client's certificate; or unix:uid:N or unix:user:NAME,\n"
	"for the account of a client on a Unix socket, with the groups that it has on\n"
	"this machine; or plain, for a client without TLS on a node's own machine; or\n"
	"anonymous, for any other client without a certificate; or -, for yourself. A\n"
	"node answers about others only to clients with the right `cluster`.\n"
	"\n"
	"METHOD is a method of the client protocol: acquire, get, list, watch, break,\n"
	"cluster_remove, ...\n"
	"\n"
	"  --prefix             for all keys that begin with KEY, as list, watch and\n"
	"                       waiters ask for (list always does)\n"
	"  --priority N         acquire, ask_release: with this priority\n"
	"  --file FILE          judge by this file; no node is asked\n"
	"\n"
	"The exit status is 0 if it is allowed, and 1 if it is not.\n"
	"\n"
	"Example:\n"
	"  pawl can billing acquire billing/nightly --file /etc/pawl/rights.conf\n";

struct can {
	const struct cli_command_line *line;
	const char *identity, *file;
	char method[METHOD_MAX + 1], account[32];
	struct pawl_bytes key;
	bool prefix;
	int32_t priority;
	gid_t gids[GIDS_MAX];
	int gid_count;
};

/* ---- whom it is about ---- */

static void can_use_account(struct can *c, const struct passwd *account) {
	snprintf(c->account, sizeof c->account, RIGHTS_UNIX "uid:%u", account->pw_uid);
	c->identity = c->account;
	c->gid_count = GIDS_MAX;
	if (getgrouplist(account->pw_name, account->pw_gid, c->gids, &c->gid_count) < 0) {
		cli_misuse(c->line, "'%s' is in more than %d groups", account->pw_name, GIDS_MAX);
	}
}

/* Turns the name of an account into its number and its groups on this machine. */
static void can_resolve(struct can *c) {
	static const char user[] = RIGHTS_UNIX "user:", uid[] = RIGHTS_UNIX "uid:";
	uint64_t number;
	if (strncmp(c->identity, user, sizeof user - 1) == 0) {
		const struct passwd *account = getpwnam(c->identity + sizeof user - 1);
		if (!account) {
			cli_misuse(c->line,
				"this machine has no account '%s': write unix:uid:NUMBER",
				c->identity + sizeof user - 1);
		}
		can_use_account(c, account);
	} else if (strncmp(c->identity, uid, sizeof uid - 1) == 0) {
		if (!cli_number_parse(c->identity + sizeof uid - 1, &number)
			|| number > UINT32_MAX) {
			cli_misuse(c->line, "'%s': write unix:uid:NUMBER", c->identity);
		}
		const struct passwd *account = getpwuid((uid_t)number);
		if (account) {
			can_use_account(c, account);
		}
	} else if (strncmp(c->identity, RIGHTS_UNIX, sizeof RIGHTS_UNIX - 1) == 0
		|| strncmp(c->identity, "group:", 6) == 0
		|| strcmp(c->identity, "everybody") == 0) {
		cli_misuse(c->line,
			"'%s' is not a single identity: write the name in a certificate, "
			"unix:user:NAME, unix:uid:NUMBER, plain, anonymous, or -",
			c->identity);
	}
}

/* ---- telling ---- */

static int can_tell(const struct can *c, bool allowed, const char *right, const char *why) {
	output_field("allowed", "%s", allowed ? "yes" : "no");
	output_field("right", "%s", right);
	output_field("because", "%s", why);
	if (c->file) {
		output_field("note",
			"this is what the file says; a node may have a different file");
	}
	return allowed ? CLI_DONE : CLI_REFUSED;
}

/* ---- by a file ---- */

static int can_tell_file(const struct can *c, const struct rights *rules, enum right right,
	const struct rights_verdict *verdict, const char *why) {
	if (!c->line->json) {
		return can_tell(c, verdict->allowed, right_name(right), why);
	}
	json_t *object = json_object();
	output_json_set(object, "allowed", json_boolean(verdict->allowed));
	output_json_bytes(object, "right", pawl_str(right_name(right)));
	output_json_bytes(object, "identity", pawl_str(c->identity));
	output_json_bytes(object, "why", pawl_str(why));
	output_json_bytes(object, "file", pawl_str(rights_file(rules)));
	output_json_set(object, "line", json_integer(verdict->line));
	output_json(object);
	return verdict->allowed ? CLI_DONE : CLI_REFUSED;
}

static int can_by_file(const struct can *c) {
	struct rights *rules;
	struct problem problem;
	struct rights_caller caller = { .identity = slice_of(c->identity, strlen(c->identity)),
		.gids = c->gids, .gid_count = (uint32_t)c->gid_count };
	struct rights_question question = { .prefix = c->prefix };
	char why[RIGHTS_WHY_BYTES];
	bool always_prefix;
	if (strcmp(c->identity, "-") == 0) {
		cli_misuse(c->line,
			"only a node knows who you are: give an identity, or omit --file");
	}
	if (strcmp(c->identity, RIGHTS_ANONYMOUS) == 0) {
		caller.identity.size = 0;
	}
	if (!rights_of_method(slice_of(c->method, strlen(c->method)), &question.right,
		&always_prefix)) {
		cli_misuse(c->line,
			"unknown method '%s': docs/client-protocol.md lists the methods",
			c->method);
	}
	if (rights_read(c->file, &rules, &problem)) {
		cli_misuse(c->line, "%s", problem.text);
	}
	question.prefix = question.prefix || always_prefix;
	question.key = RIGHT_HAS_KEY(question.right) ? slice_of(c->key.data, c->key.size)
		: slice_of(NULL, 0);
	struct rights_verdict verdict = rights_judge(rules, &caller, &question);
	if (verdict.allowed && question.right == RIGHT_ACQUIRE && c->priority > 0) {
		question.right = RIGHT_PRIORITY;
		question.priority = c->priority;
		verdict = rights_judge(rules, &caller, &question);
	}
	rights_explain(rules, &caller, &question, &verdict, why);
	int status = can_tell_file(c, rules, question.right, &verdict, why);
	rights_free(rules);
	return status;
}

/* ---- by a node ---- */

static int can_node_status(const struct cli_answer *answer) {
	return field_bool(answer->result->tree, "allowed") ? CLI_DONE : CLI_REFUSED;
}

static int can_node_json(const struct cli_answer *answer) {
	output_json(output_json_tree(answer->result->tree));
	return can_node_status(answer);
}

static int can_node_show(const struct cli_answer *answer) {
	const struct pawl_result *result = answer->result;
	const struct can c = { .line = answer->line };
	char why[RIGHTS_WHY_BYTES];
	const struct pawl_value *said = pawl_value_get(result->tree, "why");
	snprintf(why, sizeof why, "%.*s", said ? (int)said->bytes.size : 0,
		said ? (const char *)said->bytes.data : "");
	output_field("node", "%s", result->node);
	return can_tell(&c, field_bool(result->tree, "allowed"), field_text(result->tree, "right"),
		why);
}

static int can_by_node(const struct can *c) {
	unsigned char gids[4 * GIDS_MAX];
	struct pawl_request request = { .method = PAWL_CAN, .key = c->key, .prefix = c->prefix,
		.to = pawl_str(c->method) };
	request.terms.priority = c->priority;
	if (strcmp(c->identity, "-") != 0) {
		request.owner = pawl_str(c->identity);
		request.value = (struct pawl_bytes){ gids, 4 * (size_t)c->gid_count };
		for (int i = 0; i < c->gid_count; i++) {
			for (int k = 0; k < 4; k++) {
				gids[4 * i + k] = (unsigned char)(c->gids[i] >> (24 - 8 * k));
			}
		}
	}
	return cli_ask(c->line, &(struct cli_asking){ .request = &request, .subject = c->identity,
		.people = can_node_show, .json = can_node_json });
}

static int can_run(struct cli_command_line *line) {
	struct can c = { .line = line };
	int count;
	const struct cli_option options[] = { { "prefix", CLI_FLAG, &c.prefix },
		{ "priority", CLI_INTEGER, &c.priority }, { "file", CLI_TEXT, &c.file } };
	char **operands = cli_options(line, options, sizeof options / sizeof *options, 2, 3,
		&count);
	c.identity = operands[0];
	if (strlen(operands[1]) > METHOD_MAX) {
		cli_misuse(line, "unknown method '%s'", operands[1]);
	}
	for (size_t i = 0; operands[1][i]; i++) {
		/* The commands write these names with dashes. */
		c.method[i] = operands[1][i] == '-' ? '_' : operands[1][i];
	}
	c.key = pawl_str(count > 2 ? operands[2] : "");
	can_resolve(&c);
	return c.file ? can_by_file(&c) : can_by_node(&c);
}

const struct cli_command cli_can = { "can",
	"tell whether a client may do something, and by which rule", can_help, can_run };
