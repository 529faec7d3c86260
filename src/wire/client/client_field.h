/* client_field.h: the fields of results, each with its name, its type and its place in a struct.
 * One table serves to read them and to write them. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_FIELD_H
#define PAWL_WIRE_CLIENT_FIELD_H

#include <stddef.h>

#include "client.h"
#include "pack.h"
#include "unpack.h"

/* The type of a field in C, and on the wire where that is something else. */
enum client_field_type {
	/* bool */
	FIELD_BOOL,
	/* uint32_t */
	FIELD_U32,
	/* uint64_t */
	FIELD_U64,
	/* struct slice, written as str */
	FIELD_TEXT,
	/* struct slice, written as bin */
	FIELD_BYTES,
	/* span_ns, rounded down to milliseconds: a time that one may count on, or that has
	 * passed */
	FIELD_MS,
	/* span_ns, rounded up to milliseconds: a time that is still to come */
	FIELD_MS_UP,
	/* span_ns, rounded down to microseconds */
	FIELD_US,
	/* struct id128, written as hex digits; the reader takes 16 bytes as well */
	FIELD_ID,
	/* struct ballot, as a bin of CLIENT_VALUE_SEQ_BYTES */
	FIELD_BALLOT,
	/* int32_t */
	FIELD_I32,
	/* enum client_mode, by its name */
	FIELD_MODE,
	/* struct permits, as a list of the permit numbers */
	FIELD_NUMBERS,
	/* struct client_position, as a bin of CLIENT_POSITION_BYTES */
	FIELD_POSITION
};

/* One field. */
struct client_field {
	/* The key in the map. */
	const char *name;
	enum client_field_type type;
	/* The place of the field in its struct. */
	size_t offset;
	/* The bit of the field in the struct's `present`; 0 if it has none. */
	uint32_t bit;
};

/* A table, with the struct that it fills. */
struct client_field_set {
	const struct client_field *fields;
	size_t count;
	void *base;
	/* The struct's bits; NULL if it has none. */
	uint32_t *present;
};
/* Reads the value if the set has a field of that name; a nil counts as a field that is absent.
 * Returns false, and has read nothing, if the set has no such field. */
bool client_field_take(const struct client_field_set *set, struct slice name, struct unpack *u);

/* Writes one field. */
void client_field_put(struct pack *k, struct pack_open *map, const struct client_field *field,
	const void *base);
/* Writes all fields whose bit is in `present`, and those without a bit. */
void client_field_put_all(struct pack *k, struct pack_open *map, const struct client_field *fields,
	size_t count, const void *base, uint32_t present);

/* The fields of struct client_entry: the holder of a key, in the answers to reads and in errors. */
extern const struct client_field client_entry_fields[];
extern const size_t client_entry_field_count;
/* The fields of struct client_lock_mode, with the bits of enum client_entry_has. */
#define CLIENT_MODE_FIELD_COUNT 4
extern const struct client_field client_mode_fields[CLIENT_MODE_FIELD_COUNT];
/* The fields of struct client_label, with the bits of enum client_entry_has. */
#define CLIENT_LABEL_FIELD_COUNT 4
extern const struct client_field client_label_fields[CLIENT_LABEL_FIELD_COUNT];
/* Returns the bits of the fields that the mode has. */
uint32_t client_mode_present(const struct client_lock_mode *mode);
/* Writes a list of the permit numbers in the set. */
void client_permit_numbers_put(struct pack *k, struct permits set);
/* Returns the bits of the fields that the label has. */
uint32_t client_label_present(const struct client_label *label);

#endif
