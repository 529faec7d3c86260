/* profile.h: what one seed expands to (swarm testing: Groce and others, 2012): each run has its own sizes, timing, habits
 * of clients and its own few kinds of faults, so that rare combinations come up that an average mix would drown. */
#ifndef PAWL_SIM_PROFILE_H
#define PAWL_SIM_PROFILE_H

#include "cluster_sim.h"

/* X(name) */
#define PROFILE_THEMES(X) \
	X(quiet)     /* no faults: order of waiting, contention, latency */ \
	X(mixed)     /* any faults */ \
	X(restarts)  /* masters come and go, one after the other or all at once */ \
	X(drains)    /* rolling planned stops, some of which fail */ \
	X(partition) /* cuts, broken links */ \
	X(clocks)    /* clocks at the edges of the drift, holders that use their leases to the end */ \
	X(pauses)    /* nodes and clients that stand still or sleep */ \
	X(unkind)    /* frames lost, doubled, overtaken: worse than TCP */ \
	X(targeted)  /* trouble exactly around certain messages */ \
	X(updates)   /* many updates by callers that share a lock_id */ \
	X(blind)     /* extensions by callers that keep no deadline, at other nodes */ \
	X(contested) /* commits that reach few, clients that vanish, restarts that merge what is left */ \
	X(moving)    /* short leases whose quorum moves: extensions reach some, late, and waiters press */ \
	X(late)      /* masters restart right after they accepted, answers are about a round late */ \
	X(repeats)   /* requests are repeated at other nodes long before and after their answers */ \
	X(overlap)   /* promises end with broken links while the commit that rests on them is still on its way */ \
	X(disks)     /* slow and failing disks, ceilings */ \
	X(limits)    /* small tables, strangers' identities */ \
	X(duel)      /* few clients, one key, leases and timeouts of a few messages: much trouble close together */ \
	X(shared)    /* readers and writers */ \
	X(permits)   /* semaphores with weights */ \
	X(groups)    /* several keys at once, and those who want them alone */ \
	X(succession) /* priorities, hand-overs, downgrades, requests to let go */ \
	X(delays)    /* lock delays, and holders that go without a release */ \
	X(replicas)  /* nodes that are added and follow; their masters come and go */ \
	X(membership) /* one operator, few faults */ \
	X(operators) /* several at cross purposes, trouble around the messages of a change */ \
	X(restarts_in_change) /* masters restart in the middle of changes, with and without their files */ \
	X(whole_set) /* changes that replace everybody */ \
	X(forced)    /* a majority is lost for good */ \
	/* From here on drawn by a generator of their own, so that what a seed is does not change when one is added (profile_later.c). */ \
	X(bound)     /* locks that end with their connections, several keys, permits: in every change of the set; and extensions long after */ \
	X(prompt)    /* long leases: what nobody holds is free before they are over */ \
	X(renewed)   /* semaphores whose holders renew for ever, while masters restart one by one */ \
	X(shortage)  /* memory runs short, backlogs are full (shortage.c) */ \
	X(crowd)     /* many who hold one key together, while it is read and explained and masters are silent */ \
	X(lies)      /* a node that is no master says what it likes, while the set changes (liar.c) */ \
	X(lying_master) /* one of the masters says what it likes (liar_master.c) */

#define PROFILE_FIRST_LATER THEME_bound

enum profile_theme {
#define PROFILE_ENUM(name) THEME_##name,
	PROFILE_THEMES(PROFILE_ENUM)
#undef PROFILE_ENUM
	THEMES
};

enum fault {
	FAULT_KILL,        /* a process dies and is started again */
	FAULT_KILL_SOME,   /* several at once, perhaps all */
	FAULT_ROLLING,     /* one after the other */
	FAULT_DRAIN,
	FAULT_ROLLING_DRAIN,
	FAULT_PAUSE,
	FAULT_SUSPEND,
	FAULT_CUT,         /* one way */
	FAULT_ISOLATE,
	FAULT_SPLIT,       /* two sides */
	FAULT_CLOSE,       /* a link breaks, perhaps in mid-frame */
	FAULT_SLOW_LINK,
	FAULT_DISK,
	FAULT_RATE,        /* clocks change their rates */
	FAULT_CLIENT_PAUSE,
	FAULT_CLIENT_SUSPEND,
	FAULT_CLIENT_CUT,
	FAULT_LOSE_FILES, /* a node comes back with an empty directory */
	FAULTS
};

enum client_habit { /* weights of what a client does next */
	HABIT_ACQUIRE, HABIT_GET, HABIT_WAIT, HABIT_LIST, HABIT_WAITERS, HABIT_BREAK, HABIT_SHARED_UPDATE, HABIT_SHARED_EXTEND,
	HABIT_STEAL, HABIT_ASK, HABIT_EXPLAIN,
	HABIT_EXTEND, HABIT_BLIND_EXTEND, HABIT_UPDATE, HABIT_READ_OWN, HABIT_RELEASE, HABIT_ABANDON, HABIT_VANISH, HABIT_MOVE, HABIT_IDLE, HABIT_TRANSFER, HABIT_DOWNGRADE,
	HABITS
};
#define HABIT_FIRST_HOLDING HABIT_EXTEND

struct shortage { /* every: 0: none */
	struct sim_shortage always; /* by chance */
	uint32_t memory_weight, backlog_weight; /* for a while */
	span_ns every, span_most;
};

struct profile {
	enum profile_theme theme;
	struct sim_options sim;
	struct sim_adversary adversary;
	uint32_t clients, keys;
	span_ns active;      /* true time with faults */
	span_ns think_min, think_max;
	span_ns lease_min, lease_max, wait_max;
	uint32_t wait_percent, repeat_percent, hold_on_percent; /* hold_on: extends only shortly before the end */
	uint32_t idle_weight[HABITS]; /* those below HABIT_FIRST_HOLDING, and HABIT_MOVE: while holding nothing */
	uint32_t hold_weight[HABITS];
	uint32_t fault_weight[FAULTS];
	span_ns fault_every; /* mean; 0: never */
	span_ns down_max, cut_max, pause_max;
	span_ns down_long; /* some stay down for up to this; 0: none */
	span_ns disk_slow; /* until the heal every write takes up to this; 0: as sim.disk_max */
	bool astray;         /* one clock of a node may leave the bound while the other keeps it */
	bool identities;
	uint32_t operators;
	uint32_t change_weight[CHANGE_FORCE];
	span_ns operate_every;
	uint32_t epoch_percent; /* of new epochs: some of the masters of before and after are killed around their adoption */
	uint32_t masters_least, masters_most; /* that operators ask for */
	uint32_t shared_percent, permits_percent; /* of the acquires; the others are exclusive */
	uint32_t permits_of;     /* that a semaphore has */
	uint32_t permits_most;   /* that one asks for; 0: one less */
	uint32_t priority_percent, delay_percent, binding_percent; /* bond: ends with the connection */
	span_ns delay_max;
	uint32_t groupers; /* clients that want several keys at once */
	uint32_t silent_percent; /* a client that gives up an acquire says nothing any more */
	bool rush;           /* commits of many who want the same few keys cross on their way: a node may have to tell that something is missing */
	bool calm;           /* after the heal holders go on renewing, and what nobody holds is demanded before leases are over */
	uint32_t crowds;     /* of many who hold one key together, and read it */
	uint32_t liars;      /* 1: the last of the further nodes; operators make it a replica, and never a master */
	uint32_t lying_master; /* its index + 1; 0: none lies */
	uint32_t latecomers; /* clients that use lock_ids of others, long after */
	struct shortage shortage;
};

/* theme: THEMES to have it drawn, too. */
void profile_draw(struct profile *p, uint64_t seed, enum profile_theme theme);
enum profile_theme profile_theme_named(const char *name); /* THEMES: none */
const char *profile_theme_name(enum profile_theme theme);
void profile_dense(struct profile *p, struct prng *prng); /* everything close together, so that much happens in a run */
void profile_sharpen(struct profile *p, struct prng *prng); /* the last part of profile_draw */
void profile_members(struct profile *p, struct prng *prng); /* for the themes of changes */
void profile_terms(struct profile *p); /* what locks exclude; drawn apart, so that the rest of a seed stays what it is */
enum profile_theme profile_later_theme(uint64_t seed); /* THEMES: it has one of the first */
void profile_later(struct profile *p); /* the themes that came later, and habits of all */
void profile_shortage(struct profile *p);
void profile_some_members(struct profile *p, struct prng *prng);
void profile_print(const struct profile *p, char *out, size_t size);

#endif
