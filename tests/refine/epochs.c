/* epochs.c: which epochs a node may mark as voted, and how a forced start begins (section 6). */
#include "epochs.h"

#define JUMP (UINT64_C(1) << 40)

bool epochs_forced(uint64_t before, uint64_t after) {
	return after >> 32 != before >> 32 && before != 0;
}

bool epochs_changed(const struct e_disk *before, const struct e_disk *after) {
	return after->id == before->id && !after->pledged && (before->pledged ||
		after->hash != before->hash || after->epoch != before->epoch);
}

const char *epochs_synced(const struct e_disk *before, const struct e_disk *after,
	bool same_masters, bool all_pledged) {
	const bool had = before->voted && !before->pledged;
	if (!epochs_changed(before, after)) {
		return NULL;
	}
	if (epochs_forced(before->epoch, after->epoch)) {
		return before->pledged ? "who starts the cluster over has been a member" : NULL;
	}
	if (!after->voted) {
		return NULL;
	}
	if (after->epoch == 1) {
		return all_pledged ? NULL
			: "a master writes epoch 1 when all initial masters have pledged the same";
	}
	if (after->epoch >> 32 && before->epoch == 0) {
		return "who starts the cluster over has been a member";
	}
	return had && same_masters && after->epoch == before->epoch + 1 ? NULL
		: "a master has voted in an epoch that it adopts only if the masters are the same";
}

uint64_t epochs_forced_clock(uint64_t epoch, uint64_t known) {
	const uint64_t least = 2 * JUMP * ((epoch >> 32) - 1);
	return known + JUMP > least ? known + JUMP : least;
}
