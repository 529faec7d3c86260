/* master_ask.c: somebody asks the holder of a key to let go, so whoever watches the key at this
 * node is told. */
#include "master.h"

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
