/* main.c: pawl-sim, which runs seeds of the simulator. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "run.h"

static const char usage[] =
	"usage: pawl-sim [--seeds N] [--start S] [--check-every N] [--history FILE] [--coverage] "
	"[--until-violation]\n"
	"       pawl-sim --only-seed S [--trace] [--history FILE]\n"
	"       pawl-sim --help | -h\n"
	"Runs whole clusters on simulated time, one a seed. Exit status 1 after a violation, or "
	"with --coverage when something that\n"
	"has to happen sometimes never did; 2 after a usage error.\n"
	"  --seeds N          how many (100)\n"
	"  --start S          the first (1)\n"
	"  --only-seed S      this one alone\n"
	"  --theme NAME       faults of this theme instead of one drawn from the seed\n"
	"  --trace            prints every event\n"
	"  --check-every N    the cores' own checks after every Nth step of a node (1; 0: never)\n"
	"  --history FILE     every operation as a line of JSON\n"
	"  --counts           prints what happened how often\n"
	"  --coverage         demands that everything on the list happened at least once\n"
	"  --wanted           prints that list\n"
	"  --list-themes      prints the themes' names\n"
	"  --each             prints each seed before it is run, so that one that ends the "
	"program, or never ends, is known\n"
	"  --until-violation  goes on until one is found, at most --seeds N (without it: no "
	"limit)\n"
	"  --progress         a line every few seconds\n"
	"  --check-grants     replicas check for double grants ([audit] check), and find none\n"
	"  --replicas-alone   with --check-grants: only what they find is a violation\n"
	"  --refine           compares each step of each node with the abstract machine\n"
	"  --refine-alone     so, and only what that finds is a violation\n";

struct arguments {
	uint64_t seeds, start, check_every;
	const char *history;
	enum profile_theme theme;
	bool trace, coverage, counts, until_violation, progress, wanted, themes, each, help,
		seeds_given, check_grants, alone, refine, refine_alone;
};

static bool number(const char *text, uint64_t *out) {
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (errno || *end || end == text) {
		return false;
	}
	*out = n;
	return true;
}

static bool parse_judges(int option, struct arguments *a) {
	a->check_grants = a->check_grants || option == 'g';
	a->alone = a->alone || option == 'a';
	a->refine_alone = a->refine_alone || option == 'R';
	a->refine = a->refine || option == 'r' || option == 'R';
	return option == 'g' || option == 'a' || option == 'r' || option == 'R';
}

static bool parse(int argc, char **argv, struct arguments *a) {
	static const struct option options[] = { { "seeds", 1, NULL, 'n' },
		{ "start", 1, NULL, 's' }, { "only-seed", 1, NULL, 'o' },
		{ "trace", 0, NULL, 't' }, { "check-every", 1, NULL, 'e' },
		{ "history", 1, NULL, 'f' }, { "counts", 0, NULL, 'c' },
		{ "coverage", 0, NULL, 'C' }, { "until-violation", 0, NULL, 'u' },
		{ "progress", 0, NULL, 'p' }, { "wanted", 0, NULL, 'w' }, { "theme", 1, NULL, 'T' },
		{ "check-grants", 0, NULL, 'g' }, { "replicas-alone", 0, NULL, 'a' },
		{ "refine", 0, NULL, 'r' }, { "refine-alone", 0, NULL, 'R' },
		{ "list-themes", 0, NULL, 'l' }, { "each", 0, NULL, 'E' }, { "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 } };
	*a = (struct arguments){ .seeds = 100, .start = 1, .check_every = 1, .theme = THEMES };
	bool good = true;
	for (int o; good && (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
		switch (o) {
		case 'n':
			good = number(optarg, &a->seeds);
			a->seeds_given = true;
			break;
		case 's':
			good = number(optarg, &a->start);
			break;
		case 'o':
			good = number(optarg, &a->start);
			a->seeds = 1;
			break;
		case 'e':
			good = number(optarg, &a->check_every);
			break;
		case 'f':
			a->history = optarg;
			break;
		case 'T':
			a->theme = profile_theme_named(optarg);
			good = a->theme != THEMES;
			break;
		case 't':
			a->trace = true;
			break;
		case 'c':
			a->counts = true;
			break;
		case 'C':
			a->coverage = true;
			break;
		case 'u':
			a->until_violation = true;
			break;
		case 'p':
			a->progress = true;
			break;
		case 'w':
			a->wanted = true;
			break;
		case 'l':
			a->themes = true;
			break;
		case 'E':
			a->each = true;
			break;
		case 'h':
			a->help = true;
			break;
		default:
			good = parse_judges(o, a);
			break;
		}
	}
	return good && optind == argc;
}

static double seconds(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_ruined(const struct run_totals *t) {
	printf("no replica found: violations=%" PRIu64 " twice=%" PRIu64 "\n", t->ruined,
		t->ruined_twice);
}

static void print_totals(const struct run_totals *t, double took) {
	printf("seeds=%" PRIu64 " violations=0 operations=%" PRIu64 " frames=%" PRIu64 " steps=%"
		PRIu64 " judged=%" PRIu64 " virtual_s=%.0f took_s=%.1f seeds/s=%.1f\n", t->runs,
		t->operations, t->frames, t->steps, t->judged, (double)t->virtual_ns / 1e9, took,
		(double)t->runs / took);
}

static void print_counts(const struct run_totals *t) {
	for (size_t i = 0; i < COUNT_TOTAL; i++) {
		printf("count %s %" PRIu64 "\n", core_count_name((enum core_count)i), t->counts[i]);
	}
	for (size_t i = 0; i < RUN_COUNTS; i++) {
		printf("count %s %" PRIu64 "\n", run_count_name((enum run_count)i),
			t->run_counts[i]);
	}
}

static void print_themes(void) {
	for (size_t i = 0; i < THEMES; i++) {
		puts(profile_theme_name((enum profile_theme)i));
	}
}

int main(int argc, char **argv) {
	struct arguments a;
	if (!parse(argc, argv, &a)) {
		fputs(usage, stderr);
		return 2;
	}
	if (a.help) {
		fputs(usage, stdout);
		return 0;
	}
	if (a.wanted) {
		coverage_print();
		return 0;
	}
	if (a.themes) {
		print_themes();
		return 0;
	}
	/* Nodes come and go all the time. Their memory is kept, rather than returned to the
	 * kernel and faulted in again. */
	(void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_TOP_PAD, 16 << 20);
	struct run_options options = { .check_every = (uint32_t)a.check_every, .theme = a.theme,
		.live = a.trace ? stdout : NULL, .program = argv[0],
		.check_grants = a.check_grants, .alone = a.alone, .refine = a.refine,
		.refine_alone = a.refine_alone };
	if (a.history && !(options.history = fopen(a.history, "w"))) {
		perror(a.history);
		return 2;
	}
	static struct run_totals totals;
	double began = seconds(), told = began;
	bool endless = a.until_violation && !a.seeds_given;
	for (uint64_t i = 0; endless || i < a.seeds; i++) {
		options.seed = a.start + i;
		if (a.each) {
			printf("seed %" PRIu64 "\n", options.seed);
			fflush(stdout);
		}
		run_seed(&options, &totals);
		if (a.progress && seconds() - told > 5) {
			told = seconds();
			if (a.alone) {
				print_ruined(&totals);
			}
			print_totals(&totals, told - began);
			fflush(stdout);
		}
	}
	print_totals(&totals, seconds() - began);
	if (a.alone) {
		print_ruined(&totals);
	}
	if (a.counts) {
		print_counts(&totals);
	}
	bool missing = a.coverage && coverage_missing(&totals);
	if (options.history && fclose(options.history)) {
		perror(a.history);
		return 2;
	}
	return missing ? 1 : 0;
}
