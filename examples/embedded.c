/* embedded.c: a program that has a node of the cluster inside it, and so reads locks from its own
 * memory.
 *
 *     cc embedded.c $(pkg-config --cflags --libs pawl-node libevent_core) -o embedded
 *     ./embedded mine example /var/lib/mine 127.0.0.1:7200 \
 *         a=127.0.0.1:7118,b=127.0.0.1:7128,c=127.0.0.1:7138 leader
 *
 * This is for masters without TLS. For masters with TLS, set NODE_CACERT, NODE_CERT and NODE_KEY in
 * the environment to the absolute paths of PEM files of a certificate that `pawl cert node mine`
 * has made.
 *
 * The program waits until an operator adds it (pawl cluster add-replica mine 127.0.0.1:7200). From
 * then on it follows a master, and prints each change of KEY as it sees it. It may be promoted to a
 * master like any other node. A line "take" on its standard input makes it acquire KEY; a line
 * "give", or the death of this process, gives KEY back. The program ends after a drain: on SIGINT
 * or SIGTERM, and at the end of its input if that is a terminal or a pipe. Other input (/dev/null
 * under systemd, or a file) is not read. */
#include <event2/event.h>
#include <inttypes.h>
#include <pawl/node.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MASTERS_MAX 9

struct app {
	struct event_base *base;
	struct pawl_node *node;
	const char *key;
	struct event *look, *input, *interrupt, *terminate;
	/* The session binding while this program holds KEY: KEY is given back if the process
	 * dies. */
	struct pawl_node_call *binding;
	/* The token of the holder at the last look; 0 means that nobody held the key. */
	uint64_t seen;
	struct pawl_id lock_id;
	bool stopping;
};

static void on_log(int level, const char *line, void *arg) {
	(void)level;
	(void)arg;
	fprintf(stderr, "node: %s\n", line);
}

/* ---- what the node becomes ---- */

static const char *state_name(enum pawl_node_state state) {
	switch (state) {
	case PAWL_NODE_UNBORN:
		return "unborn";
	case PAWL_NODE_OUTSIDE:
		return "outside";
	case PAWL_NODE_FOLLOWING:
		return "following";
	case PAWL_NODE_HANDOVER:
		return "handover";
	case PAWL_NODE_RECOVERING:
		return "recovering";
	case PAWL_NODE_VOTING:
		return "voting";
	case PAWL_NODE_DRAINED:
		return "drained";
	}
	return "unknown";
}

static void on_changed(struct pawl_node *node, void *arg) {
	struct pawl_node_status status;
	(void)arg;
	pawl_node_status(node, &status);
	printf("%s in epoch %" PRIu64 "\n", state_name(status.state), status.epoch);
	fflush(stdout);
}

/* ---- reads: they cost no message, so a program may read as often as it likes ---- */

static void on_look(evutil_socket_t fd, short what, void *arg) {
	struct app *app = arg;
	struct pawl_entry entry;
	(void)fd;
	(void)what;
	bool held = pawl_node_get(app->node, pawl_str(app->key), &entry);
	uint64_t token = held ? entry.token : 0;
	if (token != app->seen) {
		app->seen = token;
		if (held) {
			printf("held by %s with token %" PRIu64 "\n",
				(const char *)entry.owner.data, token);
		} else {
			printf("free\n");
		}
		fflush(stdout);
	}
}

/* ---- writes: this node coordinates them ---- */

static void on_ended(struct pawl_node *node, const struct pawl_node_result *result, void *arg) {
	struct app *app = arg;
	(void)node;
	app->binding = NULL;
	if (result->error) {
		printf("lost: %s\n", result->message);
		fflush(stdout);
	}
}

static void on_done(struct pawl_node *node, const struct pawl_node_result *result, void *arg) {
	struct app *app = arg;
	(void)node;
	if (result->error) {
		printf("refused: %s\n", result->message);
	} else if (result->method == PAWL_ACQUIRE) {
		app->lock_id = result->lock_id;
		printf("taken with token %" PRIu64 " for %" PRId64 " ms\n", result->token,
			pawl_node_left_ms(result->deadline));
		pawl_node_release_on_disconnect(app->node, pawl_str(app->key), &app->lock_id, 500,
			on_ended, app, &app->binding);
	} else {
		printf(result->released ? "given\n" : "it was not held\n");
	}
	fflush(stdout);
}

static void ask(struct app *app, enum pawl_method method) {
	/* The lease is not extended. */
	struct pawl_request request = { .method = method, .key = pawl_str(app->key),
		.lease_ms = 5000, .wait_ms = 10000 };
	if (method == PAWL_RELEASE) {
		request.lock_id = app->lock_id;
	}
	int error = pawl_node_ask(app->node, &request, on_done, app, NULL);
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
	}
}

/* ---- the end ---- */

static void on_drained(struct pawl_node *node, int error, void *arg) {
	struct app *app = arg;
	(void)node;
	printf(error ? "stopped; the next start recovers\n" : "stopped\n");
	event_base_loopbreak(app->base);
}

static void stop(struct app *app) {
	if (app->stopping || pawl_node_drain(app->node, on_drained, app) != 0) {
		/* This is the second time, so stop without a drain. */
		event_base_loopbreak(app->base);
	}
	app->stopping = true;
}

static void on_signal(evutil_socket_t number, short what, void *arg) {
	(void)number;
	(void)what;
	stop(arg);
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
	struct app *app = arg;
	char line[64];
	(void)what;
	/* A terminal or a pipe delivers whole lines; a pipe may deliver several at once. */
	ssize_t size = read(fd, line, sizeof(line) - 1);
	if (size <= 0) {
		event_del(app->input);
		stop(app);
		return;
	}
	line[size] = '\0';
	char *rest = NULL;
	for (char *word = strtok_r(line, "\n", &rest); word; word = strtok_r(NULL, "\n", &rest)) {
		if (strcmp(word, "take") == 0 || strcmp(word, "give") == 0) {
			ask(app, word[0] == 't' ? PAWL_ACQUIRE : PAWL_RELEASE);
		}
	}
}

/* ---- the beginning ---- */

/* Reads masters in the form "a=host:port,b=host:port". */
static size_t read_masters(char *text, struct pawl_node_master masters[MASTERS_MAX]) {
	size_t count = 0;
	char *rest = NULL;
	for (char *one = strtok_r(text, ",", &rest); one && count < MASTERS_MAX;
		one = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(one, '=');
		if (!equals) {
			return 0;
		}
		*equals = '\0';
		masters[count++] = (struct pawl_node_master){ one, equals + 1 };
	}
	return count;
}

/* There is nothing to wait for in a file or /dev/null, and epoll refuses them. */
static bool input_is_a_conversation(void) {
	struct stat input;
	return fstat(STDIN_FILENO, &input) == 0
		&& (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode) || isatty(STDIN_FILENO));
}

static bool set_up(struct app *app, const struct pawl_node_options *options) {
	static const struct timeval often = { .tv_usec = 10000 };
	char why[PAWL_NODE_WHY];
	bool reads = input_is_a_conversation();
	if (pawl_node_new(options, &app->node, why) != 0 || pawl_node_start(app->node, why) != 0) {
		fprintf(stderr, "%s\n", why);
		return false;
	}
	app->look = event_new(app->base, -1, EV_PERSIST, on_look, app);
	app->input = reads ? event_new(app->base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, app)
		: NULL;
	app->interrupt = evsignal_new(app->base, SIGINT, on_signal, app);
	app->terminate = evsignal_new(app->base, SIGTERM, on_signal, app);
	if (!app->look || (reads && !app->input) || !app->interrupt || !app->terminate) {
		return false;
	}
	printf("listening on %s\n", pawl_node_address(app->node));
	fflush(stdout);
	return event_add(app->look, &often) == 0 && (!reads || event_add(app->input, NULL) == 0)
		&& event_add(app->interrupt, NULL) == 0 && event_add(app->terminate, NULL) == 0;
}

int main(int argc, char **argv) {
	if (argc != 7) {
		fprintf(stderr,
			"usage: embedded NAME CLUSTER STATE_DIR LISTEN MASTER=HOST:PORT,... KEY\n");
		return 2;
	}
	struct pawl_node_master masters[MASTERS_MAX];
	struct app app = { .base = event_base_new(), .key = argv[6] };
	struct pawl_node_options options = { .base = app.base, .name = argv[1], .cluster = argv[2],
		.state_dir = argv[3], .listen_peer = argv[4], .masters = masters,
		.master_count = read_masters(argv[5], masters), .log = on_log,
		.on_changed = on_changed, .arg = &app, .ca_file = getenv("NODE_CACERT"),
		.cert_file = getenv("NODE_CERT"), .key_file = getenv("NODE_KEY") };
	bool ready = app.base && set_up(&app, &options);
	if (ready) {
		event_base_dispatch(app.base);
	}
	pawl_node_free(app.node);
	struct event *events[] = { app.look, app.input, app.interrupt, app.terminate };
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (events[i]) {
			event_free(events[i]);
		}
	}
	if (app.base) {
		event_base_free(app.base);
	}
	return ready ? 0 : 1;
}
