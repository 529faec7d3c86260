/* read.c: pawl get, ls and waiters: they look without taking a lock. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "output.h"
#include "read.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void print_holder(const struct pawl_entry *e) {
	const char *who = terms_who(e->owner, e->host, e->pid, e->label, e->identity);
	output_field_bytes("held by", e->owner);
	if (*who) {
		output_field("", "%s", who);
	}
	output_field("token", "%" PRIu64, e->token);
	if (e->mode != PAWL_EXCLUSIVE) {
		output_field("mode", "%s",
			terms_text(e->mode, e->permits, e->of, e->slots, e->permits));
	}
	output_field_bytes("value", e->value);
	if (e->held_ms >= 0) {
		output_field_duration("since", e->held_ms);
	}
	output_field_duration("time left", e->remaining_ms);
	if (!pawl_id_none(&e->lock_id)) {
		char id[PAWL_ID_TEXT];
		pawl_id_format(&e->lock_id, id);
		output_field("lock id", "%s", id);
	}
}

/* Prints the directions of what is left, where a quorum was asked. */
static void print_left(const struct pawl_result *result) {
	if (result->valid_at_least_ms >= 0) {
		output_field("for certain", "%s at least, %s at most",
			output_duration(result->valid_at_least_ms),
			output_duration(result->held_at_most_ms));
	}
}

static void print_entry(const struct pawl_result *result, struct pawl_bytes key) {
	const struct pawl_entry *e = &result->entry;
	output_field_bytes("key", key);
	if (e->closing) {
		output_field("held", "no; its last holder is gone, and it stays closed for %s",
			output_duration(e->closing_ms));
	} else if (!e->held) {
		output_field("held", "%s",
			e->contested
				? "contested: several may hold it, and nobody else gets it until "
					"only one is left"
				: "no");
	} else if (result->holder_count) {
		for (size_t i = 0; i < result->holder_count; i++) {
			print_holder(&result->holders[i]);
		}
	} else {
		print_holder(e);
	}
	print_left(result);
	if (result->recovering) {
		output_field("note", "%s is recovering and may not know every holder yet",
			result->node);
	}
	if (result->age_ms >= 0 && *result->role && strcmp(result->role, "master") != 0) {
		output_field_duration("view's age", result->age_ms);
	}
}

void read_print(const struct cli_command_line *line, const struct pawl_result *result,
	struct pawl_bytes key) {
	if (line->json) {
		json_t *object = output_json_tree(result->tree);
		output_json_bytes(object, "key", key);
		output_json(object);
	} else {
		print_entry(result, key);
	}
}

/* ---- get ---- */

static const char get_help[] =
	"usage: pawl get KEY [--quorum]\n"
	"\n"
	"Shows whether KEY is held, by whom, with which token and value, and for how much\n"
	"longer. The exit status is 1 if nobody holds it, as with pawl leader. Without\n"
	"--quorum the node answers from its own memory, at once, and what it shows may be\n"
	"out of date.\n"
	"\n"
	"  --quorum             ask a quorum of masters\n"
	"\n"
	"Example:\n"
	"  pawl get nightly-backup --quorum\n";

static int get_show(const struct cli_answer *answer) {
	const struct pawl_entry *e = &answer->result->entry;
	read_print(answer->line, answer->result, answer->request->key);
	/* If it is contested, somebody holds it, but nobody can say who. */
	return e->held || e->contested ? CLI_DONE : CLI_REFUSED;
}

static int get_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_GET };
	const struct cli_option options[] = { { "quorum", CLI_FLAG, &request.quorum } };
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	request.key = cli_key(line, operands[0]);
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = get_show, .json = get_show });
}

const struct cli_command cli_get = { "get", "show who holds a key, and its value", get_help,
	get_run };

/* ---- ls ---- */

static const char ls_help[] =
	"usage: pawl ls [PREFIX] [--limit N] [--after KEY] [--waiting]\n"
	"\n"
	"Lists the held keys that begin with PREFIX, in order, as the node that answers\n"
	"knows them.\n"
	"\n"
	"  --waiting            list the waiters for these keys instead, in order, from\n"
	"                       all masters\n"
	"  --limit N            at most N keys (default: all)\n"
	"  --after KEY          begin after KEY\n"
	"\n"
	"Example:\n"
	"  pawl ls jobs/ --limit 20\n";

/* A node gives at most this many keys at once. */
#define LS_PAGE 1000

struct ls {
	const struct cli_command_line *line;

	/* How many keys may still be shown. */
	uint64_t left;
	uint64_t shown;

	/* The array for --json. */
	json_t *keys;
};

static void ls_header(void) {
	printf("%-32s %-20s %12s %9s  %s\n", "KEY", "HELD BY", "TOKEN", "TIME LEFT", "VALUE");
}

static int ls_page(struct ls *ls, const struct pawl_result *page) {
	if (ls->line->json) {
		json_t *tree = output_json_tree(page->tree);
		int error = json_array_extend(ls->keys, json_object_get(tree, "keys"));
		json_decref(tree);
		ls->shown += page->entry_count;
		return error;
	}
	for (size_t i = 0; i < page->entry_count; i++, ls->shown++) {
		const struct pawl_entry *e = &page->entries[i];
		if (ls->shown == 0) {
			ls_header();
		}
		output_bytes(stdout, e->key, 32);
		putchar(' ');
		output_bytes(stdout, e->contested ? pawl_str("(contested)") : e->owner, 20);
		printf(" %12" PRIu64 " %9s  ", e->token,
			e->closing ? "(closing)" : output_duration(e->remaining_ms));
		if (e->holders > 1) {
			printf("(and %" PRIu32 " more) ", e->holders - 1);
		}
		output_bytes(stdout, e->value, 0);
		putchar('\n');
	}
	return 0;
}

/* Gets page by page; each page begins after the last key of the previous page. Returns the last
 * page, because the caller needs its `more`. */
static struct pawl_result *ls_pages(struct ls *ls, struct pawl *client,
	struct pawl_request request) {
	struct pawl_result *page = NULL;
	do {
		struct pawl_result *before = page;
		request.limit = ls->left < LS_PAGE ? (uint32_t)ls->left : LS_PAGE;
		page = cli_call(client, &request);
		pawl_result_free(before);
		if (page->error || ls_page(ls, page) || page->entry_count == 0) {
			break;
		}
		ls->left -= page->entry_count < ls->left ? page->entry_count : ls->left;
		request.after = page->entries[page->entry_count - 1].key;
	} while (page->more && ls->left > 0);
	return page;
}

/* A node gives at most this many waiters. */
#define WAITING_MAX 1000

static int ls_show_waiting(const struct cli_answer *answer) {
	const struct pawl_result *result = answer->result;
	for (size_t i = 0; i < result->waiter_count; i++) {
		const struct pawl_waiter *w = &result->waiters[i];
		if (i == 0) {
			printf("%-32s %-32s %9s  %s\n", "KEY", "WAITING", "FOR", "AT NODE");
		}
		output_bytes(stdout, w->key, 32);
		putchar(' ');
		output_bytes(stdout, w->owner, 32);
		printf(" %9s  %s\n", output_duration(w->since_ms), w->node);
	}
	if (result->waiter_count == 0) {
		printf("nobody is waiting\n");
	} else if (result->more) {
		printf("(more: at most %" PRIu32 " are shown)\n", answer->request->limit);
	}
	return CLI_DONE;
}

static int ls_waiting(struct cli_command_line *line, const char *prefix, uint64_t limit) {
	const struct pawl_request request = { .method = PAWL_WAITERS, .key = pawl_str(prefix),
		.prefix = true, .limit = limit < WAITING_MAX ? (uint32_t)limit : WAITING_MAX };
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = prefix,
		.people = ls_show_waiting });
}

static int ls_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_LIST };
	struct ls ls = { .line = line, .left = UINT64_MAX };
	const char *after = NULL;
	bool waiting = false;
	const struct cli_option options[] = { { "limit", CLI_NUMBER, &ls.left },
		{ "after", CLI_TEXT, &after }, { "waiting", CLI_FLAG, &waiting } };
	int count;
	char **operands = cli_options(line, options, COUNT(options), 0, 1, &count);
	if (ls.left == 0) {
		cli_misuse(line, "--limit must be at least 1");
	}
	const char *prefix = count ? operands[0] : "";
	if (waiting && after) {
		cli_misuse(line, "--waiting and --after exclude each other: use a longer PREFIX");
	}
	if (waiting) {
		return ls_waiting(line, prefix, ls.left);
	}
	request.key = pawl_str(prefix);
	request.after = pawl_str(after);
	ls.keys = json_array();
	struct pawl *client = cli_connect(line);
	struct pawl_result *last = ls_pages(&ls, client, request);
	int status = CLI_DONE;
	if (last->error) {
		status = cli_fail(line, last, "ls", prefix);
		json_decref(ls.keys);
	} else if (line->json) {
		json_t *object = json_object();
		output_json_set(object, "keys", ls.keys);
		output_json_set(object, "more", json_boolean(last->more));
		output_json(object);
	} else {
		json_decref(ls.keys);
		if (last->more) {
			printf("(more: --limit %" PRIu64 " was reached)\n", ls.shown);
		}
	}
	return cli_finish(client, last, status);
}

const struct cli_command cli_ls = { "ls", "list the held keys that begin with a prefix", ls_help,
	ls_run };

/* ---- waiters ---- */

static const char waiters_help[] =
	"usage: pawl waiters KEY\n"
	"\n"
	"Lists the waiters for KEY, in the order in which they will be served.\n"
	"\n"
	"Example:\n"
	"  pawl waiters nightly-backup\n";

static int waiters_show(const struct cli_answer *answer) {
	const struct pawl_result *result = answer->result;
	for (size_t i = 0; i < result->waiter_count; i++) {
		const struct pawl_waiter *w = &result->waiters[i];
		if (i == 0) {
			printf("%4s %-32s %9s %8s  %-10s %s\n", "", "OWNER", "WAITS FOR",
				"PRIORITY", "AT NODE", "WANTS");
		}
		const char *who = terms_who(w->owner, w->host, w->pid, w->label, w->identity);
		printf("%3zu. ", i + 1);
		output_bytes(stdout, w->owner, 32);
		printf(" %9s %8" PRId32 "  %-10s %s%s%s\n", output_duration(w->since_ms),
			w->priority, w->node, terms_text(w->mode, w->permits, w->of, NULL, 0),
			*who ? "; " : "", who);
	}
	if (result->waiter_count == 0) {
		printf("nobody is waiting\n");
	}
	return CLI_DONE;
}

static int waiters_run(struct cli_command_line *line) {
	struct pawl_request request = { .method = PAWL_WAITERS };
	char **operands = cli_options(line, NULL, 0, 1, 1, NULL);
	request.key = cli_key(line, operands[0]);
	return cli_ask(line, &(struct cli_asking){ .request = &request, .subject = operands[0],
		.people = waiters_show });
}

const struct cli_command cli_waiters = { "waiters", "list the waiters for a key, in order",
	waiters_help, waiters_run };
