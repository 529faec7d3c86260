/* extend.c: pawl extend makes a lease end later, or earlier; the caller keeps the lock_id. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "lock.h"
#include "output.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

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
	lock_set_time_left(object, answer->result);
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

/* Returns the fields of the holder that has the lock_id, as a quorum has read the key; NULL: no
 * holder is shown to have it. */
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
		lock_set_time_left(object, answer->result);
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
	struct pawl_request request = { .method = PAWL_EXTEND, .lease_ms = LOCK_LEASE_OPEN };
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
	if (shortens && (order || request.lease_ms == LOCK_LEASE_OPEN)) {
		cli_misuse(line, "--shorten needs --lease, and finds the order out by itself");
	}
	lock_read_lease(line, &request);
	request.key = cli_key(line, operands[0]);
	request.lock_id = cli_lock_id(line, operands[1]);
	if (shortens) {
		return shorten(&(struct cli_answer){ line, &request, NULL, operands[0] });
	}
	const struct pawl_with with = { .order = lock_read_order(line, order) };
	return cli_ask(line, &(struct cli_asking){ .request = &request, .with = &with,
		.subject = operands[0], .people = extend_show, .json = extend_json });
}

const struct cli_command cli_extend = { "extend", "extend a lock that pawl acquire took",
	extend_help, extend_run };
