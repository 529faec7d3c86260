/* client_fact.h: facts of results by name, type and place in a struct: one table reads and writes them. Internal. */
#ifndef PAWL_WIRE_CLIENT_FACT_H
#define PAWL_WIRE_CLIENT_FACT_H

#include <stddef.h>

#include "client.h"
#include "pack.h"
#include "unpack.h"

enum client_fact_type {
	FACT_BOOL,   /* bool */
	FACT_U32,    /* uint32_t */
	FACT_U64,    /* uint64_t */
	FACT_TEXT,   /* struct slice, written as str */
	FACT_BYTES,  /* struct slice, written as bin */
	FACT_MS,     /* span_ns, rounded down to ms: what one may count on, what has passed */
	FACT_MS_UP,  /* span_ns, rounded up to ms: what is still to come */
	FACT_US,     /* span_ns, in us */
	FACT_ID,     /* struct id128, written as hex digits, read also as 16 bytes */
	FACT_BALLOT, /* struct ballot, as bin of CLIENT_VALUE_SEQ_BYTES */
	FACT_I32,    /* int32_t */
	FACT_MODE,   /* enum client_mode, by name */
	FACT_SLOTS,  /* struct permits, as a list of numbers */
	FACT_POSITION /* struct client_position, as bin of CLIENT_POSITION_BYTES */
};

struct client_fact {
	const char *name;
	enum client_fact_type type;
	size_t offset;
	uint32_t bit; /* in the struct's `present`; 0: none */
};

/* A table with the struct that it fills. */
struct client_fact_set {
	const struct client_fact *facts;
	size_t count;
	void *base;
	uint32_t *present; /* NULL: the struct has none */
};
/* Reads the value if the name is one of the set's; false: it is not, nothing was read. nil counts as absent. */
bool client_fact_take(const struct client_fact_set *set, struct slice name, struct unpack *u);

/* Writes one, resp. all whose bit is in `present` (0 bits always). */
void client_fact_put(struct pack *k, struct pack_open *map, const struct client_fact *fact, const void *base);
void client_fact_put_all(struct pack *k, struct pack_open *map, const struct client_fact *facts, size_t count, const void *base,
	uint32_t present);

/* The holder of a key, in answers to reads and in errors. */
extern const struct client_fact client_entry_facts[];
extern const size_t client_entry_fact_count;
/* struct client_mode_facts, with the bits of enum client_entry_has. */
#define CLIENT_MODE_FACT_COUNT 4
extern const struct client_fact client_mode_facts[CLIENT_MODE_FACT_COUNT];
/* struct client_label, with the bits of enum client_entry_has. */
#define CLIENT_LABEL_FACT_COUNT 3
extern const struct client_fact client_label_facts[CLIENT_LABEL_FACT_COUNT];
/* Which of them there are to be told. */
uint32_t client_mode_present(const struct client_mode_facts *mode);
void client_slots_put(struct pack *k, struct permits set); /* numbers of permits, as a list */
uint32_t client_label_present(const struct client_label *label);

#endif
