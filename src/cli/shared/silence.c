/* silence.c: makes commands that wait for as long as it takes say so when nobody answers. Otherwise
 * a wrong endpoint would look like a long queue. */
#include <event2/event.h>
#include <stdio.h>

#include "cli.h"

/* There is only one command, so this can be static. */
static struct {
	const struct cli_command_line *line;
	struct pawl *client;
	bool (*answered)(void *ctx);
	void *ctx;
} silence;

static void on_silence(evutil_socket_t fd, short what, void *arg) {
	(void)fd, (void)what, (void)arg;
	if (silence.answered(silence.ctx)) {
		return;
	}
	const char *endpoint = pawl_endpoint(silence.client);
	fprintf(stderr,
		"pawl %s: no node has answered yet; still trying (%s%s)\n  pawl status --all shows "
		"which nodes answer; write tls://host:port for nodes with TLS\n",
		silence.line->command->name, *endpoint ? "connected to " : "endpoints: ",
		*endpoint ? endpoint : silence.line->endpoints);
}

void cli_tell_silence(const struct cli_command_line *line, struct event_base *base,
	struct pawl *client, bool (*answered)(void *ctx), void *ctx) {
	uint32_t ms = line->timeout_ms ? line->timeout_ms : CLI_TIMEOUT_DEFAULT_MS;
	const struct timeval patience = { ms / 1000, ms % 1000 * 1000 };
	silence.line = line;
	silence.client = client;
	silence.answered = answered;
	silence.ctx = ctx;
	/* Without memory, nothing is said. */
	(void)event_base_once(base, -1, EV_TIMEOUT, on_silence, NULL, &patience);
}
