/* record_change.h: what can happen to a record. What follows from each change is said in
 * changes/record_changed.c. */
#ifndef PAWL_CLUSTER_RECORD_CHANGE_H
#define PAWL_CLUSTER_RECORD_CHANGE_H

#define RECORD_CHANGES(X) \
	X(GRANTED) X(WRITTEN) X(ACCEPTED) X(EXTENDED) X(PREPARED) X(DOWNGRADED) X(BARRED) \
	X(NARROWED) X(CLOSED) X(CLOSING) X(EXPIRED) X(RELEASED) X(LOST) X(MERGED) X(FOLLOWED) \
	X(DISPROVED)

enum record_change {
#define X(name) RECORD_##name,
	RECORD_CHANGES(X)
#undef X
};

#endif
