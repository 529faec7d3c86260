/* clients.c: pawl clients: who is connected with a node; and the end of a connection. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "output.h"

/* A node tells at most this many at once. */
#define PAGE 1000

static const char clients_help[] =
	"usage: pawl clients [--shares] [NODE]\n"
	"       pawl clients kick NODE/ID\n"
	"\n"
	"Lists the client connections of NODE (default: the first node that answers), the\n"
	"oldest first: who the clients are, where they come from, since when, how many\n"
	"requests they have made, how many of these wait for a lock, what they watch, and\n"
	"the bytes in both directions. Administrators see all connections, others those\n"
	"of their own identity.\n"
	"\n"
	"--shares lists instead how much of the node's limits each identity and each\n"
	"source address uses (USED/LIMIT; - means no limit): connections, requests in\n"
	"progress, waits, watches, locks, bytes of values and of memory; and how many\n"
	"requests a second it may make.\n"
	"\n"
	"kick closes a connection. For administrators; the node logs who did it. Locks\n"
	"stay until their leases end, and programs that use libpawl connect again: to\n"
	"keep a client out, revoke its certificate or its rights ([acl] file). NODE must\n"
	"be among the --endpoints. With a single endpoint, the ID alone is enough.\n"
	"\n"
	"Example:\n"
	"  pawl clients a && pawl clients kick a/17\n";

/* ---- the list ---- */

struct clients {
	const struct cli_command_line *line;

	/* Shares are listed, and not connections. */
	bool shares;

	/* The array for --json. */
	json_t *all;
	uint64_t shown, last;
	char node[64];
};

static void clients_header(void) {
	printf("%-12s %-16s %-36s %9s %9s %9s %6s %8s %11s %11s\n", "ID", "IDENTITY", "FROM", "AGE",
		"SILENT", "REQUESTS", "WAITS", "WATCHES", "BYTES IN", "BYTES OUT");
}

static void clients_row(const struct clients *c, const struct pawl_value *v) {
	char id[96], from[512];
	int64_t pid = field_int(v, "pid", 0);
	snprintf(id, sizeof id, "%s/%" PRId64, c->node, field_int(v, "client", 0));
	snprintf(from, sizeof from, pid ? "%s uid %" PRId64 " pid %" PRId64 : "%s",
		field_text(v, "address"), field_int(v, "uid", 0), pid);
	const struct pawl_value *identity = pawl_value_get(v, "identity");
	printf("%-12s ", id);
	output_bytes(stdout, identity && identity->bytes.size ? identity->bytes : pawl_str("-"),
		16);
	putchar(' ');
	output_bytes(stdout, pawl_str(from), 36);
	printf(" %9s %9s %9" PRId64 " %6" PRId64 " %8" PRId64 " %11" PRId64 " %11" PRId64 "%s\n",
		output_duration(field_int(v, "age_ms", 0)),
		output_duration(field_int(v, "silent_ms", 0)), field_int(v, "requests", 0),
		field_int(v, "waits", 0), field_int(v, "watches", 0), field_int(v, "bytes_in", 0),
		field_int(v, "bytes_out", 0), field_bool(v, "own") ? "  (this one)" : "");
}

/* ---- shares ---- */

static const struct {
	const char *used, *limit, *title;
	bool bytes;
} share_columns[] = { { "clients", "clients_limit", "CLIENTS", false },
	{ "requests", "requests_limit", "REQUESTS", false },
	{ "waits", "waits_limit", "WAITS", false },
	{ "watches", "watches_limit", "WATCHES", false },
	{ "locks", "locks_limit", "LOCKS", false },
	{ "value_bytes", "value_bytes_limit", "VALUES", true },
	{ "client_memory", "client_memory_limit", "MEMORY", true },
	{ NULL, "rate_limit", "RATE", false } };
#define SHARE_COLUMNS (sizeof share_columns / sizeof share_columns[0])

static void shares_header(void) {
	printf("%-40s", "WHO");
	for (size_t i = 0; i < SHARE_COLUMNS; i++) {
		printf(" %15s", share_columns[i].title);
	}
	putchar('\n');
}

/* Writes a number; if it stands for bytes, with the unit that the settings use, rounded down. */
static int share_number(char *out, size_t size, int64_t n, bool bytes) {
	const char *unit = "";
	if (bytes && n >= 10 << 10) {
		unit = n >= 10 << 20 ? "m" : "k";
		n >>= n >= 10 << 20 ? 20 : 10;
	}
	return snprintf(out, size, "%" PRId64 "%s", n, unit);
}

static void shares_row(const struct pawl_value *v) {
	const struct pawl_value *identity = pawl_value_get(v, "identity");
	const char *address = field_text(v, "address");
	char who[512];
	snprintf(who, sizeof who, identity ? "no identity, from %s" : "address %s", address);
	output_bytes(stdout, identity && identity->bytes.size ? identity->bytes : pawl_str(who),
		40);
	for (size_t i = 0; i < SHARE_COLUMNS; i++) {
		char text[64] = "";
		int n = 0;
		bool bytes = share_columns[i].bytes;
		if (share_columns[i].used) {
			n = share_number(text, sizeof text, field_int(v, share_columns[i].used, 0),
				bytes);
			n += snprintf(text + n, sizeof text - (size_t)n, "/");
		}
		int64_t limit = field_int(v, share_columns[i].limit, 0);
		if (limit) {
			share_number(text + n, sizeof text - (size_t)n, limit, bytes);
		} else {
			snprintf(text + n, sizeof text - (size_t)n, "-");
		}
		printf(" %15s", text);
	}
	putchar('\n');
}

static void clients_page(struct clients *c, const struct pawl_value *list) {
	for (size_t i = 0; i < list->count; i++, c->shown++) {
		const struct pawl_value *v = &list->items[i];
		c->last = (uint64_t)field_int(v, c->shares ? "share" : "client", 0);
		if (c->line->json) {
			if (json_array_append_new(c->all, output_json_tree(v)) != 0) {
				cli_misuse(c->line, "out of memory");
			}
			continue;
		}
		if (c->shown == 0) {
			(c->shares ? shares_header : clients_header)();
		}
		if (c->shares) {
			shares_row(v);
		} else {
			clients_row(c, v);
		}
	}
}

/* Gets the list page by page. All pages must come from the same node, because elsewhere the numbers
 * mean other connections. Returns NULL when everything is there, otherwise the result that has
 * ended the list. */
static struct pawl_result *clients_pages(struct clients *c, struct pawl *client) {
	struct pawl_request request = { .method = PAWL_CLIENTS, .limit = PAGE,
		.shares = c->shares };
	for (bool more = true; more;) {
		struct pawl_result *page = cli_call(client, &request);
		const struct pawl_value *list = pawl_value_get(page->tree,
			c->shares ? "shares" : "clients");
		if (!page->error && c->node[0] && strcmp(c->node, page->node) != 0) {
			page->error = PAWL_ECLOSED;
			page->message = "the connection to the node was lost while it sent its "
					"list: give the node's name";
		}
		if (page->error || !list || list->kind != PAWL_ARRAY) {
			return page;
		}
		snprintf(c->node, sizeof c->node, "%s", page->node);
		clients_page(c, list);
		more = page->more && list->count > 0;
		request.client = c->last;
		pawl_result_free(page);
	}
	return NULL;
}

static int clients_list(struct cli_command_line *line, const char *node, bool shares) {
	struct clients c = { .line = line, .shares = shares,
		.all = line->json ? json_array() : NULL };
	struct pawl *client = NULL;
	int status = CLI_DONE;
	if (node) {
		status = cli_connect_node(line, node, &client);
		if (!client) {
			return status;
		}
	} else {
		client = cli_connect(line);
	}
	struct pawl_result *failed = clients_pages(&c, client);
	if (failed) {
		json_decref(c.all);
		return cli_finish(client, failed,
			cli_fail(line, failed, "clients", node ? node : ""));
	}
	if (line->json) {
		json_t *object = json_object();
		output_json_bytes(object, "node", pawl_str(c.node));
		output_json_set(object, shares ? "shares" : "clients", c.all);
		output_json(object);
	}
	return cli_finish(client, NULL, CLI_DONE);
}

/* ---- kick ---- */

/* Reads NODE/ID, or ID alone if that can mean one node only. Sets *out_number to the connection's
 * number. Returns a client of the node. */
static struct pawl *kick_connect(struct cli_command_line *line, const char *what,
	uint64_t *out_number, int *out_status) {
	const char *slash = strrchr(what, '/');
	struct pawl *client;
	if (!cli_number_parse(slash ? slash + 1 : what, out_number) || *out_number == 0) {
		cli_misuse(line,
			"'%s' is not a connection: write NODE/ID, as pawl clients shows it",
			what);
	}
	if (!slash) {
		char *nodes = cli_nodes(line);
		if (strchr(nodes, ',')) {
			cli_misuse(line,
				"'%s' may mean another connection at each node: write NODE/ID, as "
				"pawl clients shows it",
				what);
		}
		free(nodes);
		return cli_connect(line);
	}
	char *node = strndup(what, (size_t)(slash - what));
	if (!node) {
		cli_misuse(line, "out of memory");
	}
	*out_status = cli_connect_node(line, node, &client);
	free(node);
	return client;
}

static int kick_show(const struct cli_answer *answer) {
	output_field("kicked", "%s", answer->subject);
	return CLI_DONE;
}

static int kick_json(const struct cli_answer *answer) {
	json_t *object = json_object();
	output_json_bytes(object, "kicked", pawl_str(answer->subject));
	return output_json(object);
}

static int clients_kick(struct cli_command_line *line, const char *what) {
	struct pawl_request request = { .method = PAWL_KICK };
	int status = CLI_REFUSED;
	struct pawl *client = kick_connect(line, what, &request.client, &status);
	if (!client) {
		return status;
	}
	return cli_ask(line, &(struct cli_asking){ .request = &request, .what = "clients kick",
		.subject = what, .people = kick_show, .json = kick_json, .take_client = client });
}

static int clients_run(struct cli_command_line *line) {
	int count;
	bool shares = false;
	const struct cli_option options[] = { { "shares", CLI_FLAG, &shares } };
	char **operands = cli_options(line, options, 1, 0, 2, &count);
	bool kick = count > 0 && strcmp(operands[0], "kick") == 0;
	if (kick && count < 2) {
		cli_misuse(line,
			"kick needs a connection: write NODE/ID, as pawl clients shows it");
	}
	if (kick && shares) {
		cli_misuse(line, "--shares and kick exclude each other");
	}
	if (!kick && count > 1) {
		cli_misuse(line, "unexpected argument '%s'", operands[1]);
	}
	return kick ? clients_kick(line, operands[1])
		: clients_list(line, count ? operands[0] : NULL, shares);
}

const struct cli_command cli_clients = { "clients",
	"list or close a node's client connections", clients_help, clients_run };
