/* group.h: what a request for several keys keeps (section 11). Part of coordinator.h, for group.c
 * and those who make the parts of such a request. */
#ifndef PAWL_CLUSTER_GROUP_H
#define PAWL_CLUSTER_GROUP_H

#include "state.h"

enum group_state {
	/* The request acquires one key after another. All members before `at` are held. */
	GROUP_ACQUIRING,
	/* It has all keys, and extends those whose lease began a while ago. */
	GROUP_ALIGNING,
	/* It gives all of them back. Then the error is answered. */
	GROUP_ROLLING_BACK
};

/* One of the keys. */
struct member {
	/* The key, in the same block of memory. */
	struct slice key;
	/* The lock_id that the request has for it. */
	struct id128 lock_id;
	/* A random name for what is accepted for this key. After a rollback the key has a new
	 * one. */
	uint64_t name;
	/* The mode and the number of permits, as in struct terms. */
	uint16_t of, count;
	/* The index of the key in the request. */
	uint32_t place;
	/* The operation under way for this key: an acquire, an extension, or a release; or NULL. */
	struct op *child;
	bool
		/* The key is held. */
		held,
		/* A master may have accepted a commit for it. */
		committed,
		/* `reply` has an answer of the child that nobody has read yet. */
		answered,
		/* It was extended while the request was aligning. */
		aligned,
		/* It has been rolled back. */
		rolled_back;
	/* The highest token that was heard of. */
	uint64_t token;
	/* The number of the connection that the last success named; and the one that the operation
	 * under way names. */
	uint32_t binding, asked_binding;
	/* The epoch of the last success. */
	uint64_t epoch;
	/* How many masters accepted in the last success. */
	uint32_t acks;
	/* The terms that were granted; of a semaphore, with the permit numbers. */
	struct terms terms;
	/* When the operation under way began; and when the last success did, from which `valid`
	 * counts. */
	struct instant began, since;
	/* The lease is not extended before this moment. */
	struct instant again;
	/* For how long the lock is valid, in nanoseconds. */
	span_ns valid;
	/* The reply of the child, until it is read within the same step. */
	struct core_reply reply;
};

struct group {
	/* How long the parts have waited in queues so far, in nanoseconds; and a bit set of the
	 * masters that were late. */
	span_ns queued;
	uint64_t late;
	/* Link in core->coordinator.groups, if a child has been answered. */
	struct list ready;
	/* The operation that asks for all keys. */
	struct op *op;
	/* What the request is doing. */
	enum group_state state;
	/* How many members there are; and the one that is being acquired. */
	uint32_t count, at;
	/* GROUP_ROLLING_BACK: the error that is answered, and the index of the member that it is
	 * about. */
	int error;
	uint32_t failed;
	/* PAWL_ETIMEOUT: CORE_END_WAIT has ended the wait for that key. */
	bool wait_cut;
	/* PAWL_EFULL: the limit that was reached, as static text; NULL: not known. */
	const char *full;
	/* PAWL_EHELD, PAWL_ETIMEOUT: the holder of that key, with its bytes in `owner` and `label`,
	 * and when its lease ends. */
	struct core_entry holder;
	struct instant holder_end;
	/* `holder` is known; and that key is contested. */
	bool holder_known, contested;
	/* core_reply.other_of of that key. */
	uint32_t other_of;
	/* The bytes of the holder's owner and label. */
	uint8_t owner[OWNER_MAX], label[LABEL_MAX];
	/* The size of the whole block of memory in bytes. */
	size_t size;
	/* In the order of their keys, whose bytes follow. */
	struct member members[];
};

#endif
