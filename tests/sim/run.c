/* run.c: one run, from its seed to the last demand. */
#include "faults.h"
#include "progress.h"
#include "refine.h"
#include "run.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>

#include "check.h"

const char *run_count_name(enum run_count count) {
	static const char *const names[] = { "lost_before_deadline", "late_extension_dropped",
		"late_acquire_dropped", "repeated_at_the_same_node",
		"repeated_elsewhere", "repeated_after_unsure", "lock_id_shared",
		"releases_by_value", "releases_that_close", "shortened",
		"held_together",
		"transferred", "not_transferred", "downgrade_answered", "group_answered_held",
		"group_answered_refused", "group_repeated", "group_answered_twice",
		"binding_moved", "moved_to_a_shorter_deadline",
		"answered_over_an_earlier_connection", "binding_dropped", "binding_revived",
		"change_answered_done", "change_answered_refused", "change_cut_off",
		"change_repeated", "files_lost",
		"latecomer_extends", "latecomer_repeats", "latecomer_held", "renewed_in_calm",
		"contended_in_calm", "contended_beside_holders", "episodes_in_calm", "crowd_joined",
		"crowd_looked", "lied", "tampered", "liar_removed", "switched", "home_silent",
		"parted", "taken" };
	return names[count];
}

/* How long replicas have to notice that a key was granted twice. */
#define NOTICE (5 * SPAN_S)
static jmp_buf ruined_jump;

static void ruined(bool core) {
	longjmp(ruined_jump, core ? 2 : 1);
}

static void add_totals(const struct run *run, struct run_totals *totals) {
	const uint64_t *counts = sim_counts(run->sim);
	for (size_t i = 0; i < COUNT_TOTAL; i++) {
		totals->counts[i] += counts[i];
	}
	for (size_t i = 0; i < RUN_COUNTS; i++) {
		totals->run_counts[i] += run->counts[i];
	}
	totals->runs++;
	totals->operations += checker_operations(run->checker);
	totals->frames += sim_frames(run->sim);
	totals->steps += sim_steps(run->sim);
	totals->virtual_ns += sim_now(run->sim);
	totals->judged += run->refine ? refine_judged(run->refine) : 0;
}

/* Where nothing goes wrong, the order of waiting is kept. Requests that are closer together than a
 * few messages have no order. */
static span_ns order_slack(const struct profile *p) {
	return p->theme != THEME_quiet ? 0 : 6 * p->sim.delay_max + 4 * p->sim.session_delay_max +
		8 * p->sim.loop_lag_max + 2 * p->sim.disk_max + 5 * SPAN_MS;
}

static void live(struct run *run) {
	sim_start_all(run->sim);
	watcher_join(run);
	for (uint32_t i = 0; i < run->profile.clients; i++) {
		caller_start(run, i);
	}
	for (uint32_t i = 0; i < run->profile.groupers; i++) {
		grouper_start(run, i);
	}
	for (uint32_t i = 0; i < run->profile.crowds; i++) {
		crowd_start(run, i);
	}
	for (uint32_t i = 0; i < run->profile.latecomers; i++) {
		latecomer_start(run, i);
	}
	for (uint32_t i = 0; i < run->profile.operators; i++) {
		operator_start(run, i);
	}
	disaster_start(run);
	liar_start(run);
	liar_master_start(run);
	faults_start(run);
	shortage_start(run);
	kept_start(run);
	watches_start(run);
	sim_run_for(run->sim, run->profile.active);
	run->healing = true;
	run->renewing = run->profile.calm;
	shortage_heal(run);
	liar_master_ends(run);
	faults_heal(run);
	watches_heal(run);
	progress_demand(run);
}

static void not_refined(void *ctx, uint32_t node, struct slice key, const char *rule,
	const char *what) {
	const struct run *run = ctx;
	const uint32_t number = key.size ? sim_name_key_number(key) : TRACE_NONE;
	checker_violation(run->checker, CHECKER_REFINEMENT, number, "n%" PRIu32 ": %s%s%s",
		node + 1, rule, what[0] ? ": " : "", what);
}

static void judges_begin(struct run *run, const struct run_options *options, const char *setup,
	const char *replay) {
	run->checker = checker_new(&(struct checker_options){ .sim = run->sim,
		.seed = options->seed, .replay = replay, .setup = setup,
		.history = options->history, .drift_ppm = run->profile.sim.drift_ppm,
		.liar = liar_master(run), .forced = run->profile.theme == THEME_forced,
		.unkind = faults_worse_than_tcp(&run->profile.adversary),
		.nothing_wrong = run->profile.theme == THEME_quiet && !run->profile.rush &&
			!run->profile.watches_change,
		.forgets_releases = run->profile.theme == THEME_limits,
		.order_slack = order_slack(&run->profile),
		.check_grants = options->check_grants,
		.watches_change = run->profile.watches_change,
		.ruined = options->alone || options->refine_alone ? ruined : NULL,
		.alone = options->refine_alone ? CHECKER_REFINEMENT : CHECKER_REPLICAS_FIND });
	if (options->refine) {
		run->refine = refine_new(&(struct refine_options){ .sim = run->sim,
			.wrong = not_refined, .ctx = run, .liar = liar_master(run) });
	}
}

void run_seed(const struct run_options *options, struct run_totals *totals) {
	struct run *run = calloc(1, sizeof *run);
	CHECK(run != NULL);
	char setup[512], replay[256];
	profile_draw(&run->profile, options->seed, options->theme);
	run->profile.sim.check_every = options->check_every;
	if (options->check_grants) {
		run->profile.sim.check_grants = true;
		watcher_profile(&run->profile);
	}
	profile_print(&run->profile, setup, sizeof setup);
	snprintf(replay, sizeof replay, "%s --only-seed %" PRIu64 "%s%s%s --trace",
		options->program, options->seed, options->refine ? " --refine" : "",
		options->theme == THEMES ? "" : " --theme ",
		options->theme == THEMES ? "" : profile_theme_name(options->theme));
	prng_init(&run->prng, options->seed ^ UINT64_C(0xc11e7715));
	prng_init(&run->late, options->seed ^ UINT64_C(0x1a7ec11e));
	prng_init(&run->watches, options->seed ^ UINT64_C(0x3a7c4e5));
	run->profile.watches_change = prng_chance(&run->watches, 1, 4);
	for (size_t i = 0; i < PUBLIC_LOCKS; i++) {
		run->public_locks[i] = TRACE_NONE;
	}
	run->born = run->profile.sim;
	run->sim = sim_new(&run->profile.sim);
	sim_trace(run->sim)->live = options->live;
	if (options->live) {
		fprintf(options->live, "seed %" PRIu64 ": %s\n", options->seed, setup);
	}
	judges_begin(run, options, setup, replay);
	const int jump = setjmp(ruined_jump);
	if (jump == 1 && !run->ruined && !options->refine_alone) {
		/* It goes on for a while, for the replicas to notice. Whatever else happens is of
		 * no interest. */
		run->ruined = true;
		checker_replicas_alone(run->checker);
		sim_run_for(run->sim, NOTICE);
	}
	if (jump != 0) {
		/* What the run has allocated stays. */
		refine_free(run->refine);
		totals->runs++;
		totals->ruined++;
		totals->ruined_twice += checker_twice(run->checker);
		return;
	}
	live(run);
	add_totals(run, totals);
	refine_free(run->refine);
	totals->ruined_twice += checker_twice(run->checker);
	checker_free(run->checker);
	sim_free(run->sim);
	liar_master_free(run);
	kept_free(run);
	free(run->locks);
	free(run);
}
