/* sim_session.c: the machines of clients, and their connections to nodes. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

/* ---- machines ---- */

void sim_actor_init(struct sim *sim, struct sim_actor *actor, uint32_t number) {
	*actor = (struct sim_actor){ .number = number };
	sim_clock_draw(sim, &actor->clock, false);
}

struct instant sim_actor_clock(const struct sim *sim, const struct sim_actor *actor) {
	return sim_clock_read(&actor->clock, sim->now);
}

bool sim_actor_paused(const struct sim *sim, const struct sim_actor *actor) {
	return actor->paused_until > sim->now;
}

void sim_actor_pause(struct sim *sim, struct sim_actor *actor, span_ns span) {
	if (!sim_actor_paused(sim, actor)) {
		actor->paused_until = sim->now + span;
	}
}

static void wakes(void *ctx, uint64_t arg) {
	struct sim_actor *actor = ctx;
	sim_clock_suspend(&actor->clock, (int64_t)arg, false);
}

void sim_actor_suspend(struct sim *sim, struct sim_actor *actor, span_ns span) {
	if (!sim_actor_paused(sim, actor)) {
		actor->paused_until = sim->now + span;
		sim_clock_suspend(&actor->clock, sim->now, true);
		sim_at(sim, actor->paused_until, wakes, actor, (uint64_t)actor->paused_until);
	}
}

/* ---- connections ---- */

static span_ns session_delay(struct sim *sim) {
	return sim_between(sim, sim->options.session_delay_min, sim->options.session_delay_max);
}

static bool node_has(const struct sim_session *s) {
	const struct sim_node *node = &s->sim->nodes[s->node];
	return s->node_open && node->core && node->incarnation == s->incarnation;
}

static void tell_closed(void *ctx, uint64_t arg) {
	(void)arg;
	struct sim_session *s = ctx;
	if (!s->open) {
		return;
	}
	if (sim_actor_paused(s->sim, s->actor)) {
		sim_at(s->sim, s->actor->paused_until, tell_closed, s, 0);
		return;
	}
	s->open = false;
	s->handler.closed(s->handler.ctx);
}

static int64_t later(int64_t a, int64_t b) {
	return a > b ? a : b;
}

static int64_t arrival(struct sim_session *s, int64_t *last) {
	*last = later(*last, later(s->sim->now, s->cut_until) + session_delay(s->sim));
	return *last;
}

struct sim_session *sim_connect(struct sim *sim, struct sim_actor *actor, uint32_t node,
	struct sim_handler handler) {
	if (sim->session_count == sim->session_capacity) {
		sim->session_capacity = sim->session_capacity ? 2 * sim->session_capacity : 64;
		sim->sessions = realloc(sim->sessions,
			sim->session_capacity * sizeof(struct sim_session *));
		CHECK(sim->sessions != NULL);
	}
	struct sim_session *s = calloc(1, sizeof *s);
	CHECK(s != NULL);
	sim->sessions[sim->session_count++] = s;
	s->sim = sim;
	s->actor = actor;
	s->handler = handler;
	s->node = node;
	/* The number is the index + 1. */
	s->number = sim->session_count;
	s->incarnation = sim->nodes[node].incarnation;
	s->open = true;
	s->node_open = sim->nodes[node].core != NULL;
	if (!s->node_open) {
		sim_at(sim, sim->now + session_delay(sim), tell_closed, s, 0);
	}
	return s;
}

bool sim_session_open(const struct sim_session *session) {
	return session->open;
}

void sim_session_cut(struct sim_session *s, span_ns span) {
	s->cut_until = later(s->cut_until, s->sim->now + span);
}

bool sim_session_flows(const struct sim_session *s) {
	return s->open && s->sim->now >= s->cut_until;
}

static void arrive_at_node(void *ctx, uint64_t arg) {
	(void)arg;
	struct sim_session *s = ctx;
	struct sim_item *item = sim_fifo_take(&s->to_node);
	if (node_has(s)) {
		s->node_open = item->kind != ITEM_GONE;
		sim_node_deliver(&s->sim->nodes[s->node], item);
	} else {
		free(item);
	}
}

static void put_to_node(struct sim_session *s, struct sim_item *item) {
	sim_fifo_put(&s->to_node, item);
	sim_at(s->sim, arrival(s, &s->to_node_at), arrive_at_node, s, 0);
}

void sim_session_close(struct sim_session *s) {
	if (!s->open) {
		return;
	}
	s->open = false;
	struct sim_item *item = sim_item_new(ITEM_GONE, 0);
	item->session = s->number;
	put_to_node(s, item);
}

static struct slice keep(struct sim_item *item, size_t *used, struct slice s) {
	if (s.size == 0) {
		return s;
	}
	memcpy(item->bytes + *used, s.data, s.size);
	struct slice kept = slice_of(item->bytes + *used, s.size);
	*used += s.size;
	return kept;
}

static size_t change_size(const struct core_change *change) {
	size_t size = 0;
	if (change) {
		size = sizeof *change + change->name.size + change->other.size +
			change->address.size;
		for (uint32_t i = 0; i < change->node_count; i++) {
			size += sizeof *change->nodes + change->nodes[i].name.size +
				change->nodes[i].address.size;
		}
	}
	return size;
}

/* The structs come first, because they have to be aligned; then come the bytes. */
static size_t keep_change(struct sim_item *item, const struct core_change *change) {
	if (!change) {
		return 0;
	}
	struct core_change *copy = (struct core_change *)(void *)item->bytes;
	struct core_change_node *nodes = (struct core_change_node *)(void *)(copy + 1);
	size_t used = sizeof *copy + change->node_count * sizeof *nodes;
	*copy = *change;
	copy->name = keep(item, &used, change->name);
	copy->other = keep(item, &used, change->other);
	copy->address = keep(item, &used, change->address);
	for (uint32_t i = 0; i < change->node_count; i++) {
		nodes[i] = change->nodes[i];
		nodes[i].name = keep(item, &used, change->nodes[i].name);
		nodes[i].address = keep(item, &used, change->nodes[i].address);
	}
	copy->nodes = nodes;
	item->request.change = copy;
	return used;
}

static size_t locks_size(const struct core_request *r) {
	size_t size = 0;
	for (uint32_t i = 0; i < r->lock_count; i++) {
		size += sizeof *r->locks + r->locks[i].key.size;
	}
	return size;
}

/* As in keep_change, the structs come first. */
static size_t keep_locks(struct sim_item *item, const struct core_request *r) {
	struct core_lock *locks = (struct core_lock *)(void *)item->bytes;
	size_t used = r->lock_count * sizeof *locks;
	for (uint32_t i = 0; i < r->lock_count; i++) {
		locks[i] = r->locks[i];
		locks[i].key = keep(item, &used, r->locks[i].key);
	}
	item->request.locks = r->lock_count ? locks : NULL;
	return used;
}

uint64_t sim_send(struct sim_session *s, const struct core_request *request) {
	CHECK(s->open);
	struct sim_item *item = sim_item_new(ITEM_REQUEST, request->key.size + request->owner.size +
		request->value.size + request->identity.size + request->expected.size +
		request->after.size + request->label.size + request->to.size + locks_size(request) +
		change_size(request->change));
	item->request = *request;
	size_t used = request->change ? keep_change(item, request->change)
		: keep_locks(item, request);
	struct core_request *r = &item->request;
	r->id = ++s->sim->requests;
	r->client = s->number;
	r->key = keep(item, &used, request->key);
	r->owner = keep(item, &used, request->owner);
	r->value = keep(item, &used, request->value);
	r->identity = keep(item, &used, request->identity);
	r->expected = keep(item, &used, request->expected);
	r->after = keep(item, &used, request->after);
	r->label = keep(item, &used, request->label);
	r->to = keep(item, &used, request->to);
	uint64_t id = r->id;
	put_to_node(s, item);
	return id;
}

/* ---- replies ---- */

static void arrive_at_client(void *ctx, uint64_t arg) {
	(void)arg;
	struct sim_session *s = ctx;
	if (s->open && sim_actor_paused(s->sim, s->actor)) {
		sim_at(s->sim, s->actor->paused_until, arrive_at_client, s, 0);
		return;
	}
	struct sim_parcel *p = s->to_client;
	s->to_client = p->next;
	if (!s->to_client) {
		s->to_client_last = NULL;
	}
	if (s->open) {
		s->handler.reply(s->handler.ctx, &p->reply);
	}
	free(p);
}

static size_t copy_text(char out[SIM_TEXT_MAX], struct slice from) {
	size_t size = from.size < SIM_TEXT_MAX ? from.size : SIM_TEXT_MAX;
	if (size) {
		memcpy(out, from.data, size);
	}
	return size;
}

static void put_to_client(struct sim_session *s, const struct core_reply *reply) {
	struct sim_parcel *p = calloc(1, sizeof *p);
	CHECK(p != NULL);
	p->reply.r = *reply;
	p->reply.entry_owner_size = copy_text(p->reply.entry_owner, reply->entry.owner);
	p->reply.entry_value_size = copy_text(p->reply.entry_value, reply->entry.value);
	size_t why = reply->why.size < sizeof p->reply.why ? reply->why.size
		: sizeof p->reply.why - 1;
	if (why) {
		memcpy(p->reply.why, reply->why.data, why);
	}
	if (reply->op == CORE_WAITERS && reply->error == 0 && reply->count) {
		p->reply.first_waiter = reply->waiters[0].lock_id;
	}
	for (size_t i = 0; reply->got && i < reply->count && i < SIM_GOT_MAX; i++) {
		p->reply.got[i] = reply->got[i];
		p->reply.got[i].key = slice_of(NULL, 0);
	}
	if (s->to_client_last) {
		s->to_client_last->next = p;
	} else {
		s->to_client = p;
	}
	s->to_client_last = p;
	sim_at(s->sim, arrival(s, &s->to_client_at), arrive_at_client, s, 0);
}

/* ---- release on disconnect: the node's part ---- */

static uint32_t binding_of(const struct core_request *r) {
	return r->ordered ? 0
		: r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL ? r->terms.binding
		: r->op == CORE_EXTEND ? r->binding : 0;
}

void sim_session_asked(struct sim_node *node, const struct core_request *request) {
	struct sim_session *s = node->sim->sessions[request->client - 1];
	const struct core_lock alone = { .key = request->key, .lock_id = request->lock_id },
		*locks = request->lock_count ? request->locks : &alone;
	uint32_t count = binding_of(request) == 0 ? 0 : request->lock_count ? request->lock_count
		: 1;
	if (count > 0 && s->bindings == NULL) {
		s->bindings = calloc(SIM_BINDINGS_MAX, sizeof *s->bindings);
		CHECK(s->bindings != NULL);
	}
	for (uint32_t i = 0; i < count && s->binding_count < SIM_BINDINGS_MAX; i++) {
		struct sim_binding *b = &s->bindings[s->binding_count++];
		*b = (struct sim_binding){ .request = request->id, .lock = locks[i].lock_id,
			.binding = binding_of(request) };
		memcpy(b->key, locks[i].key.data,
			locks[i].key.size < sizeof b->key ? locks[i].key.size : sizeof b->key - 1);
	}
}

/* Only what was granted over this connection ends with it. */
static void binding_answered(struct sim_session *s, const struct core_reply *reply) {
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->binding_count; i++) {
		bool this = s->bindings[i].request == reply->id;
		s->bindings[i].request = this ? 0 : s->bindings[i].request;
		if (!this || !reply->error) {
			s->bindings[kept++] = s->bindings[i];
		}
	}
	s->binding_count = kept;
}

void sim_session_gone(struct sim_node *node, uint64_t session) {
	struct sim_session *s = node->sim->sessions[session - 1];
	for (uint32_t i = 0; i < s->binding_count; i++) {
		const struct sim_binding *b = &s->bindings[i];
		struct core_request r = { .op = CORE_RELEASE, .id = ++node->sim->requests,
			.client = session, .key = slice_str(b->key), .lock_id = b->lock,
			.binding = b->binding };
		if (b->request == 0) {
			sim_node_step(node,
				&(struct core_event){ .kind = CORE_REQUEST, .request = &r });
		}
	}
	s->binding_count = 0;
}

void sim_session_reply(struct sim_node *node, const struct core_reply *reply) {
	struct sim *sim = node->sim;
	if (reply->goes_on) {
		/* The last reply of a list says that all of it is there. */
		return;
	}
	struct sim_trace_record r = { .at = sim->now, .kind = TRACE_REPLY, .node = node->index,
		.other = (uint32_t)reply->client, .key = SIM_NO_KEY,
		.lock = sim_name_lock_number(reply->lock_id), .text = sim_op_name(reply->op),
		.error = reply->error, .token = reply->token, .a = reply->id,
		.b = (uint64_t)reply->valid / 1000000 };
	sim_look_recall(sim, SIM_REQUEST | reply->id, &r);
	sim_trace_add(&sim->trace, &r);
	if (sim->follower.begins) {
		sim->follower.replied(sim->follower.ctx, node->index, reply);
	}
	if (sim->observer.replied) {
		sim->observer.replied(sim->observer.ctx, node->index, reply);
	}
	CHECK(reply->client >= 1 && reply->client <= sim->session_count);
	struct sim_session *s = sim->sessions[reply->client - 1];
	binding_answered(s, reply);
	if (s->open && node_has(s)) {
		put_to_client(s, reply);
	}
}

void sim_session_node_ends(struct sim_node *node, bool quiet) {
	struct sim *sim = node->sim;
	for (size_t i = 0; i < sim->session_count; i++) {
		struct sim_session *s = sim->sessions[i];
		if (s->node == node->index && s->incarnation == node->incarnation && s->node_open) {
			s->node_open = false;
			span_ns heard = quiet ? 2 * sim->options.request_timeout
				: session_delay(sim);
			sim_at(sim, later(s->cut_until, sim->now) + heard, tell_closed, s, 0);
		}
	}
}

void sim_session_free_all(struct sim *sim) {
	for (size_t i = 0; i < sim->session_count; i++) {
		struct sim_session *s = sim->sessions[i];
		sim_fifo_clear(&s->to_node);
		while (s->to_client) {
			struct sim_parcel *p = s->to_client;
			s->to_client = p->next;
			free(p);
		}
		free(s->bindings);
		free(s);
	}
	free(sim->sessions);
}
