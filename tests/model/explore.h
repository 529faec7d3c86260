/* explore.h: every order of events of a tiny cluster of real cores.
 *
 * A core is pure and its memory is handed in, so a whole world (three cores, what is under way, two or three clients, the checker's
 * notes) lives in one region that is copied before a choice and put back after it. A world that looks the same as one seen
 * before, with the same budgets left, is not gone into again.
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
size_t region_used(const struct region *r); /* bytes to copy */
void region_save(const struct region *r, void *to);
void region_restore(struct region *r, const void *from);

/* ---- what may happen ---- */
struct plan { /* of a client */
	uint8_t node;
	bool waits;          /* in the queue; else it tries once */
	bool keeps_deadline; /* drops answers that come too late */
	bool later;          /* asks when no restart is left to come */
	uint8_t acquires, extends, releases, repeats;
	uint16_t of;         /* what it asks for (terms.of): 0, SHARE_SHARED, or one permit of so many */
	uint8_t downgrades;
	uint8_t transfers;   /* to the client after it */
	bool closes;         /* its lock ends with its connection, which is closed once; then it starts again with the lock_id that it had */
	int8_t priority;
	uint8_t updates;     /* each sets the value if it is still the one of the acquire; of the other client's lock if it has none */
};

#define AIMS 2
enum aim {
	AIM_NONE,
	AIM_REPLACE, /* the first node that is outside for the last master */
	AIM_GROW,    /* all nodes are masters */
	AIM_SHRINK,  /* the last master leaves */
	AIM_TIMING   /* a shorter max_lease */
};

struct scope {
	const char *name;
	uint8_t passes;   /* of a quarter of a lease and a little less */
	uint8_t slow;     /* so many links may hold messages while time passes */
	uint8_t restarts; /* of a node, without its memory */
	uint8_t restarted; /* which one: 1, 2, ...; 0: any */
	uint8_t breaks;   /* of a link: what is under way is lost */
	uint8_t lies;     /* of the last node: it tells one of the others of a configuration in which it is the only master */
	bool granted;     /* the first client holds the key from the beginning */
	bool walks;       /* too large for all of it: walks at random instead */
	uint8_t masters, outside; /* 0 masters: 3; nodes that are in no configuration come after them */
	enum aim aims[AIMS]; /* of operators: the first asks node 1, the second node 2 */
	struct plan clients[CLIENTS];
};

enum choice_kind { CHOICE_DELIVER, CHOICE_ASK, CHOICE_EXTEND, CHOICE_RELEASE, CHOICE_DOWNGRADE, CHOICE_TRANSFER, CHOICE_UPDATE, CHOICE_CLOSE, CHOICE_PASS, CHOICE_RESTART, CHOICE_BREAK,
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
	uint64_t asked, extending, updating; /* request ids; 0: none */
	int64_t asked_at, extend_at;
	int64_t asked_event;
	int64_t believed_from, believed_until; /* true time: the clients' clocks are exact, the nodes' are fast */
	uint64_t token;
	struct terms terms; /* what it holds */
	uint8_t closed;     /* connections, so far */
};

struct acquired { /* an acquisition that was answered */
	uint8_t client, lock;
	uint64_t token;
	struct terms terms;
	int64_t asked_event, answered_event;
	int64_t began, ended; /* of its belief, true time; INT64_MAX: not over */
};

struct world {
	struct stage *stage;
	struct scope left; /* budgets */
	struct contender clients[CLIENTS];
	struct acquired acquired[ACQUIRED_MAX];
	uint32_t acquired_count;
	uint8_t locks;
	uint8_t updated; /* updates that were answered as done */
	int64_t events;
	uint64_t replies_seen;
	const char *violation;
};

/* ---- world.c ---- */
struct world *world_new(const struct scope *scope, const struct allocator *memory);
uint32_t world_choices(const struct world *w, struct choice out[CHOICES_MAX]);
void world_apply(struct world *w, struct choice choice);
void world_describe(const struct world *w, struct choice choice, char *out, size_t size);

#define WORLD_LIE "lie:1" /* the address that only a configuration has that was made up */

/* ---- judge_world.c: mutual exclusion, the order of tokens, one update that wins, one configuration an epoch ---- */
void judge_acquired(struct world *w, uint32_t client, uint64_t token, int64_t until);
void judge_downgraded(struct world *w, uint32_t client); /* from now on it trusts to share the lock, and no more */
void judge_ended(struct world *w, uint32_t client);
void judge_updated(struct world *w, uint32_t client, const struct stage_reply *reply);
void judge_now(struct world *w);

/* ---- world_hash.c ---- */
uint64_t world_hash(const struct world *w);

#endif
