/* fuzz_hello.c: the first packet of a link, a note, and the packets about clients that wait. What
 * is accepted can be sent on, and both sides judge each other alike. */
#include "fuzz.h"

#include "check.h"
#include "peer.h"
#include "peer_waits.h"

static void note_can_be_sent_on(struct slice bytes) {
	struct allocator alloc = alloc_libc(NULL);
	struct peer_note note, same;
	struct buffer b;
	struct slice body;
	if (!peer_is_note(bytes) || peer_note_decode(bytes, &note) != 0 || !note.rights[0]) {
		return;
	}
	buffer_init(&b, &alloc, PEER_HELLO_BYTES_MAX);
	CHECK(peer_note_encode(&note, &b) == 0);
	CHECK(peer_scan(buffer_slice(&b), PEER_HELLO_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE);
	CHECK(peer_note_decode(body, &same) == 0 && strcmp(note.rights, same.rights) == 0);
	buffer_done(&b);
}

static void put_wait(void *answer, const struct wait_fact *fact) {
	waits_answer_wait(answer, fact);
}

static void put_hold(void *answer, const struct hold_fact *fact) {
	waits_answer_hold(answer, fact);
}

static int encode_facts(const struct waits_packet *packet, struct buffer *out) {
	struct allocator alloc = alloc_libc(NULL);
	struct waits_answer answer;
	const struct waits_reader reader = { &answer, put_wait, put_hold };
	waits_answer_init(&answer, &alloc);
	waits_read(packet, &reader);
	answer.cut = answer.cut || packet->cut;
	int error = waits_answer_encode(packet->round, &answer, out);
	waits_answer_done(&answer);
	return error;
}

static void waits_can_be_sent_on(struct slice bytes) {
	struct allocator alloc = alloc_libc(NULL);
	struct waits_packet packet, same;
	struct buffer b;
	struct slice body;
	if (!waits_is_packet(bytes) || waits_decode(bytes, &packet) != 0) {
		return;
	}
	buffer_init(&b, &alloc, PEER_BODY_BYTES_MAX);
	int error = packet.kind == WAITS_ASK ? waits_ask_encode(packet.round, &packet.ask, &b)
		: packet.kind == WAITS_RING ? waits_ring_encode(packet.round, &packet.ring, &b)
		: encode_facts(&packet, &b);
	CHECK(error == 0);
	CHECK(peer_scan(buffer_slice(&b), PEER_BODY_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE);
	CHECK(waits_is_packet(body) && waits_decode(body, &same) == 0);
	CHECK(same.kind == packet.kind && same.round == packet.round);
	buffer_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct peer_hello ours = { .version_min = 1, .version_max = 2, .features = 5,
		.cluster = "prod", .node = "n1", .id = { { 1 } }, .boot = 1 };
	struct allocator alloc = alloc_libc(NULL);
	struct peer_hello hello, same;
	struct peer_agreement here = { 0 }, there = { 0 };
	struct buffer b;
	struct slice body;
	note_can_be_sent_on(slice_of(data, size));
	waits_can_be_sent_on(slice_of(data, size));
	if (peer_hello_decode(slice_of(data, size), &hello) != 0) {
		return 0;
	}
	buffer_init(&b, &alloc, PEER_HELLO_BYTES_MAX);
	CHECK(peer_hello_encode(&hello, &b) == 0);
	CHECK(peer_scan(buffer_slice(&b), PEER_HELLO_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE);
	CHECK(peer_hello_decode(body, &same) == 0);
	CHECK(strcmp(hello.node, same.node) == 0 && strcmp(hello.cluster, same.cluster) == 0 &&
		hello.boot == same.boot && strcmp(hello.release, same.release) == 0);
	const char *problem = peer_hello_problem(&ours, &hello, &here);
	CHECK(problem == peer_hello_problem(&hello, &ours, &there));
	CHECK(here.version == there.version && here.features == there.features);
	buffer_done(&b);
	return 0;
}
