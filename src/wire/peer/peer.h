/* peer.h: what two nodes say to each other, as bytes (docs/protocol.md, section 1). It knows no
 * sockets and no clocks.
 *
 * A link carries *packets*. A packet is the size of its body, as a u32 in network byte order, and
 * then the body, which is one MessagePack object. The first packet in each direction is a hello (a
 * map). Every later one is a note (a map), one of
 * those of peer_waits.h (a map, too), or a frame:
 *
 *   [epoch, config_hash, sender (bin 16), boot, clock, flags, [message, ...]]
 *   message = [kind, field, ...]
 *
 * A message has the fields of its kind in the order of their bits (cluster/message_kinds.h), and
 * they are flat: a ticket is two elements, a ballot three, a part two. Bytes are bin.
 *
 * A side file (section 4) is a sequence of the same packets, without a hello.
 */
#ifndef PAWL_WIRE_PEER_H
#define PAWL_WIRE_PEER_H

#include "alloc.h"
#include "buffer.h"
#include "message.h"

/* The size of a packet's size. */
#define PEER_PREFIX_BYTES 4u
/* The largest body. The core ends a frame when it has about FRAME_BYTES_MAX, but the last message
 * that it puts in may go beyond that. */
#define PEER_BODY_BYTES_MAX (FRAME_BYTES_MAX + (2u << 20))
/* The largest body of a hello, and of a note. */
#define PEER_HELLO_BYTES_MAX 4096u
/* The most messages in one frame. It bounds the memory that decoding a whole frame may take, to
 * about 50 MiB. */
#define PEER_MESSAGES_MAX (1u << 17)

/* ---- packets ---- */

enum peer_scan {
	/* The packet is not complete. */
	PEER_SCAN_MORE,
	/* *out_body is set. The packet takes PEER_PREFIX_BYTES + out_body->size bytes. */
	PEER_SCAN_COMPLETE,
	/* The packet announces a size of 0, or one above the limit. Close the link. */
	PEER_SCAN_GARBAGE
};
/* Looks at the beginning of the bytes that have arrived. body_max is PEER_HELLO_BYTES_MAX until the
 * hello has come, and PEER_BODY_BYTES_MAX from then on. For PEER_SCAN_MORE, *out_need (out_need may
 * be NULL) is the size of the whole packet, or PEER_PREFIX_BYTES while that is unknown. Do not
 * allocate memory for a size because it was announced: grow with the bytes that arrive. */
enum peer_scan peer_scan(struct slice in, size_t body_max, struct slice *out_body,
	size_t *out_need);

/* ---- frames ---- */

/* Appends one whole packet, prefix and body. What the core must never send (a field out of range)
 * is a CHECK. Returns 0, PAWL_ENOMEM, or PAWL_ETOOLARGE if the frame is above the buffer's limit,
 * PEER_BODY_BYTES_MAX or PEER_MESSAGES_MAX. After an error the buffer is unchanged. */
int peer_frame_encode(const struct frame *frame, struct buffer *out);

/* Says where the messages that go to several peers (struct message, `same`) stand in the buffer of
 * the peer whose frame was encoded first, so that they are copied from there into those of the
 * others. */
struct peer_copies {
	/* Borrowed; NULL: no frame has been encoded yet. Nothing may be taken out of the buffer as
	 * long as further frames are encoded. */
	const struct buffer *from;
	size_t count;
	struct peer_copy {
		uint64_t same;
		size_t at, size;
	} of[512];
};
/* Forgets everything: before the frames of a turn, and when the buffer is gone. */
void peer_copies_clear(struct peer_copies *c);
/* As peer_frame_encode. */
int peer_frame_encode_copies(const struct frame *frame, struct peer_copies *copies,
	struct buffer *out);

/* The memory for the messages of one frame, which is used again for the next frame. There may be
 * one decoder for each link, or one for all of them. */
struct peer_decoder {
	/* Borrowed. */
	const struct allocator *alloc;
	struct message *messages;
	/* How many messages there is room for. */
	size_t capacity;
};
/* The decoder borrows the allocator, and takes no memory yet. */
void peer_decoder_init(struct peer_decoder *d, const struct allocator *alloc);
/* Frees the decoder's memory. A zeroed decoder is allowed. */
void peer_decoder_done(struct peer_decoder *d);

/* Decodes the body of a packet. Slices in *out point into `body`, and out->messages into the
 * decoder; both are valid until the next decode with it. The reader is strict: every field is in
 * the range that cluster/message_kinds.h gives it, a message has exactly the fields of its kind,
 * and nothing follows the frame. Returns 0, PAWL_EPROTOCOL (close the link) or PAWL_ENOMEM. *out is
 * written only on success. */
int peer_frame_decode(struct peer_decoder *d, struct slice body, struct frame *out);

/* Says where the decoding of a frame goes on. Zeroed: at its beginning. */
struct peer_progress {
	/* What the frame says before its messages, if the decoding has begun. */
	struct frame head;
	bool begun;
	/* How many messages are still to come, and where in the body the next one begins. */
	size_t left, at;
};
/* Decodes the next messages of a frame: at most `most`, and none after one of MESSAGES_LONG; all of
 * them if `most` is SIZE_MAX. The frame is complete when nothing is left, and only then it is known
 * that the whole body is good. Otherwise like peer_frame_decode. */
int peer_frame_decode_some(struct peer_decoder *d, struct slice body, size_t most,
	struct peer_progress *progress, struct frame *out);

/* ---- hello ---- */

/* For tests of upgrades tests/integration builds programs that act as if they were the next
 * release. 1: the program also speaks the next version, and its hello has a feature and a key that
 * this release does not know. 2: it speaks the next version only. Of the libraries no other files
 * than those that tests/integration/meson.build compiles again may depend on this. */
#ifndef PAWL_PRETEND_NEXT
#define PAWL_PRETEND_NEXT 0
#endif

/* The versions of this protocol that this program speaks. */
#define PEER_VERSION_MIN (PAWL_PRETEND_NEXT == 2 ? 2u : 1u)
#define PEER_VERSION_MAX (PAWL_PRETEND_NEXT ? 2u : 1u)
/* Optional things that this program can do. A feature is used if both nodes have its bit. */
#define PEER_FEATURE_NOTES (UINT64_C(1) << 0)
#define PEER_FEATURE_WAITS (UINT64_C(1) << 1)
#define PEER_FEATURES \
	(PEER_FEATURE_NOTES | PEER_FEATURE_WAITS | \
		(PAWL_PRETEND_NEXT ? UINT64_C(1) << 62 : UINT64_C(0)))

/* The longest release that a node says in its hello, in bytes. */
#define PEER_RELEASE_MAX 32
/* Each side sends a hello as the first packet of a link, and reads the other's before anything
 * else. It is a map {"pawl": [min, max], "features", "cluster", "node", "id", "boot", "release"},
 * in which the last key may be missing; later versions may add keys. */
struct peer_hello {
	/* The versions of the protocol that the sender speaks. */
	uint32_t version_min, version_max;
	/* The bits PEER_FEATURE_.... */
	uint64_t features;
	/* The name of the cluster, and the name of the sender: 1 .. NODE_NAME_MAX bytes, without
	 * control characters. */
	char cluster[NODE_NAME_MAX + 1];
	char node[NODE_NAME_MAX + 1];
	/* The sender's identity, which is not zero. */
	struct id128 id;
	/* The sender's boot, which is at least 1. */
	uint64_t boot;
	/* Which release of Pawl the sender is, for operators: printable ASCII, and empty if it has
	 * not said so. Nothing of the protocol depends on it. */
	char release[PEER_RELEASE_MAX + 1];
};

/* Appends the packet. Returns the same errors as peer_frame_encode. */
int peer_hello_encode(const struct peer_hello *hello, struct buffer *out);
/* Is strict about the keys that it knows, and ignores all others; of a longer release it takes the
 * beginning. Returns 0 or PAWL_EPROTOCOL. *out is written only on success. */
int peer_hello_decode(struct slice body, struct peer_hello *out);

/* Tells whether there is a version that both nodes speak. */
bool peer_versions_meet(const struct peer_hello *ours, const struct peer_hello *theirs);

/* What two nodes have in common. */
struct peer_agreement {
	uint32_t version;
	uint64_t features;
};
/* Returns NULL if the two nodes can work together; *out is set then. Otherwise it returns a
 * sentence for the log that says why not, as static text. Both sides come to the same result.
 * The caller checks whether the other node is the one that was dialled, and whether it has
 * proven that. */
const char *peer_hello_problem(const struct peer_hello *ours, const struct peer_hello *theirs,
	struct peer_agreement *out);

/* ---- notes ---- */

/* The longest serial number, in hex digits (RFC 5280 allows 20 bytes). */
#define PEER_SERIAL_MAX 48
/* What nodes that have PEER_FEATURE_NOTES tell each other for operators, in addition to the frames.
 * Nothing of the protocol depends on it. A note is a packet between frames whose body is a map. The
 * latest note counts. Later versions may add keys. */
struct peer_note {
	/* The digest of the file with the access rules in hex digits, or "none" if there is no such
	 * file; empty if the node has not told it. */
	char rights[2 * 32 + 1];
	/* The certificate that the node uses now, which it may have got since the link was made:
	 * its serial number in capital hex digits, with a - in front if it is negative, and its end
	 * in seconds since 1970. Empty and 0 if the node has no TLS, or has not told it. */
	char serial[PEER_SERIAL_MAX + 1];
	uint64_t ends;
};
/* Tells whether the body is a note. If not, it is a frame, or garbage. */
bool peer_is_note(struct slice body);
/* Appends the packet. Returns the same errors as peer_frame_encode. */
int peer_note_encode(const struct peer_note *note, struct buffer *out);
/* Returns 0 or PAWL_EPROTOCOL. *out is written only on success. */
int peer_note_decode(struct slice body, struct peer_note *out);

#endif
