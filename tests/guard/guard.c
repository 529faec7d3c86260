/* guard.c: every message of a core, to another node or to itself, must be the same after the codec.
 * A field that is set but is not in the row of its kind (MESSAGE_TABLE) is not written: such a
 * message would work from a node to itself alone. The linker puts these functions in the place of
 * those by which messages leave a core (--wrap). */
#include <stdio.h>

#include "check.h"
#include "core.h"
#include "guard.h"
#include "peer.h"

const struct message *__real_out_take_local(struct core *core);
const struct message *__wrap_out_take_local(struct core *core);
bool __real_core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame);
bool __wrap_core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame);
bool __real_core_drain_frame(struct core *core, struct instant now, struct frame *frame);
bool __wrap_core_drain_frame(struct core *core, struct instant now, struct frame *frame);

/* The members of struct message that are on the wire, those of slices apart. */
static const struct {
	const char *name;
	size_t at, size;
} guard_members[] = {
#define MEMBER(name) { #name, offsetof(struct message, name), sizeof ((struct message *)0)->name }
	MEMBER(round), MEMBER(lock_id), MEMBER(attempt), MEMBER(ticket.clock), MEMBER(ticket.seq),
	MEMBER(token), MEMBER(noted), MEMBER(lease_us), MEMBER(left_us), MEMBER(ballot),
	MEMBER(prepared), MEMBER(flags), MEMBER(status), MEMBER(by), MEMBER(part), MEMBER(parts),
	MEMBER(clock), MEMBER(epoch), MEMBER(number), MEMBER(log), MEMBER(echo), MEMBER(terms.of),
	MEMBER(terms.count), MEMBER(terms.priority), MEMBER(terms.delay), MEMBER(terms.set),
	MEMBER(terms.binding), MEMBER(age_us), MEMBER(had),
}, guard_slices[] = {
	MEMBER(key), MEMBER(owner), MEMBER(identity), MEMBER(value), MEMBER(blob), MEMBER(label),
#undef MEMBER
};

static void guard_check(bool same, const struct message *m, const char *name) {
	if (!same) {
		fprintf(stderr,
			"%s: `%s` is lost or altered on the wire: is it in the row of the kind?\n",
			message_name(m->kind), name);
	}
	CHECK(same);
}

static void guard_same(const struct message *said, const struct message *read) {
	struct message expected = *said;
	/* Microseconds on the wire. Clients name milliseconds; the simulator's do not. */
	expected.terms.delay = (said->terms.delay + SPAN_US - 1) / SPAN_US * SPAN_US;
	const uint8_t *a = (const uint8_t *)&expected, *b = (const uint8_t *)read;
	for (size_t i = 0; i < sizeof guard_members / sizeof *guard_members; i++) {
		guard_check(memcmp(a + guard_members[i].at, b + guard_members[i].at,
			guard_members[i].size) == 0, said, guard_members[i].name);
	}
	for (size_t i = 0; i < sizeof guard_slices / sizeof *guard_slices; i++) {
		const struct slice *x = (const void *)(a + guard_slices[i].at),
			*y = (const void *)(b + guard_slices[i].at);
		guard_check(slice_equal(*x, *y), said, guard_slices[i].name);
	}
}

static void guard_frame(const struct frame *frame) {
	static struct allocator alloc;
	static struct peer_decoder decoder;
	static struct buffer bytes;
	if (bytes.max == 0) {
		alloc = alloc_libc(NULL);
		peer_decoder_init(&decoder, &alloc);
		buffer_init(&bytes, &alloc, PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX);
	}
	struct frame read;
	struct slice body;
	buffer_clear(&bytes);
	CHECK(peer_frame_encode(frame, &bytes) == 0);
	CHECK(peer_scan(buffer_slice(&bytes), PEER_BODY_BYTES_MAX, &body, NULL) ==
		PEER_SCAN_COMPLETE);
	CHECK(peer_frame_decode(&decoder, body, &read) == 0 && read.count == frame->count);
	for (size_t i = 0; i < read.count; i++) {
		guard_same(&frame->messages[i], &read.messages[i]);
	}
}

static void (*listener)(void *ctx, struct core *core, const struct message *m);
static void *listener_ctx;

void guard_listen(void (*local)(void *ctx, struct core *core, const struct message *m), void *ctx) {
	listener = local;
	listener_ctx = ctx;
}

const struct message *__wrap_out_take_local(struct core *core) {
	const struct message *m = __real_out_take_local(core);
	if (listener) {
		listener(listener_ctx, core, m);
	}
	if (m) {
		guard_frame(&(struct frame){ .messages = m, .count = 1 });
	}
	return m;
}

bool __wrap_core_out_frame(struct core_out *out, uint32_t peer, struct frame *frame) {
	const bool any = __real_core_out_frame(out, peer, frame);
	if (any) {
		guard_frame(frame);
	}
	return any;
}

bool __wrap_core_drain_frame(struct core *core, struct instant now, struct frame *frame) {
	const bool any = __real_core_drain_frame(core, now, frame);
	if (any) {
		guard_frame(frame);
	}
	return any;
}
