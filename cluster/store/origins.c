/* origins.c: who drew the ballots of the records: a node and its boot. Nearly all records name one
 * of a few, so a record has a number of 16 bits for it (record.origin), and this counts the records
 * that have each number. */
#include "store.h"

#define ORIGINS_MIN 16
/* One more than the greatest number. */
#define ORIGINS_MAX ((uint32_t)1 << 16)

static uint32_t *chain_of(struct core *core, struct ballot b) {
	return &core->store.origins.chains[
		hash_fold(b.node ^ core->hash_key.k0, b.boot ^ core->hash_key.k1) % ORIGIN_CHAINS];
}

/* Makes sure that there is a free number. */
static bool has_free(struct core *core) {
	struct origins *o = &core->store.origins;
	if (o->free) {
		return true;
	}
	const uint32_t size = o->size ? 2 * o->size : ORIGINS_MIN;
	struct origin *all = size <= ORIGINS_MAX ? alloc_resize(&core->alloc, o->all,
		o->size * sizeof *all, size * sizeof *all) : NULL;
	if (all == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	/* The number 0 stands for the ballot of nobody. */
	for (uint32_t number = size; number-- > (o->size ? o->size : 1);) {
		all[number] = (struct origin){ .next = o->free };
		o->free = number;
	}
	o->all = all;
	o->size = size;
	return true;
}

bool origin_take(struct core *core, struct ballot ballot, uint16_t *out) {
	struct origins *o = &core->store.origins;
	if (ballot.node == 0 && ballot.boot == 0) {
		*out = 0;
		return true;
	}
	uint32_t *chain = chain_of(core, ballot), number = *chain;
	while (number && (o->all[number].node != ballot.node ||
		o->all[number].boot != ballot.boot)) {
		number = o->all[number].next;
	}
	if (number == 0) {
		if (!has_free(core)) {
			return false;
		}
		number = o->free;
		o->free = o->all[number].next;
		o->all[number] = (struct origin){ .node = ballot.node, .boot = ballot.boot,
			.next = *chain };
		*chain = number;
	}
	o->all[number].records++;
	*out = (uint16_t)number;
	return true;
}

void origin_give(struct core *core, uint16_t number) {
	struct origins *o = &core->store.origins;
	struct origin *origin = number ? &o->all[number] : NULL;
	if (origin == NULL || --origin->records > 0) {
		return;
	}
	uint32_t *at = chain_of(core, origin_ballot(core, 0, number));
	while (*at != number) {
		at = &o->all[*at].next;
	}
	*at = origin->next;
	*origin = (struct origin){ .next = o->free };
	o->free = number;
}

void origins_done(struct core *core) {
	struct origins *o = &core->store.origins;
	for (uint32_t number = 1; number < o->size; number++) {
		CHECK(o->all[number].records == 0);
	}
	alloc_free(&core->alloc, o->all, o->size * sizeof *o->all);
	*o = (struct origins){ .size = 0 };
}
