/* core_limits.h: the bounds of what a node takes. Part of core.h. */
#ifndef PAWL_CLUSTER_CORE_LIMITS_H
#define PAWL_CLUSTER_CORE_LIMITS_H

#include "types.h"

/* In each field 0 stands for the default. */
struct core_limits {
	/* Keys in a table, and the memory that the core takes from its allocator, in bytes. */
	uint64_t keys, memory_bytes;
	/* Size of the transaction log (section 7), in bytes. */
	uint64_t log_bytes;
	/* Bytes of a value; waiters in all, of one key and of one client; tombstones; operations
	 * under way; and operations that are catching up after their answer. */
	uint32_t value_bytes, waiters, waiters_per_key, waiters_per_client, released, rounds,
		catching_up;
	/* In how many places a master remembers lock_ids that it lacks: four in each, twice
	 * (store/lacked.c). */
	uint32_t lacked;
	/* Holders that share one key; and how many records a key has when it gets an index over
	 * them (store/index.c). */
	uint32_t holders_per_key, indexed;
	/* The bounds of section 3, Reports: how many records a master reports at once, and in each
	 * further piece; the size in bytes above which a value is left out; and how many operations
	 * may ask for more than the first piece at one time. */
	uint32_t report_first, report_piece, report_value, reports;
	/* How many bytes of values quorum reads show in one turn of the loop. The read that reaches
	 * this number is the last one. */
	uint32_t shown_a_turn;
	/* How many local waits are answered in one turn of the loop. An answer that shows large
	 * values or many holders counts as several. */
	uint32_t waits_a_turn;
	/* How many records a master judges in one turn of the loop after it has compared its table
	 * (section 7, Anti-entropy). The key that reaches this number is the last one. */
	uint32_t judged_a_turn;
	/* Where an operation has more reports than this, it may have to wait until they are weighed
	 * (section 3, Reports). */
	uint32_t weighed_at_once;
	/* Entries in one reply to a list. */
	uint32_t list_piece;
	/* The shortest lease, in nanoseconds. */
	span_ns lease_min;
};

#endif
