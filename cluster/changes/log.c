/* log.c: the transaction log (section 7). It numbers whatever this master accepted, in bounded
 * memory. An entry only names what has changed. Whoever sends it looks up what has become of that,
 * so that lease and value are those of the sending, and nothing is kept twice. Watch events are the
 * exception: each stands in the log as it was, between the entries of what it is about, as long as
 * followers want watch events. The oldest entries give way; a follower that would have needed them
 * takes a snapshot. */
#include "changes.h"

#define CHUNK_MIN 1024u
/* A watch event has to fit into a chunk, with its value. */
#define CHUNK_MAX 262144u
/* An entry begins with the size of its key, and its lock_id; then comes the key. */
#define ENTRY_FIXED (sizeof(uint16_t) + sizeof(struct id128))
/* This bit is set in the first number of an entry, next to the size of its key, if it is a watch
 * event. Then struct log_watch_event follows the key. */
#define ENTRY_WATCH_EVENT 0x8000u

/* A part of the log's memory. */
struct log_chunk {
	/* The number of the chunk's first entry. */
	uint64_t first;
	/* How many entries, and how many bytes, are in it. */
	uint32_t count, used;
	/* The entries (changes/log.c). */
	uint8_t bytes[];
};

/* A watch event in the log. Its owner, identity, label and value follow it. */
struct log_watch_event {
	enum core_watch_event_kind kind;
	uint64_t token;
	struct ballot value_seq;
	struct terms terms;
	/* The sizes of what follows, in bytes. */
	uint32_t owner, identity, label, value;
};

static struct log_chunk *chunk_at(const struct log *log, uint32_t i) {
	return log->chunks[(log->head + i) % log->slots];
}

static bool make_ring(struct core *core) {
	struct log *log = &core->changes.log;
	if (log->chunks) {
		return true;
	}
	uint64_t part = core->limits.log_bytes / 16;
	log->chunk_bytes = part < CHUNK_MIN ? CHUNK_MIN
		: part > CHUNK_MAX ? CHUNK_MAX
		: (uint32_t)part;
	uint64_t slots = core->limits.log_bytes / log->chunk_bytes;
	log->slots = slots < 2 ? 2 : slots > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)slots;
	log->chunks = alloc_new(&core->alloc, log->slots * sizeof(struct log_chunk *));
	return log->chunks != NULL;
}

static void drop_chunks(struct core *core) {
	struct log *log = &core->changes.log;
	for (; log->count > 0; log->count--) {
		alloc_free(&core->alloc, chunk_at(log, log->count - 1),
			sizeof(struct log_chunk) + log->chunk_bytes);
	}
}

void log_done(struct core *core) {
	drop_chunks(core);
	alloc_free(&core->alloc, core->changes.log.chunks,
		core->changes.log.slots * sizeof(struct log_chunk *));
	core->changes.log.chunks = NULL;
}

/* Returns a chunk for what comes next: a new one, or the oldest one, whose entries are lost. NULL:
 * no memory. */
static struct log_chunk *next_chunk(struct core *core) {
	struct log *log = &core->changes.log;
	struct log_chunk *c = log->count < log->slots
		? alloc_new(&core->alloc, sizeof *c + log->chunk_bytes) : NULL;
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

static size_t watch_event_size(const struct core_watch_event *n) {
	return sizeof(struct log_watch_event) + n->owner.size + n->identity.size + n->label.size +
		n->value.size;
}

static void put_watch_event(uint8_t *to, const struct core_watch_event *n) {
	const struct log_watch_event head = { .kind = n->kind, .token = n->token,
		.value_seq = n->value_seq, .terms = n->terms,
		.owner = (uint32_t)n->owner.size, .identity = (uint32_t)n->identity.size,
		.label = (uint32_t)n->label.size,
		.value = (uint32_t)n->value.size };
	to = slice_put(to, slice_of(&head, sizeof head));
	to = slice_put(to, n->owner);
	to = slice_put(to, n->identity);
	to = slice_put(to, n->label);
	slice_put(to, n->value);
}

static struct slice take(const uint8_t **from, uint32_t size) {
	struct slice s = slice_of(*from, size);
	*from += size;
	return s;
}

static void take_watch_event(const uint8_t *from, struct log_entry *e) {
	struct log_watch_event head;
	memcpy(&head, from, sizeof head);
	from += sizeof head;
	e->watch_event = (struct core_watch_event){ .kind = head.kind, .key = e->key,
		.lock_id = e->lock_id, .token = head.token, .value_seq = head.value_seq,
		.terms = head.terms };
	e->watch_event.owner = take(&from, head.owner);
	e->watch_event.identity = take(&from, head.identity);
	e->watch_event.label = take(&from, head.label);
	e->watch_event.value = take(&from, head.value);
}

/* Stores an entry. watch_event is NULL if the entry is none. False: no memory. Not inline: mostly
 * there is nobody who could follow, and then its caller is to cost little. */
static __attribute__((noinline)) bool store(struct core *core, struct slice key,
	struct id128 lock_id,
	const struct core_watch_event *watch_event) {
	struct log *log = &core->changes.log;
	if (!make_ring(core)) {
		return false;
	}
	uint16_t size = (uint16_t)key.size,
		head = (uint16_t)(size | (watch_event ? ENTRY_WATCH_EVENT : 0));
	uint32_t bytes = (uint32_t)(ENTRY_FIXED + size +
		(watch_event ? watch_event_size(watch_event) : 0));
	struct log_chunk *c = log->count ? chunk_at(log, log->count - 1) : NULL;
	if (c == NULL || c->used + bytes > log->chunk_bytes) {
		c = next_chunk(core);
	}
	if (c == NULL) {
		return false;
	}
	uint8_t *to = c->bytes + c->used;
	to = slice_put(to, slice_of(&head, sizeof head));
	to = slice_put(to, slice_of(&lock_id, sizeof lock_id));
	to = slice_put(to, key);
	if (watch_event) {
		put_watch_event(to, watch_event);
	}
	c->used += bytes;
	c->count++;
	return true;
}

/* While there is nobody who could follow, only the number goes up. */
void log_append(struct core *core, struct slice key, struct id128 lock_id,
	const struct core_watch_event *watch_event) {
	struct log *log = &core->changes.log;
	if (core->self >= core->masters) {
		/* Nobody follows a replica. */
		return;
	}
	bool wanted = core->config.node_count > core->masters;
	bool stored = wanted && store(core, key, lock_id, watch_event);
	core->counts[COUNT_log_lost] += wanted && !stored;
	log->next++;
	if (!stored) {
		if (log->count > 0) {
			drop_chunks(core);
		}
		log->oldest = log->next;
	}
	if (core->changes.feeds > 0) {
		core->observers->logged(core);
	}
}

/* Where the event does not fit, the log says that events of its key were missed. */
void log_append_watch_event(struct core *core, const struct core_watch_event *watch_event) {
	const struct core_watch_event missed = { .kind = WATCH_EVENT_MISSED,
		.key = watch_event->key };
	bool fits = make_ring(core) && ENTRY_FIXED + watch_event->key.size +
		watch_event_size(watch_event) <= core->changes.log.chunk_bytes;
	const struct core_watch_event *kept = fits ? watch_event : &missed;
	log_append(core, kept->key, kept->lock_id, kept);
}

void log_new_id(struct core *core) {
	struct log *log = &core->changes.log;
	core->observers->log_ends(core);
	drop_chunks(core);
	log->id = core->durable.boot << 32 | ++log->generation;
	log->next = log->next ? log->next : 1;
	log->oldest = log->next;
}

/* Returns the chunk that has the entry, or NULL. */
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

static uint32_t key_size(const uint8_t *entry, bool *is_watch_event) {
	uint16_t head;
	memcpy(&head, entry, sizeof head);
	*is_watch_event = head & ENTRY_WATCH_EVENT;
	return head & ~ENTRY_WATCH_EVENT;
}

static uint32_t entry_size(const struct log_chunk *c, uint32_t offset) {
	bool is_watch_event;
	const uint8_t *from = c->bytes + offset;
	uint32_t size = (uint32_t)ENTRY_FIXED + key_size(from, &is_watch_event);
	if (is_watch_event) {
		struct log_watch_event n;
		memcpy(&n, from + size, sizeof n);
		size += (uint32_t)sizeof n + n.owner + n.identity + n.label + n.value;
	}
	return size;
}

void log_seek(const struct core *core, struct log_place *p, uint64_t number) {
	const struct log *log = &core->changes.log;
	CHECK(number >= log->oldest && number <= log->next);
	const struct log_chunk *c = chunk_of(log, number);
	*p = (struct log_place){ .number = number,
		.offset = log->count ? chunk_at(log, log->count - 1)->used : 0 };
	if (c) {
		p->offset = 0;
		for (uint64_t i = c->first; i < number; i++) {
			p->offset += entry_size(c, p->offset);
		}
	}
}

bool log_take(const struct core *core, struct log_place *p, struct log_entry *e) {
	const struct log_chunk *c = chunk_of(&core->changes.log, p->number);
	if (c == NULL) {
		return false;
	}
	p->offset = p->number == c->first ? 0 : p->offset;
	const uint8_t *from = c->bytes + p->offset;
	uint32_t size = key_size(from, &e->is_watch_event);
	memcpy(&e->lock_id, from + sizeof(uint16_t), sizeof e->lock_id);
	memcpy(e->bytes, from + ENTRY_FIXED, size);
	e->key = slice_of(e->bytes, size);
	if (e->is_watch_event) {
		take_watch_event(from + ENTRY_FIXED + size, e);
	}
	p->number++;
	p->offset += entry_size(c, p->offset);
	return true;
}

uint64_t log_bytes(const struct core *core) {
	return (uint64_t)core->changes.log.count * core->changes.log.chunk_bytes;
}
