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

/* How often it is found out who has filled a limit that is reached. */
#define FIND_AGAIN (5 * SPAN_S)

static const char *const full_names[FULL_KINDS] = { [FULL_CLIENTS] = "clients",
	[FULL_WAITERS] = "waiters", [FULL_KEYS] = "keys", [FULL_MEMORY] = "memory",
	[FULL_CLIENT_MEMORY] = "client_memory", [FULL_WAITERS_PER_KEY] = "waiters_per_key",
	[FULL_ROUNDS] = "rounds", [FULL_LINGERING] = "lingering",
	[FULL_HANDSHAKES] = "handshakes", [FULL_KEPT_LOCKS] = "kept_locks" };

const char *full_name(enum full_what what) {
	return full_names[what];
}

/* ---- who filled it ---- */

struct full_walk {
	struct service *service;
	struct tally tally;
	uint64_t sampled;
	/* What is counted for each connection. */
	enum full_what what;
};

static uint64_t full_hash(const struct service *s, uint64_t before, const void *data, size_t size) {
	const struct siphash_key key = { s->events.hash_keys[false].k0, before };
	return siphash_short(key, data, size);
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

/* Finds the client that has filled a limit, and logs that if `log` is set. */
static void full_find_client(struct service *s, enum full_what what, struct full_row *row,
	bool log) {
	struct full_walk walk = { .service = s, .what = what };
	struct session_who who;
	sessions_each(s->sessions, 0, full_count_session, &walk);
	const struct tally_row *most = tally_most(&walk.tally);
	if (most && sessions_who(s->sessions, most->part, &who)) {
		row->most = most->count;
		full_whose(who.identity.data, who.identity.size, who.from->address, row->whose);
	}
	if (log && row->most) {
		log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
			LOG_NUMBER("used", row->used), LOG_NUMBER("limit", row->limit),
			LOG_NUMBER("most", row->most), LOG_WHO(&who));
	} else if (log) {
		log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
			LOG_NUMBER("used", row->used), LOG_NUMBER("limit", row->limit));
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

/* Finds the holder of most keys, and logs that if `log` is set. */
static void full_find_holder(struct service *s, enum full_what what, struct full_row *row,
	bool log) {
	struct full_walk walk = { .service = s };
	core_inspect_each(s->driver->core, slice_of(NULL, 0), s->driver->last,
		full_count_key, &walk);
	const struct tally_row *most = tally_most(&walk.tally);
	const struct slice name = most ? most->text : slice_of(NULL, 0);
	if (most) {
		/* Of more keys than the sample has, the same part is theirs, and so it is of the
		 * memory. */
		row->most = what == FULL_KEYS && walk.sampled < SAMPLE ? most->count
			: (uint64_t)((double)row->used * (double)most->count
				/ (double)walk.sampled);
		full_whose(name.data, name.size, NULL, row->whose);
	}
	if (log) {
		log_to(s->driver->log, LEVEL_WARNING, "full", LOG_TEXT("what", full_names[what]),
			LOG_NUMBER("used", row->used), LOG_NUMBER("limit", row->limit),
			LOG_NUMBER("sampled", walk.sampled),
			LOG_NUMBER("most", most ? most->count : 0),
			LOG_BYTES(most && !most->part ? "owner" : "identity", name));
	}
}

static void full_find(struct service *s, enum full_what what, struct full_row *row,
	struct instant now, bool log) {
	row->most = 0;
	row->whose[0] = '\0';
	row->found = now;
	row->said = log ? now : row->said;
	if (what == FULL_KEYS || what == FULL_MEMORY) {
		full_find_holder(s, what, row, log);
	} else if (what < FULL_LOGGED) {
		full_find_client(s, what, row, log);
	}
}

/* ---- whether it is full ---- */

struct full_use {
	uint64_t used, limit;
};

static void full_use(const struct service *s, struct full_use out[FULL_KINDS]) {
	const struct driver *d = s->driver;
	const struct node_limits *limits = &d->config->limits;
	/* The core knows its defaults. */
	const struct core_limits *most = core_limits_of(d->core);
	const uint32_t strangers = sessions_strangers(s->sessions).now;
	struct core_status core;
	struct core_figures figures;
	core_status(d->core, d->last, &core);
	core_figures(d->core, d->last, &figures);
	const struct full_use use[FULL_KINDS] = {
		[FULL_CLIENTS] = { sessions_count(s->sessions) - strangers, limits->clients },
		[FULL_WAITERS] = { core.waiters, most->waiters },
		[FULL_KEYS] = { core.keys, most->keys },
		[FULL_MEMORY] = { core.memory_bytes, most->memory_bytes },
		[FULL_CLIENT_MEMORY] = { sessions_memory_most(s->sessions),
			limits->client_memory },
		[FULL_WAITERS_PER_KEY] = { figures.longest_queue, most->waiters_per_key },
		[FULL_ROUNDS] = { core.rounds, most->rounds },
		[FULL_LINGERING] = { core.catch_up_count, most->catching_up },
		[FULL_HANDSHAKES] = { strangers, limits->handshakes },
		[FULL_KEPT_LOCKS] = { kept_locks_count(&s->kept), limits->kept_locks } };
	memcpy(out, use, sizeof use);
}

/* For the log, a limit that was reached counts as reached until a twentieth of it is free, so that
 * it does not tell of each client that comes and goes. */
static void full_judge(struct full *f, enum full_what what, const struct full_use *use,
	struct instant now) {
	struct full_row *row = &f->rows[what];
	/* Memory hardly ever fills up to the exact limit, so a little less counts, too. */
	const uint64_t less = what == FULL_MEMORY || what == FULL_CLIENT_MEMORY
		? use->limit / 128 : 0;
	const bool reached = use->limit > 0 && use->used >= use->limit - less,
		before = row->lasts;
	row->used = use->used;
	row->limit = use->limit;
	row->near = use->limit > 0
		&& (double)use->used * 100 > (double)use->limit * FULL_NEAR;
	row->reached = reached;
	row->lasts = reached || (before && use->used >= use->limit - use->limit / 20);
	if (reached && what < FULL_LOGGED
		&& (!before || instant_elapsed_long(now, row->said) >= AGAIN)) {
		full_find(f->service, what, row, now, true);
	} else if (reached && instant_elapsed_long(now, row->found) >= FIND_AGAIN) {
		full_find(f->service, what, row, now, false);
	} else if (before && !row->lasts && what < FULL_LOGGED) {
		log_to(f->service->driver->log, LEVEL_NOTICE, "full_over",
			LOG_TEXT("what", full_names[what]), LOG_NUMBER("used", use->used),
			LOG_NUMBER("limit", use->limit));
	}
}

static void full_on_look(evutil_socket_t fd, short what, void *ctx) {
	struct full *f = ctx;
	struct full_use use[FULL_KINDS];
	struct instant now = time_source_now();
	(void)fd;
	(void)what;
	if (!f->service->sessions || !f->service->driver->config) {
		/* The node is not started yet. */
		return;
	}
	full_use(f->service, use);
	for (int i = 0; i < FULL_KINDS; i++) {
		full_judge(f, (enum full_what)i, &use[i], now);
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
