/* holder.c: holds locks and waits for them as a program with libpawl does, and tells what happens.
 *
 * holder blocking|evented LEASE_MS, with nodes and certificates from the environment. Each line of
 * its input is a command:
 *
 *     take KEY exclusive|shared|bound|permits WAIT_MS    (0 tries once; "forever")
 *     release KEY
 *     tell
 *
 * and each line of its output an event:
 *
 *     waiting KEY       the acquire has begun
 *     held KEY TOKEN
 *     failed KEY CODE
 *     lost KEY CODE
 *     token KEY TOKEN VALID_MS, for each lock that is held, and then "told", after "tell"
 *     released KEY CODE
 *
 * In the blocking style nothing is read while an acquire waits. The end of the input ends it. */
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <pawl/pawl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCKS_MAX 128
#define LINE_MAX_BYTES 256

struct held { /* a key that was asked for */
	char key[64];
	struct pawl_lock *lock;
};

struct holder {
	/* NULL in the blocking style. */
	struct event_base *base;
	struct pawl *client;
	uint32_t lease_ms;
	struct held held[LOCKS_MAX];
	size_t count;
	/* What was read of the input, and is not a whole line yet. */
	char input[4096];
	size_t length;
	bool ended;
};

static void say(const char *what, const char *key, const char *more) {
	printf("%s %s%s%s\n", what, key, *more ? " " : "", more);
	fflush(stdout);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct held *h = arg;
	(void)lock;
	say("lost", h->key, pawl_error_code(cause));
}

static void on_held(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct held *h = arg;
	if (take_lock) {
		h->lock = take_lock;
		printf("held %s %" PRIu64 "\n", h->key, pawl_lock_token(take_lock));
		fflush(stdout);
	} else {
		say("failed", h->key, take_result->message ? take_result->message : "");
	}
	pawl_result_free(take_result);
}

static void take(struct holder *holder, const char *key, const char *mode, const char *wait) {
	if (holder->count == LOCKS_MAX) {
		abort();
	}
	struct held *h = &holder->held[holder->count++];
	snprintf(h->key, sizeof(h->key), "%s", key);
	struct pawl_lock_options o = { .key = pawl_str(h->key), .lease_ms = holder->lease_ms,
		.on_lost = on_lost, .arg = h };
	o.wait_ms = strcmp(wait, "forever") == 0 ? PAWL_FOREVER : (uint32_t)strtoul(wait, NULL, 10);
	o.terms.mode = strcmp(mode, "shared") == 0 ? PAWL_SHARED : PAWL_EXCLUSIVE;
	o.terms.release_on_disconnect = strcmp(mode, "bound") == 0;
	if (strcmp(mode, "permits") == 0) {
		o.terms.permits = 2;
		o.terms.of = 5;
	}
	say("waiting", h->key, "");
	if (holder->base) {
		if (pawl_lock_start(holder->client, &o, on_held, h, NULL) != 0) {
			abort();
		}
		return;
	}
	struct pawl_lock *lock = NULL;
	struct pawl_result *result = NULL;
	pawl_lock_acquire(holder->client, &o, &lock, &result);
	on_held(lock, result, h);
}

static void on_released(struct pawl_result *take_result, void *arg) {
	struct held *h = arg;
	say("released", h->key, pawl_error_code(take_result->error));
	pawl_result_free(take_result);
}

static void let_go(struct holder *holder, const char *key) {
	for (size_t i = 0; i < holder->count; i++) {
		struct held *h = &holder->held[i];
		if (h->lock && strcmp(h->key, key) == 0) {
			struct pawl_lock *lock = h->lock;
			h->lock = NULL;
			if (holder->base) {
				pawl_lock_release_start(lock, on_released, h);
			} else {
				say("released", h->key, pawl_error_code(pawl_lock_release(lock)));
			}
		}
	}
}

static void tell(const struct holder *holder) {
	for (size_t i = 0; i < holder->count; i++) {
		const struct held *h = &holder->held[i];
		if (h->lock) {
			printf("token %s %" PRIu64 " %" PRId64 "\n", h->key,
				pawl_lock_token(h->lock), pawl_lock_valid_ms(h->lock));
		}
	}
	printf("told\n");
	fflush(stdout);
}

static void obey(struct holder *holder, char *line) {
	char *words[4] = { NULL };
	size_t count = 0;
	for (char *rest, *word = strtok_r(line, " ", &rest); word && count < 4;
		word = strtok_r(NULL, " ", &rest)) {
		words[count++] = word;
	}
	if (count == 4 && strcmp(words[0], "take") == 0) {
		take(holder, words[1], words[2], words[3]);
	} else if (count == 2 && strcmp(words[0], "release") == 0) {
		let_go(holder, words[1]);
	} else if (count == 1 && strcmp(words[0], "tell") == 0) {
		tell(holder);
	} else {
		abort();
	}
}

/* Reads what there is of the input, and obeys its whole lines. */
static void read_input(struct holder *holder) {
	ssize_t got = read(STDIN_FILENO, holder->input + holder->length,
		sizeof(holder->input) - holder->length);
	if (got <= 0) {
		holder->ended = true;
		return;
	}
	holder->length += (size_t)got;
	for (char *end; (end = memchr(holder->input, '\n', holder->length));) {
		char line[LINE_MAX_BYTES];
		size_t size = (size_t)(end - holder->input);
		if (size >= sizeof(line)) {
			abort();
		}
		memcpy(line, holder->input, size);
		line[size] = '\0';
		holder->length -= size + 1;
		memmove(holder->input, end + 1, holder->length);
		obey(holder, line);
	}
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
	struct holder *holder = arg;
	(void)fd;
	(void)what;
	read_input(holder);
	if (holder->ended) {
		event_base_loopbreak(holder->base);
	}
}

static void run_evented(struct holder *holder) {
	struct event *input = event_new(holder->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input,
		holder);
	event_add(input, NULL);
	event_base_dispatch(holder->base);
	event_free(input);
}

static void run_blocking(struct holder *holder) {
	while (!holder->ended) {
		struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
		pawl_poll(holder->client, 20);
		if (poll(&input, 1, 0) == 1) {
			read_input(holder);
		}
	}
}

int main(int argc, char **argv) {
	static struct holder holder;
	struct pawl_options options = { 0 };
	const char *problem = "usage: holder blocking|evented LEASE_MS";
	if (argc == 3) {
		bool evented = strcmp(argv[1], "evented") == 0;
		holder.lease_ms = (uint32_t)strtoul(argv[2], NULL, 10);
		options.base = holder.base = evented ? event_base_new() : NULL;
		pawl_options_from_env(&options);
	}
	if (argc != 3 || pawl_new(&options, &holder.client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	if (holder.base) {
		run_evented(&holder);
	} else {
		run_blocking(&holder);
	}
	pawl_free(holder.client);
	if (holder.base) {
		event_base_free(holder.base);
	}
	return 0;
}
