/* master_transfer.c: a master's part when the holder of a lock names its successor (section 10,
 * Hand-over), and when somebody asks the holder to let go. */
#include "master.h"

void master_nominate(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_NOMINATE_ANSWER, .round = m->round,
		.status = rule_votes(core) };
	const struct key *key = table_find(core, m->key);
	struct waiter *w = key ? queue_named(core, key, m->owner, m->lock_id) : NULL;
	if (answer.status == STATUS_OK && w == NULL) {
		answer.status = STATUS_ABSENT;
	} else if (answer.status == STATUS_OK) {
		COUNT(core, nominated);
		answer.lock_id = w->q.lock_id;
		answer.attempt = w->q.attempt;
		answer.by = core->peers[w->q.peer].node.id;
		answer.ballot = first_of_waiter(core, w);
	}
	out_send(core, from, &answer);
}

/* A hand-over to nobody, after which the key stays closed (section 10, Closing). */
static void close_after(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_RELEASE_ANSWER, .round = m->round };
	answer.status = master_close_here(core, m, &answer.flags);
	answer.age_us = lacked_us(core, m->lock_id);
	COUNT(core, release_ok);
	out_send(core, from, &answer);
}

void master_hand_over(struct core *core, uint32_t from, const struct message *m) {
	if (m->blob.size == 0) {
		close_after(core, from, m);
		return;
	}
	struct successor successor = { .lock_id = m->by, .attempt = m->attempt,
		.first = m->ballot };
	bool named = m->blob.size == sizeof successor.node.b;
	if (named) {
		memcpy(successor.node.b, m->blob.data, sizeof successor.node.b);
	}
	bool had = master_release_here(core, m, RECORD_RELEASED, named ? &successor : NULL);
	COUNT(core, release_ok);
	struct message answer = { .kind = MESSAGE_RELEASE_ANSWER, .round = m->round,
		.status = rule_votes(core), .flags = had ? FLAG_HAD : 0,
		.age_us = lacked_us(core, m->lock_id) };
	out_send(core, from, &answer);
}

void master_ask(struct core *core, uint32_t from, const struct message *m) {
	const uint32_t watchers = watch_event_watchers(core, m->key);
	struct message answer = { .kind = MESSAGE_ASK_ANSWER, .round = m->round,
		.status = STATUS_OK, .number = watchers };
	if (watchers > 0) {
		const struct core_watch_event n = { .kind = WATCH_EVENT_ASKED, .key = m->key,
			.owner = m->owner, .identity = m->identity, .value = m->value,
			.terms = m->terms };
		COUNT(core, asked);
		watch_event_tell(core, &n);
	}
	out_send(core, from, &answer);
}
