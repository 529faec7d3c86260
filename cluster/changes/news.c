/* news.c: what has become of keys, told to the driver for those who watch them. A piece of news leaves no earlier than an answer
 * would; where one had to be left out there is a gap, so that whoever watches reads anew and misses nothing. */
#include "changes.h"

#include "news_box.h"

static bool room(struct core *core, struct news_box *box) {
	if (box->count < box->capacity) {
		return true;
	}
	size_t wanted = box->capacity ? 2 * box->capacity : 16;
	struct core_news *p = wanted > NEWS_MAX ? NULL : alloc_resize(&core->alloc, box->news, box->capacity * sizeof *p, wanted * sizeof *p);
	if (p == NULL) {
		return false;
	}
	box->news = p;
	box->capacity = wanted;
	return true;
}

static bool copy(struct news_box *box, struct slice *bytes) {
	struct slice from = *bytes;
	*bytes = slice_of(NULL, 0);
	return from.size == 0 || arena_copy(&box->bytes, from, bytes) == 0;
}

static void keep(struct core *core, const struct core_news *news) {
	struct news_box *box = core->news_wanted ? out_news_box(core) : NULL;
	if (box == NULL) {
		return;
	}
	if (box->lost || !room(core, box)) {
		box->lost++; /* a gap is told of in its place */
		return;
	}
	struct core_news *n = &box->news[box->count];
	*n = *news;
	box->lost = !(copy(box, &n->key) && copy(box, &n->owner) && copy(box, &n->identity) && copy(box, &n->value) && copy(box, &n->label));
	box->count += !box->lost;
}

/* Who asks for a key goes to all nodes by itself. The log has also what is not kept for those who watch here: the replicas have missed nothing
 * (section 7, News; without it: nothing in the log). */
void news_tell(struct core *core, const struct core_news *news) {
	if (news->kind == NEWS_GAP ? core->feeds > 0 : core->news_feeds && news->kind != NEWS_ASKED) {
		log_append_news(core, news); /* a gap also where nobody has said yet that somebody watches: the log's number goes up */
	}
	keep(core, news);
}

/* Here, or at a replica. */
static bool wanted(const struct core *core) {
	return core->news_wanted || core->news_feeds;
}

/* The value is only told where it is new: whoever hears of an end knows it, or has no use for it. */
static bool has_value(enum core_news_kind kind) {
	switch (kind) {
	case NEWS_ACQUIRED: case NEWS_UPDATED:
		return true;
	case NEWS_DOWNGRADED: case NEWS_RELEASED: case NEWS_EXPIRED: case NEWS_LOST: case NEWS_ASKED: case NEWS_GAP:
		return false;
	}
	return false;
}

/* What snapshots bring to a node that recovers is not told one by one, and so neither is its end; nor what ends at a node that is in the
 * cluster no more. Whoever votes, or follows, again tells a gap first. A replica repeats what its master tells; while it follows nobody it
 * tells what ends in its own table. */
static bool tells(const struct core *core) {
	return core_votes(core) || (core->state == CORE_FOLLOWING && !follow_tells(core));
}

static bool is_end(enum core_news_kind kind) {
	switch (kind) {
	case NEWS_RELEASED: case NEWS_EXPIRED: case NEWS_LOST:
		return true;
	case NEWS_ACQUIRED: case NEWS_UPDATED: case NEWS_DOWNGRADED: case NEWS_ASKED: case NEWS_GAP:
		return false;
	}
	return false;
}

void news_gap_of(struct core *core, struct slice name) {
	const struct core_news n = { .kind = NEWS_GAP, .key = name };
	if (tells(core)) {
		news_tell(core, &n);
	}
}

void news_of(struct core *core, enum core_news_kind kind, struct slice name, const struct record *r) {
	if (!wanted(core) || !tells(core)) {
		return;
	}
	const struct core_news n = { .kind = kind, .key = name, .owner = record_owner(r), .identity = record_identity(r),
		.value = has_value(kind) ? record_value(r) : slice_of(NULL, 0), .label = record_label(r), .lock_id = r->lock_id, .token = r->token,
		.value_seq = r->wrote, .terms = record_terms(r) };
	news_tell(core, &n);
}

/* Also where nobody watches: somebody may begin to before it is over. */
void news_record(struct core *core, enum core_news_kind kind, struct key *key, struct record *r) {
	if (!tells(core) || key_table(core, key) != core->live) {
		return;
	}
	if (kind == NEWS_ACQUIRED) {
		unseen_record_came(core, key, r);
	}
	if (r->unwritten) {
		unwritten_told(core, kind, key, r);
	}
	news_of(core, kind, key_name(key), r);
	if (core_votes(core)) {
		told_record(core, key->node.hash, r);
	}
	if (is_end(kind)) {
		unseen_record_ended(core, key, r);
	}
}

/* Also of what was refused here (unseen.c). */
void news_gap(struct core *core) {
	const struct core_news n = { .kind = NEWS_GAP };
	unseen_gap_of_all(core);
	news_tell(core, &n);
}

/* ---- the driver's side ---- */

void core_want_news(struct core *core, bool wants) {
	if (wants && !core->news_wanted) {
		core->observers->watched(core);
	}
	core->news_wanted = wants;
}

const struct core_news *core_out_news(struct core_out *out) {
	struct core *core = out_core(out);
	struct news_box *box = out_box(out);
	if (!persist_may_leave(core)) {
		return NULL;
	}
	if (box->read < box->count) {
		return &box->news[box->read++];
	}
	if (box->lost) {
		core->counts[COUNT_news_lost] += box->lost;
		box->lost = 0;
		return &box->gap;
	}
	return NULL;
}

void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key), void *ctx) {
	core->count_watchers = count;
	core->count_watchers_ctx = ctx;
}
