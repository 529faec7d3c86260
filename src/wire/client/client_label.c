/* client_label.c: packs what a holder says about itself into one small map. The protocol carries
 * the map and does not read it. */
#include <stddef.h>

#include "client_field.h"
#include "pack.h"
#include "unpack.h"

static const struct client_field label_fields[] = {
	{ "h", FIELD_BYTES, offsetof(struct client_label, host), 1 << 0 },
	{ "p", FIELD_U32, offsetof(struct client_label, pid), 1 << 1 },
	{ "l", FIELD_BYTES, offsetof(struct client_label, text), 1 << 2 },
	{ "e", FIELD_BOOL, offsetof(struct client_label, election), 1 << 3 },
	{ "w", FIELD_BOOL, offsetof(struct client_label, without_end), 1 << 4 },
};
#define LABEL_FIELDS (sizeof label_fields / sizeof label_fields[0])

static uint8_t *label_put(uint8_t *p, char name, struct slice s, size_t max) {
	if (s.size == 0) {
		return p;
	}
	s.size = s.size < max ? s.size : max;
	*p++ = 0xa1;
	*p++ = (uint8_t)name;
	return pack_put_bin(p, s);
}

static uint8_t *label_put_flag(uint8_t *p, char name, bool is_set) {
	if (is_set) {
		*p++ = 0xa1;
		*p++ = (uint8_t)name;
		*p++ = 0xc3;
	}
	return p;
}

uint32_t client_label_pack(const struct client_label *label, uint8_t out[LABEL_MAX]) {
	_Static_assert(1 + (2 + 2 + CLIENT_HOST_MAX) + (2 + 5) + (2 + 2 + CLIENT_LABEL_MAX) +
				(2 + 1) + (2 + 1) <=
			LABEL_MAX,
		"the largest one fits");
	uint32_t pairs = (label->host.size ? 1u : 0u) + (label->pid ? 1u : 0u) +
		(label->text.size ? 1u : 0u) + (label->election ? 1u : 0u) +
		(label->without_end ? 1u : 0u);
	if (pairs == 0) {
		return 0;
	}
	uint8_t *p = out;
	*p++ = (uint8_t)(0x80 | pairs);
	p = label_put(p, 'h', label->host, CLIENT_HOST_MAX);
	if (label->pid) {
		*p++ = 0xa1;
		*p++ = 'p';
		p = pack_put_uint(p, label->pid);
	}
	p = label_put(p, 'l', label->text, CLIENT_LABEL_MAX);
	p = label_put_flag(p, 'e', label->election);
	p = label_put_flag(p, 'w', label->without_end);
	return (uint32_t)(p - out);
}

struct client_label client_label_unpack(struct slice packed) {
	struct client_label label = { 0 };
	struct client_field_set set = { label_fields, LABEL_FIELDS, &label, NULL };
	struct unpack u = unpack_of(packed);
	uint32_t pairs = packed.size ? unpack_map(&u) : 0;
	for (uint32_t i = 0; i < pairs && !u.bad; i++) {
		if (!client_field_take(&set, unpack_bytes(&u, SIZE_MAX), &u)) {
			unpack_skip(&u);
		}
	}
	return u.bad ? (struct client_label){ 0 } : label;
}
