/* master_report.c: what a master reports of a key's records, for quorum reads and breaks
 * (section 3, Reports). It reports a little at once, so that one holder needs no second question,
 * and the rest in pieces that are asked for. Large values are left out: the reader takes them from
 * its own table, or fetches them from the master that has the newest one. What an ordinary client
 * may ask for thus fills neither a link nor a coordinator's memory. */
#include "master.h"

static uint32_t pick_indexed(const struct record_index *x, const struct message *m, uint32_t most,
	const struct record *piece[REPORT_PIECE_MAX], uint32_t *left) {
	const struct record *r = m->number > 0 ? index_after(x, m->lock_id) : index_first(x);
	uint32_t count = 0;
	for (; r && count < most; r = index_after(x, r->lock_id)) {
		piece[count++] = r;
	}
	*left = count + (r != NULL);
	return count;
}

uint32_t report_pick(const struct key *key, const struct message *m, uint32_t most,
	const struct record *piece[REPORT_PIECE_MAX], uint32_t *left) {
	if (key && key_index(key)) {
		return pick_indexed(key_index(key), m, most, piece, left);
	}
	uint32_t count = 0;
	*left = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		if (m->number > 0 && id128_compare(r->lock_id, m->lock_id) <= 0) {
			continue;
		}
		(*left)++;
		uint32_t at = count;
		while (at > 0 && id128_compare(piece[at - 1]->lock_id, r->lock_id) > 0) {
			at--;
		}
		if (at == most) {
			continue;
		}
		count -= count == most;
		memmove(&piece[at + 1], &piece[at], (count - at) * sizeof *piece);
		piece[at] = r;
		count++;
	}
	return count;
}

void report_leave_value_out(const struct core *core, struct message *answer) {
	if (answer->value.size > core->limits.report_value) {
		answer->value = slice_of(NULL, 0);
		answer->flags |= FLAG_SAME;
	}
}

/* Of a contested key, all records are reported. */
void master_read(struct core *core, uint32_t from, const struct message *m) {
	if (m->flags & FLAG_EXPLAIN) {
		master_explain(core, from, m);
		return;
	}
	const enum out_backlog backlog = out_backlog(core, from);
	const bool rest = (m->flags & FLAG_REST) != 0;
	struct message answer = { .kind = MESSAGE_READ_ANSWER, .round = m->round,
		.status = rule_votes(core), .number = m->number };
	struct key *key = table_find(core, m->key);
	/* limits.report_first and limits.report_piece do not exceed this. */
	const struct record *piece[REPORT_PIECE_MAX];
	uint32_t left,
		count = report_pick(key, m, rest ? core->limits.report_piece
			: backlog == BACKLOG_SMALL ? core->limits.report_first : 1, piece, &left);
	if (answer.status == STATUS_OK && backlog == BACKLOG_LARGE) {
		answer.status = STATUS_FULL;
	}
	if (answer.status != STATUS_OK || left == 0) {
		answer.status = answer.status == STATUS_OK ? STATUS_ABSENT : answer.status;
		out_send(core, from, &answer);
		return;
	}
	const uint32_t before = m->number < UINT32_MAX / 2 ? (uint32_t)m->number : 0;
	for (uint32_t i = 0; i < count; i++) {
		answer.part = before + i;
		answer.parts = before + left;
		answer.flags = rule_value_counts(piece[i]) ? FLAG_COUNTS : 0;
		record_describe(core, piece[i], &answer);
		report_leave_value_out(core, &answer);
		answer.flags |= i + 1 == count && count < left ? FLAG_REST : 0;
		out_send(core, from, &answer);
	}
}

/* ---- all that a master knows of a record ---- */

void record_message(const struct core *core, enum message_kind kind, const struct key *key,
	const struct record *r, struct message *m) {
	*m = (struct message){ .kind = kind, .key = key_name(key), .noted = r->noted };
	record_describe(core, r, m);
	m->prepared = record_prepared(core, r);
	if (kind == MESSAGE_SNAPSHOT_RECORD) {
		const struct older o = record_older(r);
		m->name = r->rests_on;
		m->had = o.set;
		m->clock = o.noted;
	}
	m->flags |= (rule_value_counts(r) ? FLAG_COUNTS : 0) |
		(binding_master_bound(core, r->lock_id) ? FLAG_BOUND : 0);
}
