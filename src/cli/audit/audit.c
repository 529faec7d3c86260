/* audit.c: pawl audit check: judges the audit files of all nodes. */
#include "audit_command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "audit_check.h"
#include "output.h"

static const char audit_help[] =
	"usage: pawl audit check FILE... [--clocks DURATION] [--copied-within DURATION]\n"
	"                        [--one-machine]\n"
	"\n"
	"Proves, from the audit files of all nodes ([audit] file), that no key had two\n"
	"holders at once and that fencing tokens grew; or tells which holders did, and\n"
	"when. It asks no node. Give it the files of every node, also the older ones\n"
	"(audit.log.1, ...): a release that is missing makes an overlap look real.\n"
	"\n"
	"It finds two locks that exclude each other and were held at once, by what the\n"
	"nodes have answered and by what ended each of them; a later lock without a\n"
	"greater token; lines that are missing between others; and lines that were\n"
	"altered. What a line that is missing may explain (a crash, dropped=N) is told\n"
	"as possible, and is no violation.\n"
	"\n"
	"[audit] what = holders tells it of grants and of their ends, and what = all of\n"
	"extensions, too, which it needs to know how long each was held. With less it can\n"
	"only count.\n"
	"\n"
	"  --clocks DURATION    by how much the wall clocks of two nodes may differ (1s).\n"
	"                       Shorter overlaps of locks of two nodes are not seen\n"
	"  --copied-within DURATION\n"
	"                       how long it took to copy the files (1m). What happened\n"
	"                       so shortly before the newest line is told as possible.\n"
	"                       0s: the nodes had stopped\n"
	"  --one-machine        all nodes ran on this one machine since it was started:\n"
	"                       their clocks are one\n"
	"\n"
	"The exit status is 0 if nothing was found, 1 if something was, and 2 if a file\n"
	"cannot be read or is none of a node's.\n"
	"\n"
	"Example:\n"
	"  for n in n1 n2 n3; do scp \"$n:/var/lib/pawl/audit.log*\" \"$n/\"; done\n"
	"  pawl audit check n?/audit.log*\n";

static const char *const kinds[] = { [AUDIT_OVERLAP] = "overlap", [AUDIT_TOKENS] = "tokens",
	[AUDIT_MISSING] = "missing", [AUDIT_ALTERED] = "altered" };

/* ---- for people ---- */

static void print_holder(const struct audit_lines *lines, const char *label,
	const struct audit_line *line) {
	const char *owner = audit_lines_text(lines, line->owner);
	output_line(stdout,
		"  %-7s owner %s, token %" PRIu64 ", lock %s, by %s: %s, line %" PRIu64, label,
		*owner ? owner : "-", line->token, audit_lines_text(lines, line->lock),
		audit_lines_text(lines, line->node), line->file, line->number);
}

static void print_place(const char *label, const struct audit_line *line) {
	output_line(stdout, "  %-7s %s, line %" PRIu64 ": seq %" PRIu64, label, line->file,
		line->number, line->seq);
}

static void print_finding(const struct audit_lines *lines, const struct audit_finding *f) {
	printf("%s %s: ", f->possible ? "possible" : "VIOLATION", kinds[f->kind]);
	const char *key = output_name(audit_lines_text(lines, f->then->key)),
		   *node = output_name(audit_lines_text(lines, f->then->node));
	switch (f->kind) {
	case AUDIT_OVERLAP:
		printf("key %s had two holders, for at least %" PRId64 ".%06" PRId64 " s\n", key,
			f->overlap_us / 1000000, f->overlap_us % 1000000);
		break;
	case AUDIT_TOKENS:
		printf("key %s: the later lock does not have the greater token\n", key);
		break;
	case AUDIT_MISSING:
		printf("node %s: lines are missing between these two\n", node);
		break;
	case AUDIT_ALTERED:
		printf("node %s: these two lines cannot both be as the node wrote them\n", node);
		break;
	}
	if (f->kind == AUDIT_OVERLAP || f->kind == AUDIT_TOKENS) {
		print_holder(lines, "first", f->first);
		print_holder(lines, "then", f->then);
	} else {
		print_place("first", f->first);
		print_place("then", f->then);
	}
}

static void print_result(const struct audit_lines *lines, const struct audit_result *r) {
	for (size_t i = 0; i < r->count; i++) {
		print_finding(lines, &r->findings[i]);
	}
	printf("%zu lines of %zu nodes: %zu grants of %zu keys, %zu requests denied\n",
		lines->count, r->nodes, r->grants, r->keys, r->denied);
	if (r->silent) {
		printf("%zu of these nodes do not tell of grants: write [audit] what = all, or at "
			"least what = holders\n", r->silent);
	}
	printf("%zu violations, %zu possible\n", r->violations, r->count - r->violations);
}

/* ---- as JSON ---- */

static json_t *json_line(const struct audit_lines *lines, const struct audit_line *line) {
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I}", "node",
		audit_lines_text(lines, line->node), "owner", audit_lines_text(lines, line->owner),
		"token", (json_int_t)line->token, "lock", audit_lines_text(lines, line->lock),
		"file", line->file, "line", (json_int_t)line->number, "seq",
		(json_int_t)line->seq);
}

static int print_json(const struct audit_lines *lines, const struct audit_result *r) {
	json_t *findings = json_array();
	for (size_t i = 0; i < r->count; i++) {
		const struct audit_finding *f = &r->findings[i];
		json_array_append_new(findings, json_pack("{s:s, s:b, s:s, s:I, s:o, s:o}", "kind",
			kinds[f->kind], "possible", f->possible, "key",
			audit_lines_text(lines, f->then->key), "overlap_us",
			(json_int_t)f->overlap_us, "first", json_line(lines, f->first), "then",
			json_line(lines, f->then)));
	}
	return output_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "lines",
		(json_int_t)lines->count, "nodes", (json_int_t)r->nodes, "nodes_without_grants",
		(json_int_t)r->silent, "grants", (json_int_t)r->grants, "keys",
		(json_int_t)r->keys, "denied", (json_int_t)r->denied, "violations",
		(json_int_t)r->violations, "possible", (json_int_t)(r->count - r->violations),
		"findings", findings));
}

static int audit_run(struct cli_command_line *line) {
	uint32_t clocks_ms = 1000, copied_ms = 60000;
	bool one_machine = false;
	int count;
	const struct cli_option options[] = { { "clocks", CLI_DURATION, &clocks_ms },
		{ "copied-within", CLI_DURATION, &copied_ms },
		{ "one-machine", CLI_FLAG, &one_machine } };
	char **operands = cli_options(line, options, sizeof options / sizeof *options, 2, 1 << 20,
		&count);
	if (strcmp(operands[0], "check") != 0) {
		cli_misuse(line, "unknown subcommand '%s'; there is pawl audit check", operands[0]);
	}
	struct audit_lines lines = { 0 };
	for (int i = 1; i < count; i++) {
		if (!audit_lines_read(&lines, operands[i])) {
			audit_lines_free(&lines);
			return CLI_USAGE;
		}
	}
	struct audit_result result = audit_check(&lines,
		&(struct audit_rules){ .clocks_us = (int64_t)clocks_ms * 1000,
		.one_machine = one_machine, .copied_us = (int64_t)copied_ms * 1000 });
	if (line->json) {
		print_json(&lines, &result);
	} else {
		print_result(&lines, &result);
	}
	const int status = result.violations ? CLI_REFUSED : CLI_DONE;
	free(result.findings);
	audit_lines_free(&lines);
	return status;
}

const struct cli_command cli_audit = { "audit",
	"prove from the nodes' audit files that no key had two holders", audit_help, audit_run };
