/* peer.h: what two nodes say to each other, as bytes (docs/protocol.md, section 1). Pure: no sockets, no clocks.
 *
 * A link carries *packets*: a u32 in network byte order, the size of the body, then the body: one MessagePack object.
 * The first packet each way is a hello (a map); every later one is a frame:
 *
 *   [epoch, config_hash, sender (bin 16), boot, clock, flags, [message, ...]]
 *   message = [kind, field, ...]   the kind's fields in the order of their bits (cluster/message.h), flat: a ticket is two
 *                                  elements, a ballot three, a part two; bytes are bin
 *
 * A side file (section 4) is a sequence of the same packets, without a hello.
 */
#ifndef PAWL_WIRE_PEER_H
#define PAWL_WIRE_PEER_H

#include "alloc.h"
#include "buffer.h"
#include "message.h"

#define PEER_PREFIX_BYTES 4u
/* The core cuts frames at about FRAME_BYTES_MAX; the last message it puts in may stand out over the edge. */
#define PEER_BODY_BYTES_MAX (FRAME_BYTES_MAX + (2u << 20))
#define PEER_HELLO_BYTES_MAX 4096u
#define PEER_MESSAGES_MAX (1u << 17) /* in one frame: what decoding it may take is bounded, about 32 MiB */

/* ---- packets ---- */

enum peer_scan {
	PEER_SCAN_MORE,     /* the packet is not complete */
	PEER_SCAN_COMPLETE, /* *out_body is set; the packet takes PEER_PREFIX_BYTES + out_body->size bytes */
	PEER_SCAN_GARBAGE   /* an announced size of 0 or above the limit: close the link */
};
/* Looks at the front of what arrived. body_max: PEER_HELLO_BYTES_MAX until the hello came, then PEER_BODY_BYTES_MAX.
 * *out_need (may be NULL) is set for MORE: the bytes of the whole packet, or PEER_PREFIX_BYTES while the size is unknown.
 * An announced size is not a reason to allocate: grow with what arrives. */
enum peer_scan peer_scan(struct slice in, size_t body_max, struct slice *out_body, size_t *out_need);

/* ---- frames ---- */

/* Appends one whole packet (prefix and body). 0; PAWL_ENOMEM; PAWL_ETOOLARGE: above the buffer's limit, PEER_BODY_BYTES_MAX
 * or PEER_MESSAGES_MAX; the buffer is unchanged on error. What the core must never send (a field out of range) is a CHECK. */
int peer_frame_encode(const struct frame *frame, struct buffer *out);

/* Memory for the messages of one frame, used again for the next. One a link is enough, one for all links too. */
struct peer_decoder {
	const struct allocator *alloc;
	struct message *messages;
	size_t capacity;
};
void peer_decoder_init(struct peer_decoder *d, const struct allocator *alloc); /* allocator borrowed; takes no memory yet */
void peer_decoder_done(struct peer_decoder *d);                                /* accepts zeroed memory */

/* Decodes a packet's body. Slices in *out point into `body`, out->messages into the decoder: both until the next decode
 * with it. Strict: every field in its range as cluster/message.h says, exactly the kind's fields, nothing behind.
 * 0; PAWL_EPROTOCOL: close the link; PAWL_ENOMEM. *out is written only on success. */
int peer_frame_decode(struct peer_decoder *d, struct slice body, struct frame *out);

/* ---- hello ---- */

/* For tests of upgrades tests/integration builds programs that act as if they were the next release.
 * 1: the program also speaks the next version, and its hello has a feature and a key that this
 * release does not know. 2: it speaks the next version only. Of the libraries no other files than
 * those that tests/integration/meson.build compiles again may depend on this. */
#ifndef PAWL_PRETEND_NEXT
#define PAWL_PRETEND_NEXT 0
#endif

#define PEER_VERSION_MIN (PAWL_PRETEND_NEXT == 2 ? 2u : 1u) /* versions of this protocol that this program speaks */
#define PEER_VERSION_MAX (PAWL_PRETEND_NEXT ? 2u : 1u)
/* Optional things that this program can do; a feature is used when both have its bit. */
#define PEER_FEATURE_NOTES (UINT64_C(1) << 0)
#define PEER_FEATURES (PEER_FEATURE_NOTES | (PAWL_PRETEND_NEXT ? UINT64_C(1) << 62 : UINT64_C(0)))

/* Each side sends one as the first packet of a link and reads the other's before anything else:
 * a map {"pawl": [min, max], "features", "cluster", "node", "id", "boot"}; further keys are for later versions. */
struct peer_hello {
	uint32_t version_min, version_max;
	uint64_t features;
	char cluster[NODE_NAME_MAX + 1]; /* the cluster's name; 1 .. NODE_NAME_MAX bytes, no control characters */
	char node[NODE_NAME_MAX + 1];    /* the sender's name, likewise */
	struct id128 id;                 /* the sender's identity, not zero */
	uint64_t boot;                   /* the sender's boot, at least 1 */
};

/* Appends the packet. Errors as peer_frame_encode. */
int peer_hello_encode(const struct peer_hello *hello, struct buffer *out);
/* Strict about what it knows, ignores keys it does not know. 0 or PAWL_EPROTOCOL; *out only on success. */
int peer_hello_decode(struct slice body, struct peer_hello *out);

/* Whether there is a version that both speak. */
bool peer_versions_meet(const struct peer_hello *ours, const struct peer_hello *theirs);

/* What two nodes have in common. */
struct peer_terms {
	uint32_t version;
	uint64_t features;
};
/* NULL: they can work together, *out is set. Else a sentence why not, for the log (static storage). Both sides come to the
 * same result. Whether the other is the node that was dialled, and proved it, is for the caller to check. */
const char *peer_hello_problem(const struct peer_hello *ours, const struct peer_hello *theirs, struct peer_terms *out);

/* ---- notes ---- */

/* What nodes that have PEER_FEATURE_NOTES tell each other beside the frames, for operators: nothing of the protocol depends on it.
 * A packet whose body is a map, between frames; the latest one counts; keys that are not known are for later versions. */
struct peer_note {
	/* The digest of the file with the access rules in hex digits, or "none"; empty: not told. */
	char rights[2 * 32 + 1];
};
bool peer_is_note(struct slice body); /* else it is a frame, or garbage */
int peer_note_encode(const struct peer_note *note, struct buffer *out); /* appends the packet; errors as peer_frame_encode */
int peer_note_decode(struct slice body, struct peer_note *out);         /* 0 or PAWL_EPROTOCOL; *out only on success */

#endif
