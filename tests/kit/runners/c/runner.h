/* runner.h: the kit's runner for libpawl (tests/kit/README.md): a program that does what it is told
 * on its standard input with the public functions of the library, and prints what it sees.
 *
 *   main.c        reads the commands, and ends the program
 *   lines.c       writes answers and events
 *   params.c      reads the parameters of a command
 *   registry.c    what the commands name: clients, locks, watches; and the commands that run
 *   locks.c, elections.c, reads.c    the commands themselves
 *
 * Everything happens in one loop, so that commands run side by side.
 */
#ifndef PAWL_KIT_RUNNER_H
#define PAWL_KIT_RUNNER_H

#include <event2/event.h>
#include <jansson.h>
#include <pawl/election.h>
#include <pawl/fence.h>
#include <pawl/pawl.h>
#include <pawl/watch.h>

#include "list.h"

#define LEVEL 4
/* How many keys `locks` takes; libpawl takes no more. */
#define KEYS_MAX PAWL_KEYS_MAX

struct runner {
	struct event_base *base;
	/* Of struct client, struct held, struct watching and struct command. */
	struct list clients, helds, watchings, commands;
};

struct client {
	struct list link;
	struct runner *runner;
	char *name;
	struct pawl *pawl;
};

/* What a command calls a lock: one lock, several that were acquired together, or a leadership. */
struct held {
	struct list link;
	struct client *client;
	char *name;
	/* The locks; `count` is 0 once they were released or forgotten. */
	struct pawl_lock *locks[KEYS_MAX];
	size_t count;
	/* A leadership has this instead of locks. */
	struct pawl_election *election;
	/* Why it was lost; 0: it was not. The loss has been told. */
	int cause;
	/* The program itself has given it up: there is no loss to tell. */
	bool given_up;
	/* Tell `asked` events. */
	bool tells_asked;
	/* The command that waits for it; NULL once it is held. */
	struct command *wanted;
};

/* What a command calls a watch: a watch, or an observer of an election. */
struct watching {
	struct list link;
	struct client *client;
	char *name;
	struct pawl_watch *watch;
	struct pawl_election *observer;
};

/* A command that is not answered yet. */
struct command {
	struct list link;
	struct runner *runner;
	json_int_t id;
	/* Its parameters. */
	json_t *params;
	/* The first parameter that could not be used; NULL if there was none. */
	const char *bad;
	/* The request under way, if there is one. */
	struct pawl_call *call;
	/* What it works on, if it names any of these. */
	struct client *client;
	struct held *held;
	/* Goes off when an election has waited for long enough. */
	struct event *timer;
};

/* ---- lines.c: each line begins with the time at which it is written ---- */

/* CLOCK_BOOTTIME in microseconds. */
json_int_t line_now(void);
/* Answer the command, and free it. They take over `take_ok`. */
void line_ok(struct command *command, json_t *take_ok);
void line_ok_at(struct command *command, json_int_t at, json_t *take_ok);
/* An error without a result, or one that a node has answered; the result is borrowed. */
void line_error(struct command *command, int error, const char *message);
void line_result(struct command *command, const struct pawl_result *result);
/* Answers with the error of the result, or with `take_ok`. */
void line_outcome(struct command *command, struct pawl_result *take_result, json_t *take_ok);
/* An error that is not one of the library. */
void line_refused(struct command *command, const char *code, const char *message);
void line_event(const char *event, json_t *take_fields);
/* Bytes as the kit writes them: a string, or {"hex": ...} where they are not UTF-8. */
json_t *line_bytes(struct pawl_bytes bytes);
json_t *line_token(uint64_t token);
/* The code of an error in lines. */
const char *line_code(int error);

/* ---- params.c: a parameter that is missing gives the default ---- */

bool param_has(const struct command *command, const char *name);
/* Each notes the parameter in command->bad if it is of another kind. The bytes live as long as the
 * command. */
struct pawl_bytes param_bytes(struct command *command, const char *name);
const char *param_text(struct command *command, const char *name);
uint32_t param_number(struct command *command, const char *name, uint32_t otherwise);
int32_t param_signed(struct command *command, const char *name);
uint64_t param_token(struct command *command, const char *name);
bool param_flag(struct command *command, const char *name);
/* A party in 32 hex digits; all zero: none is given. */
struct pawl_id param_party(struct command *command, const char *name);
/* A wait: null waits without an end. */
uint32_t param_wait(struct command *command, const char *name, uint32_t otherwise);
/* Reads bytes of a list; NULL data: they are no bytes. */
struct pawl_bytes param_item(json_t *item);

/* ---- registry.c ---- */

/* They return NULL, and note the parameter in command->bad, if nothing has this name. */
struct client *client_named(struct command *command);
struct held *held_named(struct command *command);
struct watching *watching_named(struct command *command);
/* A new item with the name in the parameter `as`, which takes the place of an earlier one of this
 * name; or NULL, with command->bad. */
struct held *held_new(struct command *command, struct client *client);
struct watching *watching_new(struct command *command, struct client *client);
void held_free(struct held *take_held);
void watching_free(struct watching *take_watching);
/* Closes the client and all that it has; its commands end with the code `closed`. */
void client_close(struct client *take_client);
void runner_close(struct runner *runner);

/* ---- the commands ---- */

typedef void command_fn(struct command *command);
command_fn do_lock, do_locks, do_extend, do_shorten, do_token, do_valid, do_check, do_release,
	do_forget, do_downgrade, do_update, do_transfer, do_gate;
command_fn do_campaign, do_proclaim, do_leader, do_observe;
command_fn do_get, do_waiters, do_explain, do_ask_release, do_watch, do_stop, do_fence;

/* Ends an election that is not decided yet. */
void campaign_end(struct held *held);

/* Notes what pawl_start and its like have returned: the command is answered if it failed. */
void command_started(struct command *command, int error);

#endif
