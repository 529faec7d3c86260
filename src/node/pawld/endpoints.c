/* endpoints.c: what a node says to the test that has started it; see endpoints.h. */
#include "endpoints.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "json_text.h"
#include "pawl/error.h"

/* Longer than any address, also that of a socket in the file system. */
#define ENDPOINT_BYTES_MAX 512

static void endpoints_print_one(const char *name, const char *address) {
	char text[JSON_TEXT_GROWTH * ENDPOINT_BYTES_MAX];
	const struct slice whole = slice_str(address);
	CHECK(whole.size <= ENDPOINT_BYTES_MAX);
	/* The path of a socket need not be text. JSON has no other bytes. */
	const size_t size = json_text_valid(whole) ? json_text_escape(text, whole) : 0;
	printf("\"%s\": \"%.*s\", ", name, (int)size, text);
}

void endpoints_print(const struct node *node, const struct node_config *config) {
	printf("{");
	for (uint32_t i = 0; i < config->listen_client_count; i++) {
		const struct listen_address *a = &config->listen_client[i];
		endpoints_print_one(a->redis ? "redis" : a->memcached ? "memcached" : "client",
			node_client_address(node, i));
	}
	if (node_admin_address(node)) {
		endpoints_print_one("admin", node_admin_address(node));
	}
	printf("\"pid\": %ld}\n", (long)getpid());
	fflush(stdout);
}

/* ---- the standard input ---- */

struct endpoints_input {
	struct event *event;
	void (*ended)(void *ctx);
	void *ctx;
};

/* What is written there means nothing. */
static void endpoints_on_input(evutil_socket_t fd, short what, void *arg) {
	const struct endpoints_input *input = arg;
	char bytes[4096];
	(void)what;
	ssize_t got = read(fd, bytes, sizeof bytes);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
		event_del(input->event);
		input->ended(input->ctx);
	}
}

int endpoints_end_with_input(struct event_base *base, void (*ended)(void *ctx), void *ctx,
	struct event **out) {
	struct stat is;
	*out = NULL;
	if (fstat(STDIN_FILENO, &is) != 0 || !(S_ISFIFO(is.st_mode) || S_ISSOCK(is.st_mode))) {
		return 0;
	}
	struct endpoints_input *input = calloc(1, sizeof *input);
	struct event *event = input ? event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST,
		endpoints_on_input, input) : NULL;
	if (!event || event_add(event, NULL) != 0) {
		if (event) {
			event_free(event);
		}
		free(input);
		return PAWL_ENOMEM;
	}
	*input = (struct endpoints_input){ .event = event, .ended = ended, .ctx = ctx };
	*out = event;
	return 0;
}

void endpoints_input_free(struct event *take_input) {
	if (take_input) {
		void *input = event_get_callback_arg(take_input);
		event_free(take_input);
		free(input);
	}
}
