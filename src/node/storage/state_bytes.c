/* state_bytes.c: a slot of the state file as bytes: a header {magic, sequence, payload size,
 * checksum}, and then the payload. Only what state_encode wrote is accepted: every truth value is 0
 * or 1, and every text ends where it says.
 */
#include "bytes.h"
#include "check.h"
#include "pawl/error.h"
#include "siphash.h"
#include "state_file.h"

/* The last character is the version of the format. */
#define STATE_MAGIC "PAWLSTA2"
#define STATE_HEADER_BYTES (8 + 8 + 4 + 8)
#define STATE_BALLOT_BYTES (8 + 8 + 4)
#define STATE_PAYLOAD_MAX \
	(2 * (1 + NODE_NAME_MAX) + 16 + 4 * 8 + 1 + 2 * STATE_BALLOT_BYTES \
	+ 2 * (4 + CONFIG_BYTES_MAX))
_Static_assert(STATE_HEADER_BYTES + STATE_PAYLOAD_MAX <= STATE_SLOT_BYTES,
	"the largest state fits a slot");

enum state_flag { STATE_VOTED = 1, STATE_PLEDGED = 2, STATE_COMPLETE = 4, STATE_VOTED_BEFORE = 8 };
#define STATE_FLAGS 15u

/* The checksum protects from damage, not from people, so the key is fixed. The sequence number is
 * its second half. */
static uint64_t state_checksum(uint64_t sequence, struct slice payload) {
	return siphash((struct siphash_key){ 0x7061776c73746174u, sequence }, payload.data,
		payload.size);
}

static void put_text(struct bytes_writer *w, const char *text) {
	size_t size = strlen(text);
	bytes_put_number(w, size, 1);
	bytes_put(w, text, size);
}

static void put_ballot(struct bytes_writer *w, struct ballot b) {
	bytes_put_number(w, b.clock, 8);
	bytes_put_number(w, b.node, 8);
	bytes_put_number(w, b.boot, 4);
}

/* Writes a configuration after its size. If there is none (epoch 0), it writes only the size 0. */
static void put_config(struct bytes_writer *w, const struct config *c) {
	uint8_t *size_at = w->at;
	w->at += 4;
	size_t size = c->epoch > 0 ? config_encode(c, w->at) : 0;
	bytes_put_number(&(struct bytes_writer){ size_at }, size, 4);
	w->at += size;
}

static unsigned state_flags(const struct durable *d) {
	return (d->voted ? STATE_VOTED : 0u) | (d->pledged ? STATE_PLEDGED : 0u)
		| (d->complete ? STATE_COMPLETE : 0u) | (d->voted_before ? STATE_VOTED_BEFORE : 0u);
}

size_t state_encode(const struct state_slot *slot, uint8_t out[STATE_SLOT_BYTES]) {
	const struct durable *d = &slot->durable;
	struct bytes_writer w = { out + STATE_HEADER_BYTES };
	put_text(&w, slot->cluster);
	put_text(&w, slot->node);
	bytes_put(&w, d->node_id.b, sizeof d->node_id.b);
	bytes_put_number(&w, d->boot, 8);
	bytes_put_number(&w, d->ceiling, 8);
	bytes_put_number(&w, (uint64_t)d->max_lease_seen, 8);
	bytes_put_number(&w, (uint64_t)d->request_timeout_seen, 8);
	bytes_put_number(&w, state_flags(d), 1);
	put_ballot(&w, d->decree_promised);
	put_ballot(&w, d->decree_accepted);
	put_config(&w, &d->config);
	put_config(&w, &d->decree_config);
	size_t size = (size_t)(w.at - out);
	CHECK(size <= STATE_SLOT_BYTES);
	struct slice payload = slice_of(out + STATE_HEADER_BYTES, size - STATE_HEADER_BYTES);
	w.at = out;
	bytes_put(&w, STATE_MAGIC, 8);
	bytes_put_number(&w, slot->sequence, 8);
	bytes_put_number(&w, payload.size, 4);
	bytes_put_number(&w, state_checksum(slot->sequence, payload), 8);
	return size;
}

static void get_text(struct bytes_reader *r, char out[NODE_NAME_MAX + 1]) {
	size_t size = bytes_get_number(r, 1);
	if (size > NODE_NAME_MAX || !bytes_get(r, out, size)) {
		r->bad = true;
		return;
	}
	out[size] = '\0';
	r->bad = r->bad || strlen(out) != size;
}

static span_ns get_span(struct bytes_reader *r) {
	uint64_t v = bytes_get_number(r, 8);
	r->bad = r->bad || v > (uint64_t)SPAN_MAX;
	return (span_ns)v;
}

static struct ballot get_ballot(struct bytes_reader *r) {
	struct ballot b;
	b.clock = bytes_get_number(r, 8);
	b.node = bytes_get_number(r, 8);
	b.boot = (uint32_t)bytes_get_number(r, 4);
	r->bad = r->bad || b.clock > TOKEN_MAX;
	return b;
}

static void get_config(struct bytes_reader *r, struct config *out) {
	size_t size = bytes_get_number(r, 4);
	if (r->bad || size > r->rest.size) {
		r->bad = true;
		return;
	}
	if (size > 0) {
		r->bad = config_decode(slice_of(r->rest.data, size), out) != 0 || out->epoch == 0;
		r->rest = slice_of(r->rest.data + size, r->rest.size - size);
	}
}

int state_decode_payload(struct slice payload, struct state_slot *out) {
	struct bytes_reader r = { .rest = payload };
	struct durable *d = &out->durable;
	get_text(&r, out->cluster);
	get_text(&r, out->node);
	bytes_get(&r, d->node_id.b, sizeof d->node_id.b);
	d->boot = bytes_get_number(&r, 8);
	d->ceiling = bytes_get_number(&r, 8);
	d->max_lease_seen = get_span(&r);
	d->request_timeout_seen = get_span(&r);
	uint64_t flags = bytes_get_number(&r, 1);
	d->voted = flags & STATE_VOTED;
	d->pledged = flags & STATE_PLEDGED;
	d->complete = flags & STATE_COMPLETE;
	d->voted_before = flags & STATE_VOTED_BEFORE;
	d->decree_promised = get_ballot(&r);
	d->decree_accepted = get_ballot(&r);
	get_config(&r, &d->config);
	get_config(&r, &d->decree_config);
	if (r.bad || r.rest.size != 0 || flags > STATE_FLAGS || id128_zero(d->node_id)
		|| d->ceiling > TOKEN_MAX) {
		return PAWL_EPROTOCOL;
	}
	/* Without a configuration there cannot be marks of one. */
	return d->config.epoch == 0 && flags != 0 ? PAWL_EPROTOCOL : 0;
}

int state_decode(struct slice bytes, struct state_slot *out) {
	struct bytes_reader r = { .rest = bytes };
	char magic[8];
	struct state_slot slot = { .sequence = 0 };
	if (!bytes_get(&r, magic, sizeof magic) || memcmp(magic, STATE_MAGIC, sizeof magic) != 0) {
		return PAWL_EPROTOCOL;
	}
	slot.sequence = bytes_get_number(&r, 8);
	size_t size = bytes_get_number(&r, 4);
	uint64_t checksum = bytes_get_number(&r, 8);
	if (r.bad || slot.sequence == 0 || size > STATE_PAYLOAD_MAX || size > r.rest.size) {
		return PAWL_EPROTOCOL;
	}
	struct slice payload = slice_of(r.rest.data, size);
	if (state_checksum(slot.sequence, payload) != checksum) {
		return PAWL_EPROTOCOL;
	}
	int error = state_decode_payload(payload, &slot);
	if (!error) {
		*out = slot;
	}
	return error;
}
