/* fuzz_peer_frame.c: the body of a packet from a peer. Whatever is accepted can be sent on, and
 * arrives the same. */
#include "fuzz.h"

#include "check.h"
#include "peer.h"

static struct slice frame_again(const struct frame *frame, struct buffer *out) {
	struct slice body;
	/* It CHECKs every range. */
	CHECK(peer_frame_encode(frame, out) == 0);
	CHECK(peer_scan(buffer_slice(out), PEER_BODY_BYTES_MAX, &body, NULL) == PEER_SCAN_COMPLETE);
	CHECK(body.size + PEER_PREFIX_BYTES == out->size);
	return body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct allocator alloc = alloc_libc(NULL);
	struct peer_decoder first, second;
	struct buffer once, twice;
	struct frame frame, same;
	struct slice body;
	size_t need;
	peer_decoder_init(&first, &alloc);
	peer_decoder_init(&second, &alloc);
	buffer_init(&once, &alloc, 2 * PEER_BODY_BYTES_MAX);
	buffer_init(&twice, &alloc, 2 * PEER_BODY_BYTES_MAX);
	peer_scan(slice_of(data, size), PEER_BODY_BYTES_MAX, &body, &need);
	if (peer_frame_decode(&first, slice_of(data, size), &frame) == 0) {
		CHECK(peer_frame_decode(&second, frame_again(&frame, &once), &same) == 0);
		frame_again(&same, &twice);
		CHECK(slice_equal(buffer_slice(&once), buffer_slice(&twice)));
	}
	buffer_done(&once);
	buffer_done(&twice);
	peer_decoder_done(&first);
	peer_decoder_done(&second);
	return 0;
}
