/* lock.c: pawl acquire, update and release make one request each; the caller keeps the lock_id. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "lock.h"
#include "output.h"
#include "terms.h"

#define VALUE_SEQ_BYTES 20
#define COUNT(a) (sizeof(a) / sizeof *(a))

void lock_set_time_left(json_t *object, const struct pawl_result *result) {
	output_json_set(object, "valid_ms", json_integer(pawl_result_valid_ms(result)));
}

/* ---- acquire ---- */

static const char acquire_help[] =
	"usage: pawl acquire KEY... [OPTION...]\n"
	"\n"
	"Acquires the lock KEY, and prints its lock id, its fencing token and the time\n"
	"that is left. The lock is not renewed automatically: call pawl extend before\n"
	"that time has passed, and pawl release when you are done. With several KEYs it\n"
	"takes all of them or none in one request; each has its own lock id and token. To\n"
	"hold a lock while a program runs, pawl run is simpler and safer. pawl lock KEY\n"
	"is the same command, and pawl lock KEY -- CMD is pawl run. While it waits in the\n"
	"foreground of a terminal, it says there who holds KEY, and its place in the\n"
	"queue, unless --json is given.\n"
	"\n"
	"  --lease DURATION     how long the lock lasts (default 30s, or the\n"
	"                       cluster's max_lease if that is less)\n"
	"  --wait DURATION      wait up to DURATION for the lock, or forever, first come,\n"
	"                       first served (default: try once)\n"
	"  --value V            bytes that others can read under KEY while it is held\n"
	"  --owner NAME         the holder's name, shown to others (default: host and\n"
	"                       process)\n"
	"  --lock-id ID         repeat an earlier acquire whose answer was lost or was\n"
	"                       `unsure`, with the same mode (after pawl downgrade:\n"
	"                       --shared); ID is 32 hexadecimal digits\n"
	"  --order N            with --lock-id: the order that pawl extend --shorten\n"
	"                       printed last for this lock\n"
	TERMS_HELP
	"\n"
	"Example:\n"
	"  eval $(pawl acquire nightly-backup --lease 1m --json |\n"
	"    jq -r '\"id=\\(.lock_id) token=\\(.token)\"')\n"
	"  backup --fence \"$token\" && pawl release nightly-backup \"$id\"\n";

static int acquire_json(const struct cli_answer *answer) {
	json_t *object = output_json_tree(answer->result->tree);
	if (!answer->request->key_count) {
		output_json_bytes(object, "key", answer->request->key);
		output_json_id(object, "lock_id", &answer->result->lock_id);
	}
	lock_set_time_left(object, answer->result);
	return output_json(object);
}

static void acquire_print(const struct pawl_request *request, const struct pawl_result *result) {
	char id[PAWL_ID_TEXT];
	pawl_id_format(&result->lock_id, id);
	output_field_bytes("key", request->key);
	output_field("lock id", "%s", id);
	output_field("token", "%" PRIu64, result->token);
	if (result->mode != PAWL_EXCLUSIVE) {
		output_field("mode", "%s",
			terms_text(result->mode, request->terms.permits, request->terms.of,
				result->slots, result->slot_count));
	}
	output_field_duration("time left", pawl_result_valid_ms(result));
	if (result->waited_ms > 0) {
		output_field_duration("waited", result->waited_ms);
	}
}

static void acquire_print_all(const struct pawl_result *result) {
	printf("%-32s %-32s %12s\n", "KEY", "LOCK ID", "TOKEN");
	for (size_t i = 0; i < result->got_count; i++) {
		char id[PAWL_ID_TEXT];
		pawl_id_format(&result->got[i].lock_id, id);
		output_bytes(stdout, result->got[i].key, 32);
		printf(" %-32s %12" PRIu64 "\n", id, result->got[i].token);
	}
	output_field_duration("time left", pawl_result_valid_ms(result));
}

static int acquire_show(const struct cli_answer *answer) {
	if (answer->request->key_count) {
		acquire_print_all(answer->result);
	} else {
		acquire_print(answer->request, answer->result);
	}
	return CLI_DONE;
}

void lock_read_lease(const struct cli_command_line *line, struct pawl_request *request) {
	cli_lease_check(line, request->lease_ms);
	request->lease_ms = request->lease_ms == LOCK_LEASE_OPEN ? 0 : request->lease_ms;
}

uint32_t lock_read_order(const struct cli_command_line *line, uint64_t number) {
	if (number > UINT32_MAX) {
		cli_misuse(line, "--order takes the number that pawl extend --shorten printed");
	}
	return (uint32_t)number;
}

/* Returns how many words stand behind the first "--", or -1 if there is none. */
static int behind_dashes(const struct cli_command_line *line) {
	for (int i = 1; i < line->argc; i++) {
		if (strcmp(line->argv[i], "--") == 0) {
			return line->argc - i - 1;
		}
	}
	return -1;
}

_Noreturn static void lock_misuse(const struct cli_command_line *line, const char *key,
	const char *word) {
	cli_misuse(line,
		"pawl lock takes one KEY; to hold '%s' while '%s' runs: pawl lock KEY -- CMD; to "
		"take several keys: pawl acquire KEY...",
		key, word);
}

/* Refuses pawl lock KEY CMD: this takes locks, and runs nothing. It comes before the options are
 * read, because CMD has options of its own. */
static void refuse_two_words(const struct cli_command_line *line) {
	char **words = line->argv;
	if (strcmp(words[0], "lock") == 0 && line->argc > 2 && words[1][0] != '-'
		&& words[2][0] != '-') {
		lock_misuse(line, words[1], words[2]);
	}
}

/* Refuses what else is meant as a command. `behind`: how many of the operands stand behind a
 * "--". */
static void refuse_command(const struct cli_command_line *line, char **operands, int count,
	int behind) {
	if (behind > 0 && count > behind) {
		cli_misuse(line,
			"this command runs nothing; to hold '%s' while '%s' runs: pawl run KEY -- "
			"CMD",
			operands[0], operands[count - behind]);
	}
	if (count > 1 && strcmp(line->argv[0], "lock") == 0) {
		lock_misuse(line, operands[0], operands[1]);
	}
}

static int acquire_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_ACQUIRE, .lease_ms = LOCK_LEASE_OPEN };
	const char *value = NULL, *owner = NULL, *id = NULL;
	struct terms_wanted terms = { .shared = false };
	struct pawl_key_item *keys = NULL;
	uint64_t order = 0;
	int count;
	struct cli_option options[6 + TERMS_OPTIONS] = {
		{ "lease", CLI_DURATION, &request.lease_ms },
		{ "wait", CLI_WAIT, &request.wait_ms },
		{ "value", CLI_TEXT, &value },
		{ "owner", CLI_TEXT, &owner },
		{ "lock-id", CLI_TEXT, &id },
		{ "order", CLI_NUMBER, &order },
	};
	refuse_two_words(line);
	/* Reading the options moves the "--". */
	const int behind = behind_dashes(line);
	char **operands = cli_options(line, options, terms_options(&terms, options, 6), 1, INT_MAX,
		&count);
	refuse_command(line, operands, count, behind);
	lock_read_lease(line, &request);
	request.key = cli_key(line, operands[0]);
	request.value = pawl_str(value);
	request.owner = pawl_str(owner);
	request.label = pawl_str(terms.label);
	request.terms = terms_read(line, &terms);
	if (terms.release_on_disconnect) {
		cli_misuse(line,
			"--release-on-disconnect needs a process that stays connected: use pawl "
			"run");
	}
	if (id && count > 1) {
		cli_misuse(line,
			"--lock-id cannot be used with several keys: each has its own lock id");
	}
	if (order && !id) {
		cli_misuse(line, "--order goes with --lock-id: a new lock has no order");
	}
	if (id) {
		request.lock_id = cli_lock_id(line, id);
	}
	const struct pawl_with with = { .order = lock_read_order(line, order) };
	if (count > 1) {
		request.keys = keys = terms_keys(line, &request.terms, operands, (size_t)count);
		request.key_count = (size_t)count;
	}
	int status = cli_ask(line, &(struct cli_asking){ .request = &request, .with = &with,
		.subject = operands[0], .people = acquire_show, .json = acquire_json });
	free(keys);
	return status;
}

const struct cli_command cli_acquire = { "acquire",
	"take a lock, and print its lock id, token and time left", acquire_help, acquire_run };

/* ---- update ---- */

static const char update_help[] =
	"usage: pawl update KEY LOCK_ID VALUE [--expect OLD | --expect-seq SEQ]\n"
	"\n"
	"Sets the value of a lock that is held; others can read it with pawl get. The\n"
	"lease stays as it is.\n"
	"\n"
	"  --expect OLD         only if the present value is OLD, which may be empty\n"
	"                       (--expect '')\n"
	"  --expect-seq SEQ     only if the present value comes from the write SEQ, a\n"
	"                       value_seq that update --json or get --json printed\n"
	"\n"
	"Example:\n"
	"  pawl update leader 6f1d0c9a5be24f7e8a34d2c1b0f9e877 10.0.0.7:8080 \\\n"
	"    --expect 10.0.0.6:8080\n";

static int update_show(const struct cli_answer *answer) {
	output_field_bytes("key", answer->request->key);
	output_field_bytes("value", answer->request->value);
	return CLI_DONE;
}

static int update_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_UPDATE };
	const char *expect = NULL, *expect_seq = NULL;
	unsigned char seq[64];
	const struct cli_option options[] = {
		{ "expect", CLI_TEXT, &expect },
		{ "expect-seq", CLI_TEXT, &expect_seq },
	};
	char **operands = cli_options(line, options, COUNT(options), 3, 3, NULL);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	request.value = pawl_str(operands[2]);
	request.expect = pawl_str(expect);
	if (expect && expect_seq) {
		cli_misuse(line, "--expect and --expect-seq exclude each other");
	}
	if (expect_seq) {
		request.expect_seq.data = seq;
		if (!cli_hex_parse(expect_seq, seq, sizeof seq, &request.expect_seq.size)
			|| request.expect_seq.size != VALUE_SEQ_BYTES) {
			cli_misuse(line,
				"--expect-seq: '%s' is not a value_seq: write the %d hexadecimal "
				"digits that --json printed",
				expect_seq, 2 * VALUE_SEQ_BYTES);
		}
	}
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = update_show });
}

const struct cli_command cli_update = { "update", "set the value of a held lock (compare and set)",
	update_help, update_run };

/* ---- release ---- */

static const char release_help[] =
	"usage: pawl release KEY LOCK_ID [--close DURATION]\n"
	"\n"
	"Releases a lock; the next waiter gets it at once. Releasing a lock that is no\n"
	"longer held is not an error. If somebody else holds KEY by now, or LOCK_ID is\n"
	"another lock's, this says who holds it, and ends with 1.\n"
	"\n"
	"  --close DURATION     nobody gets KEY for so long after that, at most for the\n"
	"                       cluster's max_lease; if the lock was no longer held,\n"
	"                       nothing is closed\n"
	"\n"
	"Example:\n"
	"  pawl release nightly-backup 6f1d0c9a5be24f7e8a34d2c1b0f9e877\n";

/* Returns whether the key is held by another lock. If the release was repeated, an earlier try may
 * have made room for that one. */
static bool not_yours(const struct pawl_result *release, const struct pawl_result *now) {
	return !release->released && !release->repeated && !now->error && now->entry.held;
}

/* Says who holds the key if it was not released. `now`: what a quorum says of the key after
 * that. */
static int release_show(const struct cli_answer *answer, const struct pawl_result *now,
	uint32_t close_ms) {
	const struct pawl_entry *e = &now->entry;
	output_field_bytes("key", answer->request->key);
	if (answer->result->released) {
		output_field("released", "yes");
		if (close_ms) {
			output_field("closed", "for %s", output_duration(close_ms));
		}
	} else if (!now->error && e->held) {
		printf("%-11s no: this lock_id does not hold it (any more); held by ", "released");
		output_bytes(stdout, e->owner, 0);
		printf(", token %" PRIu64 ", for another %s at most\n", e->token,
			output_duration(e->remaining_ms));
	} else {
		output_field("released", "it was no longer held");
	}
	return not_yours(answer->result, now) ? CLI_REFUSED : CLI_DONE;
}

static int release_json(const struct cli_answer *answer, const struct pawl_result *now) {
	json_t *object = output_json_tree(answer->result->tree);
	if (!answer->result->released && !now->error && now->entry.held) {
		output_json_set(object, "holder", output_json_tree(now->tree));
	}
	output_json(object);
	return not_yours(answer->result, now) ? CLI_REFUSED : CLI_DONE;
}

static int release_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_RELEASE };
	struct pawl_with with = { 0 };
	const struct cli_option options[] = { { "close", CLI_DURATION, &with.close_ms } };
	char **operands = cli_options(line, options, COUNT(options), 2, 2, NULL);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	const struct pawl_request get = { .method = PAWL_GET, .key = request.key, .quorum = true };
	struct pawl *client = cli_connect(line);
	struct pawl_result *result = cli_call_with(client, &request, &with), *now = NULL;
	const struct cli_answer answer = { line, &request, result, operands[0] };
	int status;
	if (result->error) {
		status = cli_fail(line, result, "release", operands[0]);
	} else {
		now = result->released ? NULL : cli_call(client, &get);
		const struct pawl_result *known = now ? now : result;
		status = line->json ? release_json(&answer, known)
			: release_show(&answer, known, with.close_ms);
	}
	pawl_result_free(now);
	return cli_finish(client, result, status);
}

const struct cli_command cli_release = { "release", "release a lock", release_help, release_run };
