/* election.c: the life of an election, and the functions that a program calls on it. */
#include "election.h"

#include "check.h"
#include "kept_bytes.h"

/* ---- its options ---- */

static void options_free(struct pawl_election *e) {
	const struct allocator *alloc = e->client->env.alloc;
	kept_bytes_free(alloc, e->options.name);
	kept_bytes_free(alloc, e->options.owner);
	kept_bytes_free(alloc, e->options.value);
	kept_bytes_free(alloc, e->options.label);
}

static int options_keep(struct pawl_election *e, const struct pawl_election_options *from) {
	const struct allocator *alloc = e->client->env.alloc;
	struct pawl_election_options *to = &e->options;
	*to = *from;
	to->owner = to->value = to->label = (struct pawl_bytes){ NULL, 0 };
	int error = kept_bytes_copy(alloc, from->name, &to->name);
	error = error ? error
		: kept_bytes_copy(alloc,
			from->owner.size ? from->owner : e->client->self.owner, &to->owner);
	error = error ? error : kept_bytes_copy(alloc, from->value, &to->value);
	return error ? error : kept_bytes_copy(alloc, from->label, &to->label);
}

static bool options_valid(const struct pawl_election_options *o) {
	uint32_t lease_ms = o->lease_ms ? o->lease_ms : LEASE_MS_DEFAULT;
	return o->name.size > 0 && kept_bytes_valid(o->name) && kept_bytes_valid(o->owner)
		&& kept_bytes_valid(o->value) && kept_bytes_valid(o->label)
		&& o->warn_ms <= lease_ms / 2;
}

static bool too_large(const struct pawl_election_options *o) {
	return o->name.size > REQUEST_COPY_BYTES_MAX || o->owner.size > REQUEST_COPY_BYTES_MAX
		|| o->value.size > REQUEST_COPY_BYTES_MAX || o->label.size > REQUEST_COPY_BYTES_MAX;
}

/* ---- its life ---- */

static void election_destroy(struct pawl_election *e) {
	if (e->gone) {
		*e->gone = true;
	}
	election_stop(e);
	if (e->lock && e->lock->leave) {
		leave_silently(e->lock->leave);
	}
	pawl_lock_free(e->lock);
	pawl_lock_free(e->previous_lock);
	pawl_watch_free(e->watch);
	election_detach_proclamations(e);
	election_leader_free(e);
	options_free(e);
	list_remove(&e->link);
	alloc_free(e->client->env.alloc, e, sizeof(*e));
}

int pawl_election_new(struct pawl *client, const struct pawl_election_options *options,
	struct pawl_election **out_election) {
	if (client->dying || !options_valid(options)) {
		return PAWL_EINVAL;
	}
	if (too_large(options)) {
		return PAWL_ETOOLARGE;
	}
	struct pawl_election *e = alloc_new(client->env.alloc, sizeof(*e));
	if (!e) {
		return PAWL_ENOMEM;
	}
	e->client = client;
	election_alarms(e);
	list_init(&e->proclaimed);
	list_append(&client->elections, &e->link);
	int error = options_keep(e, options);
	error = error ? error : election_observe(e);
	if (error) {
		election_destroy(e);
		return error;
	}
	*out_election = e;
	return 0;
}

/* Releases the lock that the election holds, and the one that it held before and may still hold.
 * Only the release of the first one calls `done`. */
static int release_all(struct pawl_election *e, pawl_done_fn *done, void *arg) {
	struct pawl_lock *lock = e->lock, *previous_lock = e->previous_lock;
	e->lock = e->previous_lock = NULL;
	bool busy = lock && lock->leave;
	int error = 0;
	if (busy) {
		leave_silently(lock->leave);
		/* The transfer goes on, and it releases the lock. */
		pawl_lock_free(lock);
	} else if (lock) {
		error = pawl_lock_release_start(lock, done, arg);
	}
	if (previous_lock) {
		/* If this fails, the lease runs out by itself. */
		(void)pawl_lock_release_start(previous_lock, NULL, NULL);
	}
	return error;
}

void pawl_election_free(struct pawl_election *take_election) {
	if (take_election) {
		if (!take_election->client->dying) {
			(void)release_all(take_election, NULL, NULL);
		}
		election_destroy(take_election);
	}
}

void elections_release_on_close(struct pawl *client) {
	for (struct list *at = list_first(&client->elections); at;
		at = list_after(&client->elections, at)) {
		const struct pawl_election *e = CONTAINER_OF(at, struct pawl_election, link);
		const struct pawl_lock *const held[] = { e->lock, e->previous_lock };
		for (size_t i = 0; i < 2; i++) {
			if (held[i]) {
				call_release_on_close(client, e->options.name,
					pawl_lock_id(held[i]));
			}
		}
	}
}

void elections_free_all(struct pawl *client) {
	struct list *at;
	while ((at = list_first(&client->elections)) != NULL) {
		election_destroy(CONTAINER_OF(at, struct pawl_election, link));
	}
}

/* ---- what a program asks of it ---- */

int pawl_election_campaign(struct pawl_election *election) {
	if (election->options.observe_only || election->client->dying
		|| election->state == ELECTION_LEAVING) {
		return PAWL_EINVAL;
	}
	if (election->state != ELECTION_OBSERVING) {
		return 0;
	}
	int error = election_campaign(election);
	if (error) {
		election_stop(election);
	}
	return error;
}

int pawl_election_resign(struct pawl_election *election, pawl_done_fn *done, void *arg) {
	election_stop(election);
	return release_all(election, done, arg);
}

int pawl_election_transfer(struct pawl_election *election, struct pawl_bytes to, pawl_done_fn *done,
	void *arg) {
	return kept_bytes_valid(to) ? election_hand_over(election, to, false, done, arg)
		: PAWL_EINVAL;
}

void pawl_election_set_priority(struct pawl_election *election, int32_t priority) {
	election->options.priority = priority;
}

bool pawl_election_leads(const struct pawl_election *election) {
	return election_leads(election);
}

bool pawl_election_campaigns(const struct pawl_election *election) {
	return election_campaigns(election);
}

/* After a loss this is still the lock by which the program led, until its time is over: the program
 * may need the time to stop. */
const struct pawl_lock *pawl_election_lock(const struct pawl_election *election) {
	const struct pawl_lock *previous = election->previous_lock;
	return election->lock ? election->lock
		: previous && pawl_lock_valid_ms(previous) > 0 ? previous
		: NULL;
}

int64_t pawl_election_valid_ms(const struct pawl_election *election) {
	const struct pawl_lock *lock = pawl_election_lock(election);
	return lock ? pawl_lock_valid_ms(lock) : 0;
}

uint64_t pawl_election_token(const struct pawl_election *election) {
	const struct pawl_lock *lock = pawl_election_lock(election);
	return lock ? pawl_lock_token(lock) : 0;
}

bool pawl_election_leader(const struct pawl_election *election, struct pawl_leader *out_leader) {
	if (election->leader.known) {
		*out_leader = election_leader(election);
	}
	return election->leader.known;
}

bool pawl_election_current(const struct pawl_election *election) {
	return election->watch && pawl_watch_current(election->watch);
}
