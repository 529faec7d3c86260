/* evented.c: a program with its own libevent loop that leads while it holds a key.
 *
 *     cc evented.c $(pkg-config --cflags --libs pawl libevent_core) -o evented
 *     ./evented 127.0.0.1:7117 leader-of-the-printers
 *
 * Everything happens in the loop: the acquire waits there, the lease is renewed there, and a
 * callback tells when to stop. The program ends on SIGINT or SIGTERM, after it has let go of the
 * key. */
#include <event2/event.h>
#include <inttypes.h>
#include <pawl/pawl.h>
#include <signal.h>
#include <stdio.h>

struct app {
	struct event_base *base;
	struct pawl *client;
	/* The acquire under way; NULL if there is none. */
	struct pawl_call *campaign;
	/* The lock while this program leads; NULL otherwise. */
	struct pawl_lock *lock;
	struct event *tick, *interrupt, *terminate;
	const char *key;
	bool stopping;
};

static void campaign(struct app *app);

static void on_released(struct pawl_result *take_result, void *arg) {
	struct app *app = arg;
	printf("released\n");
	pawl_result_free(take_result);
	event_base_loopbreak(app->base);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct app *app = arg;
	printf("lost: %s; %" PRId64 " ms left to stop\n", pawl_error_message(cause),
		pawl_lock_valid_ms(lock));
	/* This stops what the lock protects, here and now. */
	event_del(app->tick);
	pawl_lock_free(lock);
	app->lock = NULL;
	campaign(app);
}

static void on_acquired(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct app *app = arg;
	app->campaign = NULL;
	if (take_lock) {
		static const struct timeval period = { .tv_usec = 100000 };
		printf("leading with token %" PRIu64 "\n", pawl_lock_token(take_lock));
		fflush(stdout);
		app->lock = take_lock;
		event_add(app->tick, &period);
	} else if (take_result->error != PAWL_ECANCELED) {
		printf("not leading: %s\n", take_result->message);
		/* Each try waits at the node for its turn, so no pause is needed in between. */
		campaign(app);
	}
	pawl_result_free(take_result);
}

static void campaign(struct app *app) {
	struct pawl_lock_options wanted = { .key = pawl_str(app->key), .lease_ms = 3000,
		.wait_ms = 60000, .on_lost = on_lost, .arg = app };
	int error = app->stopping
		? 0
		: pawl_lock_start(app->client, &wanted, on_acquired, app, &app->campaign);
	if (error) {
		fprintf(stderr, "%s\n", pawl_error_message(error));
		event_base_loopbreak(app->base);
	}
}

/* Does what only the leader does, ten times a second. */
static void on_tick(evutil_socket_t fd, short what, void *arg) {
	struct app *app = arg;
	(void)fd;
	(void)what;
	if (pawl_lock_valid_ms(app->lock) > 0) {
		/* This check is cheap, because it only reads the clocks. */
		printf("tick\n");
		fflush(stdout);
	}
}

static void on_signal(evutil_socket_t number, short what, void *arg) {
	struct app *app = arg;
	(void)number;
	(void)what;
	if (app->stopping) {
		/* This is the second signal, so do not wait for the release. */
		event_base_loopbreak(app->base);
		return;
	}
	app->stopping = true;
	event_del(app->tick);
	if (!app->lock || pawl_lock_release_start(app->lock, on_released, app) != 0) {
		event_base_loopbreak(app->base);
	}
	app->lock = NULL;
}

static bool set_up(struct app *app) {
	app->tick = event_new(app->base, -1, EV_PERSIST, on_tick, app);
	app->interrupt = evsignal_new(app->base, SIGINT, on_signal, app);
	app->terminate = evsignal_new(app->base, SIGTERM, on_signal, app);
	return app->tick && app->interrupt && app->terminate && event_add(app->interrupt, NULL) == 0
		&& event_add(app->terminate, NULL) == 0;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: evented ENDPOINTS KEY\n");
		return 2;
	}
	struct app app = { .base = event_base_new(), .key = argv[2] };
	struct pawl_options options = { .endpoints = argv[1], .base = app.base };
	const char *problem = "no event loop";
	if (!app.base || pawl_new(&options, &app.client, &problem) != 0) {
		fprintf(stderr, "%s\n", problem);
		return 2;
	}
	bool ready = set_up(&app);
	if (ready) {
		campaign(&app);
		event_base_dispatch(app.base);
	}
	/* A campaign under way ends in here. */
	pawl_free(app.client);
	struct event *events[] = { app.tick, app.interrupt, app.terminate };
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (events[i]) {
			event_free(events[i]);
		}
	}
	event_base_free(app.base);
	return ready ? 0 : 1;
}
