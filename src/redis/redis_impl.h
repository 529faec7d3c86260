/* redis_impl.h: what the files of the dialect share. Nobody else includes this. */
#ifndef PAWL_REDIS_IMPL_H
#define PAWL_REDIS_IMPL_H

#include "client.h"
#include "redis.h"
#include "resp.h"
#include "task.h"

/* The longest name that CLIENT SETNAME takes, and the longest name of a library, in bytes. */
#define REDIS_NAME_MAX 64
/* How many databases SELECT knows. Those but the first have a prefix before their keys. */
#define REDIS_DATABASES 16
#define REDIS_PREFIX_MAX 5

/* What a command shows of each key. */
enum redis_show {
	REDIS_SHOW_NOTHING,
	REDIS_SHOW_VALUE,
	REDIS_SHOW_PTTL,
	REDIS_SHOW_TTL,
	REDIS_SHOW_END_MS,
	REDIS_SHOW_END,
	REDIS_SHOW_TYPE,
	REDIS_SHOW_LENGTH,
	REDIS_SHOW_TOKEN,
	/* The value, and what is left of the lease. */
	REDIS_SHOW_BOTH
};

struct redis;

/* What a command does (task.h), and what it replies. */
struct redis_plan {
	struct task_plan act;
	/* What is shown of each key; act.shows follows from it. */
	enum redis_show show;
	/* Writes the reply when everything is done; NULL: what was shown is the reply. */
	void (*reply)(const struct redis *r, struct resp_writer *w);
	/* Goes on when everything is done, instead of a reply; or NULL. The task is gone. */
	enum dialect_step (*then)(struct redis *r, struct resp_writer *w);
	/* Writes the reply when the task fails; NULL: the error is the reply. */
	void (*failed)(const struct redis *r, struct resp_writer *w);
};

enum redis_walk_kind {
	REDIS_WALKS_NOT,
	REDIS_WALKS_KEYS,
	REDIS_WALKS_SIZE,
	REDIS_WALKS_DELETES
};

/* A command that looks at all keys (redis_walk.c). */
struct redis_walk {
	enum redis_walk_kind kind;
	/* The keys of all databases are meant. */
	bool all;
	/* How many lists it has asked for, and how many keys it has found. */
	uint32_t lists;
	int64_t count;
	/* The pattern of KEYS, the key behind which the next list begins, and the keys so far. */
	struct buffer pattern, after, shown;
	/* The prefix of the database, while a list is asked for. */
	char prefix[REDIS_PREFIX_MAX + 1];
};

/* A connection. */
struct redis {
	struct allocator alloc;
	const struct dialect_node *node;
	/* Borrowed. */
	struct redis_server *server;
	uint64_t number;
	/* 2 or 3: the version of the protocol. */
	int version;
	unsigned database;
	/* MULTI was refused, and so is each command until the client ends its transaction. */
	bool multi;
	/* What CLIENT SETNAME and CLIENT SETINFO said; empty if they did not. */
	char name[REDIS_NAME_MAX + 1], library[REDIS_NAME_MAX + 1];
	/* Where the connection comes from; borrowed. */
	const char *from;
	/* The command under way, what it does, and what the script means if it runs one. */
	struct task_runner tasks;
	struct redis_plan plan;
	struct script_meaning meaning;
	struct redis_walk walk;
	struct client_decoder decoder;
};

/* One command while it is served. */
struct redis_call {
	struct redis *redis;
	const struct resp_command *command;
	struct resp_writer *w;
	/* The size of w->out before the reply. */
	size_t began;
};
typedef enum dialect_step redis_run(const struct redis_call *call);

/* Refuses a command that Redis would refuse, too; and one that Redis would serve and Pawl does
 * not, which must not look like "held" (redis_reply.c). The message is copied. */
enum dialect_step redis_wrong(const struct redis_call *call, const char *why);
enum dialect_step redis_unable(const struct redis_call *call, const char *why);

/* ---- redis_task.c ---- */

/* Writes what stands in front of the keys of the present database into `text`, and returns it. */
struct slice redis_prefix(const struct redis *r, char text[REDIS_PREFIX_MAX + 1]);
/* Makes a task for these keys of the present database, in the order of the command. Returns NULL
 * after an error, which was answered; *out_step is what to return then. */
struct task *redis_task_new(const struct redis_call *call, const struct redis_plan *plan,
	const struct slice *keys, size_t count, struct slice value, struct slice fresh,
	enum dialect_step *out_step);
/* Goes on after the answer. */
enum dialect_step redis_task_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w);
/* With [redis] redlock, lets a take find that the same value has taken the keys through another
 * node. The value of the task must be that which is taken. */
void redis_redlock(const struct redis *r, struct redis_plan *plan);
/* Returns whether locks without an end are kept. If not, the command was refused. */
bool redis_keeps(const struct redis_call *call);
/* Reads a length that a command names, in milliseconds or, with `seconds`, in seconds, and checks
 * it against the longest lease. Returns false if it was refused. */
bool redis_length(const struct redis_call *call, struct slice word, bool seconds, span_ns *out);

/* ---- redis_reply.c ---- */

/* Writes the error of an answer in a form in which no client takes it for "held". */
void redis_refuse(struct resp_writer *w, const struct client_response *response);
/* Shows what the plan shows of a key (task_show). */
task_show redis_show;
/* The replies of plans. */
void redis_reply_done(const struct redis *r, struct resp_writer *w);
void redis_reply_mine(const struct redis *r, struct resp_writer *w);
void redis_reply_ok(const struct redis *r, struct resp_writer *w);
void redis_reply_set(const struct redis *r, struct resp_writer *w);
void redis_reply_taken(const struct redis *r, struct resp_writer *w);

/* ---- redis_walk.c ---- */

/* Returns whether the text fits the pattern, which may have the signs * ? [ ] ^ - and \\, as
 * those of Redis. At most each byte of one is compared with each of the other. */
bool redis_glob(struct slice pattern, struct slice text);
/* Goes on after a list of keys. */
enum dialect_step redis_walk_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w);
/* Frees what the walk under way has, if there is one. */
void redis_walk_done(struct redis *r);

/* ---- the commands ---- */

redis_run redis_ping, redis_echo, redis_quit, redis_reset, redis_time, redis_hello, redis_auth,
	redis_select, redis_client, redis_role, redis_info, redis_command_list, redis_config,
	redis_wait, redis_subscribe, redis_unsubscribe, redis_multi, redis_exec, redis_discard;
redis_run redis_set, redis_setnx, redis_setex, redis_psetex, redis_get, redis_exists, redis_ttl,
	redis_pttl, redis_expiretime, redis_pexpiretime, redis_type, redis_strlen, redis_mget,
	redis_expire, redis_persist, redis_pexpire, redis_del, redis_delex, redis_token,
	redis_valid, redis_take_waiting;
redis_run redis_eval, redis_evalsha, redis_script;
redis_run redis_keys, redis_dbsize, redis_flush;
redis_run redis_sentinel;

#endif
