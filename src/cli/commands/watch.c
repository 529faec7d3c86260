/* watch.c: pawl watch: shows what happens to keys, with a line for each event. */
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "output.h"
#include "pawl/watch.h"
#include "terms.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char watch_help[] =
	"usage: pawl watch [PREFIX] [--exact KEY] [--from POSITION] [--count N]\n"
	"\n"
	"Shows what happens to all keys that begin with PREFIX (default: all keys), or to\n"
	"KEY alone: first who holds them now (`present`), then each change as it happens,\n"
	"in order for each key: acquired, updated, downgraded, released, expired, lost,\n"
	"asked. It survives lost connections. If changes may have been missed, it prints\n"
	"`overflow` and then the present state.\n"
	"\n"
	"What it shows is one node's view, a moment after the masters have decided. It\n"
	"tells you when to look, not that it is safe to act.\n"
	"\n"
	"  --exact KEY          watch this key alone\n"
	"  --from POSITION      continue after an earlier event: its `resume`, as --json\n"
	"                       prints it\n"
	"  --count N            end after N events (those of the present state count)\n"
	"\n"
	"Example:\n"
	"  pawl watch jobs/ --json | while read -r event; do notify \"$event\"; done\n";

struct watcher {
	const struct cli_command_line *line;
	struct event_base *base;

	/* How many events may still be shown. */
	uint64_t left;
	int status;
};

static void print_event(const struct pawl_event *event) {
	const struct pawl_entry *e = &event->entry;
	if (event->type == PAWL_EVENT_CURRENT) {
		printf("current     the present state has been listed\n");
		return;
	}
	if (event->type == PAWL_EVENT_OVERFLOW) {
		printf("overflow    changes may be missing; the present state follows\n");
		return;
	}
	printf("%-10s  ", pawl_event_name(event->type));
	output_bytes(stdout, e->key, 24);
	printf(event->type == PAWL_EVENT_ASKED ? "  by " : "  ");
	output_bytes(stdout, e->owner, 20);
	if (event->type == PAWL_EVENT_ASKED) {
		if (event->to.size) {
			printf("  in favour of ");
			output_bytes(stdout, event->to, 0);
		}
		printf("  priority %" PRId32, event->priority);
	} else {
		printf("  token %" PRIu64, e->token);
		if (e->mode != PAWL_EXCLUSIVE) {
			printf("  %s",
				terms_text(e->mode, e->permits, e->of, e->slots, e->permits));
		}
		if (e->value.size && e->held) {
			printf("  = ");
			output_bytes(stdout, e->value, 0);
		}
	}
	putchar('\n');
}

static void json_slots(json_t *object, const struct pawl_entry *e) {
	json_t *slots = json_array();
	for (uint32_t i = 0; i < e->permits && e->slots; i++) {
		json_array_append_new(slots, json_integer(e->slots[i]));
	}
	output_json_set(object, "permits", json_integer(e->permits));
	output_json_set(object, "of", json_integer(e->of));
	output_json_set(object, "slots", slots);
}

static void json_entry(json_t *object, const struct pawl_event *event) {
	static const char *const modes[] = { "exclusive", "shared", "permits" };
	const struct pawl_entry *e = &event->entry;
	output_json_bytes(object, "key", e->key);
	output_json_bytes(object, "owner", e->owner);
	if (event->type == PAWL_EVENT_ASKED) {
		output_json_bytes(object, "to", event->to);
		output_json_set(object, "priority", json_integer(event->priority));
		return;
	}
	output_json_set(object, "held", json_boolean(e->held));
	output_json_set(object, "token", json_integer((json_int_t)e->token));
	output_json_bytes(object, "value", e->value);
	output_json_set(object, "mode", json_string(modes[e->mode]));
	if (e->mode == PAWL_PERMITS) {
		json_slots(object, e);
	}
	if (!pawl_id_none(&e->lock_id)) {
		output_json_id(object, "lock_id", &e->lock_id);
	}
	if (*e->host) {
		output_json_bytes(object, "host", pawl_str(e->host));
	}
	if (e->pid) {
		output_json_set(object, "pid", json_integer(e->pid));
	}
	if (*e->label) {
		output_json_bytes(object, "label", pawl_str(e->label));
	}
}

static void print_json(const struct pawl_event *event) {
	json_t *object = json_object();
	output_json_set(object, "type", json_string(pawl_event_name(event->type)));
	if (event->type != PAWL_EVENT_CURRENT && event->type != PAWL_EVENT_OVERFLOW) {
		json_entry(object, event);
	}
	if (event->resume.size) {
		char *hex = output_hex(event->resume);
		output_json_set(object, "resume", json_string(hex));
		free(hex);
	}
	output_json(object);
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct watcher *w = arg;
	(void)watch;
	if (w->left == 0) {
		return;
	}
	if (w->line->json) {
		print_json(event);
	} else {
		print_event(event);
	}
	if (fflush(stdout) != 0 || --w->left == 0) {
		/* Nobody reads the output any more, or enough events were shown. */
		event_base_loopbreak(w->base);
	}
}

static void on_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	struct watcher *w = arg;
	(void)watch;
	struct pawl_result failed = { .method = PAWL_WATCH, .error = error, .message = message,
		.endpoint = "", .field = "" };
	w->status = cli_fail(w->line, &failed, "watch", "");
	event_base_loopbreak(w->base);
}

static bool answered(void *ctx) {
	return pawl_watch_current(ctx);
}

static void read_position(const struct cli_command_line *line, const char *text,
	unsigned char *room, size_t size, struct pawl_bytes *out) {
	size_t bytes;
	if (!cli_hex_parse(text, room, size, &bytes)) {
		cli_misuse(line,
			"--from: '%s' is not a position: use a `resume` that --json printed",
			text);
	}
	*out = (struct pawl_bytes){ room, bytes };
}

static int watch_run(struct cli_command_line *line) {
	struct watcher w = { .line = line, .left = UINT64_MAX };
	struct pawl_watch_options options = { .prefix = true, .on_event = on_event,
		.on_ended = on_ended, .arg = &w };
	const char *key = NULL, *from = NULL;
	unsigned char position[64];
	int count;
	const struct cli_option table[] = { { "exact", CLI_TEXT, &key },
		{ "from", CLI_TEXT, &from }, { "count", CLI_NUMBER, &w.left } };
	char **operands = cli_options(line, table, COUNT(table), 0, 1, &count);
	if (key && count) {
		cli_misuse(line, "PREFIX and --exact exclude each other");
	}
	if (w.left == 0) {
		cli_misuse(line, "--count must be at least 1");
	}
	options.prefix = key == NULL;
	options.key = key ? cli_key(line, key) : pawl_str(count ? operands[0] : "");
	if (from) {
		read_position(line, from, position, sizeof position, &options.from);
	}
	w.base = event_base_new();
	if (!w.base) {
		cli_misuse(line, "out of memory");
	}
	struct pawl *client = cli_connect_on(line, w.base);
	struct pawl_watch *watch;
	int error = pawl_watch_start(client, &options, &watch);
	if (error) {
		struct pawl_result failed = { .method = PAWL_WATCH, .error = error,
			.message = pawl_error_message(error), .endpoint = "", .field = "" };
		w.status = cli_fail(line, &failed, "watch", "");
	} else {
		cli_tell_silence(line, w.base, client, answered, watch);
		event_base_dispatch(w.base);
	}
	pawl_free(client);
	event_base_free(w.base);
	return w.status;
}

const struct cli_command cli_watch = { "watch", "show what happens to keys, as it happens",
	watch_help, watch_run };
