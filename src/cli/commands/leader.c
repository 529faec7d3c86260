/* leader.c: pawl leader: who leads an election, and each change. */
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "output.h"
#include "pawl/election.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char leader_help[] =
	"usage: pawl leader NAME [--watch]\n"
	"\n"
	"Shows who leads the election NAME now, with the token and the value that the\n"
	"leader proclaims. The exit status is 1 if nobody leads, as with pawl get. With\n"
	"--watch it prints the present leader and then each change, a line each, in\n"
	"order. A quorum of masters is asked; with --watch, the view of one node is\n"
	"shown.\n"
	"\n"
	"  --watch              continue until interrupted\n"
	"\n"
	"Example:\n"
	"  pawl leader scheduler --json | jq -r .value\n"
	"  pawl leader scheduler --watch | while read -r line; do echo \"$line\"; done\n";

struct leader {
	const struct cli_command_line *line;
	struct event_base *base;
	const char *name;
	bool told;
	int status;
};

static void print_leader(const struct leader *l, const struct pawl_leader *leader) {
	if (l->line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "name", pawl_str(l->name));
		output_json_set(object, "held", json_boolean(leader != NULL));
		if (leader) {
			output_json_bytes(object, "owner", leader->owner);
			output_json_set(object, "token", json_integer((json_int_t)leader->token));
			output_json_bytes(object, "value", leader->value);
		}
		output_json(object);
	} else if (leader) {
		output_bytes(stdout, leader->owner, 0);
		printf(" leads, token %" PRIu64, leader->token);
		if (leader->value.size) {
			printf(", value ");
			output_bytes(stdout, leader->value, 0);
		}
		putchar('\n');
	} else {
		printf("nobody leads\n");
	}
}

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct leader *l = arg;
	(void)election;
	print_leader(l, leader);
	l->told = true;
	if (fflush(stdout) != 0) {
		/* Nobody reads the output any more. */
		event_base_loopbreak(l->base);
	}
}

static void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	struct leader *l = arg;
	(void)election, (void)observing;
	struct pawl_result failed = { .method = PAWL_WATCH, .error = error, .message = message,
		.endpoint = "", .field = "" };
	l->status = cli_fail(l->line, &failed, "leader", l->name);
	event_base_loopbreak(l->base);
}

static bool answered(void *ctx) {
	return pawl_election_current(ctx);
}

static int watch_leader(struct leader *l) {
	const struct pawl_election_options options = { .name = pawl_str(l->name),
		.observe_only = true, .on_leader = on_leader, .on_failed = on_failed, .arg = l };
	l->base = event_base_new();
	if (!l->base) {
		cli_misuse(l->line, "out of memory");
	}
	struct pawl *client = cli_connect_on(l->line, l->base);
	struct pawl_election *election;
	int error = pawl_election_new(client, &options, &election);
	if (error) {
		on_failed(NULL, error, pawl_error_message(error), false, l);
	} else {
		cli_tell_silence(l->line, l->base, client, answered, election);
		event_base_dispatch(l->base);
	}
	pawl_free(client);
	event_base_free(l->base);
	return l->status;
}

static int leader_show(const struct cli_answer *answer) {
	const struct leader l = { .line = answer->line, .name = answer->subject };
	const struct pawl_entry *e = &answer->result->entry;
	const struct pawl_leader leader = { .owner = e->owner, .value = e->value,
		.token = e->token };
	print_leader(&l, e->held ? &leader : NULL);
	return e->held ? CLI_DONE : CLI_REFUSED;
}

static int leader_run(struct cli_command_line *line) {
	struct leader l = { .line = line };
	bool watch = false;
	const struct cli_option options[] = { { "watch", CLI_FLAG, &watch } };
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	const struct pawl_request request = { .method = PAWL_GET, .key = cli_key(line, operands[0]),
		.quorum = true };
	l.name = operands[0];
	if (watch) {
		return watch_leader(&l);
	}
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = l.name,
		.people = leader_show, .json = leader_show });
}

const struct cli_command cli_leader = { "leader", "show who leads an election, and each change",
	leader_help, leader_run };
