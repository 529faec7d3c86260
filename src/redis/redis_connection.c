/* redis_connection.c: the commands that are about the connection and the server, which no node of
 * Pawl is asked for. */
#include "redis_impl.h"

#include <stdio.h>

/* How Redis numbers its versions; clients decide by it what they may send. */
#define REDIS_VERSION "7.2.0"

static const struct slice *arguments(const struct redis_call *call) {
	return call->command->arguments;
}

static enum dialect_step say_ok(const struct redis_call *call) {
	resp_status(call->w, "OK");
	return DIALECT_DONE;
}

static enum dialect_step say_error(const struct redis_call *call, const char *code,
	const char *why) {
	resp_error(call->w, code, slice_str(why));
	return DIALECT_DONE;
}

enum dialect_step redis_ping(const struct redis_call *call) {
	if (call->command->count > 1) {
		resp_bulk(call->w, arguments(call)[1]);
	} else {
		resp_status(call->w, "PONG");
	}
	return DIALECT_DONE;
}

enum dialect_step redis_echo(const struct redis_call *call) {
	resp_bulk(call->w, arguments(call)[1]);
	return DIALECT_DONE;
}

enum dialect_step redis_quit(const struct redis_call *call) {
	say_ok(call);
	return DIALECT_CLOSE;
}

enum dialect_step redis_reset(const struct redis_call *call) {
	struct redis *r = call->redis;
	r->version = call->w->version = 2;
	r->database = 0;
	r->name[0] = r->library[0] = '\0';
	r->multi = false;
	resp_status(call->w, "RESET");
	return DIALECT_DONE;
}

enum dialect_step redis_time(const struct redis_call *call) {
	const int64_t now = call->redis->node->unix_ms(call->redis->node->ctx);
	char text[24];
	resp_array(call->w, 2);
	snprintf(text, sizeof text, "%lld", (long long)(now / 1000));
	resp_text(call->w, text);
	snprintf(text, sizeof text, "%lld", (long long)(now % 1000 * 1000));
	resp_text(call->w, text);
	return DIALECT_DONE;
}

/* ---- transactions ---- */

/* A client may send MULTI, its commands and EXEC at once. None of the commands must have an effect,
 * because the client counts all of them as failed. */
enum dialect_step redis_multi(const struct redis_call *call) {
	call->redis->multi = true;
	return redis_unable(call, "Pawl has no transactions (MULTI): send each command by itself, "
		"or as a pipeline without a transaction");
}

enum dialect_step redis_exec(const struct redis_call *call) {
	if (!call->redis->multi) {
		return redis_wrong(call, "EXEC without MULTI");
	}
	call->redis->multi = false;
	return say_error(call, "EXECABORT", "Transaction discarded because of previous errors.");
}

enum dialect_step redis_discard(const struct redis_call *call) {
	if (!call->redis->multi) {
		return redis_wrong(call, "DISCARD without MULTI");
	}
	call->redis->multi = false;
	return say_ok(call);
}

/* ---- who the client is ---- */

/* A node knows its clients by their certificates or their accounts, and has no passwords. */
static enum dialect_step no_password(const struct redis_call *call) {
	return say_error(call, "ERR", "AUTH <password> called without any password configured: "
		"Pawl knows a client by its certificate, or by its account on this machine; leave "
		"the password out");
}

enum dialect_step redis_auth(const struct redis_call *call) {
	return no_password(call);
}

/* Returns false if the name is not one that others can be shown. */
static bool name_set(char to[REDIS_NAME_MAX + 1], struct slice from) {
	for (size_t i = 0; i < from.size; i++) {
		if (from.data[i] < '!' || from.data[i] > '~') {
			return false;
		}
	}
	size_t size = from.size < REDIS_NAME_MAX ? from.size : REDIS_NAME_MAX;
	*slice_put((uint8_t *)to, slice_of(from.data, size)) = '\0';
	return true;
}

static enum dialect_step set_name(const struct redis_call *call, char *to, struct slice from) {
	return name_set(to, from) ? say_ok(call)
		: say_error(call, "ERR",
			"names cannot contain spaces, newlines or special characters.");
}

static void hello_say(const struct redis_call *call) {
	struct resp_writer *w = call->w;
	resp_map(w, 7);
	resp_text(w, "server");
	resp_text(w, "redis");
	resp_text(w, "version");
	resp_text(w, REDIS_VERSION);
	resp_text(w, "proto");
	resp_number(w, w->version);
	resp_text(w, "id");
	resp_number(w, (int64_t)call->redis->number);
	resp_text(w, "mode");
	resp_text(w, "standalone");
	resp_text(w, "role");
	resp_text(w, "master");
	resp_text(w, "modules");
	resp_array(w, 0);
}

/* HELLO [2|3 [AUTH user password] [SETNAME name]] */
enum dialect_step redis_hello(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	int64_t version = call->redis->version;
	if (c->count > 1 && (!resp_word_number(c->arguments[1], &version) || version < 2
			|| version > 3)) {
		return say_error(call, "NOPROTO", "unsupported protocol version");
	}
	for (size_t i = 2; i < c->count; i++) {
		if (resp_word_is(c->arguments[i], "AUTH")) {
			return no_password(call);
		}
		if (!resp_word_is(c->arguments[i], "SETNAME") || ++i == c->count
			|| !name_set(call->redis->name, c->arguments[i])) {
			return say_error(call, "ERR", "Syntax error in HELLO");
		}
	}
	call->redis->version = call->w->version = (int)version;
	hello_say(call);
	return DIALECT_DONE;
}

enum dialect_step redis_select(const struct redis_call *call) {
	int64_t number;
	if (!resp_word_number(arguments(call)[1], &number)) {
		return say_error(call, "ERR", "invalid DB index");
	}
	if (number < 0 || number >= REDIS_DATABASES) {
		return say_error(call, "ERR", "DB index is out of range");
	}
	call->redis->database = (unsigned)number;
	return say_ok(call);
}

/* ---- CLIENT ---- */

static enum dialect_step client_info(const struct redis_call *call) {
	const struct redis *r = call->redis;
	char text[1024];
	int size = snprintf(text, sizeof text,
		"id=%llu addr=%s name=%s db=%u lib-name=%s resp=%d\n",
		(unsigned long long)r->number, r->from, r->name, r->database, r->library,
		r->version);
	resp_bulk(call->w, slice_of(text, (size_t)size));
	return DIALECT_DONE;
}

enum dialect_step redis_client(const struct redis_call *call) {
	const struct resp_command *c = call->command;
	const struct slice what = c->arguments[1];
	struct redis *r = call->redis;
	if (resp_word_is(what, "ID")) {
		resp_number(call->w, (int64_t)r->number);
		return DIALECT_DONE;
	}
	if (resp_word_is(what, "GETNAME")) {
		if (r->name[0]) {
			resp_text(call->w, r->name);
		} else {
			resp_nil(call->w);
		}
		return DIALECT_DONE;
	}
	if (resp_word_is(what, "SETNAME") && c->count == 3) {
		return set_name(call, r->name, c->arguments[2]);
	}
	if (resp_word_is(what, "SETINFO") && c->count == 4) {
		return resp_word_is(c->arguments[2], "LIB-NAME")
			? set_name(call, r->library, c->arguments[3]) : say_ok(call);
	}
	if (resp_word_is(what, "INFO")) {
		return client_info(call);
	}
	if (resp_word_is(what, "NO-EVICT") || resp_word_is(what, "NO-TOUCH")) {
		return say_ok(call);
	}
	return say_error(call, "ERR", "Pawl knows CLIENT ID, GETNAME, SETNAME, SETINFO and INFO");
}

/* ---- the server ---- */

enum dialect_step redis_role(const struct redis_call *call) {
	resp_array(call->w, 3);
	resp_text(call->w, "master");
	resp_number(call->w, 0);
	resp_array(call->w, 0);
	return DIALECT_DONE;
}

/* Some clients ask for the version; Dapr refuses a server that has replicas. */
enum dialect_step redis_info(const struct redis_call *call) {
	resp_text(call->w,
		"# Server\r\nredis_version:" REDIS_VERSION "\r\nredis_mode:standalone\r\n"
		"arch_bits:64\r\npawl_version:" PAWL_VERSION "\r\n"
		"# Persistence\r\nloading:0\r\n"
		"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
		"# Cluster\r\ncluster_enabled:0\r\n");
	return DIALECT_DONE;
}

/* COMMAND, CONFIG GET: there is nothing to tell. */
enum dialect_step redis_command_list(const struct redis_call *call) {
	if (call->command->count > 1 && resp_word_is(arguments(call)[1], "COUNT")) {
		resp_number(call->w, 0);
	} else if (call->command->count > 1 && resp_word_is(arguments(call)[1], "DOCS")) {
		resp_map(call->w, 0);
	} else {
		resp_array(call->w, 0);
	}
	return DIALECT_DONE;
}

enum dialect_step redis_config(const struct redis_call *call) {
	if (!resp_word_is(arguments(call)[1], "GET")) {
		return say_error(call, "NOPERM",
			"the configuration of a node is in a file (see pawld --help)");
	}
	resp_map(call->w, 0);
	return DIALECT_DONE;
}

/* Whatever was answered as held is held by a quorum; so all other masters count as replicas that
 * have it. */
enum dialect_step redis_wait(const struct redis_call *call) {
	const uint32_t masters = call->redis->node->masters(call->redis->node->ctx);
	resp_number(call->w, masters > 0 ? (int64_t)masters - 1 : 0);
	return DIALECT_DONE;
}

/* ---- channels, on which nobody publishes ---- */

static enum dialect_step channels(const struct redis_call *call, bool leaves) {
	const struct resp_command *c = call->command;
	const size_t count = c->count > 1 ? c->count - 1 : 1;
	char word[32];
	size_t size = c->arguments[0].size < sizeof word ? c->arguments[0].size : sizeof word;
	for (size_t i = 0; i < size; i++) {
		const uint8_t byte = c->arguments[0].data[i];
		word[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
	}
	for (size_t i = 0; i < count; i++) {
		resp_push(call->w, 3);
		resp_bulk(call->w, slice_of(word, size));
		if (c->count > 1) {
			resp_bulk(call->w, c->arguments[i + 1]);
		} else {
			resp_nil(call->w);
		}
		resp_number(call->w, leaves ? 0 : (int64_t)i + 1);
	}
	return DIALECT_DONE;
}

enum dialect_step redis_subscribe(const struct redis_call *call) {
	return channels(call, false);
}

enum dialect_step redis_unsubscribe(const struct redis_call *call) {
	return channels(call, true);
}
