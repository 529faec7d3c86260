/* fuzz_state_file.c: a slot of the state file of any bytes, or (if the first byte is odd) what
 * lies behind its checksum. It is either refused, or exactly what the encoder writes for the
 * same state. */
#include "fuzz.h"

#include "check.h"
#include "pawl/error.h"
#include "state_file.h"

/* Magic, sequence, size and checksum. */
#define SLOT_HEADER_BYTES 28

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static uint8_t bytes[STATE_SLOT_BYTES];
	struct state_slot slot = { .sequence = 1 }, again;
	if (size == 0) {
		return 0;
	}
	bool inner = data[0] & 1;
	struct slice rest = slice_of(data + 1, size - 1);
	int error = inner ? state_decode_payload(rest, &slot) : state_decode(rest, &slot);
	CHECK(error == 0 || error == PAWL_EPROTOCOL);
	if (error) {
		return 0;
	}
	size_t used = state_encode(&slot, bytes);
	struct slice same = inner ? slice_of(bytes + SLOT_HEADER_BYTES, used - SLOT_HEADER_BYTES)
		: slice_of(bytes, used);
	CHECK(rest.size >= same.size && slice_equal(slice_of(rest.data, same.size), same));
	CHECK(state_decode(slice_of(bytes, used), &again) == 0 && again.sequence == slot.sequence);
	return 0;
}
