/* redis_impl.h: what the files of the dialect share. Nobody else includes this. */
#ifndef PAWL_REDIS_IMPL_H
#define PAWL_REDIS_IMPL_H

#include "client.h"
#include "redis.h"
#include "resp.h"

/* How many keys one command or script may have. */
#define REDIS_KEYS_MAX CORE_LOCKS_MAX
/* The longest name that CLIENT SETNAME takes, and the longest name of a library, in bytes. */
#define REDIS_NAME_MAX 64
/* How many databases SELECT knows. Those but the first have a prefix before their keys. */
#define REDIS_DATABASES 16
#define REDIS_PREFIX_MAX 5

/* What is done with a key. */
enum redis_act {
	REDIS_NOTHING,
	/* The lease is set to the length that the command names. */
	REDIS_EXTEND,
	/* The length that the command names is added to what is left of the lease. */
	REDIS_ADD,
	REDIS_RELEASE,
	REDIS_TAKE,
	/* The lease is set as for REDIS_EXTEND, and then the value. */
	REDIS_REPLACE,
	/* The command is refused, because the key is held. */
	REDIS_REFUSE
};

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

struct redis_task;

/* What a command does, key by key: it reads the key from a quorum, compares the value if it names
 * one, and then acts on the lock_id that it has read. If the holder has changed meanwhile, there is
 * another lock_id, and nothing happens. */
struct redis_plan {
	/* What is done with a key that is held; only if it has the value of the task, where
	 * `compares` is set. */
	enum redis_act mine;
	/* What is done with a key that is held with another value. */
	enum redis_act other;
	/* What is done with a key that is free. */
	enum redis_act free;
	bool compares;
	/* Nothing is done before all keys have been read, and only if all of them are `mine`. */
	bool together;
	/* The first step is REDIS_TAKE of all keys, without a read. */
	bool takes;
	enum redis_show show;
	/* Writes the reply when everything is done; NULL: what was shown is the reply. */
	void (*reply)(const struct redis_task *task, struct resp_writer *w);
};

/* What a task waits for. */
enum redis_wait { REDIS_READS, REDIS_ACTS, REDIS_SETS_VALUE };

/* A command that takes requests. It owns a copy of everything that the command named. */
struct redis_task {
	struct redis_plan plan;
	struct slice keys[REDIS_KEYS_MAX];
	struct id128 lock_ids[REDIS_KEYS_MAX];
	/* The locks of a request that takes several keys. */
	struct core_lock locks[REDIS_KEYS_MAX];
	uint32_t count;
	/* The key whose turn it is; and with plan.together whether all have been read. */
	uint32_t at;
	bool all_read;
	enum redis_wait wait;
	/* The client is gone, and what it may have taken is released. */
	bool leaves;
	/* The client would count on what was taken for too long, and it is released. */
	bool late;
	/* The act under way, which is not REDIS_NOTHING with REDIS_ACTS and REDIS_SETS_VALUE. */
	enum redis_act act;
	/* The value that is compared, and the one that is set. */
	struct slice value, fresh;
	/* The length that the command names, and how long a take may wait, in nanoseconds. */
	span_ns length, patience;
	/* When a lease was first asked for; zero if none was. How much of the time since then the
	 * request waited for its turn, before the lease began, in nanoseconds. */
	struct instant since;
	span_ns queued;
	/* How many keys were held with the value, held with another one, and free; and how many
	 * acts had an effect. */
	uint32_t mine, others, gone, done;
	/* What a quorum has said of the key that was read last, in nanoseconds: what is left of its
	 * lease as it is shown. */
	span_ns left;
	/* The script that the command runs; NULL if it is none. */
	const struct script_meaning *meaning;
	/* What is shown so far. */
	struct buffer shown;
	/* The size of this struct with the bytes behind it, to which the slices point. */
	size_t bytes;
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
	/* What CLIENT SETNAME and CLIENT SETINFO said; empty if they did not. */
	char name[REDIS_NAME_MAX + 1], library[REDIS_NAME_MAX + 1];
	/* Where the connection comes from; borrowed. */
	const char *from;
	/* The command under way; NULL if there is none. */
	struct redis_task *task;
	/* The request that the task makes. */
	struct client_request request;
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

/* Returns whether the words are the same, whatever their case. `text` is in upper case. */
bool redis_is(struct slice word, const char *text);
/* Reads a whole number. Returns false if the word is none, or too large. */
bool redis_number(struct slice word, int64_t *out);

/* ---- redis_task.c ---- */

/* Makes a task for these keys of the present database, in the order of the command. Returns NULL
 * after an error, which was answered; *out_step is what to return then. */
struct redis_task *redis_task_new(const struct redis_call *call, const struct redis_plan *plan,
	const struct slice *keys, size_t count, struct slice value, struct slice fresh,
	enum dialect_step *out_step);
/* Begins with the task. */
enum dialect_step redis_task_begin(struct redis *r, struct redis_task *task);
/* Goes on after the answer. */
enum dialect_step redis_task_answer(struct redis *r, const struct client_response *response,
	struct resp_writer *w);
/* The client is gone. Returns the next request that gives back what it may have taken without being
 * told, or NULL. */
const struct client_request *redis_task_leave(struct redis *r);
void redis_task_free(struct redis *r);
/* Reads a length that a command names, in milliseconds or, with `seconds`, in seconds, and checks
 * it against the longest lease. Returns false if it was refused. */
bool redis_length(const struct redis_call *call, struct slice word, bool seconds, span_ns *out);

/* ---- redis_reply.c ---- */

/* Writes the error of an answer in a form in which no client takes it for "held". */
void redis_refuse(struct resp_writer *w, const struct client_response *response);
/* Writes what is shown of a key; `entry` is NULL if nobody holds it. */
void redis_show(const struct redis *r, const struct redis_task *task,
	const struct client_entry *entry, struct resp_writer *w);
/* The replies of plans. */
void redis_reply_done(const struct redis_task *task, struct resp_writer *w);
void redis_reply_mine(const struct redis_task *task, struct resp_writer *w);
void redis_reply_ok(const struct redis_task *task, struct resp_writer *w);
void redis_reply_taken(const struct redis_task *task, struct resp_writer *w);

/* ---- the commands ---- */

redis_run redis_ping, redis_echo, redis_quit, redis_reset, redis_time, redis_hello, redis_auth,
	redis_select, redis_client, redis_role, redis_info, redis_command_list, redis_config,
	redis_wait, redis_subscribe, redis_unsubscribe;
redis_run redis_set, redis_setnx, redis_setex, redis_psetex, redis_get, redis_exists, redis_ttl,
	redis_pttl, redis_expiretime, redis_pexpiretime, redis_type, redis_strlen, redis_mget,
	redis_expire, redis_pexpire, redis_del, redis_delex, redis_token, redis_valid,
	redis_take_waiting;
redis_run redis_eval, redis_evalsha, redis_script;

#endif
