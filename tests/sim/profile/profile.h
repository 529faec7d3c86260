/* profile.h: what one seed expands to (swarm testing: Groce and others, 2012). Each run has its own
 * sizes, timing, habits of clients and its own few kinds of faults, so that rare combinations come
 * up that an average mix would drown. */
#ifndef PAWL_SIM_PROFILE_H
#define PAWL_SIM_PROFILE_H

#include "cluster_sim.h"

/* The themes, as X(name). */
#define PROFILE_THEMES(X) \
	X(quiet)     /* no faults: order of waiting, contention, latency */ \
	X(mixed)     /* any faults */ \
	X(restarts)  /* masters come and go, one after the other or all at once */ \
	X(drains)    /* rolling planned stops, some of which fail */ \
	X(partition) /* cuts, broken links */ \
	X(clocks)    /* clocks at the edges of the drift, leases used to their end */ \
	X(pauses)    /* nodes and clients that stand still or sleep */ \
	X(unkind)    /* frames lost, doubled or overtaken: worse than TCP */ \
	X(targeted)  /* trouble exactly around certain messages */ \
	X(updates)   /* many updates by callers that share a lock_id */ \
	X(blind)     /* extensions by callers that keep no deadline, at other nodes */ \
	X(contested) /* commits that reach few, restarts that merge what is left */ \
	X(moving)    /* short leases whose quorum moves while waiters press */ \
	X(late)      /* masters restart right after they accepted, answers come late */ \
	X(repeats)   /* requests are repeated at other nodes, early and late */ \
	X(overlap)   /* promises end with their links, while commits are on their way */ \
	X(disks)     /* slow and failing disks, and clock reservations */ \
	X(limits)    /* small tables, and lock_ids used under other identities */ \
	X(duel)      /* few clients, one key, leases and timeouts of a few messages */ \
	X(shared)    /* readers and writers */ \
	X(permits)   /* semaphores with weights */ \
	X(groups)    /* several keys at once, and those who want them alone */ \
	X(succession) /* priorities, hand-overs, downgrades, requests to let go */ \
	X(delays)    /* lock delays, and holders that go without a release */ \
	X(replicas)  /* nodes that are added and follow, while their masters come and go */ \
	X(membership) /* one operator, few faults */ \
	X(operators) /* several at cross purposes, trouble around their messages */ \
	X(restarts_in_change) /* with and without their files */ \
	X(whole_set) /* changes that replace everybody */ \
	X(forced)    /* a majority is lost for good */ \
	/* What a seed is must not change when a theme is added: these are drawn apart. */ \
	/* See profile_later.c. */ \
	X(bound)     /* bindings, several keys and permits, while the set changes */ \
	X(prompt)    /* long leases, and what nobody holds is free before they are over */ \
	X(renewed)   /* holders of permits renew for ever, while masters restart one by one */ \
	X(shortage)  /* memory runs short, and backlogs are full (shortage.c) */ \
	X(crowd)     /* many hold one key together, while masters are silent */ \
	X(lies)      /* a node that is no master lies (liar.c) */ \
	X(lying_master) /* one of the masters lies (liar_master.c) */ \
	X(hangs)     /* nodes stand still, and clients leave them within a moment */ \
	X(crossed)   /* any three features of other themes at once */ \
	X(turns)     /* many wait long, and what is said of turns and commits comes late */

#define PROFILE_FIRST_LATER THEME_bound

enum profile_theme {
#define PROFILE_ENUM(name) THEME_##name,
	PROFILE_THEMES(PROFILE_ENUM)
#undef PROFILE_ENUM
	THEMES
};

enum fault {
	/* A process dies and is started again. */
	FAULT_KILL,
	/* Several processes die at once, perhaps all. */
	FAULT_KILL_SOME,
	/* All processes die, one after the other. */
	FAULT_ROLLING,
	FAULT_DRAIN,
	FAULT_ROLLING_DRAIN,
	FAULT_PAUSE,
	FAULT_SUSPEND,
	/* One way of a link is cut. */
	FAULT_CUT,
	FAULT_ISOLATE,
	/* The nodes are cut into two sides. */
	FAULT_SPLIT,
	/* A link breaks, perhaps in mid-frame. */
	FAULT_CLOSE,
	FAULT_SLOW_LINK,
	FAULT_DISK,
	/* Clocks change their rates. */
	FAULT_RATE,
	FAULT_CLIENT_PAUSE,
	FAULT_CLIENT_SUSPEND,
	FAULT_CLIENT_CUT,
	/* A node comes back with an empty directory. */
	FAULT_LOSE_FILES,
	FAULTS
};

/* What a client may do next; each habit has a weight. Those from HABIT_FIRST_HOLDING on are for a
 * client that holds a lock. */
enum client_habit {
	HABIT_ACQUIRE, HABIT_GET, HABIT_WAIT, HABIT_LIST, HABIT_WAITERS, HABIT_BREAK,
	HABIT_SHARED_UPDATE, HABIT_SHARED_EXTEND, HABIT_SHARED_RELEASE,
	HABIT_STEAL, HABIT_ASK, HABIT_EXPLAIN,
	HABIT_EXTEND, HABIT_BLIND_EXTEND, HABIT_UPDATE, HABIT_READ_OWN, HABIT_RELEASE,
	HABIT_ABANDON, HABIT_VANISH, HABIT_MOVE, HABIT_IDLE, HABIT_TRANSFER, HABIT_DOWNGRADE,
	HABIT_RELEASE_BY_VALUE,
	HABITS
};
#define HABIT_FIRST_HOLDING HABIT_EXTEND

/* What runs short. With 0 in `every` nothing does. */
struct shortage {
	/* What runs short by chance. */
	struct sim_shortage always;
	/* The weights of what runs short for a while. */
	uint32_t memory_weight, backlog_weight;
	span_ns every, span_most;
};

struct profile {
	enum profile_theme theme;
	struct sim_options sim;
	struct sim_adversary adversary;
	uint32_t clients, keys;
	/* The last node is the replica of watcher.c. */
	bool watcher;
	/* Watches begin and end (watches.c). */
	bool watches_change;
	/* For how long there are faults, in true time. */
	span_ns active;
	span_ns think_min, think_max;
	span_ns lease_min, lease_max, wait_max;
	/* The part in percent: of the acquires that wait, of the requests that are repeated, and of
	 * the holders that extend only shortly before the end. */
	uint32_t wait_percent, repeat_percent, hold_on_percent;
	/* The weights of habits while holding nothing: those below HABIT_FIRST_HOLDING, and
	 * HABIT_MOVE. */
	uint32_t idle_weight[HABITS];
	uint32_t hold_weight[HABITS];
	uint32_t fault_weight[FAULTS];
	/* The mean time from one fault to the next; 0: there are none. */
	span_ns fault_every;
	span_ns down_max, cut_max, pause_max;
	/* Some nodes stay down for up to this span; 0: none do. */
	span_ns down_long;
	/* Every write takes up to this span until the heal; 0: as sim.disk_max says. */
	span_ns disk_slow;
	/* One clock of a node may leave the bound, while the other keeps it. */
	bool astray;
	bool identities;
	uint32_t operators;
	uint32_t change_weight[CHANGE_FORCE];
	span_ns operate_every;
	/* The percentage of new epochs around whose adoption some of the previous and of the new
	 * masters are killed. */
	uint32_t epoch_percent;
	/* How many masters operators ask for. */
	uint32_t masters_least, masters_most;
	/* The part of the acquires in percent; the other acquires are exclusive. */
	uint32_t shared_percent, permits_percent;
	/* How many permits a semaphore has. */
	uint32_t permits_of;
	/* How many of them one acquire asks for at most; 0: one less than there are. */
	uint32_t permits_most;
	/* The part of the acquires in percent that have a priority, a lock delay, or a session
	 * binding. */
	uint32_t priority_percent, delay_percent, binding_percent;
	span_ns delay_max;
	/* Clients leave a silent node after a moment, and repeat there what is under way. */
	bool switches;
	/* How many clients want several keys at once. */
	uint32_t groupers;
	/* The percentage of clients that do not release an acquire when they give it up. */
	uint32_t silent_percent;
	/* The commits of many clients that want the same few keys cross on their way. A node may
	 * have to tell its watchers that they missed something. */
	bool rush;
	/* After the heal holders go on renewing, and what nobody holds is demanded before leases
	 * are over. */
	bool calm;
	/* The number of keys that a crowd holds together and reads. */
	uint32_t crowds;
	/* 1: the last of the further nodes lies. Operators make it a replica, and never a
	 * master. */
	uint32_t liars;
	/* The index of the master that lies, + 1; 0: none does. */
	uint32_t lying_master;
	/* How many clients use the lock_ids of others, long after. */
	uint32_t latecomers;
	struct shortage shortage;
};

/* If `theme` is THEMES, the theme is drawn from the seed, too. */
void profile_draw(struct profile *p, uint64_t seed, enum profile_theme theme);
/* Returns THEMES if there is no such theme. */
enum profile_theme profile_theme_named(const char *name);
const char *profile_theme_name(enum profile_theme theme);
/* Puts everything close together, so that much happens in a run. */
void profile_dense(struct profile *p, struct prng *prng);
/* The last part of profile_draw. */
void profile_sharpen(struct profile *p, struct prng *prng);
/* Draws the themes of changes of the set. */
void profile_members(struct profile *p, struct prng *prng);
/* Draws what locks exclude. It has a generator of its own, so that the rest of a seed stays what it
 * is. */
void profile_terms(struct profile *p);
/* Returns THEMES if the seed has one of the first themes. */
enum profile_theme profile_later_theme(uint64_t seed);
/* Draws the themes that came later, and habits of all themes. */
void profile_later(struct profile *p);
void profile_crossed(struct profile *p, struct prng *prng);
void profile_turns(struct profile *p, struct prng *prng);
void profile_shortage(struct profile *p);
void profile_some_members(struct profile *p, struct prng *prng);
void profile_print(const struct profile *p, char *out, size_t size);

#endif
