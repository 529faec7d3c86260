/* log.c: the transaction log (section 7): numbers whatever this master accepted, in bounded memory. An entry only names what has
 * changed (and, of a record that is gone, how); whoever sends it looks up what has become of it, so that lease and value are those of the sending, and nothing is
 * kept twice. The oldest entries give way; who would have needed them takes a snapshot. */
#include "state.h"

#define CHUNK_MIN 1024u
#define CHUNK_MAX 65536u
#define ENTRY_FIXED (sizeof(uint16_t) + sizeof(struct id128))
#define SIZE_BITS 12 /* of the first number of an entry: the size of its key; above them what became of the record */

static struct log_chunk *chunk_at(const struct log *log, uint32_t i) {
	return log->chunks[(log->head + i) % log->slots];
}

static bool make_ring(struct core *core) {
	struct log *log = &core->log;
	if (log->chunks) {
		return true;
	}
	uint64_t part = core->limits.log_bytes / 16;
	log->chunk_bytes = part < CHUNK_MIN ? CHUNK_MIN : part > CHUNK_MAX ? CHUNK_MAX : (uint32_t)part;
	uint64_t slots = core->limits.log_bytes / log->chunk_bytes;
	log->slots = slots < 2 ? 2 : slots > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)slots;
	log->chunks = alloc_new(&core->alloc, log->slots * sizeof(struct log_chunk *));
	return log->chunks != NULL;
}

static void drop_chunks(struct core *core) {
	struct log *log = &core->log;
	for (; log->count > 0; log->count--) {
		alloc_free(&core->alloc, chunk_at(log, log->count - 1), sizeof(struct log_chunk) + log->chunk_bytes);
	}
}

void log_done(struct core *core) {
	drop_chunks(core);
	alloc_free(&core->alloc, core->log.chunks, core->log.slots * sizeof(struct log_chunk *));
	core->log.chunks = NULL;
}

/* A chunk for what comes next: a new one, or the oldest one, whose entries are lost. NULL: no memory. */
static struct log_chunk *next_chunk(struct core *core) {
	struct log *log = &core->log;
	struct log_chunk *c = log->count < log->slots ? alloc_new(&core->alloc, sizeof *c + log->chunk_bytes) : NULL;
	if (c == NULL && log->count > 0) {
		c = chunk_at(log, 0);
		log->head = (log->head + 1) % log->slots;
		log->count--;
	}
	if (c == NULL) {
		return NULL;
	}
	c->first = log->next;
	c->count = c->used = 0;
	log->chunks[(log->head + log->count++) % log->slots] = c;
	log->oldest = chunk_at(log, 0)->first;
	return c;
}

static bool store(struct core *core, struct slice key, struct id128 lock_id, enum core_news_kind how) {
	struct log *log = &core->log;
	if (!make_ring(core)) {
		return false;
	}
	uint16_t size = (uint16_t)key.size;
	struct log_chunk *c = log->count ? chunk_at(log, log->count - 1) : NULL;
	if (c == NULL || c->used + ENTRY_FIXED + size > log->chunk_bytes) {
		c = next_chunk(core);
	}
	if (c == NULL) {
		return false;
	}
	uint8_t *to = c->bytes + c->used;
	uint16_t head = (uint16_t)(size | (unsigned)how << SIZE_BITS);
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, &lock_id, sizeof lock_id);
	memcpy(to + ENTRY_FIXED, key.data, size);
	c->used += (uint32_t)ENTRY_FIXED + size;
	c->count++;
	return true;
}

/* While there is nobody to follow, only the number goes up. */
static void append(struct core *core, struct slice key, struct id128 lock_id, enum core_news_kind how) {
	struct log *log = &core->log;
	if (core->self >= core->masters) {
		return; /* nobody follows a replica */
	}
	bool wanted = core->config.node_count > core->masters;
	bool stored = wanted && store(core, key, lock_id, how);
	core->counts[COUNT_log_lost] += wanted && !stored;
	log->next++;
	if (!stored) {
		drop_chunks(core);
		log->oldest = log->next;
	}
	feed_logged(core);
}

void log_append(struct core *core, struct slice key, struct id128 lock_id) {
	append(core, key, lock_id, NEWS_ACQUIRED);
}

void log_append_gone(struct core *core, struct slice key, struct id128 lock_id, enum core_news_kind how) {
	append(core, key, lock_id, how);
}

void log_new_id(struct core *core) {
	struct log *log = &core->log;
	feed_stop_all(core);
	news_gap(core);
	drop_chunks(core);
	log->id = core->durable.boot << 32 | ++log->generation;
	log->next = log->next ? log->next : 1;
	log->oldest = log->next;
}

/* The chunk that an entry stands in, or NULL. */
static const struct log_chunk *chunk_of(const struct log *log, uint64_t number) {
	uint32_t low = 0, high = log->count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct log_chunk *c = chunk_at(log, middle);
		if (number < c->first) {
			high = middle;
		} else if (number >= c->first + c->count) {
			low = middle + 1;
		} else {
			return c;
		}
	}
	return NULL;
}

static uint32_t entry_size(const struct log_chunk *c, uint32_t offset) {
	uint16_t head;
	memcpy(&head, c->bytes + offset, sizeof head);
	return (uint32_t)ENTRY_FIXED + (head & ((1u << SIZE_BITS) - 1));
}

void log_seek(const struct core *core, struct log_place *p, uint64_t number) {
	const struct log *log = &core->log;
	CHECK(number >= log->oldest && number <= log->next);
	const struct log_chunk *c = chunk_of(log, number);
	*p = (struct log_place){ .number = number, .offset = log->count ? chunk_at(log, log->count - 1)->used : 0 };
	if (c) {
		p->offset = 0;
		for (uint64_t i = c->first; i < number; i++) {
			p->offset += entry_size(c, p->offset);
		}
	}
}

bool log_take(const struct core *core, struct log_place *p, struct log_entry *e) {
	const struct log_chunk *c = chunk_of(&core->log, p->number);
	if (c == NULL) {
		return false;
	}
	p->offset = p->number == c->first ? 0 : p->offset;
	uint32_t size = entry_size(c, p->offset) - (uint32_t)ENTRY_FIXED;
	const uint8_t *from = c->bytes + p->offset;
	uint16_t head;
	memcpy(&head, from, sizeof head);
	e->how = (enum core_news_kind)(head >> SIZE_BITS);
	memcpy(&e->lock_id, from + sizeof(uint16_t), sizeof e->lock_id);
	memcpy(e->bytes, from + ENTRY_FIXED, size);
	e->key = slice_of(e->bytes, size);
	p->number++;
	p->offset += (uint32_t)ENTRY_FIXED + size;
	return true;
}

uint64_t log_bytes(const struct core *core) {
	return (uint64_t)core->log.count * core->log.chunk_bytes;
}
