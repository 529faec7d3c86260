/* group.h: what a request for several keys keeps (section 11). Part of state.h, for group.c and those who make its children. */
#ifndef PAWL_CLUSTER_GROUP_H
#define PAWL_CLUSTER_GROUP_H

enum group_state {
	GROUP_CLIMBING,  /* acquires one key after another; all members before `at` are held */
	GROUP_LEVELLING, /* has them all, and extends those whose lease has begun a while ago */
	GROUP_LETTING_GO /* gives all of them back; then the error is answered */
};

struct member {
	struct slice key;
	struct id128 lock_id;
	/* Names, at random, what is accepted for this key; a new one after each give-back. */
	uint64_t name;
	uint16_t of, count;
	uint32_t place;   /* in the request */
	struct op *child; /* what is under way for it: an acquire, an extension, or a release */
	bool held, committed, answered, levelled, let_go; /* committed: at least it may have been, by some master */
	uint64_t token; /* the highest heard of */
	uint32_t binding, asked_binding; /* that was named by what succeeded; by what is under way */
	uint64_t epoch; /* in which the last one succeeded */
	uint32_t acks;  /* of the last acquire or extension that succeeded */
	struct terms terms;
	struct instant began, since; /* of what is under way; of the last acquire or extension that succeeded: `valid` counts from it */
	struct instant again;        /* it is not extended before */
	span_ns valid;
	struct core_reply reply; /* of the child, until it is looked at within the same step */
};

struct group {
	struct list ready; /* core->coordinator.groups: something has been answered */
	struct op *op;
	enum group_state state;
	uint32_t count, at;
	int error; /* LETTING_GO: what is answered, and which member it is about */
	uint32_t failed;
	struct core_entry holder; /* PAWL_EHELD: with its bytes in `owner` and `label` */
	struct instant holder_end;
	bool holder_known, contested;
	uint8_t owner[OWNER_MAX], label[LABEL_MAX];
	size_t size; /* of the whole block */
	struct member members[]; /* in the order of their keys, whose bytes follow */
};

#endif
