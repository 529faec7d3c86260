/* peers_strangers.c: connections to the peer port before they have said hello. */
#include "peers_impl.h"

#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "time_source.h"

/* How long an address that was looked up is good, because a name may stand for another address
 * later. */
#define LOOK_UP_AGAIN (10 * SPAN_S)

/* Looks up the address of a node. It belongs to the job once the job runs. */
struct peers_lookup {
	struct address address;
	struct address_socket found[PEERS_KNOWN_MAX];
	size_t count;
};

/* ---- where nodes come from ---- */

static void peers_known_are(struct peers_slot *slot, const struct peers_lookup *lookup) {
	slot->known_count = 0;
	for (size_t i = 0; i < lookup->count; i++) {
		struct stranger_address *known = &slot->known[slot->known_count];
		slot->known_count += address_ip((const struct sockaddr *)&lookup->found[i].addr,
			known->ip);
	}
}

static void peers_look_up(void *data) {
	struct peers_lookup *lookup = data;
	lookup->count = address_resolve(&lookup->address, false, lookup->found, PEERS_KNOWN_MAX);
}

/* If a name cannot be found just now, the node keeps the addresses that it had. */
static void peers_on_looked_up(void *ctx, void *data) {
	struct peers_slot *slot = ctx;
	const struct peers_lookup *lookup = data;
	slot->lookup = NULL;
	if (lookup->count > 0) {
		peers_known_are(slot, lookup);
	}
}

static const struct job_work peers_lookup_work = { peers_look_up, peers_on_looked_up, free };

static void peers_start_lookup(struct peers_slot *slot) {
	struct peers_lookup *lookup = calloc(1, sizeof *lookup);
	if (!lookup || address_parse(slot->address, &lookup->address) != 0
		|| job_start(slot->peers->loop->base, &peers_lookup_work, lookup, slot,
		&slot->lookup) != 0) {
		/* It is tried again later. */
		free(lookup);
	}
}

void peers_know(struct peers_slot *slot) {
	struct peers_lookup lookup = { 0 };
	if (address_parse(slot->address, &lookup.address) == 0) {
		lookup.count = address_resolve(&lookup.address, true, lookup.found,
			PEERS_KNOWN_MAX);
	}
	/* Gives up the look-up of the previous address. */
	job_give_up(slot->lookup);
	slot->lookup = NULL;
	peers_known_are(slot, &lookup);
	slot->peers->looked_up = (struct instant){ 0 };
}

static bool peers_numeric(const struct peers_slot *slot) {
	struct address address;
	struct address_socket at;
	return address_parse(slot->address, &address) != 0
		|| address_resolve(&address, true, &at, 1) > 0;
}

/* Looks up the names of the nodes. This is done only when a connection comes from an unknown
 * address, so that it costs nothing otherwise. */
static void peers_look_up_names(struct peers *p) {
	struct instant now = time_source_now();
	if (p->looked_up.boot && instant_elapsed_short(now, p->looked_up) < LOOK_UP_AGAIN) {
		return;
	}
	p->looked_up = now;
	for (uint32_t i = 0; i < p->count; i++) {
		struct peers_slot *slot = p->table[i];
		if (!slot->link && !slot->lookup && !peers_numeric(slot)) {
			peers_start_lookup(slot);
		}
	}
}

static bool peers_slot_is_at(const struct peers_slot *slot,
	const struct stranger_address *address) {
	bool found = slot->was_linked && memcmp(&slot->linked_from, address, sizeof *address) == 0;
	for (uint32_t i = 0; !found && i < slot->known_count; i++) {
		found = memcmp(&slot->known[i], address, sizeof *address) == 0;
	}
	return found;
}

static bool peers_is_member(const struct peers *p, const struct stranger_address *address) {
	bool found = false;
	for (uint32_t i = 0; !found && i < p->count; i++) {
		found = peers_slot_is_at(p->table[i], address);
	}
	return found;
}

/* ---- the connections ---- */

static struct peer_link *peers_link_of(const struct stranger *stranger) {
	return CONTAINER_OF(stranger, struct peer_link, stranger);
}

static bool peers_busy(const struct stranger *stranger) {
	return stream_waits_for_turn(peers_link_of(stranger)->stream);
}

static void peers_make_room(struct peers *p, struct strangers *among,
	const struct stranger *newcomer) {
	struct stranger *victim;
	while ((victim = strangers_victim(among, &p->limits, newcomer, peers_busy)) != NULL) {
		p->evicted++;
		p->handlers->trouble(p->ctx, NULL, peers_link_of(victim)->from, strangers_evicted);
		peers_forget(p, peers_link_of(victim));
	}
}

void peers_accept(struct peers *p, int take_fd, const char *from) {
	const struct stranger newcomer = { .address = stranger_address_of(take_fd),
		.bytes = p->tls ? STRANGER_TLS_BYTES : STRANGER_PLAIN_BYTES };
	bool member = peers_is_member(p, &newcomer.address);
	struct strangers *among = member ? &p->members : &p->strangers;
	struct peer_link *link;
	if (!member) {
		peers_look_up_names(p);
	}
	peers_make_room(p, among, &newcomer);
	if (peers_link_new(p, take_fd, NULL, from, member, &link) != 0) {
		p->refused++;
		p->handlers->trouble(p->ctx, NULL, from, "out of memory");
		return;
	}
	link->stranger = newcomer;
	link->member = member;
	strangers_add(among, &link->stranger);
}

bool peers_no_stranger(struct peers *p, struct peer_link *link) {
	return strangers_remove(link->member ? &p->members : &p->strangers, &link->stranger);
}

void peers_set_limits(struct peers *p, const struct strangers_limits *limits) {
	p->limits = *limits;
}

struct strangers_counts peers_strangers(const struct peers *p) {
	return (struct strangers_counts){ p->strangers.count + p->members.count,
		p->evicted, p->refused };
}

void peers_strangers_free(struct peers *p) {
	struct stranger *stranger;
	while ((stranger = strangers_oldest(&p->strangers)) != NULL
		|| (stranger = strangers_oldest(&p->members)) != NULL) {
		peers_forget(p, peers_link_of(stranger));
	}
}
