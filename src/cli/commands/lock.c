/* lock.c: pawl acquire, extend, update and release make one request each; the caller keeps the
 * lock_id. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "output.h"
#include "terms.h"

#define VALUE_SEQ_BYTES 20
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Sets valid_ms to the time that is left now, and not to the time at the sending of the request,
 * because that is what the reader can still use. */
static void set_time_left(json_t *object, const struct pawl_result *result) {
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
	set_time_left(object, answer->result);
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

/* Stands for a lease that is not given. */
#define LEASE_OPEN UINT32_MAX

/* Leaves the lease open if it is not given: then the cluster may allow less than the default. */
static void read_lease(const struct cli_command_line *line, struct pawl_request *request) {
	cli_lease_check(line, request->lease_ms);
	request->lease_ms = request->lease_ms == LEASE_OPEN ? 0 : request->lease_ms;
}

/* Reads the option --order; 0: it is not given. */
static uint32_t read_order(const struct cli_command_line *line, uint64_t number) {
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
	struct pawl_request request = { .method = PAWL_ACQUIRE, .lease_ms = LEASE_OPEN };
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
	read_lease(line, &request);
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
	const struct pawl_with with = { .order = read_order(line, order) };
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

/* ---- extend ---- */

static const char extend_help[] =
	"usage: pawl extend KEY LOCK_ID [--lease DURATION] [--token T] [--slots N,...]\n"
	"                   [--shorten | --order N]\n"
	"\n"
	"Extends the lease of a lock to DURATION from now, and prints the time that is\n"
	"left. Once its time has passed, a lock is lost, whatever a later extend says. A\n"
	"lease that lasts longer already stays as it is, unless --shorten is given.\n"
	"\n"
	"  --lease DURATION     how long the lock lasts from now on (default 30s, or\n"
	"                       the cluster's max_lease if that is less)\n"
	"  --token T            the token that acquire printed; masters that have seen\n"
	"                       another holder since then do not count\n"
	"  --slots N,...        the permit numbers that acquire or the last extend\n"
	"                       printed; from now on the lock has the numbers that this\n"
	"                       command prints\n"
	"  --shorten            make the lease end after DURATION, if it lasts longer:\n"
	"                       count on no more than that from now on, even if this\n"
	"                       fails. It reads KEY first, and prints an order, which each\n"
	"                       later extend of this lock has to name. A lock with\n"
	"                       --release-on-disconnect no longer ends with its connection\n"
	"  --order N            the order that --shorten printed last for this lock\n"
	"\n"
	"Example:\n"
	"  pawl extend nightly-backup 6f1d0c9a5be24f7e8a34d2c1b0f9e877 --lease 1m\n";

/* Reads "0,3" as bits. */
static void read_slots(const struct cli_command_line *line, const char *text, uint64_t slots[2]) {
	while (text && *text) {
		char *end;
		unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10)
			: PAWL_PERMITS_MAX;
		if (n >= PAWL_PERMITS_MAX || (*end && (*end != ',' || !end[1]))) {
			cli_misuse(line,
				"--slots takes permit numbers from 0 to 127, separated by commas: "
				"0,3");
		}
		slots[n / 64] |= UINT64_C(1) << (n % 64);
		text = *end ? end + 1 : end;
	}
}

static int extend_json(const struct cli_answer *answer) {
	json_t *object = output_json_tree(answer->result->tree);
	set_time_left(object, answer->result);
	return output_json(object);
}

static int extend_show(const struct cli_answer *answer) {
	const struct pawl_result *result = answer->result;
	output_field_bytes("key", answer->request->key);
	output_field("token", "%" PRIu64, result->token);
	if (result->slot_count) {
		output_field("mode", "%s",
			terms_text(result->mode, (uint32_t)field_int(result->tree, "permits", 0),
				(uint32_t)field_int(result->tree, "of", 0), result->slots,
				result->slot_count));
	}
	output_field_duration("time left", pawl_result_valid_ms(result));
	return CLI_DONE;
}

/* Returns the fields of the holder that has the lock_id, as a quorum has read the key; NULL: none of
 * those that are shown has it. */
static const struct pawl_value *holder_of(const struct pawl_result *read, struct pawl_id lock_id) {
	const struct pawl_value *holders = pawl_value_get(read->tree, "holders");
	if (!read->entry.held) {
		return NULL;
	}
	for (size_t i = 0; holders && i < read->holder_count && i < holders->count; i++) {
		if (memcmp(&read->holders[i].lock_id, &lock_id, sizeof lock_id) == 0) {
			return &holders->items[i];
		}
	}
	return memcmp(&read->entry.lock_id, &lock_id, sizeof lock_id) == 0 ? read->tree : NULL;
}

/* Says why the lease cannot be shortened. Returns the exit status. */
static int cannot_shorten(const struct cli_command_line *line, const char *key, const char *why) {
	if (line->json) {
		json_t *error = json_object(), *object = json_object();
		output_json_set(error, "operation", json_string("extend"));
		output_json_set(error, "message", json_string(why));
		output_json_set(object, "error", error);
		output_json(object);
	} else {
		fprintf(stderr, "pawl: extend %s: %s\n", output_name(key), why);
	}
	return CLI_REFUSED;
}

static int shortened_show(const struct cli_answer *answer, uint32_t order) {
	if (answer->line->json) {
		json_t *object = output_json_tree(answer->result->tree);
		set_time_left(object, answer->result);
		output_json_set(object, "order", json_integer(order));
		return output_json(object);
	}
	extend_show(answer);
	output_field("order", "%" PRIu32, order);
	return CLI_DONE;
}

/* Shortens the lease under the number after the greatest that was named for the lock, as a dialect
 * does (docs/protocol.md, Shorten). If not every quorum knows of that number, an extension of the
 * same lease names the one after it before. */
static int shorten_as_read(const struct cli_answer *asked, struct pawl *take_client,
	const struct pawl_value *holder) {
	const int64_t greatest = field_int(holder, "order", 0);
	struct pawl_with with = { .order = (uint32_t)greatest + 1 };
	struct pawl_result *result = NULL;
	if (!field_bool(holder, "order_settled")) {
		result = cli_call_with(take_client, asked->request, &with);
		with.order++;
	}
	if (!result || !result->error) {
		pawl_result_free(result);
		with.shorten = true;
		result = cli_call_with(take_client, asked->request, &with);
	}
	struct cli_answer answer = *asked;
	answer.result = result;
	int status;
	if (!result->error) {
		status = shortened_show(&answer, with.order);
	} else {
		status = cli_fail(asked->line, result, "extend", asked->subject);
		if (with.shorten) {
			fprintf(stderr, "  the lease may be shorter nevertheless: give --order "
				"%" PRIu32 " to each later extend\n", with.order);
		}
	}
	return cli_finish(take_client, result, status);
}

static int shorten(const struct cli_answer *asked) {
	const struct cli_command_line *line = asked->line;
	const struct pawl_request get = { .method = PAWL_GET, .key = asked->request->key,
		.quorum = true };
	struct pawl *client = cli_connect(line);
	struct pawl_result *read = cli_call(client, &get);
	const struct pawl_value *holder = read->error ? NULL
		: holder_of(read, asked->request->lock_id);
	int status;
	if (read->error) {
		status = cli_fail(line, read, "extend", asked->subject);
	} else if (!holder) {
		status = cannot_shorten(line, asked->subject,
			"the key is not shown to be held by this lock_id: the lock is lost, or its "
			"lock_id is not shown to this client");
	} else if (!pawl_value_get(holder, "order_settled")) {
		status = cannot_shorten(line, asked->subject,
			"the node does not tell the order of the lock, as one of release 0.2.0 or "
			"before: it cannot shorten a lease");
	} else {
		status = shorten_as_read(asked, client, holder);
		client = NULL;
	}
	return cli_finish(client, read, status);
}

static int extend_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_EXTEND, .lease_ms = LEASE_OPEN };
	const char *slots = NULL;
	uint64_t order = 0;
	bool shortens = false;
	const struct cli_option options[] = {
		{ "lease", CLI_DURATION, &request.lease_ms },
		{ "token", CLI_NUMBER, &request.token },
		{ "slots", CLI_LIST, &slots },
		{ "order", CLI_NUMBER, &order },
		{ "shorten", CLI_FLAG, &shortens },
	};
	char **operands = cli_options(line, options, COUNT(options), 2, 2, NULL);
	read_slots(line, slots, request.slots);
	if (shortens && (order || request.lease_ms == LEASE_OPEN)) {
		cli_misuse(line, "--shorten needs --lease, and finds the order out by itself");
	}
	read_lease(line, &request);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	if (shortens) {
		return shorten(&(struct cli_answer){ line, &request, NULL, operands[0] });
	}
	const struct pawl_with with = { .order = read_order(line, order) };
	return cli_ask(line, &(struct cli_asking){ .request = &request, .with = &with,
		.subject = operands[0], .people = extend_show, .json = extend_json });
}

const struct cli_command cli_extend = { "extend", "extend a lock that pawl acquire took",
	extend_help, extend_run };

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
