/* election_proclaim.c: the value that a candidate proclaims. A value that a node has refused must
 * not become the election's own: the next election would be refused because of it, and the program
 * would no longer be a candidate. */
#include "election.h"
#include "kept_bytes.h"

/* A proclamation under way. */
struct proclamation {
	/* In election->proclaimed. */
	struct list link;

	/* NULL if the election is gone. */
	struct pawl_election *election;
	struct pawl *client;
	uint64_t number;

	/* Owned by this structure until it becomes the election's. */
	struct pawl_bytes value;
	pawl_done_fn *done;
	void *arg;
};

static void proclamation_free(struct proclamation *p) {
	const struct allocator *alloc = p->client->env.alloc;
	list_remove(&p->link);
	kept_bytes_free(alloc, p->value);
	alloc_free(alloc, p, sizeof(*p));
}

static int proclamation_new(struct pawl_election *e, struct pawl_bytes value,
	struct proclamation **out) {
	const struct allocator *alloc = e->client->env.alloc;
	struct proclamation *p = alloc_new(alloc, sizeof(*p));
	if (!p) {
		return PAWL_ENOMEM;
	}
	*p = (struct proclamation){ .election = e, .client = e->client,
		.number = ++e->proclamations };
	list_append(&e->proclaimed, &p->link);
	int error = kept_bytes_copy(alloc, value, &p->value);
	if (error) {
		proclamation_free(p);
		return error;
	}
	*out = p;
	return 0;
}

/* Makes this the election's value, unless a later proclamation has come before it. `to_tell` means
 * that a leader which is elected by a request that was made before must proclaim it then. */
static void adopt(struct proclamation *p, bool to_tell) {
	struct pawl_election *e = p->election;
	if (p->number > e->adopted) {
		e->value_changed = e->value_changed || to_tell;
		kept_bytes_free(p->client->env.alloc, e->options.value);
		e->options.value = p->value;
		e->adopted = p->number;
		p->value = (struct pawl_bytes){ NULL, 0 };
	}
}

static bool refused(int error) {
	return error == PAWL_ETOOLARGE || error == PAWL_EDENIED || error == PAWL_EBADREQUEST
		|| error == PAWL_EFULL;
}

static void on_answer(struct pawl_result *take_result, void *arg) {
	struct proclamation *p = arg;
	pawl_done_fn *done = p->done;
	void *done_arg = p->arg;
	if (p->election && !p->client->dying && !refused(take_result->error)) {
		adopt(p, take_result->error || !election_leads(p->election));
	}
	proclamation_free(p);
	if (done) {
		done(take_result, done_arg);
	} else {
		pawl_result_free(take_result);
	}
}

int pawl_election_proclaim(struct pawl_election *election, struct pawl_bytes value,
	pawl_done_fn *done, void *arg) {
	if (!kept_bytes_valid(value)) {
		return PAWL_EINVAL;
	}
	struct proclamation *p;
	int error = value.size > REQUEST_COPY_BYTES_MAX ? PAWL_ETOOLARGE
		: proclamation_new(election, value, &p);
	if (error) {
		return error;
	}
	if (election_leads(election)) {
		p->done = done;
		p->arg = arg;
		error = pawl_lock_update_start(election->lock, value, NULL, on_answer, p, NULL);
		if (error) {
			proclamation_free(p);
		}
		return error;
	}
	adopt(p, true);
	proclamation_free(p);
	return 0;
}

/* Proclamations under way go on, and their `done` is called. */
void election_detach_proclamations(struct pawl_election *e) {
	struct list *at;
	while ((at = list_first(&e->proclaimed)) != NULL) {
		CONTAINER_OF(at, struct proclamation, link)->election = NULL;
		list_remove(at);
	}
}
