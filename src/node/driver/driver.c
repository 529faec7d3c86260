/* driver.c: one turn of the loop: events go into the core, and its output leaves. */
#include "driver.h"

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"
#include "config_file.h"
#include "core_status.h"
#include "log.h"
#include "pawl/error.h"
#include "peer_waits.h"
#include "roles.h"
#include "time_source.h"

_Static_assert(NODES_MAX <= 64, "sets of peers are 64 bits");

/* ---- in ---- */

void driver_flush_later(struct driver *d) {
	if (d->in_turn) {
		d->again = true;
	} else {
		/* The event goes behind those that are active already. */
		event_active(d->flush, EV_TIMEOUT, 0);
	}
}

static void driver_reset_links(struct driver *d, uint64_t resets) {
	for (; resets && d->peers; resets &= resets - 1) {
		uint32_t peer = (uint32_t)__builtin_ctzll(resets);
		d->link_losses[peer]++;
		peers_reset(d->peers, peer);
	}
}

/* Returns the index that the peer with that name had, or -1. */
static int driver_find_name(const struct driver *d, const char *name) {
	for (uint32_t i = 0; i < d->context.peer_count; i++) {
		if (strcmp(d->names[i], name) == 0) {
			return (int)i;
		}
	}
	return -1;
}

static void driver_read_context(struct driver *d, uint32_t count) {
	struct core_status status;
	core_status(d->core, d->last, &status);
	d->context.node = d->nodes[core_self(d->core)]->name;
	d->context.role = status.state == CORE_OUTSIDE ? "outside"
		: status.master ? "master" : "replica";
	d->context.peers = d->nodes;
	d->context.peer_count = count;
}

/* Reads the core's table as it is now. Links, and what is remembered by index, move to their new
 * places. */
static void driver_read_table(struct driver *d) {
	struct peers_node nodes[NODES_MAX];
	uint32_t count = core_peer_count(d->core);
	uint64_t lost = 0, closed = 0, notes = 0, losses[NODES_MAX] = { 0 };
	/* A node that is in no configuration itself does not know who is in one. */
	bool member = core_peer_is_member(d->core, core_self(d->core));
	CHECK(count <= NODES_MAX && core_self(d->core) < count);
	for (uint32_t i = 0; i < count; i++) {
		d->nodes[i] = core_peer(d->core, i);
		nodes[i] = (struct peers_node){ d->nodes[i]->name, d->nodes[i]->address,
			core_peer_dialled(d->core, i), d->nodes[i]->id, d->nodes[i]->master,
			member && !core_peer_is_member(d->core, i) };
		int before = driver_find_name(d, d->nodes[i]->name);
		lost |= before >= 0 ? (d->lost_links >> before & 1) << i : 0;
		closed |= before >= 0 ? (d->closed_links >> before & 1) << i : 0;
		notes |= before >= 0 ? (d->notes >> before & 1) << i : 0;
		losses[i] = before >= 0 ? d->link_losses[before] : 0;
	}
	d->lost_links = lost;
	d->closed_links = closed;
	d->notes = notes;
	d->tables++;
	memcpy(d->link_losses, losses, sizeof losses);
	for (uint32_t i = 0; i < count; i++) {
		memcpy(d->names[i], d->nodes[i]->name, sizeof d->names[i]);
	}
	driver_read_context(d, count);
	d->changed = true;
	if (d->peers) {
		peers_set_nodes(d->peers, nodes, count);
	}
}

struct strangers_limits driver_strangers_limits(const struct node_config *c) {
	return (struct strangers_limits){ .count = c->limits.handshakes,
		.per_address = c->limits.handshakes_per_address,
		.bytes = c->limits.handshake_memory };
}

void driver_step(struct driver *d, const struct core_event *event, struct instant now) {
	d->last = instant_later(d->last, now);
	core_step(d->core, event, d->last, d->out);
	bool changed = core_out_peers_changed(d->out);
	if (changed) {
		driver_read_table(d);
	}
	const uint64_t resets = core_out_resets(d->out);
	if (resets) {
		driver_reset_links(d, resets);
	}
	driver_flush_later(d);
	if (changed) {
		driver_check_links(d);
	}
}

struct instant driver_now(struct driver *d) {
	d->last = instant_later(d->last, time_source_now());
	return d->last;
}

void driver_step_now(struct driver *d, const struct core_event *event) {
	driver_step(d, event, time_source_now());
}

static void driver_on_peer_up(void *ctx, uint32_t peer, const struct peer_hello *theirs) {
	struct driver *d = ctx;
	d->notes |= (uint64_t)1 << peer;
	log_to(d->log, LEVEL_INFO, "peer_up", LOG_TEXT("peer", theirs->node),
		LOG_TEXT("from", peers_from(d->peers, peer)), LOG_NUMBER("boot", theirs->boot));
	const struct core_event event = { .kind = CORE_PEER_UP, .peer = peer, .peer_id = theirs->id,
		.peer_boot = theirs->boot,
		.peer_no_master = peers_certificate(d->peers, peer)->role < NODE_ROLE_MASTER };
	driver_step_now(d, &event);
}

static void driver_on_peer_down(void *ctx, uint32_t peer, const char *why, bool closed,
	struct instant since) {
	struct driver *d = ctx;
	d->link_losses[peer]++;
	log_to(d->log, LEVEL_INFO, "peer_down", LOG_TEXT("peer", core_peer(d->core, peer)->name),
		LOG_TEXT("address", core_peer(d->core, peer)->address), LOG_TEXT("why", why));
	const struct core_event event = { .kind = CORE_PEER_DOWN, .peer = peer, .closed = closed,
		.since = since };
	driver_step_now(d, &event);
}

void driver_check_links(struct driver *d) {
	char why[TLS_WHY_BYTES];
	roles_check_own(d);
	for (uint32_t peer = 0; d->peers && peer < core_peer_count(d->core); peer++) {
		if (peers_objection(d->peers, peer, why)) {
			log_to(d->log, LEVEL_WARNING, "peer_link_failed",
				LOG_TEXT("peer", d->nodes[peer]->name), LOG_TEXT("why", why));
			peers_reset(d->peers, peer);
			driver_on_peer_down(d, peer, "its certificate does "
				"not allow this link", false, (struct instant){ 0, 0 });
		}
	}
}

/* How many messages the core is handed at once. */
#define PIECE_OF_FRAME 64

static int driver_take_waits(struct driver *d, uint32_t peer, struct slice body) {
	/* Packets behind it may wait for the next turn. */
	driver_flush_later(d);
	return core_peer_is_member(d->core, peer)
		? d->handlers->on_waits(d->handlers_ctx, peer, body) : 0;
}

struct buffer *driver_packet(struct driver *d, uint32_t peer) {
	if (!d->peers || !core_peer_is_member(d->core, peer)
		|| !peers_has(d->peers, peer, PEER_FEATURE_WAITS)) {
		return NULL;
	}
	d->packets |= (uint64_t)1 << peer;
	driver_flush_later(d);
	return peers_out(d->peers, peer);
}

/* A frame goes into the core in pieces, as if it had come as several frames. */
static int driver_on_peer_frame(void *ctx, uint32_t peer, struct slice body,
	struct peer_progress *progress, struct instant now) {
	struct driver *d = ctx;
	struct frame frame;
	if (!progress->begun && peer_is_note(body)) {
		return waits_is_packet(body) ? driver_take_waits(d, peer, body)
			: driver_take_note(d, peer, body);
	}
	int error = peer_frame_decode_some(&d->decoder, body, PIECE_OF_FRAME, progress, &frame);
	if (error) {
		return error;
	}
	const struct core_event event = { .kind = CORE_FRAME, .peer = peer, .frame = &frame };
	driver_step(d, &event, now);
	return 0;
}

/* Strangers have a log event of their own, so that a peer that fails is not hidden by them, however
 * many there are. */
static void driver_on_peer_trouble(void *ctx, const char *peer, const char *from, const char *why) {
	struct driver *d = ctx;
	if (peer) {
		log_to(d->log, LEVEL_WARNING, "peer_link_failed", LOG_TEXT("peer", peer),
			LOG_TEXT("from", from), LOG_TEXT("why", why));
	} else {
		log_untrusted(d->log, "stranger_refused", LOG_TEXT("from", from),
			LOG_TEXT("why", why));
	}
}

/* Welcomes a node that is not in the table (yet). The core decides whether it may stay. */
static int driver_on_peer_welcome(void *ctx, const struct peer_hello *theirs) {
	struct driver *d = ctx;
	int peer = core_welcome(d->core, theirs->node);
	if (core_out_peers_changed(d->out)) {
		driver_read_table(d);
	}
	return peer;
}

static const struct peers_handlers driver_peers_handlers = {
	driver_on_peer_up, driver_on_peer_down, driver_on_peer_frame, driver_on_peer_trouble,
		driver_on_peer_welcome,
};

int driver_make_peers(struct driver *d, struct net_loop *loop, const struct peer_hello *hello,
	uint64_t seed) {
	const struct peers_options options = { .loop = loop, .hello = *hello,
		.strangers = driver_strangers_limits(d->config), .seed = seed,
		.handlers = &driver_peers_handlers, .ctx = d };
	int error = peers_new(&options, &d->peers);
	if (!error) {
		driver_read_table(d);
	}
	return error;
}

/* ---- time ---- */

/* Arms the timer for the core's deadline, which is earlier than what it is armed for. The clock is
 * CLOCK_BOOTTIME, because the loop's own timers stand still while the machine is suspended. */
static void driver_arm(struct driver *d, int64_t at) {
	/* 0 would disarm the timer. */
	int64_t positive = at > 0 ? at : 1;
	struct itimerspec when =
		{ .it_value = { .tv_sec = positive / SPAN_S, .tv_nsec = positive % SPAN_S } };
	CHECK(timerfd_settime(d->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
	d->armed_at = at;
}

static void driver_on_timer(evutil_socket_t fd, short what, void *ctx) {
	static const struct core_event tick = { .kind = CORE_TICK };
	struct driver *d = ctx;
	uint64_t times;
	(void)what;
	if (read(fd, &times, sizeof times) == sizeof times) {
		d->armed_at = INT64_MAX;
		driver_step(d, &tick, time_source_now());
	}
}

/* ---- out ---- */

static void driver_log_note(struct driver *d, const struct core_note *note) {
	log_core_note(d->log, d->core, note);
	d->changed = true;
	if (d->on_note) {
		d->on_note(d->ctx, note);
	}
}

/* Puts everything for one peer into its buffer. Returns true if there is something to write. */
static bool driver_fill_peer(struct driver *d, uint32_t peer) {
	struct frame frame;
	const bool noted = (d->notes >> peer & 1) && driver_put_note(d, peer);
	bool filled = noted || (d->packets >> peer & 1);
	while (core_out_frame(d->out, peer, &frame)) {
		struct buffer *to = d->peers ? peers_out(d->peers, peer) : NULL;
		/* If the backlog is at its limit, the peer does not read. The protocol can stand
		 * the loss of the link. */
		if (to && peer_frame_encode_copies(&frame, &d->copies, to) != 0) {
			peer_copies_clear(&d->copies);
			peers_reset(d->peers, peer);
			d->lost_links |= (uint64_t)1 << peer;
			to = NULL;
		}
		filled = filled || to;
		core_out_sent(d->out, peer);
	}
	return filled;
}

/* Remembers that the link was lost while it was written. */
static void driver_lose_link(struct driver *d, uint32_t peer, int error, struct instant since) {
	d->lost_since = d->lost_since.boot ? d->lost_since : since;
	d->lost_links |= (uint64_t)1 << peer;
	d->closed_links |= (uint64_t)(error == PAWL_ECLOSED) << peer;
}

/* Tells the core of the links that were lost while writing. */
static void driver_tell_lost_links(struct driver *d) {
	while (d->lost_links) {
		uint32_t peer = (uint32_t)__builtin_ctzll(d->lost_links);
		bool closed = d->closed_links >> peer & 1;
		d->lost_links &= d->lost_links - 1;
		d->closed_links &= ~((uint64_t)1 << peer);
		driver_on_peer_down(d, peer,
			closed ? "it closed the connection" : "it stopped reading, or the "
				"connection broke", closed, d->lost_since);
	}
	d->lost_since = (struct instant){ 0, 0 };
}

/* The core hears of a lost link before anything else steps it: it counts the time from its last
 * step, which must not be later than the end of the link (docs/protocol.md, section 2, Release on
 * disconnect). What it then has to say to the other nodes leaves at once, too. */
static void driver_flush_peers(struct driver *d) {
	for (bool lost = true; lost;) {
		const uint32_t count = core_peer_count(d->core);
		uint64_t filled = 0;
		peer_copies_clear(&d->copies);
		/* All buffers are filled before the first one is written, because messages are
		 * copied from one to the other. */
		for (uint32_t peer = 0; peer < count; peer++) {
			filled |= (uint64_t)driver_fill_peer(d, peer) << peer;
		}
		d->packets = 0;
		for (; filled; filled &= filled - 1) {
			uint32_t peer = (uint32_t)__builtin_ctzll(filled);
			struct instant since;
			int error = peers_flush(d->peers, peer, &since);
			if (error) {
				driver_lose_link(d, peer, error, since);
			}
		}
		lost = d->lost_links != 0;
		if (lost) {
			driver_tell_lost_links(d);
		}
	}
}

static void driver_tell_reply(struct driver *d, const struct core_reply *reply) {
	if (reply->id & DRIVER_PROBE) {
		d->on_probe(d->probe_ctx, reply);
	} else if (!(reply->id & DRIVER_LOCAL)) {
		d->handlers->on_reply(d->handlers_ctx, reply);
	} else if (d->on_reply) {
		d->on_reply(d->local_ctx, reply);
	}
}

void driver_flush(struct driver *d) {
	const struct core_reply *reply;
	const struct core_note *note;
	struct durable state;
	uint64_t seq;
	/* The frames come first, because other nodes wait for them. */
	driver_flush_peers(d);
	while ((reply = core_out_reply(d->out)) != NULL) {
		driver_tell_reply(d, reply);
	}
	d->handlers->on_events(d->handlers_ctx);
	while ((note = core_out_note(d->out)) != NULL) {
		driver_log_note(d, note);
	}
	if (core_out_persist(d->out, &state, &seq)) {
		disk_write(d->disk, &state, seq);
	}
	core_out_clear(d->out);
	/* Connections of clients may turn out to be broken here. */
	d->handlers->flushed(d->handlers_ctx);
	/* If the timer is armed for an earlier time, it stays as it is: it goes off, the core reads
	 * its clock, and says when it wants to be called next. So most turns set no timer. */
	const int64_t deadline = core_deadline(d->core);
	if (deadline < d->armed_at) {
		driver_arm(d, deadline);
	}
	if (d->changed && d->on_changed) {
		d->changed = false;
		d->on_changed(d->local_ctx);
	}
}

static void driver_on_flush(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	static const struct timeval at_once = { 0, 0 };
	struct driver *d = ctx;
	(void)what;
	d->in_turn = true;
	/* Requests come after the frames of peers that arrived in this turn, or have waited for
	 * it. */
	bool unread = d->peers && peers_go_on(d->peers);
	bool more = d->handlers->serve(d->handlers_ctx);
	d->again = more || unread;
	driver_flush(d);
	d->in_turn = false;
	if (d->again) {
		/* This is a timer and not an active event, which would come before the sockets are
		 * polled. */
		event_add(d->flush, &at_once);
	}
}

/* ---- life ---- */

int driver_init(struct driver *d, struct event_base *base, struct core *take_core,
	const struct allocator *alloc) {
	*d = (struct driver){ .base = base, .core = take_core, .armed_at = INT64_MAX };
	d->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	d->out = core_out_new(d->core);
	d->flush = event_new(base, -1, 0, driver_on_flush, d);
	d->timer = d->timer_fd < 0 ? NULL : event_new(base, d->timer_fd, EV_READ | EV_PERSIST,
		driver_on_timer, d);
	peer_decoder_init(&d->decoder, alloc);
	if (!d->out || !d->flush || !d->timer || event_add(d->timer, NULL) != 0) {
		return PAWL_ENOMEM;
	}
	d->started = d->last = time_source_now();
	driver_read_table(d);
	return 0;
}

void driver_done(struct driver *d) {
	if (!d->base) {
		return;
	}
	if (d->timer) {
		event_free(d->timer);
	}
	if (d->flush) {
		event_free(d->flush);
	}
	if (d->timer_fd >= 0) {
		close(d->timer_fd);
	}
	peer_decoder_done(&d->decoder);
	core_out_free(d->out);
	core_free(d->core);
	*d = (struct driver){ 0 };
}
