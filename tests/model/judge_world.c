/* judge_world.c: what must always hold (docs/protocol.md, section 8, points 1 and 2; section 2,
 * Update), judged in true time by what the clients were answered. */
#include "check.h"
#include "explore.h"

static bool believes(const struct world *w, const struct contender *c) {
	return c->state == CLIENT_HOLDS && w->stage->now < c->believed_until;
}

/* If one lock is answered before another is asked for, or its belief ends before the other's
 * begins, its token is smaller. */
static bool before(const struct acquired *a, const struct acquired *b) {
	return a->answered_event < b->asked_event || a->ended < b->began;
}

static void judge_tokens(struct world *w) {
	const struct acquired *b = &w->acquired[w->acquired_count - 1];
	for (uint32_t i = 0; i + 1 < w->acquired_count; i++) {
		const struct acquired *a = &w->acquired[i];
		if (!terms_exclude(&a->terms, &b->terms)) {
			/* Section 10: locks that may be held together are in no order. */
			continue;
		}
		if (a->lock != b->lock && a->token == b->token) {
			w->violation = "two lock_ids were answered with the same token";
		} else if (a->lock != b->lock && before(a, b) && a->token >= b->token) {
			w->violation = "a later acquisition has a token that is not higher";
		}
	}
}

void judge_ended(struct world *w, uint32_t client) {
	for (uint32_t i = 0; i < w->acquired_count; i++) {
		struct acquired *a = &w->acquired[i];
		if (a->client == client && a->ended == INT64_MAX) {
			a->ended = w->stage->now < w->clients[client].believed_until ? w->stage->now
				: w->clients[client].believed_until;
		}
	}
}

static void note(struct world *w, uint32_t client) {
	const struct contender *c = &w->clients[client];
	CHECK(w->acquired_count < ACQUIRED_MAX);
	w->acquired[w->acquired_count++] = (struct acquired){ .client = (uint8_t)client,
		.lock = c->lock, .token = c->token, .terms = c->terms,
		.asked_event = c->asked_event, .answered_event = w->events, .began = w->stage->now,
		.ended = INT64_MAX };
}

void judge_downgraded(struct world *w, uint32_t client) {
	judge_ended(w, client);
	w->clients[client].terms.of = MODE_SHARED;
	if (believes(w, &w->clients[client])) {
		note(w, client);
	}
}

void judge_acquired(struct world *w, uint32_t client, uint64_t token, int64_t until) {
	struct contender *c = &w->clients[client];
	/* These beliefs have run out meanwhile. */
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (w->clients[i].state == CLIENT_HOLDS && !believes(w, &w->clients[i])) {
			judge_ended(w, i);
		}
	}
	c->believed_from = w->stage->now;
	c->believed_until = until;
	c->token = token;
	note(w, client);
	judge_tokens(w);
}

/* All updates expect the value of the acquire, which is empty. A client's value is its number. */
void judge_updated(struct world *w, uint32_t client, const struct stage_reply *reply) {
	if (reply->r.error == PAWL_OK && ++w->updated > 1) {
		w->violation = "two updates found the same value and replaced it";
	} else if (reply->r.error == PAWL_EMISMATCH && reply->value.size == 0) {
		w->violation = "a mismatch shows the value that was expected";
	} else if (reply->r.error == PAWL_EMISMATCH && w->clients[client].left.updates == 0 &&
		reply->value.bytes[0] == (char)('1' + client)) {
		w->violation = "an update failed on what it wrote itself";
	}
}

void judge_now(struct world *w) {
	for (uint32_t i = 0; i < CLIENTS; i++) {
		for (uint32_t j = 0; j < i; j++) {
			const struct contender *a = &w->clients[i], *b = &w->clients[j];
			if (believes(w, a) && believes(w, b) &&
				terms_exclude(&a->terms, &b->terms)) {
				w->violation = "two clients that exclude one "
					"another believe at the same time that they hold the key";
			}
		}
	}
	for (uint32_t i = 0; i < w->stage->count; i++) {
		if (strcmp(core_config(w->stage->nodes[i].core)->nodes[0].address, WORLD_LIE) ==
			0) {
			w->violation = "a configuration was adopted that nobody chose";
		}
		for (uint32_t j = 0; j < i; j++) {
			struct core_status a = stage_status(w->stage, i),
				b = stage_status(w->stage, j);
			if (a.epoch && a.epoch == b.epoch && a.config_hash != b.config_hash) {
				w->violation = "one epoch has two configurations";
			}
		}
	}
}
