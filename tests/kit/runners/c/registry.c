/* registry.c: what the commands have made and call by names, and how it ends. */
#include <stdlib.h>
#include <string.h>

#include "runner.h"

static void note_bad(struct command *command, const char *name) {
	command->bad = command->bad ? command->bad : name;
}

struct client *client_named(struct command *command) {
	const char *name = param_text(command, "client");
	struct list *clients = &command->runner->clients;
	for (struct list *at = list_first(clients); name && at; at = list_after(clients, at)) {
		struct client *client = CONTAINER_OF(at, struct client, link);
		if (strcmp(client->name, name) == 0) {
			command->client = client;
			return client;
		}
	}
	note_bad(command, "client");
	return NULL;
}

static struct held *held_find(struct runner *runner, const char *name) {
	for (struct list *at = list_first(&runner->helds); at;
		at = list_after(&runner->helds, at)) {
		struct held *held = CONTAINER_OF(at, struct held, link);
		if (strcmp(held->name, name) == 0) {
			return held;
		}
	}
	return NULL;
}

struct held *held_named(struct command *command) {
	const char *name = param_text(command, "lock");
	struct held *held = name ? held_find(command->runner, name) : NULL;
	if (!held || held->wanted) {
		note_bad(command, "lock");
		return NULL;
	}
	command->held = held;
	command->client = held->client;
	return held;
}

static struct watching *watching_find(struct runner *runner, const char *name) {
	for (struct list *at = list_first(&runner->watchings); at;
		at = list_after(&runner->watchings, at)) {
		struct watching *watching = CONTAINER_OF(at, struct watching, link);
		if (strcmp(watching->name, name) == 0) {
			return watching;
		}
	}
	return NULL;
}

struct watching *watching_named(struct command *command) {
	const char *name = param_text(command, "watch");
	struct watching *watching = name ? watching_find(command->runner, name) : NULL;
	if (!watching) {
		note_bad(command, "watch");
	}
	return watching;
}

struct held *held_new(struct command *command, struct client *client) {
	const char *name = param_text(command, "as");
	struct held *old = name ? held_find(command->runner, name) : NULL;
	if (!name || !client || (old && old->wanted)) {
		note_bad(command, "as");
		return NULL;
	}
	held_free(old);
	struct held *held = calloc(1, sizeof(*held));
	if (!held || !(held->name = strdup(name))) {
		abort();
	}
	held->client = client;
	held->wanted = command;
	command->held = held;
	list_append(&command->runner->helds, &held->link);
	return held;
}

struct watching *watching_new(struct command *command, struct client *client) {
	const char *name = param_text(command, "as");
	if (!name || !client) {
		note_bad(command, "as");
		return NULL;
	}
	watching_free(watching_find(command->runner, name));
	struct watching *watching = calloc(1, sizeof(*watching));
	if (!watching || !(watching->name = strdup(name))) {
		abort();
	}
	watching->client = client;
	list_append(&command->runner->watchings, &watching->link);
	return watching;
}

void held_free(struct held *take_held) {
	if (!take_held) {
		return;
	}
	/* Commands that still work on it are answered by the library without it. */
	struct list *commands = &take_held->client->runner->commands;
	for (struct list *at = list_first(commands); at; at = list_after(commands, at)) {
		struct command *command = CONTAINER_OF(at, struct command, link);
		command->held = command->held == take_held ? NULL : command->held;
	}
	for (size_t i = 0; i < take_held->count; i++) {
		pawl_lock_free(take_held->locks[i]);
	}
	pawl_election_free(take_held->election);
	list_remove(&take_held->link);
	free(take_held->name);
	free(take_held);
}

void watching_free(struct watching *take_watching) {
	if (take_watching) {
		pawl_watch_free(take_watching->watch);
		pawl_election_free(take_watching->observer);
		list_remove(&take_watching->link);
		free(take_watching->name);
		free(take_watching);
	}
}

/* Ends the commands of the client that the library does not answer, because they wait for something
 * else than a request. */
static void commands_end(struct client *client) {
	struct list *commands = &client->runner->commands, *next;
	for (struct list *at = list_first(commands); at; at = next) {
		struct command *command = CONTAINER_OF(at, struct command, link);
		next = list_after(commands, at);
		if (command->client == client) {
			line_error(command, PAWL_ECANCELED, NULL);
		}
	}
}

void client_close(struct client *take_client) {
	struct runner *runner = take_client->runner;
	struct list *next;
	/* The requests under way end here, and are answered. */
	pawl_free(take_client->pawl);
	for (struct list *at = list_first(&runner->helds); at; at = next) {
		struct held *held = CONTAINER_OF(at, struct held, link);
		next = list_after(&runner->helds, at);
		if (held->client == take_client) {
			/* The library has freed these with the client. */
			held->count = 0;
			held->election = NULL;
			held_free(held);
		}
	}
	for (struct list *at = list_first(&runner->watchings); at; at = next) {
		struct watching *watching = CONTAINER_OF(at, struct watching, link);
		next = list_after(&runner->watchings, at);
		if (watching->client == take_client) {
			watching->watch = NULL;
			watching->observer = NULL;
			watching_free(watching);
		}
	}
	commands_end(take_client);
	list_remove(&take_client->link);
	free(take_client->name);
	free(take_client);
}

void runner_close(struct runner *runner) {
	struct list *at;
	while ((at = list_first(&runner->clients)) != NULL) {
		client_close(CONTAINER_OF(at, struct client, link));
	}
}
