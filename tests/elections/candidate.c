/* candidate.c: one application among many, which is a candidate of some elections. It writes down
 * what it sees and believes as it happens.
 *
 *     candidate ENDPOINTS OWNER HISTORY NAME=VALUE...
 *
 *     elections=A,B,...  which (needed)      lease=MS delay=MS warn=MS priority=N
 *     disconnect=1 takeover=1 again=1        as in struct pawl_election_options
 *     watch=1                                also watches all keys
 *     wild=SEED others=N                     does things of its own accord (wild.c)
 *
 * Its standard input takes commands, a line each: campaign, resign, transfer NAME, ask, calm. When
 * the input ends, the program resigns and ends. It writes lines to the file HISTORY, or to its
 * standard output for "-". TIME and UNTIL are CLOCK_BOOTTIME in ns. A time is taken after a
 * leadership began and before one ends, so what is written never says more than was believed.
 *
 *     L TIME ELECTION TOKEN LOCK_ID UNTIL  leads from now on, unless it says something else until
 *                                          then
 *     A TIME ELECTION TOKEN LOCK_ID UNTIL  still leads
 *     P TIME ELECTION CAUSE                is to step down
 *     E TIME ELECTION UNTIL                acted as the leader until then, and does so no more
 *     O TIME ELECTION TOKEN OWNER          observes this leader; 0 -: none
 *     W TIME TYPE KEY TOKEN LOCK_ID OWNER  an event of its watch; what is not said is 0 or -
 *     S TIME ELECTION LEADS TOKEN OWNER HANDS_OVER
 *                                          the answer to "ask": whether it leads, whom it takes
 *                                          for the leader, and whether its transfer to somebody
 *                                          else has no outcome yet
 *     D TIME WHAT ERROR                    the outcome of a command
 *     F TIME ERROR                         an election failed for good
 */
#include "candidate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pawl/pawl.h"

#define HEARTBEAT_US 10000
#define NS_PER_MS 1000000

/* ---- writing down ---- */

static void tell_belief(struct post *p, char letter, int64_t at, int64_t until) {
	char id[PAWL_ID_TEXT];
	struct pawl_id lock_id = pawl_lock_id(pawl_election_lock(p->election));
	pawl_id_format(&lock_id, id);
	p->told = at;
	p->until = until;
	fprintf(p->candidate->history, "%c %" PRId64 " %s %" PRIu64 " %s %" PRId64 "\n", letter, at,
		p->name, pawl_election_token(p->election), id, until);
	fflush(p->candidate->history);
}

/* The candidate acts no more: from now on, or since its time was over. If the leadership was taken
 * away before that, it may have ended at any time since the last line. */
static void tell_end(struct post *p) {
	if (p->acts) {
		int64_t at = history_now(), until = p->until;
		if (pawl_election_valid_ms(p->election) > 0) {
			until = at;
		} else if (at < p->until) {
			until = p->told;
		}
		p->acts = false;
		fprintf(p->candidate->history, "E %" PRId64 " %s %" PRId64 "\n", at, p->name,
			until);
		fflush(p->candidate->history);
	}
}

static void on_heartbeat(evutil_socket_t fd, short what, void *arg) {
	static const struct timeval pause = { 0, HEARTBEAT_US };
	struct post *p = arg;
	(void)fd, (void)what;
	int64_t at = history_now(), valid = pawl_election_valid_ms(p->election);
	if (p->acts && valid > 0) {
		tell_belief(p, 'A', at, at + valid * NS_PER_MS);
		evtimer_add(p->heartbeat, &pause);
	} else {
		tell_end(p);
	}
}

static void word(FILE *to, struct pawl_bytes b) {
	fprintf(to, " %.*s", b.size ? (int)b.size : 1, b.size ? (const char *)b.data : "-");
}

static void on_done(struct pawl_result *take_result, void *arg) {
	struct post *p = arg;
	fprintf(p->candidate->history, "D %" PRId64 " %s %d\n", history_now(), p->name,
		-take_result->error);
	fflush(p->candidate->history);
	pawl_result_free(take_result);
}

static void on_transferred(struct pawl_result *take_result, void *arg) {
	struct post *p = arg;
	p->hands_over = false;
	on_done(take_result, arg);
}

/* ---- what the library tells ---- */

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	struct post *p = arg;
	int64_t at = history_now(), valid = pawl_election_valid_ms(election);
	(void)token;
	if (p->acts) {
		/* It acted to the end of its time, and cannot have been elected before that. */
		p->acts = false;
		fprintf(p->candidate->history, "E %" PRId64 " %s %" PRId64 "\n", at, p->name,
			p->until);
	}
	p->acts = true;
	tell_belief(p, 'L', at, at + valid * NS_PER_MS);
	on_heartbeat(-1, 0, p);
	wild_leads(p);
}

static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	struct post *p = arg;
	(void)election;
	fprintf(p->candidate->history, "P %" PRId64 " %s %d\n", history_now(), p->name, -cause);
	if (cause == 0 || pawl_election_valid_ms(election) == 0) {
		tell_end(p);
	} /* else it acts on to the very end, as it may */
	wild_follows(p);
}

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct post *p = arg;
	FILE *to = p->candidate->history;
	(void)election;
	fprintf(to, "O %" PRId64 " %s %" PRIu64, history_now(), p->name,
		leader ? leader->token : 0);
	word(to, leader ? leader->owner : pawl_str(NULL));
	fputc('\n', to);
	fflush(to);
}

static void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	struct post *p = arg;
	(void)election, (void)observing, (void)message;
	fprintf(p->candidate->history, "F %" PRId64 " %s %d\n", history_now(), p->name, -error);
	fflush(p->candidate->history);
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct candidate *c = arg;
	char id[PAWL_ID_TEXT] = "-";
	(void)watch;
	if (!pawl_id_none(&event->entry.lock_id)) {
		pawl_id_format(&event->entry.lock_id, id);
	}
	fprintf(c->history, "W %" PRId64 " %s", history_now(), pawl_event_name(event->type));
	word(c->history, event->entry.key);
	fprintf(c->history, " %" PRIu64 " %s", event->entry.token, id);
	word(c->history, event->entry.owner);
	fputc('\n', c->history);
	fflush(c->history);
}

/* ---- what it is told to do ---- */

void candidate_resign(struct post *p) {
	tell_end(p);
	p->hands_over = false; /* resigning ends a transfer without an outcome */
	(void)pawl_election_resign(p->election, on_done, p);
}

void candidate_transfer(struct post *p, const char *to) {
	int error = pawl_election_transfer(p->election, pawl_str(to), on_transferred, p);
	if (!error) {
		p->hands_over = true;
	} else {
		fprintf(p->candidate->history, "D %" PRId64 " %s %d\n", history_now(), p->name,
			-error);
	}
}

static void answer(const struct post *p) {
	FILE *to = p->candidate->history;
	struct pawl_leader leader = { .token = 0 };
	bool known = pawl_election_leader(p->election, &leader);
	fprintf(to, "S %" PRId64 " %s %d %" PRIu64, history_now(), p->name,
		pawl_election_leads(p->election), known ? leader.token : 0);
	word(to, leader.owner);
	fprintf(to, " %d\n", p->hands_over);
	fflush(to);
}

static void command(struct candidate *c, const char *line) {
	c->wild = c->wild && strcmp(line, "calm") != 0;
	for (size_t i = 0; i < c->post_count; i++) {
		struct post *p = &c->posts[i];
		if (strcmp(line, "campaign") == 0 || strcmp(line, "calm") == 0) {
			(void)pawl_election_campaign(p->election);
		} else if (strcmp(line, "resign") == 0) {
			candidate_resign(p);
		} else if (strncmp(line, "transfer ", 9) == 0) {
			candidate_transfer(p, line + 9);
		} else if (strcmp(line, "ask") == 0) {
			answer(p);
		}
	}
}

static void on_stdin(evutil_socket_t fd, short what, void *arg) {
	static char input[256];
	static size_t size;
	struct candidate *c = arg;
	(void)what;
	ssize_t got = read(fd, input + size, sizeof input - 1 - size);
	if (got <= 0) {
		event_base_loopbreak(c->base);
		return;
	}
	size += (size_t)got;
	char *end;
	while ((end = memchr(input, '\n', size)) != NULL) {
		*end++ = '\0';
		command(c, input);
		size -= (size_t)(end - input);
		memmove(input, end, size);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what;
	wild_timer(arg);
}

/* ---- its life ---- */

static bool stand(struct candidate *c, const char *name, size_t size) {
	struct post *p = &c->posts[c->post_count++];
	struct pawl_election_options o = c->options;
	p->candidate = c;
	snprintf(p->name, sizeof p->name, "%.*s", (int)size, name);
	p->heartbeat = evtimer_new(c->base, on_heartbeat, p);
	p->timer = evtimer_new(c->base, on_timer, p);
	o.name = pawl_str(p->name);
	o.owner = pawl_str(c->owner);
	o.on_leading = on_leading;
	o.on_stepped_down = on_stepped_down;
	o.on_leader = on_leader;
	o.on_failed = on_failed;
	o.arg = p;
	return p->heartbeat && p->timer && pawl_election_new(c->client, &o, &p->election) == 0;
}

static bool stand_for_all(struct candidate *c, const char *names) {
	while (names && *names && c->post_count < ELECTIONS_MAX) {
		size_t size = strcspn(names, ",");
		if (!stand(c, names, size)) {
			return false;
		}
		names += size + (names[size] == ',');
	}
	return c->post_count > 0;
}

/* The value of NAME=VALUE; NULL: it is not there. */
static const char *setting(char **argv, const char *name) {
	size_t size = strlen(name);
	for (; *argv; argv++) {
		if (strncmp(*argv, name, size) == 0 && (*argv)[size] == '=') {
			return *argv + size + 1;
		}
	}
	return NULL;
}

static uint32_t number(char **argv, const char *name) {
	const char *text = setting(argv, name);
	return text ? (uint32_t)strtol(text, NULL, 10) : 0;
}

static bool begin(struct candidate *c, char **argv) {
	struct pawl_options options = { .endpoints = argv[1], .base = c->base, .timeout_ms = 2000,
		.connect_timeout_ms = 500, .silence_ms = 1000, .prefer_first = true };
	struct pawl_watch_options watch = { .prefix = true, .on_event = on_event, .arg = c };
	char **settings = argv + 4;
	snprintf(c->owner, sizeof c->owner, "%s", argv[2]);
	c->options = (struct pawl_election_options){ .lease_ms = number(settings, "lease"),
		.lock_delay_ms = number(settings, "delay"), .warn_ms = number(settings, "warn"),
		.priority = (int32_t)number(settings, "priority"),
		.release_on_disconnect = number(settings, "disconnect") != 0,
		.takeover = number(settings, "takeover") != 0,
		.again = number(settings, "again") != 0 };
	c->wild = setting(settings, "wild") != NULL;
	c->others = number(settings, "others");
	prng_init(&c->prng, number(settings, "wild"));
	if (pawl_new(&options, &c->client, NULL) != 0 ||
		!stand_for_all(c, setting(settings, "elections"))) {
		return false;
	}
	for (size_t i = 0; c->wild && i < c->post_count; i++) {
		wild_follows(&c->posts[i]);
	}
	return number(settings, "watch") == 0 ||
		pawl_watch_start(c->client, &watch, &c->watch) == 0;
}

/* Leaders resign: the next one need not wait for a lease. */
static void end(struct candidate *c) {
	static const struct timeval moment = { 0, 200000 };
	for (size_t i = 0; i < c->post_count; i++) {
		candidate_resign(&c->posts[i]);
	}
	event_base_loopexit(c->base, &moment);
	event_base_dispatch(c->base);
	for (size_t i = 0; i < c->post_count; i++) {
		event_free(c->posts[i].heartbeat);
		event_free(c->posts[i].timer);
	}
	pawl_free(c->client);
}

int main(int argc, char **argv) {
	static struct candidate c;
	if (argc < 5) {
		return 2;
	}
	history_ignore_signals();
	c.history = strcmp(argv[3], "-") == 0 ? stdout : fopen(argv[3], "ae");
	c.base = event_base_new();
	if (!c.history || !c.base || !begin(&c, argv)) {
		return 2;
	}
	struct event *input = event_new(c.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, &c);
	event_add(input, NULL);
	event_base_dispatch(c.base);
	event_free(input);
	end(&c);
	event_base_free(c.base);
	return 0;
}
