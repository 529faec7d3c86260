/* progress_kept.c: nothing is kept for nobody. What a master keeps in a queue, or has parked, for a
 * request that its coordinator has forgotten goes soon, and so does the wait of a request at a home
 * that has no entry of it (docs/protocol.md, section 5, Ending). This is demanded during the whole
 * run: after it the requests of clients have timed out, and nobody sees any more that they were not
 * served. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "faults.h"
#include "progress.h"
#include "sim_kept.h"

#define LOOK_EVERY (10 * SPAN_MS)

struct kept {
	struct kept *next;
	struct sim_kept what;
	int64_t since, seen;
};

/* A node that looks for its home, a link that is slow or cut for a while, a write that must be on
 * disk, a frame that is late, and the longest time that a coordinator waits for an answer. */
static span_ns kept_bound(const struct run *run) {
	const struct profile *p = &run->profile;
	const struct config *newest = checker_newest(run->checker);
	span_ns timeout = p->sim.request_timeout > run->born.request_timeout
		? p->sim.request_timeout : run->born.request_timeout;
	timeout = newest && newest->request_timeout > timeout ? newest->request_timeout : timeout;
	return 6 * timeout + 2 * p->cut_max + p->adversary.target_max +
		p->adversary.late_max + 2 * p->sim.disk_max + faults_last_write(run) +
		100 * SPAN_MS;
}

static bool same(const struct sim_kept *a, const struct sim_kept *b) {
	return a->kind == b->kind && a->master == b->master && a->coordinator == b->coordinator &&
		a->master_incarnation == b->master_incarnation &&
		a->coordinator_incarnation == b->coordinator_incarnation && a->lost == b->lost &&
		a->key == b->key && a->seq == b->seq && id128_equal(a->lock_id, b->lock_id);
}

static void found(void *ctx, const struct sim_kept *what) {
	static const char *const names[] = { "keeps an entry with a turn", "keeps an entry",
		"keeps a parked request", "has no entry of a request that waits there" };
	struct run *run = ctx;
	const int64_t now = sim_now(run->sim);
	struct kept *k = run->kept;
	while (k && !same(&k->what, what)) {
		k = k->next;
	}
	if (k == NULL) {
		k = calloc(1, sizeof *k);
		CHECK(k != NULL);
		*k = (struct kept){ .next = run->kept, .what = *what, .since = now };
		run->kept = k;
	}
	k->seen = now;
	if (now - k->since > kept_bound(run)) {
		checker_violation(run->checker, "progress (nothing is kept for nobody)", what->key,
			"n%" PRIu32 " %s: L%" PRIu32 " at n%" PRIu32 ", for %.1f ms",
			what->master + 1, names[what->kind], sim_name_lock_number(what->lock_id),
			what->coordinator + 1, (double)(now - k->since) / 1e6);
	}
}

/* Only what is there each time that it is looked for counts. */
static void drop_unseen(struct run *run) {
	for (struct kept **at = &run->kept; *at;) {
		struct kept *k = *at;
		if (k->seen < sim_now(run->sim)) {
			*at = k->next;
			free(k);
		} else {
			at = &k->next;
		}
	}
}

static void look(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	sim_kept_look(run->sim, found, run);
	drop_unseen(run);
	sim_at(run->sim, sim_now(run->sim) + LOOK_EVERY, look, run, 0);
}

void kept_start(struct run *run) {
	if (!faults_worse_than_tcp(&run->profile.adversary) && !run->profile.lying_master &&
		!run->profile.liars) {
		look(run, 0);
	}
}

void kept_free(struct run *run) {
	while (run->kept) {
		struct kept *k = run->kept;
		run->kept = k->next;
		free(k);
	}
}
