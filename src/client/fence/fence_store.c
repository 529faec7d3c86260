/* fence_store.c: decides which tokens may pass, and remembers them. */
#include "fence_store.h"

#include <string.h>

#include "env.h"
#include "fence_file.h"
#include "list.h"
#include "map.h"
#include "siphash.h"

#define NAMES_MAX 1000000
/* Shorter files are not worth rewriting. */
#define REWRITE_RECORDS_LEAST 1024

struct fence_mark {
	struct map_node node;
	struct list link;

	/* The highest token that an exclusive lock has shown. */
	uint64_t exclusive;

	/* The highest token that any lock has shown. */
	uint64_t highest;
	size_t size;
	uint8_t name[];
};

struct pawl_fence {
	const struct allocator *alloc;
	struct siphash_key key;
	struct map marks;
	struct list all;
	bool in_file;
	struct fence_file file;
};

/* ---- what is known ---- */

static uint64_t hash_of(const struct pawl_fence *f, struct slice name) {
	return siphash(f->key, name.data, name.size);
}

static struct fence_mark *find(const struct pawl_fence *f, struct slice name) {
	for (struct map_node *at = map_first(&f->marks, hash_of(f, name)); at; at = map_next(at)) {
		struct fence_mark *mark = CONTAINER_OF(at, struct fence_mark, node);
		if (mark->size == name.size
			&& (name.size == 0 || memcmp(mark->name, name.data, name.size) == 0)) {
			return mark;
		}
	}
	return NULL;
}

static int find_or_add(struct pawl_fence *f, struct slice name, struct fence_mark **out) {
	*out = find(f, name);
	if (*out) {
		return 0;
	}
	if (f->marks.count >= NAMES_MAX) {
		return PAWL_EFULL;
	}
	struct fence_mark *mark = alloc_new(f->alloc, sizeof(*mark) + name.size);
	if (!mark) {
		return PAWL_ENOMEM;
	}
	mark->size = name.size;
	if (name.size) {
		memcpy(mark->name, name.data, name.size);
	}
	map_insert(&f->marks, &mark->node, hash_of(f, name));
	list_append(&f->all, &mark->link);
	*out = mark;
	return 0;
}

static void raise(uint64_t *mark, uint64_t token) {
	*mark = token > *mark ? token : *mark;
}

/* The numbers only grow, so neither the order of records matters, nor that some of them are read
 * twice. */
static int take(void *ctx, const struct fence_record *record) {
	struct fence_mark *mark;
	int error = find_or_add(ctx, record->name, &mark);
	if (!error) {
		raise(&mark->exclusive, record->exclusive);
		raise(&mark->highest, record->highest);
	}
	return error;
}

/* ---- the decision ---- */

/* docs/protocol.md, section 8.2 and More than one holder: tokens order the holders that exclude
 * each other. The token of an exclusive lock must not be below any other, and that of a shared lock
 * must not be below that of an exclusive lock. */
static bool may_pass(const struct fence_mark *mark, uint64_t token, enum pawl_mode mode) {
	return token >= (mode == PAWL_EXCLUSIVE ? mark->highest : mark->exclusive);
}

static int record(struct pawl_fence *f, struct fence_mark *mark, uint64_t token,
	enum pawl_mode mode) {
	uint64_t exclusive = mark->exclusive, highest = mark->highest;
	raise(&highest, token);
	if (mode == PAWL_EXCLUSIVE) {
		raise(&exclusive, token);
	}
	bool changes = exclusive != mark->exclusive || highest != mark->highest;
	int error = 0;
	if (f->in_file) {
		struct fence_record r = { .name = slice_of(mark->name, mark->size),
			.exclusive = exclusive, .highest = highest };
		error = changes ? fence_file_append(&f->file, &r) : fence_file_sync(&f->file);
	}
	if (!error) {
		mark->exclusive = exclusive;
		mark->highest = highest;
	}
	return error;
}

struct walk {
	const struct list *head;
	struct list *at;
};

static bool next_mark(void *ctx, struct fence_record *out) {
	struct walk *walk = ctx;
	if (!walk->at) {
		return false;
	}
	const struct fence_mark *mark = CONTAINER_OF(walk->at, struct fence_mark, link);
	*out = (struct fence_record){
		slice_of(mark->name, mark->size), mark->exclusive, mark->highest
	};
	walk->at = list_after(walk->head, walk->at);
	return true;
}

static int rewrite_if_long(struct pawl_fence *f) {
	struct walk walk = { &f->all, list_first(&f->all) };
	bool is_long = f->in_file && f->file.records >= REWRITE_RECORDS_LEAST
		&& f->file.records >= 2 * f->marks.count;
	return is_long ? fence_file_rewrite(&f->file, next_mark, &walk, f->marks.count) : 0;
}

static int store_lock(struct pawl_fence *f) {
	return f->in_file ? fence_file_lock(&f->file, take, f) : 0;
}

static void store_unlock(struct pawl_fence *f) {
	if (f->in_file) {
		fence_file_unlock(&f->file);
	}
}

int pawl_fence_store_check(struct pawl_fence *fence, struct pawl_bytes name, uint64_t token,
	enum pawl_mode mode, uint64_t *out_highest) {
	if (token == 0 || name.size > PAWL_FENCE_NAME_MAX || (!name.data && name.size)
		|| (unsigned)mode > PAWL_PERMITS) {
		return PAWL_EINVAL;
	}
	int error = store_lock(fence);
	if (error) {
		return error;
	}
	struct fence_mark *mark = NULL;
	error = find_or_add(fence, slice_of(name.data, name.size), &mark);
	if (!error) {
		error = may_pass(mark, token, mode) ? record(fence, mark, token, mode) : PAWL_ELOST;
	}
	if (out_highest && (error == 0 || error == PAWL_ELOST)) {
		*out_highest = mark->highest;
	}
	error = error ? error : rewrite_if_long(fence);
	store_unlock(fence);
	return error;
}

int pawl_fence_highest(struct pawl_fence *fence, struct pawl_bytes name, uint64_t *out_highest) {
	int error = store_lock(fence);
	if (!error) {
		const struct fence_mark *mark = find(fence, slice_of(name.data, name.size));
		*out_highest = mark ? mark->highest : 0;
		store_unlock(fence);
	}
	return error;
}

/* ---- its life ---- */

static int store_begin(struct pawl_fence *f, const char *path) {
	struct pawl_id seed;
	list_init(&f->all);
	int error = pawl_id_new(&seed);
	memcpy(&f->key, seed.bytes, sizeof(f->key));
	error = error ? error : map_init(&f->marks, f->alloc);
	if (error || !path) {
		return error;
	}
	error = fence_file_open(&f->file, f->alloc, path);
	f->in_file = error == 0;
	/* This shows at once whether the file is damaged or cannot be used. */
	error = error ? error : store_lock(f);
	if (!error) {
		store_unlock(f);
	}
	return error;
}

int fence_store_open(const struct allocator *alloc, const char *path, struct pawl_fence **out) {
	struct pawl_fence *f = alloc_new(alloc, sizeof(*f));
	if (!f) {
		return PAWL_ENOMEM;
	}
	f->alloc = alloc;
	int error = store_begin(f, path);
	if (error) {
		pawl_fence_close(f);
		return error;
	}
	*out = f;
	return 0;
}

int pawl_fence_open(const char *path, struct pawl_fence **out_fence) {
	return fence_store_open(env_system()->alloc, path, out_fence);
}

void pawl_fence_close(struct pawl_fence *take_fence) {
	if (!take_fence) {
		return;
	}
	struct list *at;
	while ((at = list_first(&take_fence->all)) != NULL) {
		struct fence_mark *mark = CONTAINER_OF(at, struct fence_mark, link);
		list_remove(at);
		map_remove(&take_fence->marks, &mark->node);
		alloc_free(take_fence->alloc, mark, sizeof(*mark) + mark->size);
	}
	map_done(&take_fence->marks);
	if (take_fence->in_file) {
		fence_file_close(&take_fence->file);
	}
	alloc_free(take_fence->alloc, take_fence, sizeof(*take_fence));
}
