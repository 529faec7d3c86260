/* watch.c: the life of a watch: it is sent to a node, lists the present state, goes live, and
 * begins again after a loss. */
#include "watch.h"

#include <string.h>

#include "check.h"
#include "kept_bytes.h"
#include "result.h"

#define PAUSE_FIRST (100 * SPAN_MS)
#define PAUSE_LAST (5 * SPAN_S)
#define PAGE_KEYS 1000

static struct pawl_watch *watch_at(struct list *at) {
	return CONTAINER_OF(at, struct pawl_watch, link);
}

static struct pawl_bytes watch_key(const struct pawl_watch *watch) {
	return (struct pawl_bytes){ watch->key, watch->key_size };
}

/* ---- at the node ---- */

static void watch_forget_number(struct pawl_watch *watch) {
	if (watch->number) {
		map_remove(&watch->client->by_watch, &watch->by_number);
		watch->number = 0;
	}
}

static void forget_result(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	(void)call;
	(void)ctx;
	pawl_result_free(take_result);
}

/* Nobody waits for the answer. If this cannot be sent, the node goes on, and nobody gets what it
 * sends. */
static void end_at_node(struct pawl *client, uint64_t number) {
	if (number && client->state == CLIENT_CORE_READY && !client->dying) {
		struct pawl_request request = { .method = PAWL_UNWATCH, .token = number };
		(void)call_start(client,
			&(struct call_start){ .request = &request, .internal = true, .tied = true,
				.end = forget_result },
			NULL);
	}
}

static void watch_unwatch(struct pawl_watch *watch) {
	end_at_node(watch->client, watch->number);
	watch_forget_number(watch);
}

/* The node watches, and nobody wants to know any more. */
static void on_watched_in_vain(struct pawl_call *call, struct pawl_result *take_result,
	void *client) {
	(void)call;
	if (!take_result->error) {
		end_at_node(client, result_box(take_result)->watch);
	}
	pawl_result_free(take_result);
}

/* Gives up the request that is under way. */
static void watch_give_up(struct pawl_watch *watch) {
	struct pawl_call *call = watch->call;
	watch->call = NULL;
	if (call && call->request->method == PAWL_WATCH && call->last.session) {
		call->end = on_watched_in_vain;
		call->ctx = watch->client;
	} else if (call) {
		call_cancel(call);
	}
}

static struct pawl_watch *find(const struct pawl *client, uint64_t number) {
	struct map_node *node = map_first_number(&client->by_watch, number);
	return node ? CONTAINER_OF(node, struct pawl_watch, by_number) : NULL;
}

/* ---- beginning again, and ending ---- */

static void watch_want(struct pawl_watch *watch) {
	agenda_clear(&watch->client->agenda, &watch->retry);
	watch->state = WATCH_WANTED;
	watch->client->watch_wanted = true;
	client_core_kick(watch->client);
}

/* What the program knows is of no use any more. Returns false if the watch is gone. */
static bool watch_restart(struct pawl_watch *watch) {
	watch_give_up(watch);
	watch_unwatch(watch);
	watch->resumes = false;
	watch_want(watch);
	if (watch->overflowed || !watch->told) {
		return true;
	}
	watch->overflowed = true;
	return watch_tell_plain(watch, PAWL_EVENT_OVERFLOW);
}

static void on_retry(struct alarm *alarm) {
	watch_want(CONTAINER_OF(alarm, struct pawl_watch, retry));
}

static void watch_pause(struct pawl_watch *watch) {
	struct pawl *client = watch->client;
	span_ns pause = PAUSE_FIRST << (watch->failures < 6 ? watch->failures : 6);
	pause = pause < PAUSE_LAST ? pause : PAUSE_LAST;
	watch->failures++;
	/* It stays in this state for as long as the pause lasts. */
	watch->state = WATCH_ASKING;
	agenda_set(&client->agenda, &watch->retry,
		client_core_now(client).boot + prng_between(&client->prng, pause / 2, pause));
}

void watch_reread(struct pawl_watch *watch) {
	watch_give_up(watch);
	watch_unwatch(watch);
	watch->resumes = false;
	watch_pause(watch);
}

/* The node has no room for another watch. One watch asks again from time to time for all that wait
 * for room. */
static void watch_crowded(struct pawl_watch *watch) {
	struct pawl *client = watch->client;
	watch->error = PAWL_EFULL;
	client->watch_probe = client->watch_probe ? client->watch_probe : watch;
	if (client->watch_probe == watch) {
		watch_pause(watch);
	}
	watch->state = WATCH_CROWDED;
}

/* The watch has found room, or is over. If it asked for others, too, the next one does now. */
static void watch_probed(const struct pawl_watch *watch) {
	struct pawl *client = watch->client;
	if (client->watch_probe != watch) {
		return;
	}
	client->watch_probe = NULL;
	for (struct list *at = list_first(&client->watches); at && !client->watch_probe;
		at = list_after(&client->watches, at)) {
		if (watch_at(at)->state == WATCH_CROWDED) {
			client->watch_probe = watch_at(at);
			watch_want(client->watch_probe);
		}
	}
}

static void watch_end(struct pawl_watch *watch, int error, const char *message) {
	struct pawl *client = watch->client;
	watch_forget_number(watch);
	watch->state = WATCH_ENDED;
	watch->error = error;
	watch_probed(watch);
	if (watch->on_ended) {
		client->callbacks += !watch->quiet;
		watch->on_ended(watch, error, message, watch->arg);
	}
}

static bool final(int error) {
	return error == PAWL_EDENIED || error == PAWL_EBADREQUEST || error == PAWL_ETOOLARGE
		|| error == PAWL_EFULL || error == PAWL_ETLS || error == PAWL_EMOVED
		|| error == PAWL_EINVAL;
}

static void watch_refused(struct pawl_watch *watch, const struct pawl_result *result) {
	int error = result->error;
	if (error == PAWL_EFULL && watch->lasts) {
		watch_crowded(watch);
	} else if (final(error)) {
		char room[256];
		watch_end(watch, error, result_sentence(result, room, sizeof room));
	} else if (error == PAWL_ECLOSED) {
		watch_want(watch);
	} else {
		watch_pause(watch);
		if (error == PAWL_ERECOVERING) {
			failover_move_on(watch->client, error);
		}
	}
}

/* ---- asking ---- */

static int watch_ask(struct pawl_watch *watch, const struct pawl_request *request,
	void (*end)(struct pawl_call *call, struct pawl_result *take_result, void *ctx)) {
	struct call_start start = { .request = request, .internal = true, .tied = true, .end = end,
		.ctx = watch };
	return call_start(watch->client, &start, &watch->call);
}

static void watch_list(struct pawl_watch *watch, struct pawl_bytes after);

static void watch_live(struct pawl_watch *watch) {
	watch->state = WATCH_LIVE;
	watch->ended_count = 0;
	watch->resumes = true;
	watch->overflowed = false;
	watch->failures = 0;
	(void)watch_tell_plain(watch, PAWL_EVENT_CURRENT);
}

static void on_page(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct pawl_watch *watch = ctx;
	(void)call;
	watch->call = NULL;
	if (watch->client->dying) {
		/* The client is being freed, so the program is not told any more. */
	} else if (take_result->error && take_result->error != PAWL_ECLOSED) {
		watch_unwatch(watch);
		watch_refused(watch, take_result);
	} else if (take_result->error) {
		watch_want(watch);
	} else if (watch_tell_present(watch, take_result)) {
		if (take_result->more && take_result->entry_count) {
			watch_list(watch, take_result->entries[take_result->entry_count - 1].key);
		} else {
			watch_live(watch);
		}
	}
	pawl_result_free(take_result);
}

static void watch_list(struct pawl_watch *watch, struct pawl_bytes after) {
	struct pawl_request request = { .method = PAWL_LIST, .key = watch_key(watch),
		.limit = PAGE_KEYS, .after = after };
	watch->state = WATCH_LISTING;
	if (watch_ask(watch, &request, on_page) != 0) {
		watch_unwatch(watch);
		watch_pause(watch);
	}
}

/* Returns whether the node goes on from the position up to which this watch was told, so that
 * nothing was missed. */
static bool resumed(const struct pawl_watch *watch, const struct pawl_result *result) {
	const struct result_box *box = (const struct result_box *)(const void *)result;
	return watch->resumes
		&& memcmp(watch->position, box->position, POSITION_BYTES) == 0;
}

static void watch_begin(struct pawl_watch *watch, const struct pawl_result *result) {
	struct pawl *client = watch->client;
	const struct result_box *box = (const struct result_box *)(const void *)result;
	bool goes_on = resumed(watch, result), tried = watch->resumes;
	watch->number = box->watch;
	map_insert_number(&client->by_watch, &watch->by_number, watch->number);
	memcpy(watch->position, box->position, POSITION_BYTES);
	watch->resumes = false;
	watch->error = 0;
	watch_probed(watch);
	if (goes_on) {
		watch->state = WATCH_LIVE;
		watch->resumes = true;
		watch->failures = 0;
		return;
	}
	watch->state = WATCH_LISTING;
	watch->ended_count = 0;
	if ((tried || watch->told) && !watch->overflowed) {
		watch->overflowed = true;
		if (!watch_tell_plain(watch, PAWL_EVENT_OVERFLOW)) {
			return;
		}
	}
	if (watch->prefix) {
		watch_list(watch, (struct pawl_bytes){ NULL, 0 });
	} else if (watch_tell_present(watch, result)) {
		watch_live(watch);
	}
}

static void on_watched(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct pawl_watch *watch = ctx;
	(void)call;
	watch->call = NULL;
	if (watch->client->dying) {
		/* The client is being freed, so the program is not told any more. */
	} else if (take_result->error) {
		watch_refused(watch, take_result);
	} else if (result_box(take_result)->watch == 0
		|| find(watch->client, result_box(take_result)->watch)) {
		watch_end(watch, PAWL_EPROTOCOL, "the node gave the watch no usable number");
	} else {
		watch_begin(watch, take_result);
	}
	pawl_result_free(take_result);
}

static void watch_send(struct pawl_watch *watch) {
	struct pawl_request request = { .method = PAWL_WATCH, .key = watch_key(watch),
		.prefix = watch->prefix };
	if (watch->resumes) {
		request.after = (struct pawl_bytes){ watch->position, POSITION_BYTES };
	}
	watch->state = WATCH_ASKING;
	if (watch_ask(watch, &request, on_watched) != 0) {
		watch_pause(watch);
	}
}

void watches_turn(struct pawl *client) {
	if (!client->watch_wanted) {
		return;
	}
	client->watch_wanted = false;
	for (struct list *at = list_first(&client->watches); at;
		at = list_after(&client->watches, at)) {
		if (watch_at(at)->state == WATCH_WANTED) {
			watch_send(watch_at(at));
		}
	}
}

bool watches_want_connection(struct pawl *client) {
	bool wanted = false;
	for (struct list *at = client->watch_wanted ? list_first(&client->watches) : NULL;
		at && !wanted; at = list_after(&client->watches, at)) {
		wanted = watch_at(at)->state == WATCH_WANTED;
	}
	client->watch_wanted = wanted;
	return wanted;
}

/* Calls under way are tied to the connection, and end by themselves. */
void watches_connection_lost(struct pawl *client) {
	for (struct list *at = list_first(&client->watches); at;
		at = list_after(&client->watches, at)) {
		struct pawl_watch *watch = watch_at(at);
		watch_forget_number(watch);
		if (watch->state == WATCH_LIVE || watch->state == WATCH_CROWDED) {
			watch_want(watch);
		}
	}
}

/* ---- what the node tells ---- */

static void watch_change(struct pawl_watch *watch, const struct client_event *event) {
	if (event->type == CLIENT_EVENT_OVERFLOW) {
		(void)watch_restart(watch);
		return;
	}
	bool alive;
	if (watch->state == WATCH_LISTING && !watch_note_end(watch, event)) {
		(void)watch_restart(watch);
		return;
	}
	position_write(event->position, watch->position);
	if (watch_tell_change(watch, event, &alive) != 0 && alive) {
		/* There is no memory to tell this event. It may be any event, so the watch begins
		 * again. */
		(void)watch_restart(watch);
	}
}

bool watches_event(struct pawl *client, struct slice message) {
	struct client_event event;
	if (client_event_decode(message, &event) != 0) {
		return false;
	}
	struct pawl_watch *watch = event.type == CLIENT_EVENT_OTHER ? NULL
		: find(client, event.watch);
	if (watch) {
		watch_change(watch, &event);
	}
	return true;
}

/* ---- its life ---- */

/* The program may free any of the watches when it is told, so each step begins at the head of the
 * list. */
void watches_fail_all(struct pawl *client, int error) {
	struct list *at = list_first(&client->watches);
	while (at && !client->dying) {
		struct pawl_watch *watch = watch_at(at);
		if (watch->state == WATCH_WANTED) {
			watch_end(watch, error, client->last_problem);
			at = list_first(&client->watches);
		} else {
			at = list_after(&client->watches, at);
		}
	}
}

static void watch_destroy(struct pawl_watch *watch) {
	struct pawl *client = watch->client;
	if (watch->gone) {
		*watch->gone = true;
	}
	watch_forget_number(watch);
	agenda_clear(&client->agenda, &watch->retry);
	list_remove(&watch->link);
	watch_probed(watch);
	alloc_free(client->env.alloc, watch->key, watch->key_size + 1);
	alloc_free(client->env.alloc, watch, sizeof(*watch));
}

void pawl_watch_free(struct pawl_watch *take_watch) {
	if (take_watch) {
		watch_give_up(take_watch);
		watch_unwatch(take_watch);
		watch_destroy(take_watch);
	}
}

void watches_free_all(struct pawl *client) {
	struct list *at;
	while ((at = list_first(&client->watches)) != NULL) {
		pawl_watch_free(watch_at(at));
	}
}

static bool options_valid(const struct pawl *client, const struct pawl_watch_options *o) {
	bool from = o->from.size == 0 || (o->from.size == POSITION_BYTES && o->from.data);
	return !client->dying && o->on_event && from && kept_bytes_valid(o->key);
}

int pawl_watch_start(struct pawl *client, const struct pawl_watch_options *options,
	struct pawl_watch **out_watch) {
	if (!options_valid(client, options)) {
		return PAWL_EINVAL;
	}
	if (options->key.size > REQUEST_COPY_BYTES_MAX) {
		return PAWL_ETOOLARGE;
	}
	/* A NUL follows. */
	const size_t size = options->key.size + 1;
	struct pawl_watch *watch = alloc_new(client->env.alloc, sizeof(*watch));
	uint8_t *key = alloc_new(client->env.alloc, size);
	if (!watch || !key) {
		alloc_free(client->env.alloc, watch, sizeof(*watch));
		alloc_free(client->env.alloc, key, size);
		return PAWL_ENOMEM;
	}
	if (options->key.size) {
		memcpy(key, options->key.data, options->key.size);
	}
	*watch = (struct pawl_watch){ .client = client, .key = key, .key_size = options->key.size,
		.prefix = options->prefix, .on_event = options->on_event,
		.on_ended = options->on_ended, .arg = options->arg, .retry.ring = on_retry };
	if (options->from.size) {
		memcpy(watch->position, options->from.data, POSITION_BYTES);
		/* An earlier watch was told everything up to this position. */
		watch->resumes = watch->told = true;
	}
	list_append(&client->watches, &watch->link);
	watch_want(watch);
	*out_watch = watch;
	return 0;
}

bool pawl_watch_current(const struct pawl_watch *watch) {
	return watch->state == WATCH_LIVE && watch->client->state == CLIENT_CORE_READY;
}

int pawl_watch_error(const struct pawl_watch *watch) {
	return watch->error;
}
