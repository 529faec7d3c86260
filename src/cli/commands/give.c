/* give.c: pawl transfer, downgrade and ask-release: ways of letting go other than releasing. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "output.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- transfer ---- */

static const char transfer_help[] =
	"usage: pawl transfer KEY LOCK_ID TO\n"
	"\n"
	"Hands a lock over to the waiter TO (an owner that pawl waiters shows), who gets\n"
	"it next, whoever waits ahead. If nobody of that name is waiting, the lock is\n"
	"kept, and the exit status is 1. If pawl run or pawl elect holds the lock, use\n"
	"pawl ask-release KEY --to TO instead.\n"
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
	"hand a lock over to a given waiter", transfer_help, transfer_run };

/* ---- downgrade ---- */

static const char downgrade_help[] =
	"usage: pawl downgrade KEY LOCK_ID\n"
	"\n"
	"Turns an exclusive lock into a shared one without releasing it: from now on,\n"
	"others may share it. There is no way back except to release it and to acquire it\n"
	"again. Finish everything that needs the exclusive lock before you call this:\n"
	"even if it fails, the lock may be shared.\n"
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
	"turn an exclusive lock into a shared one", downgrade_help, downgrade_run };

/* ---- ask-release ---- */

static const char ask_help[] =
	"usage: pawl ask-release KEY [--to OWNER] [--priority N] [--owner NAME]\n"
	"\n"
	"Asks the holder of KEY to release it. The holder's program gets an event, and\n"
	"decides. A leader (pawl elect, election.h) hands over to the candidate that --to\n"
	"names, or yields to a candidate that asks with a higher priority than its own;\n"
	"otherwise it stays. pawl run does what its --on-ask says. Nothing is taken from\n"
	"anybody; pawl break does that. The exit status is 0 if anybody was told (this\n"
	"includes others who watch KEY), and 1 if nobody watches KEY, or nobody named OWNER waits\n"
	"for it.\n"
	"\n"
	"  --to OWNER           the waiter that should get it next, as pawl waiters shows\n"
	"                       it\n"
	"  --owner NAME         who asks, shown to the holder (default: host and process)\n"
	"  --priority N         the priority of whoever asks (default 0)\n"
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
			"%" PRIu32 " watcher%s; the holder decides",
			reached, reached == 1 ? "" : "s");
	} else {
		output_line(stderr,
			"pawl ask-release: nobody watches '%s': either its holder does not "
			"watch it, or nobody holds it",
			answer->subject);
	}
	return ask_status(answer);
}

static int ask_json(const struct cli_answer *answer) {
	output_json(output_json_tree(answer->result->tree));
	return ask_status(answer);
}

/* Returns whether somebody of that name waits for the key. If that cannot be known, the holder is
 * asked nevertheless. */
static bool waits(struct pawl *client, const struct pawl_request *asking) {
	const struct pawl_request list = { .method = PAWL_WAITERS, .key = asking->key };
	struct pawl_result *result = cli_call(client, &list);
	bool found = result->error != 0 || result->more;
	for (size_t i = 0; i < result->waiter_count; i++) {
		const struct pawl_bytes owner = result->waiters[i].owner;
		found = found || (owner.size == asking->to.size
			&& memcmp(owner.data, asking->to.data, owner.size) == 0);
	}
	pawl_result_free(result);
	return found;
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
	struct pawl *client = cli_connect(line);
	if (to && !waits(client, &request)) {
		const struct pawl_result nobody = { .error = PAWL_ENOTFOUND, .message =
				"nobody of the name that --to gives waits for the key: nobody was "
				"asked (pawl waiters shows the names)",
			.endpoint = "", .field = "" };
		return cli_finish(client, NULL,
			cli_fail(line, &nobody, "ask-release", operands[0]));
	}
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = ask_show, .json = ask_json, .take_client = client });
}

const struct cli_command cli_ask_release = { "ask-release", "ask the holder of a key to release it",
	ask_help, ask_run };
