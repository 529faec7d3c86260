/* explain.c: pawl explain: why a key is as it is: who holds it, who waits, what each master
 * reports, and what would free it. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "field.h"
#include "output.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* At most this many different records are told apart. A key with more holders is summed up. */
#define RECORDS_MAX 64

static const char explain_help[] =
	"usage: pawl explain KEY [--owner NAME]\n"
	"\n"
	"Explains the state of KEY: who holds it, since when and until when at most, who\n"
	"waits in which order, why you do not have it, what each master reports, and\n"
	"what would free it. All masters are asked.\n"
	"\n"
	"  --owner NAME         your own owner name, as pawl waiters shows it\n"
	"\n"
	"Example:\n"
	"  pawl explain nightly-backup --owner \"$(hostname):4711\"\n";

/* A record, and how many masters have it. */
struct seen {
	const struct pawl_value *record;
	int64_t token, left_ms;
	size_t masters;
	/* The first of these masters. */
	const char *first;
};

struct explained {
	/* `waiters` is NULL if the waiters could not be had. */
	const struct pawl_result *answer, *waiters;
	const char *key, *owner;
	size_t masters, quorum, voting;
	struct seen seen[RECORDS_MAX];
	size_t count;
	const char *home;

	/* The time that is left to the longest promise, in ms. */
	int64_t promised_ms;
	size_t promises;

	/* The node with which the cluster was started over without the one that answers; "" for
	 * none. */
	char newer[300];

	/* Some master has left records out, so more masters may know a holder than it seems. */
	bool more;
};

/* Returns how many masters may have a record without saying so: they do not answer, or do not
 * vote. */
static size_t unheard(const struct explained *x) {
	return x->masters - x->voting;
}

/* Returns whether a quorum of the masters may have the record. Then its holder may rely on it. */
static bool may_be_held(const struct explained *x, const struct seen *s) {
	return s->masters + unheard(x) >= x->quorum;
}

static const char *record_owner(const struct pawl_value *record, char *room, size_t size) {
	const struct pawl_value *owner = pawl_value_get(record, "owner");
	FILE *to = fmemopen(room, size, "w");
	room[0] = '\0';
	if (to) {
		output_bytes(to, owner ? owner->bytes : pawl_str(""), 0);
		fclose(to);
	}
	return room;
}

static void see_record(struct explained *x, const struct pawl_value *record, const char *node) {
	int64_t token = field_int(record, "token", 0),
		left = field_int(record, "remaining_ms", field_int(record, "closing_ms", 0));
	size_t i = 0;
	while (i < x->count && x->seen[i].token != token) {
		i++;
	}
	if (i == x->count) {
		if (x->count == RECORDS_MAX) {
			return;
		}
		x->seen[x->count++] = (struct seen){ .record = record, .token = token,
			.first = node };
	}
	x->seen[i].masters++;
	x->seen[i].left_ms = left > x->seen[i].left_ms ? left : x->seen[i].left_ms;
}

static void see_masters(struct explained *x) {
	const struct pawl_value *masters = pawl_value_get(x->answer->tree, "masters");
	x->masters = masters ? masters->count : 0;
	x->quorum = x->masters / 2 + 1;
	for (size_t i = 0; i < x->masters; i++) {
		const struct pawl_value *m = &masters->items[i];
		const struct pawl_value *records = pawl_value_get(m, "records"),
					*promise = pawl_value_get(m, "promise");
		const char *node = field_text(m, "node");
		x->more = x->more || field_bool(m, "more");
		x->voting += strcmp(field_text(m, "state"), "voting") == 0;
		x->home = field_bool(m, "home") ? node : x->home;
		for (size_t k = 0; records && k < records->count; k++) {
			see_record(x, &records->items[k], node);
		}
		if (promise && promise->kind == PAWL_MAP) {
			int64_t left = field_int(promise, "left_ms", 0);
			x->promises++;
			x->promised_ms = left > x->promised_ms ? left : x->promised_ms;
		}
	}
}

static const char *record_terms(const struct pawl_value *record) {
	uint32_t slots[PAWL_PERMITS_MAX];
	const struct pawl_value *list = pawl_value_get(record, "slots");
	size_t n = 0;
	for (; list && n < list->count && n < PAWL_PERMITS_MAX; n++) {
		slots[n] = (uint32_t)list->items[n].integer;
	}
	int64_t of = field_int(record, "of", 0);
	enum pawl_mode mode = of ? PAWL_PERMITS
		: strcmp(field_text(record, "mode"), "shared") == 0 ? PAWL_SHARED
		: PAWL_EXCLUSIVE;
	return terms_text(mode, (uint32_t)field_int(record, "permits", 0), (uint32_t)of, slots, n);
}

/* Returns whether nobody holds the key by this record any more, and its lock delay keeps the key
 * closed. */
static bool closes(const struct seen *s) {
	return pawl_value_get(s->record, "closing_ms") != NULL;
}

/* Returns for how long the key stays closed after the lease of this record. */
static int64_t delay_ms(const struct seen *s) {
	return field_int(s->record, "lock_delay_ms", 0);
}

/* ---- the holders ---- */

static void print_holder(const struct explained *x, const struct seen *s) {
	char owner[600];
	const struct pawl_value *r = s->record;
	const char *who = terms_who(
		pawl_value_get(r, "owner") ? pawl_value_get(r, "owner")->bytes : pawl_str(""),
		field_text(r, "host"), field_int(r, "pid", 0), field_text(r, "label"),
		field_text(r, "identity"));
	bool held = s->masters >= x->quorum, barred = field_bool(r, "barred");
	printf("  %s%s%s%s: %s, token %" PRId64 "\n", record_owner(r, owner, sizeof owner),
		*who ? " (" : "", who, *who ? ")" : "", record_terms(r), s->token);
	int64_t since = field_int(r, "held_ms", -1);
	if (since >= 0) {
		printf("    since        %s ago\n", output_duration(since));
	}
	if (closes(s)) {
		printf("    gone         it was lost with a lock delay, or released to close "
			"the key, which stays closed for %s\n",
			output_duration(s->left_ms));
	} else {
		printf("    at most      %s more%s\n", output_duration(s->left_ms),
			barred ? "" : ", unless it extends its lease before");
	}
	if (!closes(s) && delay_ms(s)) {
		printf("    lock delay   %s: if it is not released, the key stays closed for so "
			"long after its lease\n",
			output_duration(delay_ms(s)));
	}
	if (field_bool(r, "election")) {
		printf("    leads        the key is an election; who waits is a candidate\n");
	}
	if (barred) {
		printf("    broken       an administrator barred it from extending\n");
	}
	if (!held && x->more) {
		printf("    few masters  %zu of %zu reported it (%s), and some left records out: "
			"it may be held\n",
			s->masters, x->masters, s->first);
	} else if (!held && may_be_held(x, s)) {
		printf("    few masters  %zu of %zu reported it (%s), and %zu do not answer or do "
			"not vote: it may be held, and its holder may rely on it\n",
			s->masters, x->masters, s->first, unheard(x));
	} else if (!held) {
		printf("    few masters  %zu of %zu know it (%s), too few for a grant: it is left "
			"over from a failed request, or the request is just starting\n",
			s->masters, x->masters, s->first);
	}
	struct pawl_bytes value = pawl_value_get(r, "value") ? pawl_value_get(r, "value")->bytes
		: pawl_str("");
	if (value.size) {
		printf("    value        ");
		output_bytes(stdout, value, 0);
		putchar('\n');
	}
}

static void print_newer(const struct explained *x) {
	if (*x->newer) {
		const char *newer = output_name(x->newer);
		printf("NOT CURRENT: the cluster was started over with %s, and the node that says "
			"this has the state from before. Ask %s (--endpoints); pawl status says "
			"what to do with this node.\n",
			newer, newer);
	}
}

static void print_holders(const struct explained *x) {
	printf("Held by:\n");
	for (size_t i = 0; i < x->count; i++) {
		print_holder(x, &x->seen[i]);
	}
	if (x->count == 0) {
		printf(x->voting < x->quorum ? "  not known: too few masters answer\n"
			: "  nobody\n");
	}
	if (x->answer->more) {
		printf("  There may be more: some masters had too many records for one answer.\n");
	}
	if (x->answer->entry.contested) {
		printf("  The key is contested: after a recovery several may hold it, and nobody "
			"else gets it until only one is left.\n");
	}
}

/* ---- those who wait ---- */

static bool same_owner(struct pawl_bytes a, const char *name) {
	return name && a.size == strlen(name) && memcmp(a.data, name, a.size) == 0;
}

/* Returns the place of --owner in the queue, from 1; 0 means that it is not in the queue. */
static size_t place(const struct explained *x) {
	for (size_t i = 0; x->waiters && i < x->waiters->waiter_count; i++) {
		if (same_owner(x->waiters->waiters[i].owner, x->owner)) {
			return i + 1;
		}
	}
	return 0;
}

static void print_waiters(const struct explained *x) {
	printf("Waiting, in this order%s%s:\n", x->home ? ", as kept by " : "",
		output_name(x->home ? x->home : ""));
	for (size_t i = 0; x->waiters && i < x->waiters->waiter_count; i++) {
		const struct pawl_waiter *w = &x->waiters->waiters[i];
		const char *who = terms_who(w->owner, w->host, w->pid, w->label, w->identity);
		printf("  %zu. ", i + 1);
		output_bytes(stdout, w->owner, 0);
		printf("%s%s%s: %s, for %s, at %s", *who ? " (" : "", who, *who ? ")" : "",
			terms_text(w->mode, w->permits, w->of, NULL, 0),
			output_duration(w->since_ms), output_name(w->node));
		printf(w->priority ? ", priority %" PRId32 "\n" : "\n", w->priority);
	}
	if (!x->waiters) {
		printf("  not known: the master that keeps the queue does not answer\n");
	} else if (x->waiters->waiter_count == 0) {
		printf("  nobody\n");
	}
}

/* ---- deadlocks ---- */

/* Prints the rings of clients that the key is part of. Each waits for the next one. */
static void print_deadlocks(const struct explained *x) {
	const struct pawl_value *all = pawl_value_get(x->answer->tree, "deadlocks");
	for (size_t i = 0; all && i < all->count; i++) {
		const struct pawl_value *ring = pawl_value_get(&all->items[i], "ring");
		bool refused = field_bool(&all->items[i], "refused");
		printf("Deadlock: these clients wait%s for each other:\n", refused ? "ed" : "");
		for (size_t m = 0; ring && m < ring->count; m++) {
			const struct pawl_value *one = &ring->items[m],
				*next = &ring->items[(m + 1) % ring->count],
				*key = pawl_value_get(one, "key");
			char owner[600], holder[600];
			printf("  %s waits for ", record_owner(one, owner, sizeof owner));
			output_bytes(stdout, key ? key->bytes : pawl_str(""), 0);
			printf(", which %s holds (at %s)\n",
				record_owner(next, holder, sizeof holder), field_text(one, "node"));
		}
		printf(refused ? "  The first of them has got the error \"deadlock\".\n"
			: "  One of them must release what it holds: the first is the youngest.\n");
	}
}

/* ---- why, and what would help ---- */

/* Counts the records for which `is` returns true. */
static size_t count_seen(const struct explained *x, bool (*is)(const struct seen *s)) {
	size_t count = 0;
	for (size_t i = 0; i < x->count; i++) {
		count += is(&x->seen[i]);
	}
	return count;
}

static bool is_barred(const struct seen *s) {
	return field_bool(s->record, "barred");
}

static bool is_shared(const struct seen *s) {
	return !closes(s) && strcmp(field_text(s->record, "mode"), "shared") == 0;
}

static bool has_it(const struct explained *x) {
	for (size_t i = 0; x->owner && i < x->count; i++) {
		const struct pawl_value *owner = pawl_value_get(x->seen[i].record, "owner");
		if (owner && same_owner(owner->bytes, x->owner) && !closes(&x->seen[i])
			&& x->seen[i].masters >= x->quorum) {
			return true;
		}
	}
	return false;
}

/* Explains why somebody who comes now does not get the key, when nobody waits but somebody holds
 * it. */
static void print_why_held(const struct explained *x) {
	int64_t of = field_int(x->seen[0].record, "of", 0), left = of;
	for (size_t i = 0; i < x->count; i++) {
		left -= field_int(x->seen[i].record, "permits", 0);
	}
	if (count_seen(x, closes) == x->count) {
		printf("  Nobody holds it, but its last holder was lost, and its lock delay keeps "
			"the key closed for a while.\n");
	} else if (count_seen(x, is_shared) == x->count) {
		printf("  Readers hold it: take it with --shared, or wait (--wait, pawl run --wait "
			"1m).\n");
	} else if (left > 0) {
		printf("  %" PRId64 " of %" PRId64 " permits are free: take them; for more, wait "
			"(--wait, pawl run --wait 1m).\n",
			left, of);
	} else {
		printf("  It is held, and you are not waiting for it (--wait, pawl run --wait "
			"1m).\n");
	}
}

static void print_why(const struct explained *x) {
	size_t waiting = x->waiters ? x->waiters->waiter_count : 0, mine = place(x);
	printf("Why you do not have it:\n");
	if (x->voting < x->quorum) {
		printf("  Only %zu of %zu masters vote, and a grant takes %zu, so nobody gets any "
			"key now (pawl status).\n",
			x->voting, x->masters, x->quorum);
	}
	if (has_it(x)) {
		printf("  You have it.\n");
	} else if (mine) {
		printf("  You are waiting in place %zu%s.\n", mine,
			mine == 1 && x->count ? ": the key is yours as soon as it is free" : "");
	} else if (waiting) {
		printf("  %zu waiter%s ahead of a new request.\n", waiting,
			waiting == 1 ? " is" : "s are");
	} else if (x->count) {
		print_why_held(x);
	} else if (x->promises) {
		printf("  Somebody is about to acquire it: %zu masters have promised it, for at "
			"most %s.\n",
			x->promises, output_duration(x->promised_ms));
	} else if (x->voting >= x->quorum) {
		printf("  Nothing is in the way: take it.\n");
	}
}

static void print_remedy(const struct explained *x) {
	if (x->count == 0) {
		return;
	}
	int64_t longest = 0, delay = 0;
	for (size_t i = 0; i < x->count; i++) {
		const struct seen *s = &x->seen[i];
		const int64_t closed_ms = closes(s) ? 0 : delay_ms(s);
		if (s->left_ms + closed_ms > longest) {
			longest = s->left_ms + closed_ms;
			delay = closed_ms;
		}
	}
	bool waited = x->waiters && x->waiters->waiter_count;
	size_t closing = count_seen(x, closes), barred = count_seen(x, is_barred);
	const char *key = output_name(x->key);
	printf("What would free it:\n");
	if (closing < x->count) {
		printf("  its holder: by releasing it; pawl ask-release %s%s asks for that\n",
			key, waited ? " --to WAITER" : "");
	}
	printf("  time:       in %s at most%s%s\n", output_duration(longest),
		delay ? ", which is its lease and then its lock delay" : "",
		closing + barred >= x->count ? "" : ", if the lease is not extended");
	if (closing == x->count) {
		printf("  you:        pawl break %s --now opens it (administrators); make sure "
			"first that nothing of the last holder is still running\n",
			key);
	} else if (barred < x->count) {
		printf("  you:        pawl break %s bars its holder from extending "
			"(administrators)\n",
			key);
	}
}

static void print_masters(const struct explained *x) {
	const struct pawl_value *masters = pawl_value_get(x->answer->tree, "masters");
	printf("What each master reports:\n");
	for (size_t i = 0; i < x->masters; i++) {
		const struct pawl_value *m = &masters->items[i],
					*records = pawl_value_get(m, "records"),
					*promise = pawl_value_get(m, "promise");
		char owner[600];
		printf("  %-10s %-*s", field_text(m, "node"), records ? 11 : 0,
			field_text(m, "state"));
		for (size_t k = 0; records && k < records->count; k++) {
			const struct pawl_value *r = &records->items[k];
			int64_t closing_ms = field_int(r, "closing_ms", -1);
			printf("%s%s %s, token %" PRId64 ", %s left", k ? "; " : "",
				closing_ms < 0 ? "held by" : "closed after",
				record_owner(r, owner, sizeof owner), field_int(r, "token", 0),
				output_duration(closing_ms < 0 ? field_int(r, "remaining_ms", 0)
					: closing_ms));
		}
		if (records && records->count == 0) {
			printf("free");
		}
		if (promise && promise->kind == PAWL_MAP) {
			printf(", promised for %s",
				output_duration(field_int(promise, "left_ms", 0)));
		}
		int64_t parked = field_int(m, "kept", 0);
		if (parked) {
			printf(", %" PRId64 " parked request%s", parked, parked == 1 ? "" : "s");
		}
		printf("%s", field_bool(m, "more") ? ", and more records, left out here" : "");
		printf(field_bool(m, "home") ? ", keeps the queue\n" : "\n");
	}
}

/* Prints one object: the answer of explain, with the waiters in it. */
static void print_json(const struct explained *x) {
	json_t *object = output_json_tree(x->answer->tree),
	       *waiters = x->waiters ? output_json_tree(x->waiters->tree) : json_object();
	json_t *list = json_object_get(waiters, "waiters");
	output_json_bytes(object, "key", pawl_str(x->key));
	/* null means that the master which keeps the queue is silent. */
	output_json_set(object, "waiters", list ? json_incref(list) : json_null());
	output_json_set(object, "quorum", json_integer((json_int_t)x->quorum));
	output_json_set(object, "voting", json_integer((json_int_t)x->voting));
	output_json_set(object, "started_over_with",
		*x->newer ? json_string(x->newer) : json_null());
	json_decref(waiters);
	output_json(object);
}

static int explain_run(struct cli_command_line *line) {
	struct explained x = { .owner = NULL };
	const struct cli_option options[] = { { "owner", CLI_TEXT, &x.owner } };
	char **operands = cli_options(line, options, COUNT(options), 1, 1, NULL);
	const struct pawl_bytes key = cli_key(line, operands[0]);
	const struct pawl_request explain = { .method = PAWL_EXPLAIN, .key = key },
		wait = { .method = PAWL_WAITERS, .key = key };
	struct pawl *client = cli_connect(line);
	struct pawl_result *answer = cli_call(client, &explain),
			   *waiters = answer->error ? NULL : cli_call(client, &wait);
	int status = CLI_DONE;
	x.key = operands[0];
	x.answer = answer;
	x.waiters = waiters && waiters->error ? NULL : waiters;
	if (answer->error) {
		status = cli_fail(line, answer, "explain", x.key);
	} else {
		see_masters(&x);
		cli_started_over(client, x.newer, sizeof x.newer);
		if (line->json) {
			print_json(&x);
		} else {
			print_newer(&x);
			print_holders(&x);
			print_waiters(&x);
			print_deadlocks(&x);
			print_why(&x);
			print_masters(&x);
			print_remedy(&x);
		}
	}
	pawl_result_free(answer);
	pawl_result_free(waiters);
	pawl_free(client);
	return status;
}

const struct cli_command cli_explain = { "explain",
	"explain the state of a key, and what would free it", explain_help, explain_run };
