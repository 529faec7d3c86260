/* give.c: pawl transfer, downgrade and ask-release: ways of letting go other than releasing. */
#include <inttypes.h>

#include "commands.h"
#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- transfer ---- */

static const char transfer_help[] =
	"usage: pawl transfer KEY LOCK_ID TO\n"
	"\n"
	"Gives the lock up in favour of the waiter TO (the owner that pawl waiters shows), who has "
		"it next whoever waits ahead.\n"
	"If nobody of that name waits nothing is given up, and the exit status is 1. For a program "
		"that holds its lock with\n"
	"pawl run or pawl elect: pawl ask-release KEY --to TO.\n"
	"\n"
	"Example:\n"
	"  pawl transfer scheduler 6f1d0c9a5be24f7e8a34d2c1b0f9e877 host-b:4711\n";

static int transfer_show(const struct cli_answer *answer) {
	output_field_bytes("key", answer->request->key);
	output_field_bytes("next", answer->request->to);
	return CLI_DONE;
}

static int transfer_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_TRANSFER };
	char **operands = cli_options(line, NULL, 0, 3, 3, NULL);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	request.to = pawl_str(operands[2]);
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = transfer_show });
}

const struct cli_command cli_transfer = { "transfer",
	"give a lock up in favour of a waiter that is named", transfer_help, transfer_run };

/* ---- downgrade ---- */

static const char downgrade_help[] =
	"usage: pawl downgrade KEY LOCK_ID\n"
	"\n"
	"Makes an exclusive lock a shared one without letting go: others may share it from now on. "
		"There is no way back: release\n"
	"it, and acquire anew. What the lock let you do alone must be over before this is called, "
		"whatever comes of it.\n"
	"\n"
	"Example:\n"
	"  pawl downgrade catalogue 6f1d0c9a5be24f7e8a34d2c1b0f9e877\n";

static int downgrade_show(const struct cli_answer *answer) {
	output_field_bytes("key", answer->request->key);
	output_field("mode", "shared");
	return CLI_DONE;
}

static int downgrade_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_DOWNGRADE };
	char **operands = cli_options(line, NULL, 0, 2, 2, NULL);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = downgrade_show });
}

const struct cli_command cli_downgrade = { "downgrade",
	"make an exclusive lock a shared one without letting go", downgrade_help, downgrade_run };

/* ---- ask-release ---- */

static const char ask_help[] =
	"usage: pawl ask-release KEY [--to OWNER] [--priority N] [--owner NAME]\n"
	"\n"
	"Asks the holder of KEY to let go: an event for its program, which decides. A leader (pawl "
		"elect, election.h) hands over to\n"
	"the candidate --to, or yields to a candidate that asks with a greater priority than its "
		"own; without either it stays.\n"
	"pawl run does as its --on-ask says. Nothing is taken from anybody: pawl break does that. "
		"Exit status 0 when somebody was\n"
	"told (who else watches KEY is told, too); 1 when nobody listens, the holder neither.\n"
	"\n"
	"  --to OWNER           in whose favour: a waiter, as pawl waiters shows it\n"
	"  --owner NAME         who asks, for people and for the holder (default: host and "
		"process)\n"
	"  --priority N         of whoever asks (default 0)\n"
	"\n"
	"Example:\n"
	"  pawl waiters scheduler && pawl ask-release scheduler --to host-b:4711\n";

static int ask_status(const struct cli_answer *answer) {
	return answer->result->reached ? CLI_DONE : CLI_REFUSED;
}

static int ask_show(const struct cli_answer *answer) {
	uint32_t reached = answer->result->reached;
	if (reached) {
		output_field("told",
			"%" PRIu32 " who watch%s it; what comes of it is for the holder to decide",
			reached, reached == 1 ? "es" : "");
	} else {
		fprintf(stderr,
			"pawl ask-release: nobody listens at '%s': its holder does not watch it, "
			"or nobody holds it\n",
			answer->subject);
	}
	return ask_status(answer);
}

static int ask_json(const struct cli_answer *answer) {
	output_json(output_json_tree(answer->result->tree));
	return ask_status(answer);
}

static int ask_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_ASK_RELEASE };
	const char *to = NULL, *owner = NULL;
	const struct cli_option options[] = { { "to", CLI_TEXT, &to },
		{ "owner", CLI_TEXT, &owner },
		{ "priority", CLI_INTEGER, &request.terms.priority } };
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	request.key = cli_key(line, operands[0]);
	request.to = pawl_str(to);
	request.owner = pawl_str(owner);
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = ask_show, .json = ask_json });
}

const struct cli_command cli_ask_release = { "ask-release", "ask the holder of a key to let go",
	ask_help, ask_run };
