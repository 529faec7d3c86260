/* explore.h: every order of events of a tiny cluster of real cores.
 *
 * A core is pure and its memory is handed in. So a whole world (three cores, what is under way, two
 * or three clients, the checker's notes) lives in one region, which is copied before a choice and
 * put back after it. A world that looks the same as one seen before, with the same budgets left, is
 * not explored again.
 */
#ifndef PAWL_TESTS_EXPLORE_H
#define PAWL_TESTS_EXPLORE_H

#include "stage.h"

#define CLIENTS 3
#define CHOICES_MAX 40
#define ACQUIRED_MAX 16

/* ---- region.c: memory that can be copied and put back ---- */
struct region;
struct region *region_new(size_t size);
void region_free(struct region *r);
struct allocator region_allocator(struct region *r);
/* The number of bytes to copy. */
size_t region_used(const struct region *r);
void region_save(const struct region *r, void *to);
void region_restore(struct region *r, const void *from);

/* ---- what may happen ---- */
/* What a client may do. */
struct plan {
	uint8_t node;
	/* It waits in the queue; otherwise it tries once. */
	bool waits;
	/* It drops answers that come too late. */
	bool keeps_deadline;
	/* It asks when no restart is left to come. */
	bool later;
	uint8_t acquires, extends, releases, repeats;
	/* What it asks for (terms.of): 0, MODE_SHARED, or one permit of so many. */
	uint16_t of;
	uint8_t downgrades;
	/* It transfers to the next client. */
	uint8_t transfers;
	/* Its lock ends with its connection, which is closed once. Then the client starts again
	 * with the lock_id that it had. */
	bool closes;
	int8_t priority;
	/* Each update sets the value if it is still the one of the acquire. A client without a lock
	 * of its own updates the other client's. */
	uint8_t updates;
};

#define AIMS 2
enum aim {
	AIM_NONE,
	/* The first node that is outside replaces the last master. */
	AIM_REPLACE,
	/* All nodes become masters. */
	AIM_GROW,
	/* The last master leaves. */
	AIM_SHRINK,
	/* max_lease becomes shorter. */
	AIM_TIMING
};

struct scope {
	const char *name;
	/* How often time passes, each time by a little less than a quarter of a lease. */
	uint8_t passes;
	/* How many links may hold messages while time passes. */
	uint8_t slow;
	/* How often a node starts anew, without its memory. */
	uint8_t restarts;
	/* The node that does so: 1, 2, ...; 0: any. */
	uint8_t restarted;
	/* How often a link breaks: what is under way is lost. */
	uint8_t breaks;
	/* How often the last node lies: it tells another node of a configuration in which it is the
	 * only master. */
	uint8_t lies;
	/* The first client holds the key from the beginning. */
	bool granted;
	/* The scope is too large to explore all of it: it is walked at random instead. */
	bool walks;
	/* 0 masters: 3. Nodes that are in no configuration come after the masters. */
	uint8_t masters, outside;
	/* What operators want: the first asks node 1, the second node 2. */
	enum aim aims[AIMS];
	struct plan clients[CLIENTS];
};

enum choice_kind { CHOICE_DELIVER, CHOICE_ASK, CHOICE_EXTEND, CHOICE_RELEASE, CHOICE_DOWNGRADE,
	CHOICE_TRANSFER, CHOICE_UPDATE, CHOICE_CLOSE, CHOICE_PASS, CHOICE_RESTART, CHOICE_BREAK,
	CHOICE_CHANGE, CHOICE_LIE };
struct choice {
	enum choice_kind kind;
	uint8_t a, b;
};

enum client_state { CLIENT_IDLE, CLIENT_ASKED, CLIENT_HOLDS, CLIENT_BROKEN };
struct contender {
	struct plan left;
	enum client_state state;
	uint8_t node, lock;
	/* The ids of requests; 0: none. */
	uint64_t asked, extending, updating;
	int64_t asked_at, extend_at;
	int64_t asked_event;
	/* In true time: the clients' clocks are exact, the nodes' are fast. */
	int64_t believed_from, believed_until;
	uint64_t token;
	/* What it holds. */
	struct terms terms;
	/* How many connections it has closed so far. */
	uint8_t closed;
};

/* An acquisition that was answered. */
struct acquired {
	uint8_t client, lock;
	uint64_t token;
	struct terms terms;
	int64_t asked_event, answered_event;
	/* When its belief began and ended, in true time; INT64_MAX: it is not over. */
	int64_t began, ended;
};

struct world {
	struct stage *stage;
	/* The budgets that are left. */
	struct scope left;
	struct contender clients[CLIENTS];
	struct acquired acquired[ACQUIRED_MAX];
	uint32_t acquired_count;
	uint8_t locks;
	/* How many updates were answered as done. */
	uint8_t updated;
	int64_t events;
	uint64_t replies_seen;
	const char *violation;
};

/* ---- world.c ---- */
struct world *world_new(const struct scope *scope, const struct allocator *memory);
uint32_t world_choices(const struct world *w, struct choice out[CHOICES_MAX]);
void world_apply(struct world *w, struct choice choice);
void world_describe(const struct world *w, struct choice choice, char *out, size_t size);

/* An address that is only in a configuration that was made up. */
#define WORLD_LIE "lie:1"

/* ---- judge_world.c ---- */
/* Judges mutual exclusion, the order of tokens, that one update wins, and that an epoch has one
 * configuration. */
void judge_acquired(struct world *w, uint32_t client, uint64_t token, int64_t until);
/* From now on the client trusts only to share the lock. */
void judge_downgraded(struct world *w, uint32_t client);
void judge_ended(struct world *w, uint32_t client);
void judge_updated(struct world *w, uint32_t client, const struct stage_reply *reply);
void judge_now(struct world *w);

/* ---- world_hash.c ---- */
uint64_t world_hash(const struct world *w);

#endif
