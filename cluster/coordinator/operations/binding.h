/* binding.h: what a node knows of a lock that is bound to it, and of the masters that keep its
 * record (section 2, Release on disconnect). */
#ifndef PAWL_BINDING_H
#define PAWL_BINDING_H

#include "operation.h"

/* Says what is known of one master. */
struct bound_master {
	/* The identity of the master. */
	struct id128 id;

	/* The master was asked, so it may end the record when the link is lost. */
	bool told;

	/* The master said that it has the record. */
	bool has;

	/* The record lasts there until then, at least, if `has` is set; and with binding.numbered,
	 * the same of all permit numbers that the holder trusts. */
	struct instant until, numbers_until;

	/* The master is away, and it was its own side that closed the link. */
	bool closed_by_master;

	/* The master was told, and its link has been lost since `since`. */
	bool away;
	struct instant since;

	/* The master says that it no longer has the record. */
	bool dropped;

	/* The master says that it has no record. It may never have had one. */
	bool absent;

	/* The master had no record in all this time, at least, if `absent` is set. The time ends
	 * when the master was asked. */
	struct instant lacks_from, lacks_to;

	/* The master has said in this epoch whether it has the record. */
	bool heard;

	/* Counts the questions that the master has not answered. */
	uint32_t open;

	/* The first of these questions was sent then. */
	struct instant asked;
};

/* Says what is known of a lock that is bound to this node. */
struct binding {
	/* Describe the epoch that the masters below belong to. */
	uint32_t masters, quorum, self;

	/* The masters stand in the order of their peer indexes. */
	struct bound_master master[MASTERS_MAX];

	/* Says the earliest time at which a master of the previous epoch may drop the record. By
	 * then a quorum of the current masters must have it. INSTANT_FOREVER: they already do. */
	struct instant before;

	/* The lock is a semaphore's. A master that says that it has the record does not say which
	 * permit numbers it has; only an extension that it accepted does. */
	bool numbered;

	/* The last extension that shortened the lease, and when its round was sent. What a master
	 * was asked before it says nothing about the time after it. */
	uint64_t shortening;
	struct instant shortened;
};

#endif
