/* run.h: one run: a cluster, its checker, its clients and its faults, all drawn from one seed. */
#ifndef PAWL_SIM_RUN_H
#define PAWL_SIM_RUN_H

#include "clients.h"

/* What happened to clients and by faults; the core cannot count it. The names that are printed are
 * in run.c. */
enum run_count {
	RUN_LOST_BEFORE_DEADLINE,
	RUN_LATE_EXTENSION,
	RUN_LATE_ACQUIRE,
	RUN_REPEATED_SAME,
	RUN_REPEATED_OTHER,
	RUN_UNSURE_REPEATED,
	RUN_SHARED,
	RUN_RELEASES_BY_VALUE,
	RUN_CLOSINGS,
	RUN_SHORTENED,
	RUN_HOLD_TOGETHER,
	RUN_TRANSFERRED,
	RUN_NOT_TRANSFERRED,
	RUN_DOWNGRADED,
	RUN_GROUP_HELD,
	RUN_GROUP_REFUSED,
	RUN_GROUP_REPEATED,
	RUN_GROUP_TWICE,
	RUN_BINDING_MOVED,
	/* To a deadline before the one that was answered under the earlier connection. */
	RUN_MOVED_SHORTER,
	/* An answer under a connection that the lock had left by then. */
	RUN_EARLIER_CONNECTION,
	RUN_BINDING_DROPPED,
	RUN_BINDING_REVIVED,
	RUN_CHANGE_DONE,
	RUN_CHANGE_REFUSED,
	RUN_CHANGE_CUT_OFF,
	RUN_CHANGE_REPEATED,
	RUN_FILES_LOST,
	RUN_LATE_COMER_EXTENDS,
	RUN_LATE_COMER_REPEATS,
	RUN_LATE_COMER_HELD,
	RUN_CALM_RENEWED,
	RUN_CALM_CONTENDED,
	RUN_CALM_BESIDE,
	RUN_EPISODES,
	RUN_CROWD_JOINED,
	RUN_CROWD_LOOKED,
	RUN_LIED,
	RUN_TAMPERED,
	RUN_LIAR_REMOVED,
	RUN_SWITCHED,
	RUN_HOME_SILENT,
	RUN_PARTED,
	RUN_TAKEN,
	RUN_COUNTS
};
const char *run_count_name(enum run_count count);

#define PUBLIC_LOCKS 8
#define CALLERS_MAX 16

/* The callers that wait for what nobody has. */
struct vain {
	/* The request, and since when it waits in vain. */
	uint64_t request[CALLERS_MAX];
	int64_t since[CALLERS_MAX];
	/* When to look again. */
	int64_t next;
};

struct refine;

struct run {
	struct sim *sim;
	struct checker *checker;
	struct profile profile;
	struct prng prng;
	/* What came later draws from this one, so that the rest of a seed stays what it is. */
	struct prng late;
	/* The times of watches (watches.c). */
	struct prng watches;
	bool healing;
	/* While it heals, those who hold a lock go on renewing. */
	bool renewing;
	struct caller callers[CALLERS_MAX];
	struct operator operators[OPERATORS_MAX];
	/* It adds the replica of watcher.c. */
	struct operator watcher;
	/* A check has failed, and the run goes on for the replicas alone. */
	bool ruined;
	struct grouper groupers[GROUPERS_MAX];
	struct latecomer latecomers[LATECOMERS_MAX];
	struct crowd crowds[CROWDS_MAX];
	/* profile.sim as it was drawn. The profile itself follows changes of the timing once all is
	 * quiet. */
	struct sim_options born;
	/* The bit set of nodes that are gone for good. */
	uint32_t destroyed;
	/* The node from which the operator starts over; TRACE_NONE: nothing was destroyed. */
	uint32_t survivor;
	struct id128 old_cluster;
	/* The newest epoch that faults.c has seen. */
	uint64_t epoch_seen;
	/* A master that lies; NULL: none does. */
	struct lying *lying;
	/* The lying master was once one of so few masters that it was a majority, or enough to hand
	 * over from. */
	bool too_few;
	/* The last epoch in which a node lost its files. */
	uint64_t lost_in;
	struct lock_info *locks;
	size_t lock_capacity;
	/* The lock_ids that were made last, for others to join in. */
	uint32_t public_locks[PUBLIC_LOCKS];
	uint32_t values;
	uint64_t counts[RUN_COUNTS];
	/* The node that comes next when nodes are restarted in turn. */
	uint32_t rolling;
	struct prng shortage_prng;
	struct vain vain;
	/* What is kept for nobody (progress_kept.c). */
	struct kept *kept;
	/* The abstract machine that judges each step; NULL: none does. */
	struct refine *refine;
};

/* A span between `low` and `high`, in half of the cases in the lowest quarter between them. */
static inline span_ns run_scale(struct run *run, span_ns low, span_ns high) {
	high = high > low ? high : low;
	span_ns span = prng_between(&run->prng, low, high);
	return prng_chance(&run->prng, 1, 2) ? span : low + (span - low) / 4;
}

/* The bit set of nodes that lie, and must not become masters. */
static inline uint32_t run_liars(const struct run *run) {
	return run->profile.liars ? UINT32_C(1) << (sim_nodes(run->sim) - 1) : 0;
}

struct run_options {
	uint64_t seed;
	uint32_t check_every;
	/* THEMES: it is drawn from the seed. */
	enum profile_theme theme;
	FILE *history, *live;
	/* Replicas check for double grants. `alone`: only what they find is a violation. */
	bool check_grants, alone;
	/* Each step is compared with the abstract machine. `refine_alone`: only what that finds is
	 * a violation. */
	bool refine, refine_alone;
	const char *program;
};

struct run_totals {
	uint64_t runs, operations, frames, steps;
	/* How many messages the abstract machine has judged. */
	uint64_t judged;
	/* Runs that ended with a violation that no replica found. */
	uint64_t ruined;
	/* Runs in which a key had two holders, or their tokens were wrong, and no replica said
	 * so. */
	uint64_t ruined_twice;
	int64_t virtual_ns;
	uint64_t counts[COUNT_TOTAL], run_counts[RUN_COUNTS];
};

/* Runs one seed; a violation ends the program (see run_options.alone). */
void run_seed(const struct run_options *options, struct run_totals *totals);

/* watcher.c: in a run without a replica: one more node, which joins as a replica. */
void watcher_profile(struct profile *p);
void watcher_join(struct run *run);

/* coverage.c: names what has to happen sometimes and never did. */
bool coverage_missing(const struct run_totals *totals);
void coverage_print(void);

#endif
