/* run_hold.c: what pawl run and pawl elect hold: one lock, several, or a leadership. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "field.h"
#include "output.h"
#include "run.h"
#include "waiting.h"

/* ---- locks ---- */

static void on_renewed(struct pawl_lock *lock, void *arg) {
	struct run *r = arg;
	(void)lock;
	if (hold_any(r)) {
		run_granted(r);
	}
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	(void)lock;
	run_lost(arg, cause);
}

static void on_lock_asked(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg) {
	struct run *r = arg;
	(void)lock, (void)asked;
	if (r->wanted.on_ask == RUN_ASK_TERM) {
		run_asked(r);
	}
}

/* Tells that what was wanted cannot be had, and ends. */
static void refused(struct run *r, const struct pawl_result *result, const char *subject) {
	int status = cli_fail(r->line, result, run_name(r), subject);
	bool conflict = result->error == PAWL_EHELD || result->error == PAWL_EDEADLOCK
		|| (result->error == PAWL_ETIMEOUT && status == CLI_REFUSED);
	if (conflict && r->wanted.conflict_status != RUN_NO_STATUS) {
		run_end(r, (int)r->wanted.conflict_status);
		return;
	}
	run_end(r,
		cli_own_status(r->line,
			result->error == PAWL_EHELD ? CLI_HELD
				: conflict ? CLI_TIMED_OUT
				: result->error == PAWL_EDENIED ? CLI_DENIED
				: status));
}

static int begin(struct run *r);

/* Takes the longest lease that the cluster allows in place of the default, and begins again. If the
 * lease was not what is too long, the second refusal says what is. */
static void on_longest_lease(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	const int64_t most = field_int(take_result->tree, "max_lease_ms", 0)
		- r->wanted.lock.terms.lock_delay_ms;
	r->held.call = NULL;
	r->wanted.lease_open = false;
	if (most > 0 && most < r->wanted.lock.lease_ms) {
		r->wanted.lock.lease_ms = (uint32_t)most;
		run_set_times(r->line, &r->wanted);
	}
	pawl_election_free(r->held.election);
	r->held.election = NULL;
	r->held.failed = false;
	const int error = begin(r);
	if (error) {
		fprintf(stderr, "pawl %s: %s\n", run_name(r), pawl_error_message(error));
		run_end(r, cli_own_status(r->line, CLI_REFUSED));
	}
	pawl_result_free(take_result);
}

/* If the cluster does not allow the default lease, asks for the longest one. Returns whether it
 * does. */
static bool lower_lease(struct run *r, int error) {
	const struct pawl_request request = { .method = PAWL_STATUS };
	return error == PAWL_ETOOLONG && r->wanted.lease_open && !r->started
		&& pawl_start(r->client, &request, on_longest_lease, r, &r->held.call) == 0;
}

static void locked(struct run *r, const struct pawl_result *result) {
	r->held.call = NULL;
	if (result->error && lower_lease(r, result->error)) {
		return;
	}
	if (result->error) {
		refused(r, result, result->key.size ? result->key.data : r->wanted.key);
	} else {
		run_granted(r);
	}
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	r->held.locks[0] = take_lock;
	r->held.count = take_lock != NULL;
	locked(r, take_result);
	pawl_result_free(take_result);
}

static void on_all_locked(struct pawl_lock *const *locks, size_t count,
	struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	for (size_t i = 0; locks && i < count; i++) {
		r->held.locks[r->held.count++] = locks[i];
	}
	locked(r, take_result);
	pawl_result_free(take_result);
}

static int begin_locks(struct run *r) {
	struct pawl_lock_options *o = &r->wanted.lock;
	o->on_lost = on_lost;
	o->on_renewed = on_renewed;
	o->on_asked = r->wanted.on_ask == RUN_ASK_TERM ? on_lock_asked : NULL;
	o->arg = r;
	if (r->wanted.keys) {
		return pawl_locks_start(r->client, o, r->wanted.keys, r->wanted.key_count,
			on_all_locked, r, &r->held.call);
	}
	return pawl_lock_start(r->client, o, on_locked, r, &r->held.call);
}

/* ---- the leadership ---- */

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	(void)election, (void)token;
	run_granted(arg);
}

static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	(void)election;
	run_lost(arg, cause);
}

static void on_failed(struct pawl_election *election, int error, const char *message,
	bool observing, void *arg) {
	struct run *r = arg;
	(void)election, (void)observing;
	if (r->held.failed) {
		/* This comes for the candidate and for the observer, and telling it once is
		 * enough. */
		return;
	}
	r->held.failed = true;
	if (lower_lease(r, error)) {
		return;
	}
	struct pawl_result failed = { .method = PAWL_ACQUIRE, .error = error, .message = message,
		.endpoint = "", .field = "" };
	refused(r, &failed, r->wanted.key);
}

static bool waits(const struct pawl_result *waiters, const char *name) {
	for (size_t i = 0; i < waiters->waiter_count; i++) {
		const struct pawl_bytes owner = waiters->waiters[i].owner;
		if (owner.size == strlen(name) && memcmp(owner.data, name, owner.size) == 0) {
			return true;
		}
	}
	return false;
}

/* CMD is ended only for somebody who waits. */
static void on_looked_up(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	if (!r->yields && r->held.yield_to && hold_any(r)) {
		if (!take_result->error && waits(take_result, r->held.yield_to)) {
			run_asked(r);
		} else {
			free(r->held.yield_to);
			r->held.yield_to = NULL;
		}
	}
	pawl_result_free(take_result);
}

/* CMD needs its time to end, so whoever asks gets the leadership only after that. */
static enum pawl_asked_answer on_election_asked(struct pawl_election *election,
	const struct pawl_asked *asked, void *arg) {
	struct run *r = arg;
	(void)election;
	const struct pawl_bytes who = asked->to.size ? asked->to : asked->by;
	if (r->yields || r->held.yield_to
		|| (!asked->to.size && asked->priority <= r->wanted.lock.terms.priority)) {
		return PAWL_ASKED_STAY;
	}
	r->held.yield_to = strndup(who.data, who.size);
	const struct pawl_request request = { .method = PAWL_WAITERS,
		.key = pawl_str(r->wanted.key) };
	if (r->held.yield_to && pawl_start(r->client, &request, on_looked_up, r, NULL) != 0) {
		free(r->held.yield_to);
		r->held.yield_to = NULL;
	}
	return PAWL_ASKED_STAY;
}

static int begin_election(struct run *r) {
	const struct pawl_lock_options *o = &r->wanted.lock;
	const struct pawl_election_options options = { .name = o->key, .owner = o->owner,
		.value = o->value, .label = o->label, .lease_ms = o->lease_ms,
		.warn_ms = o->warn_ms, .priority = o->terms.priority,
		.lock_delay_ms = o->terms.lock_delay_ms,
		.release_on_disconnect = o->terms.release_on_disconnect,
		.takeover = r->wanted.takeover, .on_leading = on_leading, .on_renewed = on_renewed,
		.on_stepped_down = on_stepped_down, .on_asked = on_election_asked,
		.on_failed = on_failed, .arg = r };
	int error = pawl_election_new(r->client, &options, &r->held.election);
	return error ? error : pawl_election_campaign(r->held.election);
}

/* ---- both ---- */

static bool answered(void *ctx) {
	const struct run *r = ctx;
	return r->held.election ? pawl_election_current(r->held.election) || hold_any(r)
		: hold_any(r) || *pawl_endpoint(r->client);
}

static int begin(struct run *r) {
	return r->wanted.elect ? begin_election(r) : begin_locks(r);
}

int hold_begin(struct run *r) {
	cli_tell_silence(r->line, r->base, r->client, answered, r);
	waiting_tell(&(struct waiting){ .line = r->line, .base = r->base, .client = r->client,
		.key = r->wanted.lock.key, .keys = r->wanted.keys,
		.key_count = r->wanted.key_count,
		.patience_ms = r->wanted.elect ? PAWL_FOREVER
			: waiting_patience(r->line, r->wanted.lock.wait_ms) });
	return begin(r);
}

bool hold_any(const struct run *r) {
	return r->held.count > 0 || (r->held.election && pawl_election_lock(r->held.election));
}

/* Returns the lock that ends first, because it decides for all of them. */
static const struct pawl_lock *first_to_end(const struct run *r) {
	const struct pawl_lock *first = r->held.election ? pawl_election_lock(r->held.election)
		: r->held.locks[0];
	for (size_t i = 1; i < r->held.count; i++) {
		first = pawl_lock_valid_ms(r->held.locks[i]) < pawl_lock_valid_ms(first)
			? r->held.locks[i]
			: first;
	}
	return first;
}

/* A timeout here is that of an extension, and not of a wait that the user has asked for. */
const char *hold_cause(int cause) {
	return cause == PAWL_ETIMEOUT ? "no node answered"
		: cause == PAWL_ELOST
		? "it is lost: the lease was over, or somebody broke or released it"
		: cause == PAWL_EDENIED ? "an administrator broke the lock, or this identity may "
			"no longer hold it"
		: pawl_error_message(cause);
}

int64_t hold_valid_ms(const struct run *r) {
	return hold_any(r) ? pawl_lock_valid_ms(first_to_end(r)) : 0;
}

void hold_deadline(const struct run *r, int64_t *out_boottime_ns, int64_t *out_monotonic_raw_ns) {
	*out_boottime_ns = *out_monotonic_raw_ns = 0;
	if (hold_any(r)) {
		pawl_lock_deadline(first_to_end(r), out_boottime_ns, out_monotonic_raw_ns);
	}
}

uint64_t hold_token(const struct run *r) {
	return pawl_lock_token(
		r->held.election ? pawl_election_lock(r->held.election) : r->held.locks[0]);
}

struct pawl_id hold_lock_id(const struct run *r) {
	return pawl_lock_id(
		r->held.election ? pawl_election_lock(r->held.election) : r->held.locks[0]);
}

void hold_slots(const struct run *r, char *out, size_t size) {
	uint32_t slots[PAWL_PERMITS_MAX];
	size_t count = r->held.count == 1
		? pawl_lock_slots(r->held.locks[0], slots, PAWL_PERMITS_MAX)
		: 0;
	int n = 0;
	out[0] = '\0';
	for (size_t i = 0; i < count && (size_t)n < size; i++) {
		n += snprintf(out + n, size - (size_t)n, "%s%" PRIu32, i ? "," : "", slots[i]);
	}
}

void hold_tokens(const struct run *r, char *out, size_t size) {
	int n = 0;
	out[0] = '\0';
	for (size_t i = 0; i < r->held.count && (size_t)n < size; i++) {
		n += snprintf(out + n, size - (size_t)n, "%s%" PRIu64, i ? "," : "",
			pawl_lock_token(r->held.locks[i]));
	}
}

/* If nothing was there to release, the lock was broken or given away while CMD ran, unless an
 * earlier try has released it. */
static void on_released(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	if (!take_result->error && !take_result->released && !take_result->repeated) {
		run_was_lost(r);
	}
	pawl_result_free(take_result);
	if (r->held.releasing > 0 && --r->held.releasing == 0) {
		run_end(r, r->exit_status);
	}
}

/* If the named candidate is gone meanwhile, the leadership goes to whoever is next. */
static void on_transferred(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	if (take_result->error == PAWL_ENOTFOUND && !take_result->released && hold_any(r) &&
		pawl_election_resign(r->held.election, on_released, r) == 0) {
		pawl_result_free(take_result);
		return;
	}
	on_released(take_result, arg);
}

static bool release_leadership(struct run *r) {
	const char *to = r->held.yield_to;
	r->held.releasing = 1;
	if (to && pawl_election_transfer(r->held.election, pawl_str(to), on_transferred, r) == 0) {
		return true;
	}
	return pawl_election_resign(r->held.election, on_released, r) == 0;
}

bool hold_release(struct run *r, int exit_status) {
	r->exit_status = exit_status;
	if (!hold_any(r)) {
		return false;
	}
	if (r->held.election) {
		return release_leadership(r);
	}
	for (size_t i = 0; i < r->held.count; i++) {
		r->held.releasing += pawl_lock_release_start(r->held.locks[i], on_released, r) == 0;
	}
	r->held.count = 0;
	return r->held.releasing > 0;
}

static void on_withdrawn(struct pawl_result *take_result, void *arg) {
	struct run *r = arg;
	pawl_result_free(take_result);
	run_end(r, r->exit_status);
}

/* A node reads what it is sent in order. When it has answered the last request, it has the release
 * of what may have been granted meanwhile, too, and goes on with that also without this process. */
bool hold_withdraw(struct run *r) {
	const struct pawl_request last = { .method = PAWL_PING };
	if (r->held.call) {
		pawl_cancel(r->held.call);
		r->held.call = NULL;
	}
	pawl_election_free(r->held.election);
	r->held.election = NULL;
	return *pawl_endpoint(r->client)
		&& pawl_start(r->client, &last, on_withdrawn, r, NULL) == 0;
}

void hold_forget(struct run *r) {
	for (size_t i = 0; i < r->held.count; i++) {
		pawl_lock_free(r->held.locks[i]);
	}
	r->held.count = 0;
}

void hold_done(struct run *r) {
	if (r->held.call) {
		pawl_cancel(r->held.call);
	}
	hold_forget(r);
	pawl_election_free(r->held.election);
	free(r->held.yield_to);
	free(r->wanted.keys);
}
