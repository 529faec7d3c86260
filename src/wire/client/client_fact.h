/* client_fact.h: the fields of results, each with its name, its type and its place in a struct. One
 * table serves to read them and to write them. Only the codec includes this header. */
#ifndef PAWL_WIRE_CLIENT_FACT_H
#define PAWL_WIRE_CLIENT_FACT_H

#include <stddef.h>

#include "client.h"
#include "pack.h"
#include "unpack.h"

/* The type of a field in C, and on the wire where that is something else. */
enum client_fact_type {
	/* bool */
	FACT_BOOL,
	/* uint32_t */
	FACT_U32,
	/* uint64_t */
	FACT_U64,
	/* struct slice, written as str */
	FACT_TEXT,
	/* struct slice, written as bin */
	FACT_BYTES,
	/* span_ns, rounded down to milliseconds: a time that one may count on, or that has
	 * passed */
	FACT_MS,
	/* span_ns, rounded up to milliseconds: a time that is still to come */
	FACT_MS_UP,
	/* span_ns, rounded down to microseconds */
	FACT_US,
	/* struct id128, written as hex digits; the reader takes 16 bytes as well */
	FACT_ID,
	/* struct ballot, as a bin of CLIENT_VALUE_SEQ_BYTES */
	FACT_BALLOT,
	/* int32_t */
	FACT_I32,
	/* enum client_mode, by its name */
	FACT_MODE,
	/* struct permits, as a list of the permit numbers */
	FACT_SLOTS,
	/* struct client_position, as a bin of CLIENT_POSITION_BYTES */
	FACT_POSITION
};

/* One field. */
struct client_fact {
	/* The key in the map. */
	const char *name;
	enum client_fact_type type;
	/* The place of the field in its struct. */
	size_t offset;
	/* The bit of the field in the struct's `present`; 0 if it has none. */
	uint32_t bit;
};

/* A table, with the struct that it fills. */
struct client_fact_set {
	const struct client_fact *facts;
	size_t count;
	void *base;
	/* The struct's bits; NULL if it has none. */
	uint32_t *present;
};
/* Reads the value if the set has a field of that name; a nil counts as a field that is absent.
 * Returns false, and has read nothing, if the set has no such field. */
bool client_fact_take(const struct client_fact_set *set, struct slice name, struct unpack *u);

/* Writes one field. */
void client_fact_put(struct pack *k, struct pack_open *map, const struct client_fact *fact,
	const void *base);
/* Writes all fields whose bit is in `present`, and those without a bit. */
void client_fact_put_all(struct pack *k, struct pack_open *map, const struct client_fact *facts,
	size_t count, const void *base, uint32_t present);

/* The fields of struct client_entry: the holder of a key, in the answers to reads and in errors. */
extern const struct client_fact client_entry_facts[];
extern const size_t client_entry_fact_count;
/* The fields of struct client_mode_facts, with the bits of enum client_entry_has. */
#define CLIENT_MODE_FACT_COUNT 4
extern const struct client_fact client_mode_facts[CLIENT_MODE_FACT_COUNT];
/* The fields of struct client_label, with the bits of enum client_entry_has. */
#define CLIENT_LABEL_FACT_COUNT 3
extern const struct client_fact client_label_facts[CLIENT_LABEL_FACT_COUNT];
/* Returns the bits of the fields that the mode has. */
uint32_t client_mode_present(const struct client_mode_facts *mode);
/* Writes a list of the permit numbers in the set. */
void client_slots_put(struct pack *k, struct permits set);
/* Returns the bits of the fields that the label has. */
uint32_t client_label_present(const struct client_label *label);

#endif
