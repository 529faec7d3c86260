/* service_deadlock.c: looks for deadlocks between clients, answers other nodes that do, and says
 * what was found (docs/architecture.md, Deadlocks between clients). Nothing runs while nobody waits
 * for long. */
#include <event2/event.h>

#include "check.h"
#include "config_file.h"
#include "pawl/error.h"
#include "ring_text.h"
#include "service_impl.h"

/* The least time between the beginnings of two looks. */
#define LOOK_PAUSE (2 * SPAN_MS)
/* So many requests are passed over in one turn because their parties hold nothing. */
#define PASSED_AT_ONCE 256
/* A peer may ask for one fact in this time, and for this long at once. */
#define FACT_COST (50 * SPAN_US)
#define FACTS_AHEAD (200 * SPAN_MS)
/* A ring costs a peer as much as so many facts. */
#define RING_FACTS 100
/* A ring is shown for so many times `deadlock_after`, and this time more, since it was told. */
#define RING_SHOWN 3
#define RING_SHOWN_MORE (2 * SPAN_S)

static const char *const hidden = "(a key that you may not read)";

static const struct node_config *config_of(const struct service *s) { return s->driver->config; }

/* ---- the timer ---- */

static void deadlock_arm_at(struct service *s, int64_t at, int64_t now) {
	int64_t us = at > now ? (at - now + SPAN_US - 1) / SPAN_US : 0;
	const struct timeval wait = { (time_t)(us / 1000000), (suseconds_t)(us % 1000000) };
	event_add(s->deadlocks.timer, &wait);
	s->deadlocks.armed = true;
}

static struct requests_wait *deadlock_first_due(struct service *s) {
	requests_enter_waits(&s->requests);
	struct list *first = list_first(&s->requests.due);
	return first ? CONTAINER_OF(first, struct requests_wait, due) : NULL;
}

static void deadlock_arm(struct service *s, struct instant now) {
	const struct service_deadlocks *d = &s->deadlocks;
	const struct requests_wait *first = deadlock_first_due(s);
	if (d->look.state != LOOK_IDLE) {
		deadlock_arm_at(s, d->look.until.boot, now.boot);
	} else if (first && config_of(s)->deadlock != DEADLOCK_OFF) {
		deadlock_arm_at(s, first->due_at > d->next_look ? first->due_at : d->next_look,
			now.boot);
	}
}

void service_deadlock_waits(struct service *s, struct requests_wait *wait, struct instant now) {
	wait->due_at = now.boot + config_of(s)->deadlock_after;
	if (!s->deadlocks.armed) {
		deadlock_arm(s, now);
	}
}

void service_deadlock_settings(struct service *s) {
	if (!s->deadlocks.armed) {
		deadlock_arm(s, driver_now(s->driver));
	}
}

/* ---- facts ---- */

struct hearer {
	const struct core *core;
	struct facts *facts;
	uint32_t node;
};

static void hear_wait(void *ctx, const struct wait_fact *fact) {
	const struct hearer *h = ctx;
	facts_wait(h->facts, fact, h->node);
}

/* A lock counts only if this node's own table has it, so that no node can invent one. */
static void hear_hold(void *ctx, const struct hold_fact *fact) {
	const struct hearer *h = ctx;
	uint64_t token, noted;
	if (core_peek(h->core, fact->key, fact->lock_id, &token, &noted)) {
		facts_hold(h->facts, fact);
	}
}

/* Tells all that was asked. Returns what it cost, which is more than FACTS_TOLD_MAX if not all was
 * told. */
static uint32_t deadlock_tell(struct service *s, const struct waits_ask *ask,
	const struct waits_reader *reader) {
	uint32_t cost = 0;
	requests_enter_waits(&s->requests);
	for (uint32_t i = 0; i < ask->key_count && cost <= FACTS_TOLD_MAX; i++) {
		cost += deadlock_tell_key(s, ask->keys[i], reader);
	}
	for (uint32_t i = 0; i < ask->party_count && cost <= FACTS_TOLD_MAX; i++) {
		cost += deadlock_tell_party(s, ask->parties[i], reader);
	}
	return cost;
}

static void deadlock_ask(struct service *s, const struct waits_ask *ask, struct instant now) {
	struct look *look = &s->deadlocks.look;
	const uint32_t self = core_self(s->driver->core);
	uint64_t asked = UINT64_C(1) << self;
	for (uint32_t peer = 0; peer < s->driver->context.peer_count; peer++) {
		struct buffer *to = peer == self || (look->silent >> peer & 1)
			? NULL : driver_packet(s->driver, peer);
		if (to && waits_ask_encode(look->round, ask, to) == 0) {
			asked |= UINT64_C(1) << peer;
		}
	}
	look_asked(look, asked, now);
	struct hearer own = { s->driver->core, look_answer(look, self, look->round, false), self };
	const struct waits_reader reader = { &own, hear_wait, hear_hold };
	uint32_t cost = deadlock_tell(s, ask, &reader);
	own.facts->cut = own.facts->cut || cost > FACTS_TOLD_MAX;
}

/* ---- rings ---- */

/* Every node finds the same number for a ring, by the lock_id that its youngest member asks for. */
static uint64_t ring_number(struct id128 lock_id) {
	const struct siphash_key key = { 0, 0 };
	return siphash(key, lock_id.b, sizeof lock_id.b);
}

static void deadlock_keep_ring(struct service *s, uint64_t number, struct slice body,
	struct instant now) {
	struct service_ring *place = &s->deadlocks.rings[0];
	for (uint32_t i = 0; i < RINGS_KEPT; i++) {
		struct service_ring *ring = &s->deadlocks.rings[i];
		if (ring->number == number && ring->body.size > 0) {
			place = ring;
			break;
		}
		place = ring->until < place->until ? ring : place;
	}
	buffer_clear(&place->body);
	if (buffer_append(&place->body, body.data, body.size) == 0) {
		place->number = number;
		place->until = now.boot + RING_SHOWN * config_of(s)->deadlock_after
			+ RING_SHOWN_MORE;
	}
}

/* Keeps the ring here, and tells all nodes, so that each can show it. */
static void deadlock_tell_ring(struct service *s, uint64_t number, const struct waits_ring *ring,
	struct instant now) {
	struct buffer packet;
	buffer_init(&packet, s->deadlocks.alloc, WAITS_BYTES_MAX);
	if (waits_ring_encode(number, ring, &packet) == 0) {
		const struct slice body = slice_of(packet.data + PEER_PREFIX_BYTES,
			packet.size - PEER_PREFIX_BYTES);
		deadlock_keep_ring(s, number, body, now);
		for (uint32_t peer = 0; peer < s->driver->context.peer_count; peer++) {
			struct buffer *to = peer == core_self(s->driver->core)
				? NULL : driver_packet(s->driver, peer);
			/* Whoever has no room for it shows no ring. */
			(void)(to && buffer_append(to, packet.data, packet.size));
		}
	}
	buffer_done(&packet);
}

/* Hides what the caller may not read. */
static void deadlock_hide(const struct service *s, const struct session_who *who,
	struct waits_ring *ring) {
	for (uint32_t i = 0; i < ring->count; i++) {
		struct ring_member *member = &ring->members[i];
		if (!who || !service_may_read(s, who, member->key, false)) {
			*member = (struct ring_member){ slice_str("(hidden)"), slice_str(hidden),
				member->node };
		}
	}
}

static bool ring_has(const struct waits_ring *ring, struct slice key) {
	bool has = false;
	for (uint32_t i = 0; i < ring->count; i++) {
		has = has || slice_equal(ring->members[i].key, key);
	}
	return has;
}

uint32_t service_deadlock_rings(const struct service *s, const struct session_who *who,
	struct slice key, struct waits_ring out[RINGS_KEPT]) {
	uint32_t count = 0;
	for (uint32_t i = 0; i < RINGS_KEPT; i++) {
		const struct service_ring *ring = &s->deadlocks.rings[i];
		struct waits_packet packet;
		if (ring->body.size == 0 || ring->until < s->driver->last.boot
			|| waits_decode(buffer_slice(&ring->body), &packet) != 0
			|| !ring_has(&packet.ring, key)) {
			continue;
		}
		out[count] = packet.ring;
		deadlock_hide(s, who, &out[count++]);
	}
	return count;
}

/* ---- what was found ---- */

static struct waits_ring deadlock_ring(const struct service *s, const struct deadlock *found) {
	const struct facts *f = s->deadlocks.look.facts;
	struct waits_ring ring = { .count = found->told };
	for (uint32_t i = 0; i < found->told; i++) {
		const struct fact_wait *w = &f->waits[found->ring[i]];
		ring.members[i] = (struct ring_member){ w->owner, f->keys[w->key].name,
			slice_str(s->driver->nodes[w->node]->name) };
	}
	return ring;
}

static void deadlock_log(const struct service *s, const struct deadlock *found,
	const struct waits_ring *ring) {
	char text[RING_TEXT_BYTES];
	ring_text(ring, found->count, text);
	log_untrusted(s->driver->log, "deadlock", LOG_BYTES("key", ring->members[0].key),
		LOG_BYTES("owner", ring->members[0].owner),
		LOG_NUMBER("clients", found->party_count),
		LOG_TEXT("ring", text), LOG_TEXT("refused", ring->refused ? "yes" : "no"));
}

/* Ends the wait of the youngest member. Its reply comes when the core is stepped. */
static void deadlock_refuse(struct service *s, const struct deadlock *found,
	struct waits_ring ring, struct requests_wait *wait) {
	char text[RING_TEXT_BYTES];
	struct session_who who;
	const struct core_event event = { .kind = CORE_END_WAIT, .client = wait->request->client,
		.request_id = wait->request->id };
	const bool known = sessions_who(s->sessions, wait->request->client, &who);
	deadlock_hide(s, known ? &who : NULL, &ring);
	ring_text(&ring, found->count, text);
	requests_wait_end(wait, text);
	driver_step_now(s->driver, &event);
}

/* The node of the youngest member says what was found: once in its log and its counter, and to all
 * nodes as long as it stands. The others stay silent, because the member's node looks, too. */
static void deadlock_found(struct service *s, const struct deadlock *found, struct instant now) {
	const struct fact_wait *youngest = &s->deadlocks.look.facts->waits[found->ring[0]];
	const struct request *request = youngest->node == core_self(s->driver->core)
		? requests_find(&s->requests, youngest->request) : NULL;
	if (!request || !request->wait) {
		return;
	}
	struct requests_wait *wait = request->wait;
	struct waits_ring ring = deadlock_ring(s, found);
	ring.refused = config_of(s)->deadlock == DEADLOCK_REFUSE;
	if (!wait->reported) {
		wait->reported = true;
		s->deadlocks.found++;
		deadlock_log(s, found, &ring);
	}
	deadlock_tell_ring(s, ring_number(youngest->lock_id), &ring, now);
	if (ring.refused) {
		deadlock_refuse(s, found, ring, wait);
	}
}

const struct core_reply *service_deadlock_reply(const struct request *request,
	const struct core_reply *reply, struct core_reply *changed) {
	*changed = *reply;
	changed->error = PAWL_EDEADLOCK;
	/* Another request for this lock_id may be the one whose ring was found. */
	if (request->wait && request->wait->why) {
		changed->why = slice_str(request->wait->why);
	}
	return changed;
}

/* ---- looks ---- */

/* Begins a look for the request that has waited for longest without one, if its party holds
 * anything. Returns false if none is due. */
static bool deadlock_begin(struct service *s, struct instant now) {
	struct service_deadlocks *d = &s->deadlocks;
	if (config_of(s)->deadlock == DEADLOCK_OFF || now.boot < d->next_look) {
		return false;
	}
	for (uint32_t passed = 0; passed < PASSED_AT_ONCE; passed++) {
		struct requests_wait *wait = deadlock_first_due(s);
		if (!wait || wait->due_at > now.boot) {
			return false;
		}
		list_remove(&wait->due);
		list_append(&s->requests.due, &wait->due);
		wait->due_at = now.boot + config_of(s)->deadlock_after;
		/* A request for several keys may have some of them already. */
		if (wait->request->party->holders > 0 || list_linked(&wait->several)) {
			d->next_look = now.boot + LOOK_PAUSE;
			d->tables = s->driver->tables;
			return look_begin(&d->look, wait->request->party->id);
		}
	}
	return false;
}

static void deadlock_run(struct service *s) {
	struct service_deadlocks *d = &s->deadlocks;
	const struct instant now = driver_now(s->driver);
	struct waits_ask ask;
	struct deadlock found;
	if (d->tables != s->driver->tables) {
		/* The nodes have other indexes now. */
		look_end(&d->look);
	}
	while (d->look.state != LOOK_IDLE || deadlock_begin(s, now)) {
		switch (look_next(&d->look, now, &ask, &found)) {
		case LOOK_WAITS:
			deadlock_arm(s, now);
			return;
		case LOOK_ASKS:
			deadlock_ask(s, &ask, now);
			break;
		case LOOK_FOUND:
			deadlock_found(s, &found, now);
			look_end(&d->look);
			break;
		case LOOK_OVER:
			look_end(&d->look);
			break;
		}
	}
	deadlock_arm(s, now);
}

static void deadlock_on_timer(evutil_socket_t fd, short what, void *ctx) {
	struct service *s = ctx;
	(void)fd;
	(void)what;
	s->deadlocks.armed = false;
	deadlock_run(s);
}

/* ---- packets of other nodes ---- */

/* Returns false if the peer has asked for more than its part. */
static bool deadlock_may_ask(struct service *s, uint32_t peer, uint32_t facts) {
	int64_t now = s->driver->last.boot, *paid = &s->deadlocks.paid[peer];
	*paid = *paid > now ? *paid : now;
	if (*paid > now + FACTS_AHEAD) {
		return false;
	}
	*paid += facts * FACT_COST;
	return true;
}

static void answer_wait(void *ctx, const struct wait_fact *fact) {
	waits_answer_wait(ctx, fact);
}

static void answer_hold(void *ctx, const struct hold_fact *fact) {
	waits_answer_hold(ctx, fact);
}

static void deadlock_answer(struct service *s, uint32_t peer, const struct waits_packet *packet) {
	struct waits_answer answer;
	const struct waits_reader reader = { &answer, answer_wait, answer_hold };
	struct buffer *to = driver_packet(s->driver, peer);
	waits_answer_init(&answer, s->deadlocks.alloc);
	if (config_of(s)->deadlock != DEADLOCK_OFF) {
		answer.cut = !deadlock_may_ask(s, peer, 1);
		uint32_t cost = answer.cut ? 0 : deadlock_tell(s, &packet->ask, &reader);
		s->deadlocks.paid[peer] += cost * FACT_COST;
		answer.cut = answer.cut || cost > FACTS_TOLD_MAX;
	}
	/* Without room for it, the node that asks finds this one silent. */
	(void)(to && waits_answer_encode(packet->round, &answer, to));
	waits_answer_done(&answer);
}

int service_deadlock_packet(void *ctx, uint32_t peer, struct slice body) {
	struct service *s = ctx;
	struct waits_packet packet;
	int error = waits_decode(body, &packet);
	if (error) {
		return error;
	}
	if (packet.kind == WAITS_ASK) {
		deadlock_answer(s, peer, &packet);
	} else if (packet.kind == WAITS_RING) {
		if (deadlock_may_ask(s, peer, RING_FACTS)) {
			deadlock_keep_ring(s, packet.round, body, s->driver->last);
		}
	} else if (s->deadlocks.tables == s->driver->tables) {
		struct hearer hearer = { s->driver->core, look_answer(&s->deadlocks.look, peer,
			packet.round, packet.cut), peer };
		const struct waits_reader reader = { &hearer, hear_wait, hear_hold };
		if (hearer.facts) {
			waits_read(&packet, &reader);
			event_active(s->deadlocks.timer, EV_TIMEOUT, 0);
		}
	}
	return 0;
}

/* ---- life ---- */

int service_deadlock_init(struct service *s, const struct allocator *alloc,
	struct siphash_key hash_key) {
	struct service_deadlocks *d = &s->deadlocks;
	d->alloc = alloc;
	look_init(&d->look, alloc, hash_key);
	for (uint32_t i = 0; i < RINGS_KEPT; i++) {
		buffer_init(&d->rings[i].body, alloc, WAITS_BYTES_MAX);
	}
	d->timer = evtimer_new(s->driver->base, deadlock_on_timer, s);
	return d->timer ? 0 : PAWL_ENOMEM;
}

void service_deadlock_done(struct service *s) {
	struct service_deadlocks *d = &s->deadlocks;
	if (d->timer) {
		event_free(d->timer);
		d->timer = NULL;
	}
	if (d->alloc) {
		look_done(&d->look);
		for (uint32_t i = 0; i < RINGS_KEPT; i++) {
			buffer_done(&d->rings[i].body);
		}
	}
}
