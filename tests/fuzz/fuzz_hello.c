/* fuzz_hello.c: the first packet of a link, and a note. What is accepted can be sent on, and both
 * sides judge each other alike. */
#include "fuzz.h"

#include "check.h"
#include "peer.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct peer_hello ours = { .version_min = 1, .version_max = 2, .features = 5,
		.cluster = "prod", .node = "n1", .id = { { 1 } }, .boot = 1 };
	struct allocator alloc = alloc_libc(NULL);
	struct peer_hello hello, same;
	struct peer_agreement here = { 0 }, there = { 0 };
	struct buffer b;
	struct slice body;
	note_can_be_sent_on(slice_of(data, size));
	if (peer_hello_decode(slice_of(data, size), &hello) != 0) {
		return 0;
	}
	buffer_init(&b, &alloc, PEER_HELLO_BYTES_MAX);
	CHECK(peer_hello_encode(&hello, &b) == 0);
	CHECK(peer_scan(buffer_slice(&b), PEER_HELLO_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE);
	CHECK(peer_hello_decode(body, &same) == 0);
	CHECK(strcmp(hello.node, same.node) == 0 && strcmp(hello.cluster, same.cluster) == 0 &&
		hello.boot == same.boot);
	const char *problem = peer_hello_problem(&ours, &hello, &here);
	CHECK(problem == peer_hello_problem(&hello, &ours, &there));
	CHECK(here.version == there.version && here.features == there.features);
	buffer_done(&b);
	return 0;
}
