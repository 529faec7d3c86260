/* master_downgrade.c: what a master does when an exclusive lock becomes a shared one
 * (section 10). */
#include "master.h"

/* A node that does not vote does this, too. Its answer does not count, but what it tells others
 * later is then correct. */
void master_downgrade(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	struct message answer = { .kind = MESSAGE_DOWNGRADE_ANSWER, .round = m->round,
		.status = rule_votes(core), .age_us = lacked_us(core, m->lock_id) };
	struct record *r = key ? key_record(key, m->lock_id) : NULL;
	if (r && r->of == MODE_EXCLUSIVE) {
		struct terms shared = record_terms(r);
		shared.of = MODE_SHARED;
		COUNT(core, downgraded);
		digest_leave(core, key, r);
		record_set_terms(core, key, r, &shared);
		record_changed(core, key, r, RECORD_DOWNGRADED);
	}
	if (answer.status == STATUS_OK) {
		answer.status = r == NULL ? STATUS_ABSENT
			: r->of == MODE_SHARED ? STATUS_OK
			: STATUS_TERMS;
		answer.token = r ? r->token : 0;
	}
	out_send(core, from, &answer);
	if (key) {
		table_settle(core, key);
	}
}
