/* waiting.c: tells somebody at a terminal why a command does not go on yet.
 *
 *   pause --> for each key: who holds it (get) --> who waits for it (waiters) --> a line, if it has
 *   something new --> pause
 *
 * A pipe or a log sees nothing of this, and then no node is asked either. */
#include "waiting.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output.h"
#include "terms.h"

/* The pause before the first look, and before each other one. */
#define FIRST_MS 500
#define PAUSE_MS 1000
/* How long a node may take to answer a read. Without a connection a read only asks the library what
 * is in the way. */
#define READ_MS 1000
#define WITHOUT_CONNECTION_MS 100

/* There is only one command, so this can be static. */
static struct {
	struct waiting for_what;
	int64_t begun_ms;
	bool over;

	/* The read under way; otherwise NULL. */
	struct pawl_call *call;

	/* Which of the keys is asked about. */
	size_t at;

	/* Who is in the way, as far as this look has seen; NULL: nobody. */
	char *holder;

	/* What was told last; NULL: nothing. */
	char *told;

	/* No node answered at the last look; some node has answered before. */
	bool silent, answered;
} state;

static void pause_then_look(void);
static void look_at_holder(void);

static int64_t now_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A process in the background would be stopped for writing, where the terminal is set so
 * (stty tostop), and what it says would be in the way of somebody else. */
static bool has_reader(void) {
	const pid_t foreground = tcgetpgrp(STDERR_FILENO);
	/* There may be a terminal without jobs. */
	return isatty(STDERR_FILENO) && (foreground < 0 || foreground == getpgrp());
}

static struct pawl_bytes key_now(void) {
	const struct waiting *w = &state.for_what;
	return w->key_count ? w->keys[state.at].key : w->key;
}

/* ---- what is told ---- */

/* Takes over a text, and tells it unless it was told last. */
static void tell(char *take_text) {
	if (take_text && (!state.told || strcmp(state.told, take_text) != 0)) {
		output_line(stderr, "pawl %s: %s", state.for_what.line->command->name, take_text);
		free(state.told);
		state.told = take_text;
		take_text = NULL;
	}
	free(take_text);
	pause_then_look();
}

/* Tells that nobody has answered, once for each silence. There may be other nodes than the one that
 * the client is connected to. */
static void tell_silence(const struct pawl_result *result) {
	if (!state.silent) {
		const struct waiting *w = &state.for_what;
		const char *name = w->line->command->name, *at = pawl_endpoint(w->client),
			   *since = state.answered ? "any more" : "yet";
		char left[64] = "trying on";
		if (w->patience_ms != PAWL_FOREVER) {
			const int64_t ms = state.begun_ms + w->patience_ms - now_ms();
			snprintf(left, sizeof left, "trying for %s more",
				output_duration(ms > 0 ? ms : 0));
		}
		if (*at) {
			output_line(stderr, "pawl %s: no answer from %s %s (%s)", name, at, since,
				left);
		} else {
			output_line(stderr, "pawl %s: no node answers %s (%s): %s", name, since,
				left, result->message);
		}
	}
	/* What was told before is news when a node answers again. */
	free(state.told);
	state.told = NULL;
	state.silent = true;
	pause_then_look();
}

static const char *ordinal(size_t n) {
	static char text[32];
	static const char *const ends[] = { "th", "st", "nd", "rd" };
	const bool teens = n / 10 % 10 == 1;
	snprintf(text, sizeof text, "%zu%s", n, teens || n % 10 > 3 ? "th" : ends[n % 10]);
	return text;
}

/* Tells what this look has seen. `place` is that in the queue, from 1; 0: it is not known. `why` is
 * what kept a node from telling it, or NULL. */
static void tell_wait(size_t place, const char *why) {
	const bool nothing = !place && !state.holder && !why;
	char *text = NULL;
	size_t size;
	FILE *to = nothing && state.told ? NULL : open_memstream(&text, &size);
	if (to) {
		fputs("waiting for '", to);
		output_bytes(to, key_now(), 0);
		fprintf(to, "'%s%s", state.holder || place || why ? ": " : "",
			state.holder ? state.holder : why ? why : "");
		if (place) {
			fprintf(to, "%s%s in line", state.holder ? ", " : "", ordinal(place));
		}
		fclose(to);
	}
	/* If nobody is in the way, the key is just changing hands. */
	tell(text);
}

/* Returns who is in the way, or NULL. The caller frees the text. */
static char *in_the_way(const struct pawl_result *result) {
	const struct pawl_entry *e = &result->entry;
	char *text = NULL;
	size_t size;
	FILE *to = e->held || e->closing ? open_memstream(&text, &size) : NULL;
	if (to) {
		const char *who = terms_who(e->owner, e->host, e->pid, e->label, e->identity);
		fputs(e->held ? "held by " : "kept closed, because it was lost by ", to);
		output_bytes(to, e->owner, 0);
		fprintf(to, "%s%s%s", *who ? " (" : "", who, *who ? ")" : "");
		if (e->holders > 1) {
			fprintf(to, " and %" PRIu32 " more", e->holders - 1);
		}
		fclose(to);
	}
	return text;
}

/* ---- looking ---- */

/* Returns whether it was a node that has answered the first question of a look. Otherwise this has
 * done what there is to do. */
static bool goes_on(const struct pawl_result *result) {
	state.call = NULL;
	if (result->error && !result->tree) {
		tell_silence(result);
		return false;
	}
	state.answered = true;
	state.silent = false;
	return true;
}

/* Returns why a node has not told what it was asked for. Somebody who may not know that is told
 * nothing. */
static const char *why_not(const struct pawl_result *result) {
	return result->error && result->error != PAWL_EDENIED ? pawl_error_message(result->error)
		: NULL;
}

/* Returns the place of this process in the queue, from 1; 0: it is not there. */
static size_t own_place(const struct pawl_result *result) {
	char host[256] = "";
	(void)gethostname(host, sizeof host - 1);
	for (size_t i = 0; i < result->waiter_count; i++) {
		const struct pawl_waiter *w = &result->waiters[i];
		/* The library may have cut the name of the host. */
		if (w->pid == getpid() && strncmp(w->host, host, strlen(w->host)) == 0) {
			return i + 1;
		}
	}
	return 0;
}

static void on_waiters(struct pawl_result *take_result, void *arg) {
	(void)arg;
	state.call = NULL;
	/* That there is no answer only means that the place is not known: the node has just
	 * answered, but the master that keeps the queue may be silent. */
	const size_t place = own_place(take_result);
	if (!place && state.at + 1 < state.for_what.key_count) {
		state.at++;
		look_at_holder();
	} else {
		tell_wait(place, state.holder ? NULL : why_not(take_result));
	}
	pawl_result_free(take_result);
}

static void ask(enum pawl_method method, pawl_done_fn *done) {
	const bool connected = *pawl_endpoint(state.for_what.client);
	const struct pawl_request request = { .method = method, .key = key_now(),
		.timeout_ms = connected ? READ_MS : WITHOUT_CONNECTION_MS };
	if (pawl_start(state.for_what.client, &request, done, NULL, &state.call) != 0) {
		pause_then_look();
	}
}

static void on_holder(struct pawl_result *take_result, void *arg) {
	(void)arg;
	if (goes_on(take_result)) {
		free(state.holder);
		state.holder = NULL;
		if (take_result->error) {
			tell_wait(0, why_not(take_result));
		} else {
			state.holder = in_the_way(take_result);
			ask(PAWL_WAITERS, on_waiters);
		}
	}
	pawl_result_free(take_result);
}

static void look_at_holder(void) {
	ask(PAWL_GET, on_holder);
}

static void on_ping(struct pawl_result *take_result, void *arg) {
	(void)arg;
	if (goes_on(take_result)) {
		pause_then_look();
	}
	pawl_result_free(take_result);
}

static void on_pause(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what, (void)arg;
	const struct waiting *w = &state.for_what;
	if (state.over) {
		return;
	}
	if (!has_reader()) {
		pause_then_look();
	} else if (w->key.size || w->key_count) {
		state.at = 0;
		look_at_holder();
	} else {
		ask(PAWL_PING, on_ping);
	}
}

static void pause_for(uint32_t ms) {
	const struct timeval pause = { ms / 1000, ms % 1000 * 1000 };
	/* Without memory, nothing more is said. */
	(void)event_base_once(state.for_what.base, -1, EV_TIMEOUT, on_pause, NULL, &pause);
}

static void pause_then_look(void) {
	pause_for(PAUSE_MS);
}

uint32_t waiting_patience(const struct cli_command_line *line, uint32_t wait_ms) {
	const uint32_t timeout_ms = line->timeout_ms ? line->timeout_ms : CLI_TIMEOUT_DEFAULT_MS;
	return wait_ms < PAWL_FOREVER - timeout_ms ? wait_ms + timeout_ms : PAWL_FOREVER;
}

void waiting_tell(const struct waiting *w) {
	if (w->line->json || !isatty(STDERR_FILENO)) {
		return;
	}
	state.for_what = *w;
	state.begun_ms = now_ms();
	pause_for(FIRST_MS);
}

void waiting_over(void) {
	state.over = true;
	if (state.call) {
		pawl_cancel(state.call);
		state.call = NULL;
	}
}
