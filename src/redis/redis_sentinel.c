/* redis_sentinel.c: what clients ask Sentinels for. A node answers as a Sentinel that knows one
 * master, which is the node itself as long as it reaches a quorum. So a client that knows the
 * addresses of several nodes finds one that serves it. */
#include "redis_impl.h"

#include <stdio.h>

#define SENTINEL_MAPPED "::ffff:"

/* Takes the address apart at which clients reach this node. Returns false if it has none. */
static bool sentinel_address(const struct redis *r, char host[ADDRESS_MAX + 1], const char **port) {
	const char *given = r->server->settings.advertise;
	char text[ADDRESS_MAX + 1];
	if (given[0]) {
		snprintf(text, sizeof text, "%s", given);
	} else {
		r->node->reached_at(r->node->ctx, r->number, text);
	}
	char *colon = strrchr(text, ':');
	if (!colon) {
		return false;
	}
	*colon = '\0';
	const bool six = text[0] == '[' && colon > text && colon[-1] == ']';
	if (six) {
		colon[-1] = '\0';
	}
	/* A listener for all addresses knows one of IPv4 in the form of IPv6. */
	const char *four = strncmp(text + six, SENTINEL_MAPPED, strlen(SENTINEL_MAPPED)) == 0
			&& strchr(text, '.') ? text + six + strlen(SENTINEL_MAPPED) : text + six;
	snprintf(host, ADDRESS_MAX + 1, "%s", four);
	/* The port stands behind the host. */
	const size_t at = strlen(host) + 1, size = strlen(colon + 1) + 1;
	if (at + size > ADDRESS_MAX + 1) {
		return false;
	}
	memcpy(host + at, colon + 1, size);
	*port = host + at;
	return true;
}

static void pair(struct resp_writer *w, const char *name, const char *value) {
	resp_text(w, name);
	resp_text(w, value);
}

static void pair_number(struct resp_writer *w, const char *name, uint32_t value) {
	char text[16];
	snprintf(text, sizeof text, "%u", (unsigned)value);
	pair(w, name, text);
}

/* Describes the master. A client goes on to another node if this one says that it is down. */
static void sentinel_master(const struct redis *r, struct resp_writer *w, bool up) {
	const uint32_t masters = r->node->masters(r->node->ctx);
	char host[ADDRESS_MAX + 1];
	const char *port;
	if (!sentinel_address(r, host, &port)) {
		host[0] = '\0';
		port = "0";
	}
	resp_map(w, 9);
	pair(w, "name", r->server->settings.master_name);
	pair(w, "ip", host);
	pair(w, "port", port);
	pair(w, "runid", "");
	pair(w, "flags", up ? "master" : "s_down,o_down,master");
	pair(w, "role-reported", "master");
	pair_number(w, "num-slaves", 0);
	pair_number(w, "num-other-sentinels", masters > 0 ? masters - 1 : 0);
	pair_number(w, "quorum", masters / 2 + 1);
}

/* ---- the replies, once a quorum has answered, and if none did ---- */

static void reply_address(const struct redis *r, struct resp_writer *w) {
	char host[ADDRESS_MAX + 1];
	const char *port;
	if (!sentinel_address(r, host, &port)) {
		resp_error(w, "NOPERM", slice_str("this node has no address for clients that "
			"connect to a Unix socket: [redis] advertise says one"));
		return;
	}
	resp_array(w, 2);
	resp_text(w, host);
	resp_text(w, port);
}

static void reply_no_address(const struct redis *r, struct resp_writer *w) {
	(void)r;
	resp_nil_array(w);
}

static void reply_masters(const struct redis *r, struct resp_writer *w) {
	resp_array(w, 1);
	sentinel_master(r, w, true);
}

static void reply_masters_down(const struct redis *r, struct resp_writer *w) {
	resp_array(w, 1);
	sentinel_master(r, w, false);
}

static void reply_master(const struct redis *r, struct resp_writer *w) {
	sentinel_master(r, w, true);
}

static void reply_master_down(const struct redis *r, struct resp_writer *w) {
	sentinel_master(r, w, false);
}

static void reply_quorum(const struct redis *r, struct resp_writer *w) {
	char text[128];
	snprintf(text, sizeof text, "OK %u usable Sentinels. Quorum and failover authorization can "
		"be reached", (unsigned)r->node->masters(r->node->ctx));
	resp_status(w, text);
}

static void reply_no_quorum(const struct redis *r, struct resp_writer *w) {
	(void)r;
	resp_error(w, "NOQUORUM", slice_str("this node does not reach a quorum of the masters"));
}

/* ---- the command ---- */

/* Asks a quorum for a key that nobody has. */
static enum dialect_step sentinel_probe(const struct redis_call *call,
	void (*reply)(const struct redis *r, struct resp_writer *w),
	void (*failed)(const struct redis *r, struct resp_writer *w)) {
	const struct redis_plan plan = { .reply = reply, .failed = failed };
	const struct slice key = slice_str(CLIENT_PROBE_KEY), none = slice_of(NULL, 0);
	struct redis *r = call->redis;
	const unsigned database = r->database;
	enum dialect_step step;
	r->database = 0;
	struct task *task = redis_task_new(call, &plan, &key, 1, none, none, &step);
	r->database = database;
	if (!task) {
		return step;
	}
	task_begin(&r->tasks, task);
	return DIALECT_ASK;
}

static const struct sentinel_question {
	const char *word;
	/* The number of arguments. */
	size_t count;
	/* NULL: the answer is an empty list. */
	void (*reply)(const struct redis *r, struct resp_writer *w);
	void (*failed)(const struct redis *r, struct resp_writer *w);
} questions[] = {
	{ "GET-MASTER-ADDR-BY-NAME", 3, reply_address, reply_no_address },
	{ "MASTERS", 2, reply_masters, reply_masters_down },
	{ "MASTER", 3, reply_master, reply_master_down },
	{ "CKQUORUM", 3, reply_quorum, reply_no_quorum },
	{ "SENTINELS", 3, NULL, NULL },
	{ "REPLICAS", 3, NULL, NULL },
	{ "SLAVES", 3, NULL, NULL },
};

enum dialect_step redis_sentinel(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	const struct sentinel_question *asked = NULL;
	for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
		if (resp_word_is(c->arguments[1], questions[i].word)
			&& c->count == questions[i].count) {
			asked = &questions[i];
		}
	}
	if (!asked) {
		resp_error(call->w, "ERR", slice_str("Pawl knows SENTINEL "
			"get-master-addr-by-name, masters, master, sentinels, replicas, slaves and "
			"ckquorum"));
		return DIALECT_DONE;
	}
	const char *name = call->redis->server->settings.master_name;
	if (c->count == 3 && !slice_equal(c->arguments[2], slice_str(name))) {
		char why[160];
		snprintf(why, sizeof why, "No such master with that name: it is %s here ([redis] "
			"master_name)", name);
		resp_error(call->w, "ERR", slice_str(why));
		return DIALECT_DONE;
	}
	if (!asked->reply) {
		resp_array(call->w, 0);
		return DIALECT_DONE;
	}
	return sentinel_probe(call, asked->reply, asked->failed);
}
