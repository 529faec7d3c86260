/* persist.c: the durable state and the clock reservation (section 1). The reservation is raised in
 * blocks, in the background, when half of a block is used. Nothing else on the path of an operation
 * waits for the disk. */
#include "engine.h"

#define PERSIST_RETRY (100 * SPAN_MS)

void persist_changed(struct core *core) {
	core->engine.persist_seq++;
	out_persist(core);
}

/* Every start has a boot of its own, which is on disk before anything leaves. */
void persist_start(struct core *core) {
	core->durable.boot++;
	core->engine.ceiling_on_disk = core->durable.ceiling;
	core->clock = core->durable.ceiling;
	clock_limit_raise(core, core->clock + CLOCK_JUMP_MAX);
	if (core->durable.voted) {
		core->durable.ceiling = core->clock + CEILING_BLOCK;
	}
	persist_changed(core);
}

void persist_take(struct core *core, struct durable *state, uint64_t *seq) {
	*state = core->durable;
	*seq = core->engine.persist_seq;
	struct persisting *index = &core->engine.taken[core->engine.persist_seq %
		(sizeof core->engine.taken / sizeof *core->engine.taken)];
	*index = (struct persisting){ .seq = core->engine.persist_seq,
		.ceiling = core->durable.ceiling, .boot = core->durable.boot,
		.pledged = core->durable.pledged, .voted = core->durable.voted };
}

void persist_done(struct core *core, uint64_t seq, bool ok) {
	if (!ok) {
		COUNT(core, persist_failed);
		core->engine.persist_again = true;
		core->engine.persist_retry = instant_add(core->now, PERSIST_RETRY);
		return;
	}
	const struct persisting *p =
		&core->engine.taken[seq % (sizeof core->engine.taken / sizeof *core->engine.taken)];
	if (p->seq != seq || seq <= core->engine.persist_done) {
		/* A later state has overtaken this one. */
		return;
	}
	core->engine.persist_done = seq;
	core->engine.ceiling_on_disk = p->ceiling;
	core->engine.boot_on_disk = p->boot;
	core->engine.pledged_on_disk = p->pledged;
	core->engine.voted_on_disk = p->voted;
	core->observers->persisted(core);
}

void persist_beat(struct core *core) {
	if (instant_expired(core->now, core->engine.persist_retry)) {
		core->engine.persist_again = false;
		out_persist(core);
	}
}

void ceiling_raise(struct core *core) {
	if ((core->durable.voted || core_votes(core)) &&
		core->clock + CEILING_BLOCK / 2 > core->durable.ceiling) {
		COUNT(core, ceiling_raised);
		core->durable.ceiling = core->clock + CEILING_BLOCK;
		persist_changed(core);
	}
}

void persist_votes_end(struct core *core) {
	core->engine.vote_clock = core_votes(core) ? core->clock : core->engine.vote_clock;
}

/* A node that has stopped voting still holds back its votes (section 1, The clock reservation), but
 * not what it hears from then on, because that is no vote. */
bool persist_may_leave(const struct core *core) {
	return core->engine.boot_on_disk == core->durable.boot &&
		(core_votes(core) ? core->clock : core->engine.vote_clock) <=
			core->engine.ceiling_on_disk;
}

void epoch_seen(struct core *core) {
	core->durable.max_lease_seen = span_longer(core->durable.max_lease_seen,
		core->config.max_lease);
	core->durable.request_timeout_seen = span_longer(core->durable.request_timeout_seen,
		core->config.request_timeout);
}
