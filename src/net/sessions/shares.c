/* shares.c: the table of shares, what they count, and what a full one says. */
#include "shares.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "pawl/error.h"

/* How much of what a rate allows may come at once. For urgent requests it is twice as much. */
#define AT_ONCE SPAN_S
/* After which time a refused client should come again: soon, or later. */
#define MORE_SOON (100 * SPAN_MS)
#define MORE_LATER SPAN_S

static const char *const share_whats[SHARE_KINDS] = {
#define SHARE_WHAT(name, text, what) [SHARE_##name] = what,
	SHARE_TABLE(SHARE_WHAT)
#undef SHARE_WHAT
};

/* The names of the settings, by kind: for an identity, and for an address. */
static const char *const share_settings[SHARE_KINDS][2] = {
#define SHARE_SETTING(name, text, what) \
	[SHARE_##name] = { text "_per_identity", text "_per_address" },
	SHARE_TABLE(SHARE_SETTING)
#undef SHARE_SETTING
};

/* ---- the table ---- */

int shares_init(struct shares *s, const struct allocator *alloc, struct siphash_key hash_key) {
	*s = (struct shares){ .alloc = alloc, .hash_key = hash_key };
	list_init(&s->among);
	list_init(&s->idle);
	return map_init(&s->by_name, alloc);
}

static void share_free(struct share *share) {
	struct shares *s = share->all;
	list_remove(&share->among);
	list_remove(&share->idle);
	map_remove(&s->by_name, &share->node);
	alloc_free(s->alloc, share, sizeof *share + share->name_size);
}

static void share_drained(void *none, struct map_node *node) {
	(void)none;
	share_free(CONTAINER_OF(node, struct share, node));
}

void shares_done(struct shares *s) {
	map_drain(&s->by_name, share_drained, NULL);
	map_done(&s->by_name);
	*s = (struct shares){ 0 };
}

void shares_sweep(struct shares *s, struct instant now) {
	struct list *next;
	for (struct list *at = list_first(&s->idle); at; at = next) {
		struct share *share = CONTAINER_OF(at, struct share, idle);
		next = list_after(&s->idle, at);
		if (share->paid <= now.boot) {
			share_free(share);
		}
	}
}

struct share *shares_find(struct shares *s, char kind, struct slice name,
	int64_t connection_quantum) {
	uint64_t hash = siphash((struct siphash_key){ s->hash_key.k0 + (uint64_t)kind,
		s->hash_key.k1 }, name.data, name.size);
	for (struct map_node *n = map_first(&s->by_name, hash); n; n = map_next(n)) {
		struct share *share = CONTAINER_OF(n, struct share, node);
		if (share->name[0] == (uint8_t)kind
			&& slice_equal(slice_of(share->name + 1, share->name_size - 1), name)) {
			return share;
		}
	}
	struct share *share = alloc_new(s->alloc, sizeof *share + name.size + 1);
	if (share) {
		share->all = s;
		share->number = ++s->last;
		list_append(&s->among, &share->among);
		share->name_size = name.size + 1;
		share->name[0] = (uint8_t)kind;
		memcpy(share->name + 1, name.size ? name.data : share->name, name.size);
		fair_init(&share->ready, connection_quantum);
		map_insert(&s->by_name, &share->node, hash);
		list_append(&s->idle, &share->idle);
	}
	return share;
}

const struct share *shares_after(const struct shares *s, uint64_t number) {
	struct list *at = list_first(&s->among);
	while (at && CONTAINER_OF(at, struct share, among)->number <= number) {
		at = list_after(&s->among, at);
	}
	return at ? CONTAINER_OF(at, struct share, among) : NULL;
}

const struct share *shares_next(const struct share *share) {
	struct list *at = list_after(&share->all->among, &share->among);
	return at ? CONTAINER_OF(at, struct share, among) : NULL;
}

const struct share *shares_heaviest(const struct shares *s) {
	const struct share *heaviest = NULL;
	for (struct list *at = list_first(&s->among); at; at = list_after(&s->among, at)) {
		const struct share *share = CONTAINER_OF(at, struct share, among);
		uint64_t used = share->name[0] == '#' || share->name[0] == '+'
			? 0 : share->used[SHARE_MEMORY];
		heaviest = used > (heaviest ? heaviest->used[SHARE_MEMORY] : 0) ? share : heaviest;
	}
	return heaviest;
}

/* ---- what a full share says ---- */

static span_ns share_retry(enum share_kind kind) {
	/* Answers come by themselves; for everything else, somebody has to give something back. */
	return kind == SHARE_REQUESTS ? MORE_SOON : MORE_LATER;
}

static void share_refuse(const struct share *share, enum share_kind kind, span_ns retry,
	struct share_quota *out) {
	bool address = share->name[0] == '#', several = share->name[0] == '@';
	const char *who = several ? "clients without a certificate at the address"
		: address ? "the address" : "the identity";
	const char *does = kind == SHARE_RATE ? several ? "make" : "makes"
		: several ? "have" : "has";
	const char *field = share_settings[kind][address];
	snprintf(out->message, sizeof out->message,
		"%s %.*s %s %llu %s, which is the limit (%s in [limits]%s)", who,
		(int)share->name_size - 1, (const char *)share->name + 1, does,
		(unsigned long long)share->limits.max[kind], share_whats[kind], field,
		address ? "" : ", or a limit of its own in the access rules");
	out->refusal = (struct client_refusal){ .error = PAWL_EQUOTA, .field = slice_str(field),
		.message = out->message, .retry_after = retry };
}

/* ---- what is counted ---- */

bool shares_full(const struct share_pair *pair, enum share_kind kind, uint64_t count,
	uint64_t spare, struct share_quota *out) {
	const struct share *const both[] = { pair->identity, pair->address };
	for (int i = 0; i < 2 && both[i]; i++) {
		const uint64_t most = both[i]->limits.max[kind];
		if (most && both[i]->used[kind] + count > most + spare) {
			share_refuse(both[i], kind, share_retry(kind), out);
			return true;
		}
	}
	return false;
}

void shares_take(const struct share_pair *pair, enum share_kind kind, uint64_t count) {
	struct share *const both[] = { pair->identity, pair->address };
	for (int i = 0; count > 0 && i < 2 && both[i]; i++) {
		both[i]->used[kind] += count;
		both[i]->total += count;
		list_remove(&both[i]->idle);
	}
}

void shares_give(const struct share_pair *pair, enum share_kind kind, uint64_t count) {
	struct share *const both[] = { pair->identity, pair->address };
	for (int i = 0; count > 0 && i < 2 && both[i]; i++) {
		CHECK(both[i]->used[kind] >= count);
		both[i]->used[kind] -= count;
		both[i]->total -= count;
		if (both[i]->total == 0) {
			list_append(&both[i]->all->idle, &both[i]->idle);
		}
	}
}

/* ---- requests a second ---- */

static span_ns share_each(const struct share *share) {
	span_ns each = SPAN_S / (span_ns)share->limits.max[SHARE_RATE];
	return each ? each : 1;
}

/* Returns how long another request has to wait. */
static span_ns share_wait(const struct share *share, span_ns at_once, struct instant now) {
	if (!share->limits.max[SHARE_RATE] || share->paid <= now.boot) {
		return 0;
	}
	span_ns wait = share->paid - now.boot + share_each(share) - at_once;
	return wait > 0 ? wait : 0;
}

bool shares_hurried(const struct share_pair *pair, bool urgent, struct instant now,
	struct share_quota *out) {
	span_ns at_once = urgent ? 2 * AT_ONCE : AT_ONCE;
	span_ns identity = share_wait(pair->identity, at_once, now);
	span_ns address = pair->address ? share_wait(pair->address, at_once, now) : 0;
	if (identity > 0 || address > 0) {
		bool of_identity = identity >= address;
		share_refuse(of_identity ? pair->identity : pair->address, SHARE_RATE,
			of_identity ? identity : address, out);
	}
	return identity > 0 || address > 0;
}

/* Charges requests, but no more than what urgent requests may come to. Otherwise one large batch
 * would keep its share out for long. */
static void share_charge(struct share *share, uint64_t requests, struct instant now) {
	if (share->limits.max[SHARE_RATE]) {
		int64_t from = share->paid > now.boot ? share->paid : now.boot,
			most = now.boot + 2 * AT_ONCE;
		int64_t paid = from + (int64_t)requests * share_each(share);
		share->paid = paid < most ? paid : most;
	}
}

void shares_charge(const struct share_pair *pair, uint64_t requests, struct instant now) {
	share_charge(pair->identity, requests, now);
	if (pair->address) {
		share_charge(pair->address, requests, now);
	}
}
