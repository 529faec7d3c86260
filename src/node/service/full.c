/* full.c: compares limits with what is in use, and finds out who uses most. */
#include "full.h"

#include <event2/event.h>

#include "config_file.h"
#include "pawl/error.h"
#include "service_impl.h"
#include "tally.h"
#include "time_source.h"

#define LOOK_S 1
/* How long after a line the next one about the same limit is written. */
#define AGAIN (60 * SPAN_S)
/* How many held keys are sampled. They come in the order of a table under a secret key, which is as
 * good as a random draw. */
#define SAMPLE 2000

/* The core's defaults for limits that the configuration leaves open
 * (docs/operations/reference.md). */
#define KEYS_DEFAULT 4000000u
#define MEMORY_DEFAULT ((uint64_t)4 << 30)
#define WAITERS_DEFAULT 100000u

static const char *const full_names[FULL_KINDS] = { [FULL_CLIENTS] = "clients",
	[FULL_WAITERS] = "waiters", [FULL_KEYS] = "keys", [FULL_MEMORY] = "memory",
	[FULL_CLIENT_MEMORY] = "client_memory" };

struct full_use {
	uint64_t used, limit;
};

/* ---- who filled it ---- */

struct full_walk {
	struct service *service;
	struct tally tally;
	uint64_t sampled;
	/* What is counted for each connection. */
	enum full_what what;
};

static uint64_t full_hash(const struct service *s, uint64_t before, const void *data, size_t size) {
	return siphash_short((struct siphash_key){ s->events.hash_key.k0, before }, data, size);
}

/* Counts a connection for its party. Connections of one identity from one machine, or from one
 * account of this machine, are one party. Strangers do not fill a node, because they make room for
 * newcomers. */
static bool full_count_session(void *ctx, const struct session_view *view) {
	struct full_walk *walk = ctx;
	const struct service *s = walk->service;
	const struct origin *from = view->who.from;
	if (view->stranger) {
		return true;
	}
	uint64_t name = full_hash(s, (uint64_t)from->uid, view->who.identity.data,
		view->who.identity.size);
	name = full_hash(s, name, from->address, from->host_bytes);
	uint64_t count = walk->what == FULL_WAITERS ? requests_waiting(&s->requests, view->client)
		: walk->what == FULL_CLIENT_MEMORY ? view->memory : 1;
	tally_add(&walk->tally, name, count, view->client, slice_of(NULL, 0));
	return true;
}

static void full_say_clients(struct service *s, enum full_what what, const struct full_use *use) {
	struct full_walk walk = { .service = s, .what = what };
	struct session_who who;
	sessions_each(s->sessions, 0, full_count_session, &walk);
	const struct tally_row *most = tally_most(&walk.tally);
	if (most && sessions_who(s->sessions, most->part, &who)) {
		log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
			LOG_NUMBER("used", use->used), LOG_NUMBER("limit", use->limit),
			LOG_NUMBER("most", most->count), LOG_WHO(&who));
	} else {
		log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
			LOG_NUMBER("used", use->used), LOG_NUMBER("limit", use->limit));
	}
}

/* Counts a key for its holder. A holder without an identity goes by what it calls itself. */
static bool full_count_key(void *ctx, const struct core_inspect *look) {
	struct full_walk *walk = ctx;
	const struct core_entry *e = &look->entry;
	struct slice name = e->identity.size ? e->identity : e->owner;
	tally_add(&walk->tally, full_hash(walk->service, e->identity.size > 0, name.data,
			name.size), 1, e->identity.size > 0, name);
	return ++walk->sampled < SAMPLE;
}

static void full_say_keys(struct service *s, enum full_what what, const struct full_use *use) {
	struct full_walk walk = { .service = s };
	core_inspect_each(s->driver->core, slice_of(NULL, 0), s->driver->last,
		full_count_key, &walk);
	const struct tally_row *most = tally_most(&walk.tally);
	struct slice nobody = slice_of(NULL, 0);
	log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
		LOG_NUMBER("used", use->used), LOG_NUMBER("limit", use->limit),
		LOG_NUMBER("sampled", walk.sampled), LOG_NUMBER("most", most ? most->count : 0),
		LOG_BYTES(most && !most->part ? "owner" : "identity", most ? most->text : nobody));
}

/* ---- whether it is full ---- */

static struct full_use full_use(const struct service *s, const struct core_status *core,
	enum full_what what) {
	const struct node_limits *limits = &s->driver->config->limits;
	switch (what) {
	case FULL_CLIENTS:
		return (struct full_use){
			sessions_count(s->sessions) - sessions_strangers(s->sessions).now,
			limits->clients };
	case FULL_WAITERS:
		return (struct full_use){ core->waiters,
			limits->core.waiters ? limits->core.waiters : WAITERS_DEFAULT };
	case FULL_KEYS:
		return (struct full_use){ core->keys,
			limits->core.keys ? limits->core.keys : KEYS_DEFAULT };
	case FULL_MEMORY:
		return (struct full_use){ core->memory_bytes,
			limits->core.memory_bytes ? limits->core.memory_bytes : MEMORY_DEFAULT };
	case FULL_CLIENT_MEMORY:
		return (struct full_use){ sessions_memory_most(s->sessions),
			limits->client_memory };
	case FULL_KINDS:
		break;
	}
	return (struct full_use){ 0, 1 };
}

/* Returns whether the limit is reached. Memory hardly ever fills up to the exact limit, so a little
 * less counts, too. */
static bool full_reached(enum full_what what, const struct full_use *use) {
	return use->used >= use->limit
		- (what == FULL_MEMORY || what == FULL_CLIENT_MEMORY ? use->limit / 128 : 0);
}

static void full_judge(struct full *f, enum full_what what, const struct full_use *use,
	struct instant now) {
	struct service *s = f->service;
	if (full_reached(what, use)
		&& (!f->reached[what] || instant_elapsed_long(now, f->said[what]) >= AGAIN)) {
		f->reached[what] = true;
		f->said[what] = now;
		if (what != FULL_KEYS && what != FULL_MEMORY) {
			full_say_clients(s, what, use);
		} else {
			full_say_keys(s, what, use);
		}
	} else if (f->reached[what] && use->used < use->limit - use->limit / 20) {
		f->reached[what] = false;
		log_to(s->driver->log, LEVEL_NOTICE, "full_over",
			LOG_TEXT("what", full_names[what]), LOG_NUMBER("used", use->used),
			LOG_NUMBER("limit", use->limit));
	}
}

static void full_on_look(evutil_socket_t fd, short what, void *ctx) {
	struct full *f = ctx;
	struct instant now = time_source_now();
	struct core_status status;
	(void)fd;
	(void)what;
	if (!f->service->sessions || !f->service->driver->config) {
		/* The node is not started yet. */
		return;
	}
	core_status(f->service->driver->core, f->service->driver->last, &status);
	for (int i = 0; i < FULL_KINDS; i++) {
		const struct full_use use = full_use(f->service, &status, (enum full_what)i);
		full_judge(f, (enum full_what)i, &use, now);
	}
}

int full_init(struct full *f, struct service *service) {
	static const struct timeval second = { LOOK_S, 0 };
	*f = (struct full){ .service = service,
		.look = event_new(service->driver->base, -1, EV_PERSIST, full_on_look, f) };
	return f->look && event_add(f->look, &second) == 0 ? 0 : PAWL_ENOMEM;
}

void full_done(struct full *f) {
	if (f->look) {
		event_free(f->look);
	}
	*f = (struct full){ 0 };
}
