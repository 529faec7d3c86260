/* election_lead.c: how a candidate becomes the leader, and how a leader leaves. */
#include <string.h>

#include "check.h"
#include "election.h"
#include "kept_bytes.h"
#include "result.h"

#define REST_FIRST (100 * SPAN_MS)
#define REST_LAST (5 * SPAN_S)
/* The request waits as long as it takes, because a candidate that asks again goes to the end of the
 * queue. */
#define WAIT_MS PAWL_FOREVER

bool election_leads(const struct pawl_election *e) {
	bool held = e->state == ELECTION_LEADING || e->state == ELECTION_ASKING_WAITERS;
	return held && pawl_lock_valid_ms(e->lock) > 0;
}

bool election_campaigns(const struct pawl_election *e) {
	return e->state == ELECTION_CANDIDATE || e->state == ELECTION_RESTING;
}

bool election_tell_failed(struct pawl_election *e, int error, const char *message) {
	bool gone = false;
	if (!e->options.on_failed) {
		return true;
	}
	election_enter(e, &gone);
	e->options.on_failed(e, error, message, e->watch != NULL, e->options.arg);
	return election_left(e, &gone);
}

/* Returns false if the election is gone. */
static bool tell_stepped_down(struct pawl_election *e, int cause) {
	bool gone = false;
	if (!e->options.on_stepped_down) {
		return true;
	}
	election_enter(e, &gone);
	e->options.on_stepped_down(e, cause, e->options.arg);
	return election_left(e, &gone);
}

/* ---- leading ---- */

static void forget_successor(struct pawl_election *e) {
	kept_bytes_free(e->client->env.alloc, e->successor);
	e->successor = (struct pawl_bytes){ NULL, 0 };
	e->done = NULL;
	e->yields = false;
}

/* Frees the previous lock. It does not matter any more once there is another one, or when the
 * candidacy is over. */
static void forget_past(struct pawl_election *e) {
	pawl_lock_free(e->previous_lock);
	e->previous_lock = NULL;
}

static void on_lock_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct pawl_election *e = arg;
	if (lock != e->lock || e->state == ELECTION_LEAVING) {
		return;
	}
	if (e->state == ELECTION_ASKING_WAITERS) {
		/* The look-up goes on for whoever waits for its outcome. */
		e->state = ELECTION_LEAVING;
	} else {
		e->state = ELECTION_OBSERVING;
	}
	forget_past(e);
	e->previous_lock = e->lock;
	e->lock = NULL;
	if (tell_stepped_down(e, cause) && e->options.again && e->state == ELECTION_OBSERVING) {
		/* If the request cannot be made, the election rests and tries again later. */
		(void)election_campaign(e);
	}
}

static void proclaim_again(struct pawl_election *e) {
	if (e->value_changed) {
		e->value_changed = false;
		/* This may fail: without memory the old value stays. */
		(void)pawl_lock_update_start(e->lock, e->options.value, NULL, NULL, NULL, NULL);
	}
}

static void begin_to_lead(struct pawl_election *e, struct pawl_lock *take_lock) {
	forget_past(e);
	e->lock = take_lock;
	e->state = ELECTION_LEADING;
	e->failures = 0;
	agenda_clear(&e->client->agenda, &e->ask);
	proclaim_again(e);
	if (e->options.on_leading) {
		bool gone;
		election_enter(e, &gone);
		e->options.on_leading(e, pawl_lock_token(e->lock), e->options.arg);
		(void)election_left(e, &gone);
	}
}

/* ---- campaigning ---- */

static bool final(int error) {
	return error == PAWL_EDENIED || error == PAWL_EBADREQUEST || error == PAWL_ETOOLONG
		|| error == PAWL_ETOOLARGE || error == PAWL_EMISMATCH || error == PAWL_ETLS
		|| error == PAWL_EFULL || error == PAWL_EMOVED || error == PAWL_EINVAL;
}

static void election_rest(struct pawl_election *e) {
	struct pawl *client = e->client;
	span_ns rest = REST_FIRST << (e->failures < 6 ? e->failures : 6);
	rest = rest < REST_LAST ? rest : REST_LAST;
	e->failures++;
	e->state = ELECTION_RESTING;
	agenda_set(&client->agenda, &e->rest,
		client_core_now(client).boot + prng_between(&client->prng, rest / 2, rest));
}

static void on_elected(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct pawl_election *e = arg;
	int error = take_result->error;
	e->call = NULL;
	if (e->client->dying) {
		/* The client is being freed, so the program is not told any more. The client frees
		 * the lock, if there is one. */
	} else if (!error) {
		begin_to_lead(e, take_lock);
	} else if (error == PAWL_EBADREQUEST && !e->unmarked
		&& strcmp(take_result->field, "election") == 0) {
		e->unmarked = true;
		(void)election_campaign(e);
	} else if (final(error)) {
		char room[256];
		e->state = ELECTION_OBSERVING;
		(void)election_tell_failed(e, error,
			result_sentence(take_result, room, sizeof room));
	} else {
		election_rest(e);
	}
	pawl_result_free(take_result);
}

static void on_lock_renewed(struct pawl_lock *lock, void *arg) {
	struct pawl_election *e = arg;
	if (e->options.on_renewed && e->lock == lock) {
		bool gone;
		election_enter(e, &gone);
		e->options.on_renewed(lock, e->options.arg);
		(void)election_left(e, &gone);
	}
}

static struct pawl_lock_options lock_options(struct pawl_election *e) {
	const struct pawl_election_options *o = &e->options;
	return (struct pawl_lock_options){ .key = o->name, .lease_ms = o->lease_ms,
		.wait_ms = WAIT_MS, .timeout_ms = o->timeout_ms, .owner = o->owner,
		.value = o->value, .warn_ms = o->warn_ms, .on_lost = on_lock_lost,
		.on_renewed = on_lock_renewed, .arg = e, .label = o->label,
		.election = !e->unmarked,
		.terms = { .priority = o->priority, .lock_delay_ms = o->lock_delay_ms,
		.release_on_disconnect = o->release_on_disconnect } };
}

int election_campaign(struct pawl_election *e) {
	struct pawl_lock_options options = lock_options(e);
	/* A client that leads one election and is a candidate of another one waits for nobody. */
	int error = pawl_id_new(&options.party);
	error = error ? error : pawl_lock_start(e->client, &options, on_elected, e, &e->call);
	e->value_changed = false;
	if (!error) {
		e->state = ELECTION_CANDIDATE;
		e->asks = 0;
		election_ask(e);
	} else {
		e->call = NULL;
		election_rest(e);
	}
	return error;
}

static void on_rested(struct alarm *alarm) {
	(void)election_campaign(CONTAINER_OF(alarm, struct pawl_election, rest));
}

void election_alarms(struct pawl_election *e) {
	e->rest.ring = on_rested;
}

void election_stop(struct pawl_election *e) {
	if (e->call) {
		pawl_cancel(e->call);
		e->call = NULL;
	}
	agenda_clear(&e->client->agenda, &e->rest);
	agenda_clear(&e->client->agenda, &e->ask);
	forget_successor(e);
	e->state = ELECTION_OBSERVING;
}

/* ---- handing over ---- */

/* Ends the hand-over, whatever its outcome. This may free the election. */
static void handed_over(struct pawl_election *e, struct pawl_result *take_result) {
	pawl_done_fn *done = e->done;
	void *arg = e->done_arg;
	struct pawl *client = e->client;
	bool again = e->yields && e->options.again && e->state == ELECTION_OBSERVING;
	forget_successor(e);
	if (again && !client->dying) {
		(void)election_campaign(e);
	}
	if (done) {
		client->callbacks++;
		done(take_result, arg);
	} else {
		pawl_result_free(take_result);
	}
}

static void on_moved(struct pawl_result *take_result, void *arg) {
	struct pawl_election *e = arg;
	struct pawl *client = e->client;
	struct pawl_lock *lock = e->lock;
	e->lock = NULL;
	e->state = ELECTION_OBSERVING;
	if (lock && !client->dying) {
		bool kept = pawl_lock_error(lock) == 0;
		/* The successor has left at just that moment. This program has stopped leading
		 * already, so it lets somebody else lead. */
		if (kept && pawl_lock_release_start(lock, NULL, NULL) == 0) {
			take_result->released = true;
		} else if (!kept) {
			pawl_lock_free(lock);
		}
	}
	handed_over(e, take_result);
}

static bool waits(const struct pawl_result *result, struct pawl_bytes owner) {
	for (size_t i = 0; i < result->waiter_count; i++) {
		const struct pawl_bytes *who = &result->waiters[i].owner;
		if (who->size == owner.size && memcmp(who->data, owner.data, owner.size) == 0) {
			return true;
		}
	}
	return false;
}

/* The successor waits, so this leader goes: first the program stops, then the lock is
 * transferred. */
static void move_now(struct pawl_election *e, struct pawl_result *take_result) {
	e->state = ELECTION_LEAVING;
	if (!tell_stepped_down(e, 0)) {
		pawl_result_free(take_result);
		return;
	}
	int error = e->state != ELECTION_LEAVING
		? PAWL_ECANCELED
		: pawl_lock_transfer_start(e->lock, e->successor, on_moved, e);
	if (error == 0) {
		pawl_result_free(take_result);
		return;
	}
	result_fail(result_box(take_result), error, NULL);
	if (e->state == ELECTION_LEAVING) {
		(void)pawl_lock_release_start(e->lock, NULL, NULL);
		e->lock = NULL;
		e->state = ELECTION_OBSERVING;
	}
	handed_over(e, take_result);
}

static void on_looked_up(struct pawl_result *take_result, void *arg) {
	struct pawl_election *e = arg;
	e->call = NULL;
	if (e->client->dying) {
		handed_over(e, take_result);
	} else if (e->state == ELECTION_LEAVING) {
		/* The leadership was lost meanwhile. */
		e->state = ELECTION_OBSERVING;
		/* As after any other loss, the program becomes a candidate again if its options say
		 * so. */
		e->yields = true;
		result_fail(result_box(take_result), PAWL_ELOST, NULL);
		handed_over(e, take_result);
	} else if (!take_result->error && waits(take_result, e->successor)) {
		move_now(e, take_result);
	} else {
		e->state = ELECTION_LEADING;
		if (!take_result->error) {
			result_fail(result_box(take_result), PAWL_ENOTFOUND,
				"no candidate of this name is waiting");
		}
		handed_over(e, take_result);
	}
}

int election_hand_over(struct pawl_election *e, struct pawl_bytes to, bool yields,
	pawl_done_fn *done, void *arg) {
	struct pawl *client = e->client;
	if (e->state != ELECTION_LEADING || !election_leads(e) || to.size == 0) {
		return PAWL_EINVAL;
	}
	struct pawl_bytes successor;
	int error = kept_bytes_copy(client->env.alloc, to, &successor);
	if (error) {
		return error;
	}
	struct pawl_request request = { .method = PAWL_WAITERS, .key = e->options.name,
		.timeout_ms = e->options.timeout_ms };
	error = pawl_start(client, &request, on_looked_up, e, &e->call);
	if (error) {
		e->call = NULL;
		kept_bytes_free(client->env.alloc, successor);
		return error;
	}
	e->successor = successor;
	e->yields = yields;
	e->done = done;
	e->done_arg = arg;
	e->state = ELECTION_ASKING_WAITERS;
	return 0;
}
