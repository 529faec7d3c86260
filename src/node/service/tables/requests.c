/* requests.c: the requests of clients that are under way, and batches of them. */
#include "requests.h"

#include "check.h"
#include "pawl/error.h"

/* The requests of one client. It is made with the client's first request, and is gone with the
 * client; so a connection that closes costs no more than its own requests. */
struct requests_client {
	struct map_node node;
	struct list open;
	uint64_t client;
	uint32_t waiting;
	/* The party of its last request that has one, because most are of the same; or NULL. */
	struct party *party;
};

static struct requests_client *requests_client_find(const struct requests *r, uint64_t client) {
	struct map_node *node = map_first_number(&r->by_client, client);
	return node ? CONTAINER_OF(node, struct requests_client, node) : NULL;
}

static struct requests_client *requests_client_new(struct requests *r, uint64_t client) {
	struct requests_client *c = alloc_new(r->alloc, sizeof *c);
	if (c) {
		c->client = client;
		list_init(&c->open);
		map_insert_number(&r->by_client, &c->node, client);
	}
	return c;
}

static void requests_add(struct requests *r, struct requests_client *c, struct request *request) {
	request->id = ++r->last_id;
	request->client = c->client;
	request->of = c;
	list_append(&c->open, &request->among);
	map_insert_number(&r->by_id, &request->node, request->id);
}

int requests_open(struct requests *r, uint64_t client, uint32_t msgid, struct request **out) {
	if (r->by_id.count >= REQUESTS_MAX) {
		return PAWL_EBUSY;
	}
	struct requests_client *c = requests_client_find(r, client);
	c = c ? c : requests_client_new(r, client);
	struct request *request = c ? alloc_new(r->alloc, sizeof *request) : NULL;
	if (!request) {
		return PAWL_ENOMEM;
	}
	request->msgid = msgid;
	requests_add(r, c, request);
	*out = request;
	return 0;
}

int requests_open_batch(struct requests *r, uint64_t client, uint32_t msgid, uint32_t count,
	const struct allocator *alloc, struct requests_batch **out) {
	CHECK(count > 0);
	if (r->by_id.count + count > REQUESTS_MAX) {
		return PAWL_EBUSY;
	}
	struct requests_client *c = requests_client_find(r, client);
	c = c ? c : requests_client_new(r, client);
	struct requests_batch *batch = c ? alloc_new(r->alloc, sizeof *batch) : NULL;
	if (!batch) {
		return PAWL_ENOMEM;
	}
	batch->client = client;
	batch->msgid = msgid;
	batch->count = batch->left = count;
	buffer_init(&batch->items, alloc ? alloc : r->client_alloc, client_response_limits.bytes);
	batch->results = alloc_new(r->alloc, count * sizeof *batch->results);
	batch->requests = alloc_new(r->alloc, count * sizeof *batch->requests);
	if (!batch->results || !batch->requests) {
		requests_batch_free(r, batch);
		return PAWL_ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		batch->requests[i].batch = batch;
		batch->requests[i].index = i;
		requests_add(r, c, &batch->requests[i]);
	}
	*out = batch;
	return 0;
}

struct request *requests_find(const struct requests *r, uint64_t id) {
	struct map_node *node = map_first_number(&r->by_id, id);
	return node ? CONTAINER_OF(node, struct request, node) : NULL;
}

void requests_mark_waiting(struct request *request) {
	CHECK(!request->waiting);
	request->waiting = true;
	request->of->waiting++;
}

uint32_t requests_waiting(const struct requests *r, uint64_t client) {
	const struct requests_client *c = requests_client_find(r, client);
	return c ? c->waiting : 0;
}

/* ---- what is waited for ---- */

/* What stands in front of each key. */
struct wait_head {
	struct id128 lock_id;
	uint16_t of, count, size;
};

static size_t wait_locks_size(const struct core_request *asked) {
	size_t size = asked->lock_count ? 0 : sizeof(struct wait_head) + asked->key.size;
	for (uint32_t i = 0; i < asked->lock_count; i++) {
		size += sizeof(struct wait_head) + asked->locks[i].key.size;
	}
	return size;
}

static uint8_t *wait_put_lock(uint8_t *to, const struct core_lock *lock) {
	const struct wait_head head = { lock->lock_id, lock->of, lock->count,
		(uint16_t)lock->key.size };
	memcpy(to, &head, sizeof head);
	return slice_put(to + sizeof head, lock->key);
}

void requests_enter_waits(struct requests *r) {
	struct list *first;
	while ((first = list_first(&r->fresh)) != NULL) {
		struct requests_wait *wait = CONTAINER_OF(first, struct requests_wait, in);
		struct party *party = wait->request->party;
		list_remove(first);
		list_append(&r->waits, first);
		if (party) {
			list_append(&party->waits, &wait->of_party);
			list_append(&r->due, &wait->due);
		}
		if (party && wait->has_several) {
			list_append(&r->several, &wait->several);
		}
	}
}

int requests_keep_wait(struct requests *r, struct request *request,
	const struct core_request *asked, const struct allocator *alloc) {
	size_t size = wait_locks_size(asked);
	alloc = alloc ? alloc : r->client_alloc;
	struct requests_wait *wait = alloc_new(alloc, sizeof *wait + size + asked->owner.size);
	if (!wait) {
		return PAWL_ENOMEM;
	}
	wait->alloc = alloc;
	uint8_t *to = wait->locks;
	for (uint32_t i = 0; i < asked->lock_count; i++) {
		to = wait_put_lock(to, &asked->locks[i]);
	}
	if (asked->lock_count == 0) {
		const struct core_lock one = { asked->key, asked->lock_id, asked->terms.of,
			asked->terms.count };
		to = wait_put_lock(to, &one);
	}
	slice_put(to, asked->owner);
	wait->owner_size = (uint16_t)asked->owner.size;
	wait->request = request;
	wait->right = asked->op == CORE_WAIT ? RIGHT_WAIT : RIGHT_ACQUIRE;
	wait->priority = asked->terms.priority;
	wait->size = (uint32_t)size;
	wait->has_several = asked->lock_count > 0;
	request->wait = wait;
	list_append(&r->fresh, &wait->in);
	return 0;
}

static void forget_why(struct requests_wait *wait) {
	if (wait->why) {
		alloc_free(wait->alloc, wait->why, wait->why_size);
	}
}

static void wait_free(struct requests_wait *wait) {
	list_remove(&wait->in);
	if (list_linked(&wait->due)) {
		list_remove(&wait->due);
		list_remove(&wait->of_party);
		list_remove(&wait->several);
	}
	forget_why(wait);
	alloc_free(wait->alloc, wait, sizeof *wait + wait->size + wait->owner_size);
}

void requests_wait_end(struct requests_wait *wait, const char *why) {
	const uint32_t size = (uint32_t)strlen(why) + 1;
	forget_why(wait);
	wait->why = alloc_new(wait->alloc, size);
	if (wait->why) {
		memcpy(wait->why, why, size);
		wait->why_size = size;
	}
}

/* ---- parties ---- */

void requests_of_party(struct requests *r, struct request *request, struct id128 id) {
	struct requests_client *c = request->of;
	if (id128_zero(id)) {
		/* No other connection of any node has this name. */
		memcpy(id.b, &r->salt, sizeof r->salt);
		memcpy(id.b + sizeof r->salt, &c->client, sizeof c->client);
	}
	if (!c->party || !id128_equal(c->party->id, id)) {
		parties_leave(&r->parties, c->party);
		c->party = parties_use(&r->parties, id);
	}
	request->party = c->party;
	if (c->party) {
		c->party->uses++;
	}
}

void requests_doubt(struct requests *r) {
	requests_enter_waits(r);
	list_splice(&r->doubted, &r->waits);
}

const struct requests_wait *requests_doubted(const struct requests *r) {
	struct list *first = list_first(&r->doubted);
	return first ? CONTAINER_OF(first, struct requests_wait, in) : NULL;
}

void requests_trust(struct requests *r, const struct requests_wait *wait) {
	struct requests_wait *kept = wait->request->wait;
	list_remove(&kept->in);
	list_append(&r->waits, &kept->in);
}

bool requests_wait_lock(const struct requests_wait *wait, size_t *at, struct core_lock *out) {
	struct wait_head head;
	if (*at >= wait->size) {
		return false;
	}
	memcpy(&head, wait->locks + *at, sizeof head);
	*out = (struct core_lock){ slice_of(wait->locks + *at + sizeof head, head.size),
		head.lock_id, head.of, head.count };
	*at += sizeof head + head.size;
	return true;
}

bool requests_wait_key(const struct requests_wait *wait, size_t *at, struct slice *out) {
	struct core_lock lock;
	bool found = requests_wait_lock(wait, at, &lock);
	*out = found ? lock.key : *out;
	return found;
}

/* ---- the end ---- */

static void requests_unlink(struct requests *r, struct request *request) {
	if (request->share.identity) {
		shares_give(&request->share, SHARE_WAITS, request->waiting);
		shares_give(&request->share, SHARE_LOCKS, request->locks);
		shares_give(&request->share, SHARE_VALUES, request->bytes);
	}
	if (request->waiting) {
		request->of->waiting--;
	}
	parties_leave(&r->parties, request->party);
	map_remove(&r->by_id, &request->node);
	list_remove(&request->among);
	if (request->note) {
		request_note_free(request->note);
	}
	request_counts_forget(&r->counts, &request->count);
}

int requests_keep_watch(struct requests *r, struct request *request, struct slice key, uint64_t log,
	uint64_t number) {
	CHECK(!request->watch && key.size <= KEY_MAX);
	struct requests_watch *watch = alloc_new(r->alloc, sizeof *watch + key.size);
	if (!watch) {
		return PAWL_ENOMEM;
	}
	watch->log = log;
	watch->number = number;
	watch->size = (uint16_t)key.size;
	memcpy(watch->key, key.size ? key.data : watch->key, key.size);
	request->watch = watch;
	return 0;
}

int requests_keep_list(struct requests *r, struct request *request, const struct core_reply *reply,
	const struct allocator *alloc) {
	if (!request->list) {
		request->list = alloc_new(r->alloc, sizeof *request->list);
		if (!request->list) {
			return PAWL_ENOMEM;
		}
		buffer_init(&request->list->items, alloc ? alloc : r->client_alloc,
			client_response_limits.bytes);
	}
	return client_list_add(request->list, reply);
}

static void requests_drop_list(struct requests *r, struct client_list *list) {
	buffer_done(&list->items);
	alloc_free(r->alloc, list, sizeof *list);
}

void requests_close(struct requests *r, struct request *request) {
	CHECK(!request->batch);
	if (request->wait) {
		wait_free(request->wait);
	}
	requests_unlink(r, request);
	if (request->watch) {
		alloc_free(r->alloc, request->watch, sizeof *request->watch + request->watch->size);
	}
	if (request->list) {
		requests_drop_list(r, request->list);
	}
	alloc_free(r->alloc, request, sizeof *request);
}

/* Encodes the results that have come, in order. After an error there was no memory, or there are
 * too many results. */
static int requests_batch_go_on(struct requests_batch *batch,
	const struct client_context *context) {
	int error = 0;
	while (!error && batch->encoded < batch->count
		&& !list_linked(&batch->requests[batch->encoded].among)) {
		error = client_batch_add(&batch->items, &batch->results[batch->encoded], context);
		batch->encoded += !error;
	}
	return error;
}

struct requests_batch *requests_close_part(struct requests *r, struct request *request,
	const struct client_extended *result, const struct client_context *context) {
	struct requests_batch *batch = request->batch;
	CHECK(batch && batch->left > 0);
	requests_unlink(r, request);
	batch->results[request->index] = *result;
	/* If it fails, it is tried again with a later result. */
	(void)requests_batch_go_on(batch, context);
	return --batch->left == 0 ? batch : NULL;
}

int requests_batch_encode(struct requests_batch *batch, const struct client_context *context,
	struct buffer *out) {
	int error = requests_batch_go_on(batch, context);
	return error ? error : client_batch_encode(batch->msgid, &batch->items, batch->count, out);
}

void requests_batch_free(struct requests *r, struct requests_batch *batch) {
	alloc_free(r->alloc, batch->results, batch->count * sizeof *batch->results);
	alloc_free(r->alloc, batch->requests, batch->count * sizeof *batch->requests);
	buffer_done(&batch->items);
	alloc_free(r->alloc, batch, sizeof *batch);
}

static void requests_drop(struct requests *r, struct request *request) {
	struct requests_batch *batch = request->batch;
	if (request->note && r->forgotten) {
		r->forgotten(r->ctx, request);
	}
	if (!batch) {
		requests_close(r, request);
		return;
	}
	requests_unlink(r, request);
	if (--batch->left == 0) {
		requests_batch_free(r, batch);
	}
}

/* Closes at most that many requests, and returns how many. The client goes with the last one. */
static uint32_t requests_client_free(struct requests *r, struct requests_client *c, uint32_t most) {
	uint32_t closed = 0;
	struct list *first;
	while ((first = list_first(&c->open)) != NULL && closed < most) {
		requests_drop(r, CONTAINER_OF(first, struct request, among));
		closed++;
	}
	if (!first) {
		parties_leave(&r->parties, c->party);
		map_remove(&r->by_client, &c->node);
		alloc_free(r->alloc, c, sizeof *c);
	}
	return closed;
}

uint32_t requests_forget(struct requests *r, uint64_t client, uint32_t most) {
	struct requests_client *c = requests_client_find(r, client);
	return c ? requests_client_free(r, c, most) : 0;
}

int requests_init(struct requests *r, const struct allocator *alloc,
	const struct allocator *client_alloc, struct siphash_key hash_key) {
	*r = (struct requests){ .alloc = alloc, .client_alloc = client_alloc };
	list_init(&r->fresh);
	list_init(&r->waits);
	list_init(&r->doubted);
	list_init(&r->several);
	list_init(&r->due);
	r->salt = siphash(hash_key, "party", 5);
	request_counts_init(&r->counts);
	int error = map_init(&r->by_id, alloc);
	error = error ? error : map_init(&r->by_client, alloc);
	error = error ? error : parties_init(&r->parties, alloc, hash_key);
	if (error) {
		requests_done(r);
	}
	return error;
}

static void requests_client_drained(void *r, struct map_node *node) {
	requests_client_free(r, CONTAINER_OF(node, struct requests_client, node), UINT32_MAX);
}

void requests_done(struct requests *r) {
	map_drain(&r->by_client, requests_client_drained, r);
	map_done(&r->by_id);
	map_done(&r->by_client);
	parties_done(&r->parties);
	*r = (struct requests){ 0 };
}
