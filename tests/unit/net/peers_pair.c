/* peers_pair.c: two nodes on one loop, see peers_pair.h. */
#include "peers_pair.h"

#include <stdio.h>
#include <string.h>

#include "time_source.h"

static void party_up(void *ctx, uint32_t peer, const struct peer_hello *theirs) {
	struct party *p = ctx;
	p->last_up = peer;
	p->ups++;
	snprintf(p->who, sizeof p->who, "%s", theirs->node);
}

static void party_down(void *ctx, uint32_t peer, const char *why, bool closed,
	struct instant since) {
	struct party *p = ctx;
	(void)peer;
	p->downs++;
	p->since = since;
	p->closed += closed;
	snprintf(p->why, sizeof p->why, "%s", why);
}

/* Each frame is handled in `pieces` pieces, and each of these takes `takes`. */
static int party_frame(void *ctx, uint32_t peer, struct slice body, struct peer_progress *progress,
	struct instant now) {
	struct party *p = ctx;
	(void)peer;
	(void)now;
	const struct instant begun = time_source_now();
	while (instant_elapsed_short(time_source_now(), begun) < p->takes) {
	}
	progress->left = progress->begun ? progress->left - 1 : p->pieces;
	progress->begun = true;
	p->pieces_done++;
	p->frames += progress->left == 0;
	p->bytes += progress->left == 0 ? body.size : 0;
	return p->refuse;
}

static void party_trouble(void *ctx, const char *who, const char *from, const char *why) {
	struct party *p = ctx;
	assert_true(strncmp(from, "127.0.0.", 8) == 0);
	p->stranger = !who;
	p->troubles++;
	snprintf(p->why, sizeof p->why, "%s", why);
}

static int party_welcome(void *ctx, const struct peer_hello *theirs) {
	struct party *p = ctx;
	if (p->non_members-- <= 0) {
		return PAWL_EFULL;
	}
	assert_string_equal(theirs->node, p->non_member_table[2].name);
	peers_set_nodes(p->peers, p->non_member_table, 3);
	return 2;
}

static const struct peers_handlers party_handlers = { party_up, party_down, party_frame,
	party_trouble, party_welcome };

void party_accepted(void *ctx, int take_fd, const struct origin *from) {
	struct party *p = ctx;
	p->accepted++;
	assert_true(from->local);
	peers_accept(p->peers, take_fd, from->address);
}

static void party_listen(struct net_fixture *f, struct party *p) {
	char why[LISTENER_WHY_BYTES];
	assert_int_equal(listener_new(&f->loop, "127.0.0.1:0", party_accepted, p, &p->listener,
		why), 0);
}

void party_make_with(struct net_fixture *f, struct party *p, const char *claim,
	const struct peers_node nodes[2]) {
	struct peers_options o = { .loop = &f->loop, .strangers = { 64, 64, 64 << 20 }, .seed = 1,
		.handlers = &party_handlers, .ctx = p };
	o.hello = (struct peer_hello){ .version_min = PEER_VERSION_MIN,
		.version_max = PEER_VERSION_MAX, .boot = 7 };
	if (p->version) {
		o.hello.version_min = o.hello.version_max = p->version;
	}
	memset(o.hello.id.b, p->identity ? p->identity : *claim, sizeof o.hello.id.b);
	snprintf(o.hello.cluster, sizeof o.hello.cluster, "test");
	snprintf(o.hello.node, sizeof o.hello.node, "%s", claim);
	snprintf(o.hello.release, sizeof o.hello.release, "of %s", claim);
	assert_int_equal(peers_new(&o, &p->peers), 0);
	peers_set_nodes(p->peers, nodes, 2);
}

/* Makes one of the nodes "a" and "b" of the cluster "test". */
static void party_make(struct net_fixture *f, struct party *p, const char *claim,
	const struct party *a, const struct party *b) {
	const struct peers_node nodes[2] = { { "a", listener_address(a->listener), p->dials_all,
		{ { 0 } }, false, false },
		{ "b", listener_address(b->listener), p->dials_all || *claim < 'b', { { 0 } },
			false, false } };
	party_make_with(f, p, claim, nodes);
}

static void pair_make(struct pair *p, bool both_dial, uint32_t version_of_b) {
	memset(p, 0, sizeof *p);
	p->b.version = version_of_b;
	p->a.dials_all = p->b.dials_all = both_dial;
	net_fixture_init(&p->f);
	party_listen(&p->f, &p->a);
	party_listen(&p->f, &p->b);
	party_make(&p->f, &p->a, "a", &p->a, &p->b);
	party_make(&p->f, &p->b, "b", &p->a, &p->b);
}

void pair_open_with(struct pair *p, bool both_dial) {
	pair_make(p, both_dial, 0);
}

void pair_open_versions(struct pair *p, uint32_t version_of_b) {
	pair_make(p, false, version_of_b);
}

void pair_open(struct pair *p) {
	pair_open_with(p, false);
}

void pair_close(struct pair *p) {
	peers_free(p->a.peers);
	peers_free(p->b.peers);
	listener_free(p->a.listener);
	listener_free(p->b.listener);
	net_fixture_done(&p->f);
}

void pair_start(struct pair *p) {
	peers_start(p->a.peers);
	peers_start(p->b.peers);
}

bool both_up(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups == 1 && p->b.ups == 1;
}

bool both_up_twice(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups == 2 && p->b.ups == 2;
}

bool b_up_twice(void *ctx) {
	return ((struct pair *)ctx)->b.ups == 2;
}

bool b_troubled(void *ctx) {
	return ((struct pair *)ctx)->b.troubles > 0;
}

bool a_troubled(void *ctx) {
	return ((struct pair *)ctx)->a.troubles > 0;
}

bool b_got_frames(void *ctx) {
	return ((struct pair *)ctx)->b.frames == 2;
}

void send_frames(struct party *from, uint32_t to, int count) {
	const struct message ping = { .kind = MESSAGE_PING, .round = 1 };
	struct frame frame = { .epoch = 1, .config_hash = 1, .boot = 1, .messages = &ping,
		.count = 1 };
	memset(frame.sender.b, 1, sizeof frame.sender.b);
	for (int i = 0; i < count; i++) {
		assert_int_equal(peer_frame_encode(&frame, peers_out(from->peers, to)), 0);
	}
	struct instant since;
	assert_int_equal(peers_flush(from->peers, to, &since), 0);
}
