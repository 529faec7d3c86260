/* A slot of the state file as bytes: header {magic, sequence, payload size, checksum}, then the payload.
 * Only what state_encode wrote is accepted: every truth value is 0 or 1, every text ends where it says. */
#include "bytes.h"
#include "check.h"
#include "pawl/error.h"
#include "siphash.h"
#include "state_file.h"

#define STATE_MAGIC "PAWLSTA1" /* the last character is the version of the format */
#define STATE_HEADER_BYTES (8 + 8 + 4 + 8)
#define STATE_PAYLOAD_MAX (2 * (1 + NODE_NAME_MAX) + 16 + 4 * 8 + 1 + 4 + CONFIG_BYTES_MAX)
_Static_assert(STATE_HEADER_BYTES + STATE_PAYLOAD_MAX <= STATE_SLOT_BYTES, "the largest state fits a slot");

enum state_flag { STATE_VOTED = 1, STATE_PLEDGED = 2 };

/* Against damage, not against people: the key is fixed. The sequence number is the second half. */
static uint64_t state_checksum(uint64_t sequence, struct slice payload) {
	return siphash((struct siphash_key){ 0x7061776c73746174u, sequence }, payload.data, payload.size);
}

static void put_text(struct bytes_writer *w, const char *text) {
	size_t size = strlen(text);
	bytes_put_number(w, size, 1);
	bytes_put(w, text, size);
}

size_t state_encode(const struct state_slot *slot, uint8_t out[STATE_SLOT_BYTES]) {
	const struct durable *d = &slot->durable;
	uint8_t config[CONFIG_BYTES_MAX];
	size_t config_size = d->config.epoch > 0 ? config_encode(&d->config, config) : 0;
	struct bytes_writer w = { out + STATE_HEADER_BYTES };
	put_text(&w, slot->cluster);
	put_text(&w, slot->node);
	bytes_put(&w, d->node_id.b, sizeof d->node_id.b);
	bytes_put_number(&w, d->boot, 8);
	bytes_put_number(&w, d->ceiling, 8);
	bytes_put_number(&w, (uint64_t)d->max_lease_seen, 8);
	bytes_put_number(&w, (uint64_t)d->request_timeout_seen, 8);
	bytes_put_number(&w, (d->voted ? STATE_VOTED : 0u) | (d->pledged ? STATE_PLEDGED : 0u), 1);
	bytes_put_number(&w, config_size, 4);
	bytes_put(&w, config, config_size);
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
	size_t config_size = bytes_get_number(&r, 4);
	if (r.bad || flags > (STATE_VOTED | STATE_PLEDGED) || config_size != r.rest.size || id128_zero(d->node_id) || d->ceiling > TOKEN_MAX) {
		return PAWL_EPROTOCOL;
	}
	if (config_size == 0) {
		return d->voted || d->pledged ? PAWL_EPROTOCOL : 0;
	}
	int error = config_decode(r.rest, &d->config);
	return error ? error : d->config.epoch == 0 ? PAWL_EPROTOCOL : 0;
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
