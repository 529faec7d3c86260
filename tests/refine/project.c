/* project.c: the only file of the refinement that looks into a core. */
#include "project.h"

#include "master.h"

void project_node(const struct core *core, struct instant now, struct m_node *out) {
	*out = (struct m_node){ .now = now, .clock = core->clock, .votes = core_votes(core),
		.epoch = core->config.epoch,
		.hash = core->config_hash, .masters = core->masters, .quorum = core->quorum,
		.self = project_peer(core, core->self),
		.is_master = core->self < core->masters, .max_lease = core->config.max_lease,
		.request_timeout = core->config.request_timeout,
		.promise_timeout = core->config.promise_timeout,
		.drift_ppm = core->config.drift_ppm,
		.vote_began = core->store.vote_began };
}

uint64_t project_peer(const struct core *core, uint32_t peer) {
	return id128_word(peer == core->self ? core->durable.node_id : core->peers[peer].link_id);
}

bool project_is_master(const struct core *core, uint32_t peer) {
	return peer < core->masters;
}

bool project_in_epoch(const struct core *core, uint32_t peer) {
	return peer == core->self || (core->peers[peer].in_epoch &&
		core->peers[peer].standing != PEER_NON_MEMBER);
}

bool project_votes(const struct core *core, uint32_t peer) {
	return core->peers[peer].voting;
}

bool project_bound(const struct core *core, struct id128 lock_id) {
	return binding_master_bound(core, lock_id);
}

const struct durable *project_durable(const struct core *core) {
	return &core->durable;
}

static void show_record(const struct core *core, const struct record *r, struct m_record *out) {
	*out = (struct m_record){ .lock_id = r->lock_id, .token = r->token, .noted = r->noted,
		.wrote = record_wrote(core, r), .prepared = record_prepared(core, r),
		.end = r->end, .name = r->rests_on, .value = m_hash(record_value(r)),
		.identity = m_hash(record_identity(r)), .terms = record_terms(r),
		.barred = r->barred, .closing = record_keeps_closed(r),
		.unfinished = finish_active(core) && r->sources != 0, .freed = r->freed };
}

static void show_promise(const struct core *core, const struct promise *p,
	struct m_promise *out) {
	*out = (struct m_promise){ .lock_id = p->lock_id, .attempt = p->attempt,
		.noted = p->noted, .from = project_peer(core, p->peer), .first = p->first,
		.end = p->end, .terms = p->terms };
}

static void show_key(const struct core *core, const struct key *key, struct instant now,
	struct m_key *out) {
	out->record_count = out->promise_count = 0;
	out->more = out->unfinished = false;
	out->seen = now;
	out->clock = core->clock;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		if (instant_expired(now, r->end)) {
			continue;
		}
		if (out->record_count == M_RECORDS) {
			out->more = true;
			break;
		}
		show_record(core, r, &out->records[out->record_count]);
		out->unfinished = out->unfinished || out->records[out->record_count].unfinished;
		out->record_count++;
	}
	for (const struct promise *p = key ? key_promises(key) : NULL; p; p = p->next) {
		if (instant_expired(now, p->end)) {
			continue;
		}
		if (out->promise_count == M_PROMISES) {
			out->more = true;
			break;
		}
		show_promise(core, p, &out->promises[out->promise_count++]);
	}
}

void project_key(const struct core *core, struct slice name, struct instant now,
	struct m_key *out) {
	show_key(core, table_peek(core, name), now, out);
}

void project_each(const struct core *core, struct instant now,
	void (*visit)(void *ctx, struct slice name, const struct m_key *key), void *ctx) {
	static struct m_key shown;
	const struct map *keys = &core->store.live->keys;
	for (size_t b = 0; b < keys->bucket_count; b++) {
		for (const struct map_node *n = map_bucket(keys, b); n;
			n = map_next_in_bucket(n)) {
			const struct key *key = CONTAINER_OF(n, const struct key, node);
			show_key(core, key, now, &shown);
			visit(ctx, key_name(key), &shown);
		}
	}
}

struct m_ended project_ended(const struct core *core, struct id128 lock_id) {
	const struct tombstone *t = tombstone_find(core, lock_id);
	return t == NULL ? (struct m_ended){ .released = false }
		: (struct m_ended){ t->released, t->barred, t->binding, t->name };
}

bool project_tombstones_full(const struct core *core) {
	return core->store.tombstones[core->store.tombstones_next].used;
}

void project_masters(const struct core *core, uint64_t ids[MASTERS_MAX]) {
	for (uint32_t i = 0; i < core->masters; i++) {
		ids[i] = id128_word(core->peers[i].node.id);
	}
}

bool project_linked(const struct core *core, uint32_t peer) {
	return core->peers[peer].up;
}

uint64_t project_boot(const struct core *core, uint32_t peer) {
	return peer == core->self ? core->durable.boot : core->peers[peer].boot;
}

uint64_t project_links_reset(const struct core *core) {
	return core->counts[COUNT_link_reset];
}

uint64_t project_bindings_ended(const struct core *core) {
	return core->counts[COUNT_binding_ended];
}
