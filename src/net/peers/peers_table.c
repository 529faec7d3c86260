/* peers_table.c: the table of peers, which says who is at which index, and where each is dialled.
 */
#include "peers_impl.h"

#include <event2/event.h>
#include <string.h>

#include "check.h"

/* How many bytes are read in one turn from a node that is in no configuration. It only has to ask
 * for membership. There may be many such nodes, and the frames of each have their own time in a
 * turn. */
#define OUTSIDE_READ_BYTES 1024u

void peers_drop(struct peers_slot *slot) {
	peers_stop_dialling(slot);
	job_give_up(slot->lookup);
	slot->lookup = NULL;
	peer_link_free(slot->link);
	slot->link = NULL;
	slot->used = slot->dial = false;
}

void peers_pace(const struct peers_slot *slot) {
	if (slot->link) {
		stream_set_read_max(slot->link->stream,
			slot->outside ? OUTSIDE_READ_BYTES : NET_SCRATCH_BYTES);
	}
}

static struct peers_slot *peers_take_slot(struct peers *p, const char *name) {
	for (uint32_t i = 0; i < NODES_MAX; i++) {
		struct peers_slot *slot = &p->slots[i];
		if (!slot->used) {
			*slot = (struct peers_slot){ .peers = p, .used = true,
				.backoff_ms = BACKOFF_MIN_MS, .again = slot->again };
			p->slots_used = i < p->slots_used ? p->slots_used : i + 1;
			memcpy(slot->name, name, strlen(name) + 1);
			return slot;
		}
	}
	CHECK(false);
}

static void peers_set_slot(struct peers_slot *slot, const struct peers_node *node) {
	bool dial = node->dial && node->address[0] != '\0'
		&& strcmp(node->name, slot->peers->hello.node) != 0;
	bool moved = strcmp(slot->address, node->address) != 0;
	memcpy(slot->address, node->address, strlen(node->address) + 1);
	slot->expected = node->id;
	slot->master = node->master;
	slot->outside = node->outside;
	peers_pace(slot);
	if (moved) {
		peers_know(slot);
	}
	if (slot->dial && (!dial || moved)) {
		peers_stop_dialling(slot);
	}
	if (dial && (!slot->dial || moved) && !slot->link && slot->peers->started) {
		event_active(slot->again, EV_TIMEOUT, 0);
	}
	slot->dial = dial;
}

void peers_set_nodes(struct peers *p, const struct peers_node *nodes, uint32_t count) {
	struct peers_slot *table[NODES_MAX];
	CHECK(count <= NODES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		CHECK(strlen(nodes[i].name) <= NODE_NAME_MAX
			&& strlen(nodes[i].address) <= ADDRESS_MAX);
		table[i] = peers_find(p, nodes[i].name);
		if (table[i]) {
			table[i]->index = i;
		}
	}
	for (uint32_t i = 0; i < p->count; i++) {
		struct peers_slot *slot = p->table[i];
		if (slot->index >= count || table[slot->index] != slot) {
			peers_drop(slot);
		}
	}
	p->count = count;
	for (uint32_t i = 0; i < count; i++) {
		p->table[i] = table[i] ? table[i] : peers_take_slot(p, nodes[i].name);
		p->table[i]->index = i;
		peers_set_slot(p->table[i], &nodes[i]);
	}
}

/* ---- notes ---- */

struct peer_note *peers_note(struct peers *p, uint32_t peer) {
	CHECK(peer < p->count);
	return p->table[peer]->link ? &p->table[peer]->link->note : NULL;
}

bool peers_has(const struct peers *p, uint32_t peer, uint64_t feature) {
	CHECK(peer < p->count);
	const struct peer_link *link = p->table[peer]->link;
	return link && (link->features & feature);
}
