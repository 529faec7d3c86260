/* right.h: the rights that a client can have. Each method of the client protocol needs one of them
 * (src/wire/client/client_method.h, the table of methods). The file that `[acl] file` names says
 * which client has which (src/rights/rights.h). */
#ifndef PAWL_BASE_RIGHT_H
#define PAWL_BASE_RIGHT_H

/* X(name, name in the file of rules) */
#define RIGHT_TABLE(X) \
	X(READ, "read") X(ACQUIRE, "acquire") X(WAIT, "wait") X(WATCH, "watch") \
	X(BREAK, "break") X(PRIORITY, "priority") X(STATUS, "status") X(CLUSTER, "cluster")

enum right {
#define RIGHT_ENUM(name, text) RIGHT_##name,
	RIGHT_TABLE(RIGHT_ENUM)
#undef RIGHT_ENUM
	/* Whoever is connected has this right: no rule gives it or takes it away. */
	RIGHT_NONE
};
#define RIGHTS ((unsigned)RIGHT_NONE)

/* STATUS and CLUSTER are about the node and the cluster; the other rights are about keys. */
#define RIGHT_HAS_KEY(right) ((right) < RIGHT_STATUS)

#endif
