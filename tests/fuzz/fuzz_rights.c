/* fuzz_rights.c: a file of rules of any bytes is either refused with the place, or holds rules by
 * which anything can be judged. Without a rule nothing is allowed; and a caller that may use all
 * keys with a prefix may use each of them. */
#include "fuzz.h"

#include <string.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"

static bool account(const char *name, uint32_t *out) {
	*out = (uint32_t)strlen(name);
	return name[0] != 'x';
}

static const struct rights_accounts accounts = { account, account };

/* Asks about the prefix, and about a key that begins with it. */
static void judge_both(const struct rights *r, const struct rights_caller *caller, enum right right,
	struct slice key) {
	for (size_t size = 0; size <= key.size; size++) {
		const struct rights_question all = { .right = right,
			.key = slice_of(key.data, size), .prefix = true, .priority = 1 };
		const struct rights_question one = { .right = right, .key = key, .priority = 1 };
		const struct rights_verdict of_all = rights_judge(r, caller, &all),
			of_one = rights_judge(r, caller, &one);
		char why[RIGHTS_WHY_BYTES];
		rights_explain(r, caller, &all, &of_all, why);
		CHECK(why[0]);
		CHECK(of_one.line || !of_one.allowed);
		CHECK(!of_all.allowed || of_one.allowed || right == RIGHT_PRIORITY);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const char *const names[] = { "a", "unix:uid:1", "plain", "" };
	static const uint32_t gids[] = { 0, 1, 5 };
	struct rights *r = NULL;
	struct problem problem = { "" };
	int error = rights_parse(slice_of(data, size), "f", &accounts, &r, &problem);
	CHECK(error == 0 || error == PAWL_EINVAL);
	if (error) {
		CHECK(r == NULL && strncmp(problem.text, "f:", 2) == 0);
		return 0;
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct rights_caller caller = { .identity = slice_str(names[i]), .gids = gids,
			.gid_count = i == 1 ? 3 : 0, .more_gids = size & 1 };
		for (enum right right = 0; right < RIGHT_NONE; right++) {
			judge_both(r, &caller, right, slice_str("a/b/c"));
		}
	}
	for (unsigned n = 0; rights_warning(r, n, &problem); n++) {
	}
	rights_free(r);
	return 0;
}
