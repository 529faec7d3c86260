/* counted.c: finds out whether commits and writes have passed this master by (section 3, Watching).
 * They are sent to all masters, but not over a link that is down. So the node that begins them
 * counts them, and so do those to whom they come. A coordinator says its count when a link is up.
 * For a coordinator that is gone, the masters say their counts to each other. */
#include "changes.h"

/* A master tells its counts once in this number of beats. A beat is request_timeout / 4. */
#define BEATS_SAY 4u
/* How often the count of the previous start is told. By then everything that was under way from a
 * node that has died has arrived. */
#define PREVIOUS_TELLS 4u

/* Others may accept it after this master has told, at the beginning of its vote, that events were
 * missed. */
void counted_before_vote(struct core *core) {
	missed_under_way(core);
}

/* Something has passed this master by. */
static void missed(struct core *core) {
	if (core_votes(core)) {
		COUNT(core, counted_missed);
		watch_events_missed(core);
	}
	missed_under_way(core);
}

static void all_remember(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		core->peers[i].restarted = false;
	}
}

/* If a quorum of others have started anew, every node that knew of a lock may have forgotten it.
 * And of two starts of the same node the others remember only the later one. */
static void started_anew(struct core *core, uint32_t peer) {
	const bool again = core->peers[peer].restarted;
	uint32_t forgot = 0;
	core->peers[peer].restarted = true;
	for (uint32_t i = 0; i < core->masters; i++) {
		forgot += core->peers[i].restarted;
	}
	if (again || forgot >= core->quorum) {
		all_remember(core);
		if (core_votes(core)) {
			missed(core);
		}
	}
}

/* Every quorum contains this master or one of n - q others. Once n - q others that have
 * not started anew have had the time to say what came to them, nothing has been forgotten. */
static void ask_who_remembers(struct core *core) {
	uint32_t remember = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		remember += i != core->self && peer_votes(core, i) && !core->peers[i].restarted;
	}
	core->changes.says_heard = remember >= core->masters - core->quorum
		? core->changes.says_heard + 1 : 0;
	if (core->changes.says_heard > PREVIOUS_TELLS) {
		core->changes.says_heard = 0;
		all_remember(core);
	}
}

/* A master with which there was no link has not heard the count yet. */
static void say_previous_again(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct peer *p = &core->peers[i];
		p->previous_tells = p->counted_previous.boot ? PREVIOUS_TELLS : 0;
	}
}

static void say_own(struct core *core, uint32_t to) {
	const struct message m = { .kind = MESSAGE_COUNTED, .by = core->durable.node_id,
		.log = core->durable.boot, .number = core->changes.commits_begun,
		.echo = core->peers[to].writes_begun };
	out_send(core, to, &m);
}

/* A start that began no commit does not take the place of an earlier one that began some. */
static void new_start(struct core *core, struct peer *p, uint64_t boot) {
	p->counted_previous = p->counted.commits || !p->counted_previous.boot
		? p->counted : p->counted_previous;
	p->previous_tells = p->counted_previous.boot ? PREVIOUS_TELLS : 0;
	p->counted = (struct counted){ boot, 0 };
	p->writes_come = 0;
	started_anew(core, (uint32_t)(p - core->peers));
}

void counted_peer_up(struct core *core, uint32_t peer, struct id128 id, uint64_t boot) {
	struct peer *p = &core->peers[peer];
	if (!id128_equal(p->link_id, id)) {
		p->counted = p->counted_previous = (struct counted){ 0, 0 };
		p->writes_come = p->writes_begun = 0;
	}
	if (p->counted.boot != boot) {
		new_start(core, p, boot);
	}
	core->changes.says_heard = 0;
	if (peer < core->masters) {
		say_previous_again(core);
	}
	say_own(core, peer);
}

void counted_epoch_begins(struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && core->peers[i].up) {
			say_own(core, i);
		}
	}
}

static void say(struct core *core, uint32_t to, struct id128 node, const struct counted *c) {
	const struct message m = { .kind = MESSAGE_COUNTED, .by = node, .log = c->boot,
		.number = c->commits };
	out_send(core, to, &m);
}

static void say_to_masters(struct core *core, struct id128 node, const struct counted *c) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && peer_votes(core, i)) {
			say(core, i, node, c);
		}
	}
}

/* The counts of a node that is not in the new configuration go with its place in the table of
 * peers. The node may have begun commits that the other masters accept until they adopt that
 * configuration, too (section 3, Watching). */
void counted_epoch(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count && core->config_hash != 0; i++) {
		const struct peer *p = &core->peers[i];
		core->changes.left_out = core->changes.left_out ||
			(p->standing == PEER_MEMBER &&
			config_find_id(&core->config, p->node.id) < 0);
	}
}

/* Once a quorum of the masters votes in the new epoch, it no longer listens to the nodes that were
 * left out. */
static void who_was_left_out(struct core *core) {
	if (core_votes(core) && epoch_voters(core) >= core->quorum) {
		core->changes.left_out = false;
		missed(core);
	}
}

/* Says the counts of nodes that cannot say them themselves. */
void counted_beat(struct core *core) {
	if (core->changes.left_out) {
		who_was_left_out(core);
	}
	if (!core_votes(core) || ++core->changes.counted_beats % BEATS_SAY) {
		return;
	}
	ask_who_remembers(core);
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct peer *p = &core->peers[i];
		if (!p->up && p->counted.boot) {
			say_to_masters(core, p->link_id, &p->counted);
		}
		if (p->previous_tells) {
			p->previous_tells--;
			say_to_masters(core, p->link_id, &p->counted_previous);
		}
	}
}

static void said_of_itself(struct core *core, struct peer *p, const struct message *m) {
	const bool more = m->number > p->counted.commits || m->echo > p->writes_come;
	p->counted.commits = m->number;
	p->writes_come = m->echo;
	if (more) {
		missed(core);
	}
}

static struct peer *peer_of(struct core *core, struct id128 node) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct peer *p = &core->peers[i];
		if (id128_equal(p->link_id, node) ||
			(!p->counted.boot && id128_equal(p->node.id, node))) {
			return p;
		}
	}
	return NULL;
}

/* Returns what has been counted of that start of the node. Nothing has come here from a start with
 * which this node never had a link. NULL: the start is too old. This may be the first that is heard
 * of a start. */
static struct counted *counted_of(struct core *core, struct peer *p, uint64_t boot) {
	if (boot == p->counted.boot || boot == p->counted_previous.boot) {
		return boot == p->counted.boot ? &p->counted : &p->counted_previous;
	}
	if (boot < p->counted_previous.boot) {
		return NULL;
	}
	if (boot > p->counted.boot && !p->up) {
		new_start(core, p, boot);
		return &p->counted;
	}
	p->counted_previous = (struct counted){ boot, 0 };
	return &p->counted_previous;
}

static void said_of_another(struct core *core, uint32_t from, struct peer *p,
	const struct message *m) {
	struct counted *c = counted_of(core, p, m->log);
	if (c == NULL || (p->up && c == &p->counted && c->commits < m->number)) {
		/* The commit is on its way. */
		return;
	}
	if (c->commits > m->number) {
		say(core, from, m->by, c);
	} else if (c->commits < m->number) {
		c->commits = m->number;
		missed(core);
	}
}

void counted_said(struct core *core, uint32_t from, const struct message *m) {
	struct peer *p = &core->peers[from];
	if (id128_equal(m->by, p->link_id)) {
		if (m->log == p->boot) {
			said_of_itself(core, p, m);
		}
	} else if (from < core->masters && (p = peer_of(core, m->by)) != NULL &&
		p != &core->peers[core->self]) {
		said_of_another(core, from, p, m);
	}
}

void counted_self_again(struct core *core) {
	missed(core);
}
