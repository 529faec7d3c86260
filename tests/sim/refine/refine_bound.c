/* refine_bound.c: locks that end with a node, at that node and at the masters (section 2, Release
 * on disconnect). */
#include "refine_impl.h"

#include "pawl/error.h"

/* ---- links ---- */

void refine_bound_begins(struct refine *r, struct refine_node *n, const struct core_event *event) {
	const bool link = event->kind == CORE_PEER_UP || event->kind == CORE_PEER_DOWN;
	const bool stood_still = instant_elapsed_long(r->now, n->last_step) >
		r->node_before.request_timeout;
	/* A link counts as lost from the last step before this node heard of the loss. */
	n->links_at = link || stood_still ? n->links_at : r->now;
	n->last_step = r->now;
	n->bindings_ended = project_bindings_ended(r->core);
	n->links_reset = project_links_reset(r->core);
	n->down = TRACE_NONE;
	/* A node that stood still has given up all its links before it hears of anything. */
	if (event->kind == CORE_PEER_DOWN && !stood_still) {
		n->down = event->peer;
		n->down_closed = event->closed;
		n->links_at = event->since.boot && event->since.boot < n->links_at.boot
			? event->since : n->links_at;
		if (event->closed && project_linked(r->core, event->peer)) {
			bound_closed(&n->bound_here, project_peer(r->core, event->peer),
				project_boot(r->core, event->peer), r->now);
		}
	} else if (event->kind == CORE_PEER_UP) {
		bound_up(&n->bound_here, id128_word(event->peer_id), event->peer_boot, r->now);
	} else if (event->kind == CORE_REQUEST && event->request->op == CORE_BINDING) {
		bound_begins(&n->bound, event->request->key, event->request->lock_id,
			event->request->wait);
		struct b_lock *l = bound_find(&n->bound, event->request->lock_id);
		if (l && l->masters == 0) {
			uint64_t ids[MASTERS_MAX];
			project_masters(r->core, ids);
			bound_masters(l, &r->node_before, ids);
			for (uint32_t i = 0; i < l->masters; i++) {
				l->master[i].linked = project_linked(r->core, i);
			}
		}
	} else if (event->kind == CORE_REQUEST && (event->request->op == CORE_BREAK ||
		event->request->shorten)) {
		/* A break by force is a loss, and what shortens a lease is not followed. */
		for (uint32_t i = 0; i < n->bound.count; i++) {
			n->bound.locks[i].left_out = true;
		}
	}
}

void refine_bound_adopts(struct refine *r, struct refine_node *n, const struct m_node *node) {
	uint64_t ids[MASTERS_MAX];
	project_masters(r->core, ids);
	for (uint32_t i = 0; i < n->bound.count; i++) {
		bound_epoch(&n->bound.locks[i], node, ids);
	}
	bound_next(&n->bound_here, node->epoch == n->epoch + 1 &&
		r->node_before.is_master);
}

void refine_bound_counts(struct refine_node *n, struct m_key *seen, const struct m_key *now) {
	for (uint32_t i = 0; i < seen->record_count && n->bound.count > 0; i++) {
		struct m_record *r = &seen->records[i];
		const struct m_record *own = m_record_of(now, r->lock_id);
		if (own && own->name == 0 && bound_find(&n->bound, r->lock_id)) {
			r->name = 0;
		}
	}
}

/* ---- messages ---- */

/* A binding is told: it neither ends, nor was the lock lost. */
static bool binds(const struct message *m) {
	return m->kind == MESSAGE_BINDING && !(m->flags & (FLAG_NOW | FLAG_RELEASED));
}

void refine_bound_sends(struct refine *r, uint32_t peer, const struct message *m) {
	struct b_lock *l = binds(m) ? bound_find(&r->nodes[r->node].bound, m->lock_id)
		: NULL;
	if (l && peer < l->masters) {
		l->round = m->round;
		bound_asks(l, peer, r->now);
	}
}

void refine_bound_hears(struct refine *r, uint32_t from, const struct message *m) {
	struct refine_node *n = &r->nodes[r->node];
	for (uint32_t i = 0; m->kind == MESSAGE_BINDING_ANSWER && i < n->bound.count; i++) {
		struct b_lock *l = &n->bound.locks[i];
		if (l->round == m->round && from < l->masters) {
			bound_hears(l, from, m, &r->node_before);
		}
	}
	if ((m->kind == MESSAGE_EXTEND_ANSWER || m->kind == MESSAGE_LEARN_ANSWER) &&
		m->status == STATUS_OK && n->asker && n->bound.count > 0) {
		const struct a_round *round = a_round_find(n->asker, m->round);
		struct b_lock *l = round && a_of_kind(round, MESSAGE_EXTEND)
			? bound_find(&n->bound, round->lock_id) : NULL;
		if (l && from < l->masters) {
			bound_extended(l, from, round->sent, round->lease_us, &r->node_before);
		}
	}
}

static const message_set accepted = MESSAGE_BIT(MESSAGE_COMMIT) | MESSAGE_BIT(MESSAGE_LEARN) |
	MESSAGE_BIT(MESSAGE_EXTEND) | MESSAGE_BIT(MESSAGE_EXTEND_PERMITS);

/* The master has handled a message about a key. */
void refine_bound_handled(struct refine *r, struct core *core, const struct message *m) {
	struct refine_node *n = &r->nodes[r->node];
	struct b_table *t = &n->bound_here;
	const uint64_t id = project_peer(core, r->from), boot = project_boot(core, r->from);
	const bool ok = r->answered && r->answer.status == STATUS_OK;
	if (binds(m) && ok) {
		bound_makes(t, m->lock_id, id, boot, span_from_us(m->left_us));
	} else if (m->kind == MESSAGE_BINDING && (m->flags & FLAG_NOW)) {
		const bool its = bound_is(t, m->lock_id, id, boot);
		if (m_record_of(&r->before, m->lock_id) && !m_record_of(&r->after, m->lock_id) &&
			!its) {
			refine_wrong(r, m->key, "a node ends only a record that is bound to it");
		}
		if (its && r->node_before.votes) {
			bound_unmakes(t, m->lock_id);
		}
	} else if (m->kind == MESSAGE_BINDING && (m->flags & FLAG_RELEASED)) {
		bound_unmakes(t, m->lock_id);
	} else if ((accepted & MESSAGE_BIT(m->kind)) && ok) {
		bound_accepts(t, m->lock_id, id, boot);
	}
	if (project_bound(core, m->lock_id) && !bound_is(t, m->lock_id, 0, 0)) {
		refine_wrong(r, m->key, "a binding is forgotten when it is not told again, "
			"or another goes on with the lock");
	}
	/* What ends with this message is judged by it. */
	n->bindings_ended = project_bindings_ended(core);
}

/* ---- steps ---- */

static void look_at(struct refine *r, struct refine_node *n, struct b_lock *l,
	const struct m_node *node) {
	static struct m_key key;
	const struct slice name = slice_of(l->key, l->key_size);
	const struct instant until = core_binding_end(r->core, name, l->lock_id);
	for (uint32_t i = 0; i < l->masters; i++) {
		bound_link(l, i, project_linked(r->core, i), n->links_at,
			n->down == i && n->down_closed);
	}
	project_key(r->core, name, r->now, &key);
	const struct m_record *own = m_record_of(&key, l->lock_id);
	l->own_end = node->votes && own ? own->end : (struct instant){ 0, 0 };
	bound_settles(l, node);
	l->over = until.boot == 0;
	l->left_out = l->left_out || key.more || (own && m_is_numbers(&own->terms));
	const char *rule = bound_trusted(l, node, until);
	if (rule) {
		refine_wrong(r, name, rule);
	}
}

void refine_bound_ends(struct refine *r, struct refine_node *n) {
	struct m_node node;
	if (n->bound.count > 0) {
		project_node(r->core, r->now, &node);
	}
	/* A link whose other side has closed it may have been given up before that was heard. */
	n->down_closed = n->down_closed && project_links_reset(r->core) == n->links_reset;
	for (uint32_t i = n->bound.count; i-- > 0;) {
		if (n->bound.locks[i].over) {
			/* It was given up. */
			bound_ends(&n->bound, n->bound.locks[i].lock_id);
		}
	}
	for (uint32_t i = 0; i < n->bound.count; i++) {
		look_at(r, n, &n->bound.locks[i], &node);
	}
	const uint64_t ended = project_bindings_ended(r->core) - n->bindings_ended;
	const char *rule = ended ? bound_may_end(&n->bound_here, (uint32_t)ended, r->now) : NULL;
	if (rule) {
		refine_wrong(r, slice_of(NULL, 0), rule);
	}
	for (uint32_t i = n->bound_here.count; n->steps == 0 && i-- > 0;) {
		const struct id128 lock_id = n->bound_here.records[i].lock_id;
		if (!project_bound(r->core, lock_id)) {
			bound_unmakes(&n->bound_here, lock_id);
		}
	}
}

const char *refine_bound_replied(struct refine_node *n, const struct m_node *node,
	const struct core_reply *reply) {
	const struct b_lock *l = bound_find(&n->bound, reply->lock_id);
	if (reply->op != CORE_BINDING || l == NULL) {
		return NULL;
	}
	const char *rule = reply->error == PAWL_ELOST ? bound_lost(l, node) : NULL;
	bound_ends(&n->bound, reply->lock_id);
	return rule;
}
