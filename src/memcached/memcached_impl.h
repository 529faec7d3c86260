/* memcached_impl.h: what the files of the dialect share. Nobody else includes this. */
#ifndef PAWL_MEMCACHED_IMPL_H
#define PAWL_MEMCACHED_IMPL_H

#include "client.h"
#include "mctext.h"
#include "memcached.h"
#include "task.h"

/* The longest key, in bytes, as with memcached. */
#define MEMCACHED_KEY_MAX 250
/* The longest opaque of a meta command, in bytes, and how many flags its reply may have. */
#define MEMCACHED_OPAQUE_MAX 32
#define MEMCACHED_META_MAX 16
/* What follows in the label of a lock if its client flags are not 0. */
#define MEMCACHED_LABEL "memcached"
#define MEMCACHED_FLAGS " flags="

/* What a command shows of each key. */
enum memcached_show {
	MEMCACHED_SHOW_NOTHING,
	/* Nothing; but the client flags of what is held must be those of the command, because they
	 * cannot be changed. */
	MEMCACHED_SHOW_FLAGS,
	MEMCACHED_SHOW_VALUE,
	/* The value with its unique (task_unique). */
	MEMCACHED_SHOW_UNIQUE,
	/* What the flags of a meta command ask for. */
	MEMCACHED_SHOW_META,
	/* The line of the command me. */
	MEMCACHED_SHOW_DEBUG
};

/* What a command says in the end, unless it shows keys. */
struct memcached_words {
	/* An act had its effect; the key is held, and nothing was done; it is held, but not the
	 * same in what is compared, or another client took it meanwhile; and it is free. */
	const char *done, *mine, *other, *gone;
};

/* What a command does (task.h), and what it replies. */
struct memcached_plan {
	struct task_plan act;
	enum memcached_show show;
	struct memcached_words words;
};

/* What a meta command wants in its reply. */
struct memcached_meta {
	/* The command is a meta command. */
	bool on;
	/* The flags of the reply in their order, as letters. */
	char letters[MEMCACHED_META_MAX + 1];
	char opaque[MEMCACHED_OPAQUE_MAX + 1];
	/* The value is shown. */
	bool value;
	/* Nothing is said in the case that the client expects. */
	bool quiet;
};

/* A connection. */
struct memcached {
	struct allocator alloc;
	/* Borrowed. */
	const struct dialect_node *node;
	const struct memcached_server *server;
	struct task_runner tasks;
	struct client_decoder decoder;

	/* The command under way. */
	struct memcached_plan plan;
	struct memcached_meta meta;
	/* Nothing is replied. */
	bool noreply;
	/* The client flags that the command sets. */
	uint32_t flags;
	/* The command names no end. */
	bool without_end;
	/* Why a key that was read is not shown; NULL: it does not fit. */
	const char *refused;
	/* The key that was shown last: where it begins in what is shown, and how many acts had an
	 * effect before. */
	size_t shown_from;
	uint32_t done_before;
	/* flush_all is under way: how many lists it has asked for; otherwise 0. */
	uint32_t flush_lists;
	/* The label of what is taken. */
	char label[sizeof MEMCACHED_LABEL MEMCACHED_FLAGS + 10];

	/* Where the connection comes from; borrowed. */
	const char *from;
};

/* One command while it is served. */
struct memcached_call {
	struct memcached *memcached;
	const struct mctext_command *command;
	struct mctext_writer *w;
};
typedef enum dialect_step memcached_run(const struct memcached_call *call);

/* What a command works with. Whatever is not set is empty. */
struct memcached_work {
	const struct slice *keys;
	size_t count;
	/* The value that is compared, and the one that is set. */
	struct slice value, fresh;
	/* The unique that is compared. */
	uint64_t unique;
	/* In nanoseconds. */
	span_ns length;
	/* The key is to be gone at once, by a time that is over; or it is to have no end. Then
	 * `length` is 0. */
	bool over, without_end;
};

/* ---- memcached_task.c ---- */

/* Reads the time of a command into `length`, `over` or `without_end`. Returns false if it was
 * refused. */
bool memcached_time(const struct memcached_call *call, struct slice word,
	struct memcached_work *work);
/* Begins with a task. Its keys are checked. */
enum dialect_step memcached_begin(const struct memcached_call *call,
	const struct memcached_plan *plan, const struct memcached_work *work);
/* Goes on after the answer. */
enum dialect_step memcached_go_on(struct memcached *m, const struct client_response *response,
	struct mctext_writer *w);
/* Says that the command is wrong. */
enum dialect_step memcached_wrong(const struct memcached_call *call, const char *why);
/* Says what the command is refused for. */
enum dialect_step memcached_refused(const struct memcached_call *call, const char *why);

/* ---- memcached_flush.c ---- */

/* Goes on with flush_all after a list, and after the locks of a list have been ended. */
enum dialect_step memcached_flush_listed(struct memcached *m,
	const struct client_response *response, struct mctext_writer *w);
enum dialect_step memcached_flush_ended(struct memcached *m);

/* ---- memcached_reply.c ---- */

/* Writes the error of an answer. */
void memcached_refuse(struct mctext_writer *w, const struct client_response *response);
/* Shows what the plan shows of a key (task_show). */
task_show memcached_show;
/* Writes the reply of a task that is done. */
void memcached_reply(struct memcached *m, struct mctext_writer *w);

/* ---- the commands ---- */

extern const struct memcached_plan memcached_add_plan, memcached_set_plan, memcached_replace_plan,
	memcached_cas_plan;
/* Returns what the plan is by the settings of the node, which say whether set and replace overwrite
 * a lock. */
struct memcached_plan memcached_plan_of(const struct memcached *m,
	const struct memcached_plan *plan);
memcached_run memcached_get, memcached_gets, memcached_gat, memcached_gats, memcached_add,
	memcached_set, memcached_replace, memcached_cas, memcached_touch, memcached_delete,
	memcached_no_number, memcached_no_piece, memcached_flush_all, memcached_stats,
	memcached_verbosity, memcached_version, memcached_quit;
memcached_run memcached_mg, memcached_ms, memcached_md, memcached_ma, memcached_me, memcached_mn;

#endif
